#include "core/base/bounded_name.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"

namespace loadline {

std::string BoundedName(std::string name) {
  if (name.size() <= kMostBoundedNameBytes) return name;
  FingerprintBuilder builder;
  builder.Add(absl::string_view(name));
  size_t end = kMostBoundedNameBytes;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // within a character
  name.resize(end);
  return absl::StrCat(name, "... ", absl::Hex(builder.Finish(), absl::kZeroPad16));
}

}  // namespace loadline
