#include "plugin/convert/text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace loadline {

std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxQuoted = 64;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)), "\"",
                      text.size() > kMaxQuoted ? "..." : "");
}

absl::Status CheckName(absl::string_view text, size_t max_length) {
  if (text.size() > max_length) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is not a name: it has ", text.size(),
                                                   " bytes, at most ", max_length, " are allowed"));
  }
  const auto is_graph = [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); };
  if (std::all_of(text.begin(), text.end(), is_graph)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a name: it has characters other than printable ASCII"));
}

absl::Status Annotate(const absl::Status& status, absl::string_view prefix, absl::string_view separator) {
  return absl::Status(status.code(), absl::StrCat(prefix, separator, status.message()));
}

}  // namespace loadline
