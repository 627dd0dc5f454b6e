// The details of an error on the wire, as google.rpc has them.
#ifndef LOADLINE_PLUGIN_BASE_ERROR_INFO_H_
#define LOADLINE_PLUGIN_BASE_ERROR_INFO_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "plugin/base/wire.h"

namespace loadline {

// Returns a serialized google.rpc.Status with a google.rpc.ErrorInfo of the domain "loadline.dev". Entries of
// `metadata` without a value are left out.
inline std::string EncodeErrorInfo(
    uint64_t code, absl::string_view text, absl::string_view reason,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>> metadata) {
  std::string info;
  AppendBytes(1, reason, &info);
  AppendBytes(2, "loadline.dev", &info);
  for (const auto& [key, value] : metadata) {
    if (value.empty()) continue;
    std::string entry;
    AppendBytes(1, key, &entry);
    AppendBytes(2, value, &entry);
    AppendBytes(3, entry, &info);
  }
  std::string any;
  AppendBytes(1, "type.googleapis.com/google.rpc.ErrorInfo", &any);
  AppendBytes(2, info, &any);
  std::string out;
  AppendNumber(1, code, &out);
  AppendBytes(2, text, &out);
  AppendBytes(3, any, &out);
  return out;
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_BASE_ERROR_INFO_H_
