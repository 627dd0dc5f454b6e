#include "plugin/convert/usage.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/amount.h"
#include "core/base/fingerprint.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr int64_t kLatestSampleS = int64_t{1} << 40;
constexpr int32_t kMostMargin = 1000;
constexpr size_t kTemplateDigits = 16;

absl::Status ReadHours(absl::string_view field,
                       const google::protobuf::RepeatedField<google::protobuf::int64>& message,
                       HourlyAmounts* hours) {
  if (message.empty()) return absl::OkStatus();
  if (message.size() != static_cast<int>(kHoursOfDay)) {
    return Refused(absl::StrCat(field, ": has ", message.size(), " entries, not ", kHoursOfDay));
  }
  for (int hour = 0; hour < message.size(); ++hour) {
    absl::Status status = CheckRange(absl::StrCat(field, "[", hour, "]"), message[hour], 0, kMaxAmount);
    if (!status.ok()) return status;
    (*hours)[static_cast<size_t>(hour)] = message[hour];
  }
  return absl::OkStatus();
}

absl::Status ReadUsage(const v1::WorkloadUsage& message, WorkloadUsage* usage) {
  Fields fields;
  fields.Keep(ReadHours("cpu_milli", message.cpu_milli(), &usage->cpu_milli));
  fields.Keep(ReadHours("memory_bytes", message.memory_bytes(), &usage->memory_bytes));
  fields.Range("cpu_limit_milli", message.cpu_limit_milli(), 0, kMaxAmount);
  fields.Range("memory_limit_bytes", message.memory_limit_bytes(), 0, kMaxAmount);
  fields.Keep(CheckNotNegative("days", message.days()));
  fields.Keep(CheckNotNegative("samples", message.samples()));
  fields.Range("newest_s", message.newest_s(), 0, kLatestSampleS);
  fields.Range("oldest_s", message.oldest_s(), 0, message.newest_s());
  usage->pod_template = message.template_();
  usage->cpu_limit_milli = message.cpu_limit_milli();
  usage->memory_limit_bytes = message.memory_limit_bytes();
  usage->days = message.days();
  usage->newest_s = message.newest_s();
  return fields.status();
}

// A part of the name of a workload.
absl::Status CheckPart(absl::string_view field, absl::string_view text) {
  if (text.empty()) return Refused(absl::StrCat(field, ": is empty"));
  if (absl::StrContains(text, '/') || absl::StrContains(text, '@')) {
    return Refused(absl::StrCat(field, ": ", Quoted(text), " has a \"/\" or \"@\""));
  }
  return Annotate(CheckName(text), field);
}

}  // namespace

absl::StatusOr<ExpectedUseOptions> DecodeExpectedUse(const v1::ExpectedUse& message) {
  ExpectedUseOptions options;
  switch (message.mode()) {
    case v1::ExpectedUse::MODE_UNSPECIFIED:
    case v1::ExpectedUse::OFF:
      break;
    case v1::ExpectedUse::ON:
      options.on = true;
      break;
    default:
      return NoSuchValue("mode", static_cast<int>(message.mode()));
  }
  if (message.floor() < v1::ExpectedUse::FLOOR_UNSPECIFIED ||
      message.floor() > v1::ExpectedUse::REQUEST_FLOOR) {
    return NoSuchValue("floor", static_cast<int>(message.floor()));
  }
  options.request_floor = message.floor() == v1::ExpectedUse::REQUEST_FLOOR;
  Fields fields;
  const auto read = [&](absl::string_view field, int64_t value, int64_t lowest, int64_t highest,
                        auto* option) {
    if (value == 0) return;  // the default
    fields.Range(field, value, lowest, highest);
    *option = static_cast<std::remove_pointer_t<decltype(option)>>(value);
  };
  read("cpu_margin_percent", message.cpu_margin_percent(), 100, kMostMargin, &options.cpu_margin_percent);
  read("memory_margin_percent", message.memory_margin_percent(), 100, kMostMargin,
       &options.memory_margin_percent);
  read("neighbor_hours", message.neighbor_hours(), 0, 11, &options.neighbor_hours);
  read("min_days", message.min_days(), 1, 365, &options.min_days);
  read("max_age_s", message.max_age_s(), 60, int64_t{1} << 32, &options.max_age_s);
  if (!fields.status().ok()) return fields.status();
  // Options that are off are equal, whatever else they state.
  return options.on ? options : ExpectedUseOptions();
}

v1::ExpectedUse EncodeExpectedUse(const ExpectedUseOptions& options) {
  v1::ExpectedUse message;
  message.set_mode(options.on ? v1::ExpectedUse::ON : v1::ExpectedUse::OFF);
  message.set_cpu_margin_percent(options.cpu_margin_percent);
  message.set_memory_margin_percent(options.memory_margin_percent);
  message.set_neighbor_hours(options.neighbor_hours);
  message.set_min_days(options.min_days);
  message.set_max_age_s(options.max_age_s);
  message.set_floor(options.request_floor ? v1::ExpectedUse::REQUEST_FLOOR : v1::ExpectedUse::NO_FLOOR);
  return message;
}

absl::StatusOr<ClusterObject> DecodeWorkloadUsage(absl::string_view bytes) {
  v1::WorkloadUsage message;
  absl::Status status = CheckObjectSize(bytes);
  if (status.ok()) status = Parse(bytes, "loadline.v1.WorkloadUsage", &message);
  if (status.ok()) status = CheckPart("namespace", message.namespace_());
  if (status.ok()) status = CheckPart("kind", message.kind());
  if (status.ok()) status = CheckPart("name", message.name());
  if (!status.ok()) return status;
  ClusterObject object;
  object.key = {ObjectKind::kWorkloadUsage, message.namespace_(),
                absl::StrCat(message.kind(), "/", message.name())};
  WorkloadUsage usage;
  if (absl::Status bad = ReadUsage(message, &usage); bad.ok()) {
    object.content = usage;
  } else {
    object.unreadable = ReasonOf(bad);
    object.is_left_out = true;
  }
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(object.key.kind));
  builder.Add(bytes);
  object.fingerprint = builder.Finish();
  return object;
}

PodWorkload ReadPodWorkload(absl::string_view annotation) {
  PodWorkload workload;
  const size_t at = annotation.find('@');
  workload.name = std::string(annotation.substr(0, at));
  if (!CheckName(workload.name).ok()) return PodWorkload();
  if (at == absl::string_view::npos) return workload;
  const absl::string_view digits = annotation.substr(at + 1);
  if (digits.size() != kTemplateDigits || !absl::SimpleHexAtoi(digits, &workload.pod_template)) {
    return PodWorkload();
  }
  return workload;
}

}  // namespace loadline
