#include "plugin/convert/parse.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"

namespace loadline {

absl::string_view WithoutEnvelope(absl::string_view bytes) {
  constexpr absl::string_view kMagic("k8s\0", 4);
  constexpr uint32_t kRaw = 2;
  constexpr uint32_t kLengthDelimited = 2;  // all fields of a runtime.Unknown
  if (!absl::StartsWith(bytes, kMagic)) return bytes;
  const absl::string_view unknown = bytes.substr(kMagic.size());
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(unknown.data()),
                                            static_cast<int>(unknown.size()));
  absl::string_view raw;
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t size = 0;
    if ((tag & 7) != kLengthDelimited || !in.ReadVarint32(&size)) return bytes;
    const size_t at = static_cast<size_t>(in.CurrentPosition());
    if (size > unknown.size() - at || !in.Skip(static_cast<int>(size))) return bytes;
    if (tag >> 3 == kRaw) raw = unknown.substr(at, size);
  }
  return in.ConsumedEntireMessage() ? raw : bytes;
}

}  // namespace loadline
