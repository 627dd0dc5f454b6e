// Score policies: message to core type, and back.
#ifndef LOADLINE_PLUGIN_CONVERT_POLICY_H_
#define LOADLINE_PLUGIN_CONVERT_POLICY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/score/limit_policy.h"
#include "loadline/v1/score.pb.h"

namespace loadline {

// kInvalidArgument unless `name` is a resource that a container can limit: cpu, memory, ephemeral-storage, or
// a qualified name that starts with "hugepages-" or has a prefix ("nvidia.com/gpu").
absl::Status CheckScoredResource(absl::string_view name);

// Returns the policy with all that its preset settles.
// Errors: kInvalidArgument  names the field: no or an unknown preset, an enum value that does not exist, a
//                           number out of range, a resource named twice or unknown, two rules for
//                           the same pods and resource, a fixed amount that is no quantity or without FIXED
absl::StatusOr<LimitPolicy> DecodePolicy(const v1::ScorePolicy& message);

// Returns a message with nothing left UNSPECIFIED or empty, which decodes to `policy`. `preset` is what the
// policy started from. Rules for missing limits come in the order of the resources, BEST_EFFORT first.
v1::ScorePolicy EncodePolicy(const LimitPolicy& policy, v1::ScorePolicy::Preset preset);

v1::MissingLimitRule::Rule EncodeRule(MissingLimit rule);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_POLICY_H_
