#include "plugin/convert/startup_taints.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr int kMostTaints = 100;
constexpr int64_t kMostStartupMs = int64_t{1} << 40;  // chosen: 34 years, and sums of times do not overflow
// A prefix of 253 bytes, a slash, and a name of 63.
constexpr size_t kMostKeyBytes = 317;

absl::Status DecodeKeys(absl::string_view field, const google::protobuf::RepeatedPtrField<std::string>& keys,
                        std::vector<std::string>* out) {
  if (keys.empty()) return absl::OkStatus();  // most questions, without the text for an error
  const std::string name = absl::StrCat("startup_taints.", field);
  absl::Status status = CheckSize(name, keys.size(), kMostTaints);
  for (int i = 0; i < keys.size() && status.ok(); ++i) {
    const std::string& key = keys.Get(i);
    status = key.empty() ? Refused("is empty") : CheckName(key, kMostKeyBytes);
    if (!status.ok()) return Annotate(status, absl::StrCat(name, "[", i, "]"));
    out->push_back(key);
  }
  return status;
}

}  // namespace

absl::StatusOr<StartupTaints> DecodeStartupTaints(const v1::StartupTaints& message) {
  StartupTaints taints;
  absl::Status status = DecodeKeys("startup", message.startup(), &taints.startup);
  status.Update(DecodeKeys("startup_prefixes", message.startup_prefixes(), &taints.startup_prefixes));
  status.Update(DecodeKeys("status", message.status(), &taints.status));
  status.Update(CheckBounded("startup_taints.max_startup_milliseconds", message.max_startup_milliseconds(),
                             kMostStartupMs));
  if (!status.ok()) return status;
  if (message.max_startup_milliseconds() > 0) taints.max_startup_ms = message.max_startup_milliseconds();
  return taints;
}

}  // namespace loadline
