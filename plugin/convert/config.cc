#include "plugin/convert/config.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "loadline/v1/engine_config.pb.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/schema.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

absl::Status SetLimit(absl::string_view field, int32_t value, int32_t highest, int32_t* limit) {
  if (value < 0 || value > highest) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", value, " is not in [1, ", highest, "] and not 0 for the default"));
  }
  if (value > 0) *limit = value;
  return absl::OkStatus();
}

absl::Status SetBytes(absl::string_view field, int64_t value, int64_t* limit) {
  constexpr int64_t kLeast = int64_t{1} << 20;  // chosen: a smaller limit is most likely a wrong unit
  if (value != 0 && value < kLeast) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", value, " is less than ", kLeast, " and not 0 for the default"));
  }
  if (value > 0) *limit = value;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EngineLimits> DecodeConfig(absl::string_view bytes) {
  v1::EngineConfig config;
  if (absl::Status status = Parse(bytes, "loadline.v1.EngineConfig", &config); !status.ok()) {
    return Annotate(status, "configuration", " ");
  }
  if (const std::string field = Schema::OfThisEngine().UnknownField(config.GetTypeName(), bytes);
      !field.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("configuration: ", field, " is not known to this engine"));
  }
  EngineLimits limits;
  absl::Status status = SetLimit("max_views", config.max_views(), INT32_MAX, &limits.views);
  if (status.ok()) status = SetLimit("max_nodes", config.max_nodes(), 1 << 18, &limits.view.nodes);
  if (status.ok()) status = SetLimit("max_pods", config.max_pods(), INT32_MAX, &limits.view.pods);
  if (status.ok()) {
    status = SetLimit("max_pod_shapes", config.max_pod_shapes(), 1 << 21, &limits.view.pod_shapes);
  }
  if (status.ok()) {
    status = SetLimit("max_resources", config.max_resources(), INT32_MAX, &limits.view.resources);
  }
  if (status.ok())
    status = SetBytes("max_question_bytes", config.max_question_bytes(), &limits.question_bytes);
  if (status.ok()) status = SetBytes("max_view_bytes", config.max_view_bytes(), &limits.view.bytes);
  if (!config.slack_namespace().empty()) limits.slack_namespace = config.slack_namespace();
  if (absl::Status name = CheckName(limits.slack_namespace); status.ok() && !name.ok()) {
    status = Annotate(name, "slack_namespace");
  }
  if (status.ok()) status = SetLimit("max_policies", config.max_policies(), INT32_MAX, &limits.policies);
  if (!status.ok()) return status;
  return limits;
}

}  // namespace loadline
