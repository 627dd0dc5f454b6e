#include "plugin/convert/explain.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "plugin/convert/policy.h"

namespace loadline {
namespace {

v1::NodeExplanation::Outcome EncodeOutcome(ScoreOutcome outcome) {
  switch (outcome) {
    case ScoreOutcome::kScored:
      return v1::NodeExplanation::SCORED;
    case ScoreOutcome::kLacksLimitedResource:
      return v1::NodeExplanation::LACKS_LIMITED_RESOURCE;
    case ScoreOutcome::kNothingCounted:
      return v1::NodeExplanation::NOTHING_COUNTED;
  }
  return v1::NodeExplanation::OUTCOME_UNSPECIFIED;  // reached only by a cast from outside the enum
}

void EncodeResource(const ResourceExplanation& resource, const ScoredResource& scored,
                    v1::ResourceExplanation* message) {
  message->set_resource(scored.name);
  message->set_weight(scored.weight);
  message->set_allocatable(resource.allocatable);
  message->set_node_limits(resource.node_limits);
  message->set_pod_limit(resource.pod.amount);
  message->set_ratio(resource.ratio);
  message->set_raw_score(resource.raw_score);
  if (resource.pod.missing) message->set_pod_rule(EncodeRule(resource.pod_rule));
  message->set_pod_clamped(resource.pod.clamped);
  message->set_node_missing_limits(resource.node_missing_limits);
  message->set_node_clamped(resource.node_clamped);
  message->set_saturated(resource.saturated);
  message->set_pod_by_profile(resource.pod_by_profile);
  message->set_pod_by_share(resource.pod_by_share);
}

// The bounds on the answer for one resource: hostile names must not swell it.
constexpr size_t kMaxContainersReported = 8;
constexpr size_t kMaxContainerName = 63;

}  // namespace

v1::NodeExplanation EncodeExplanation(const NodeExplanation& explanation, absl::string_view node_name,
                                      const LimitPolicy& policy) {
  v1::NodeExplanation message;
  message.set_slot(static_cast<int32_t>(explanation.slot));
  message.set_node(std::string(node_name));
  message.set_outcome(EncodeOutcome(explanation.outcome));
  message.set_score(explanation.score);
  message.set_raw_score(explanation.raw_score);
  message.set_lost_apart(explanation.lost_apart);
  if (explanation.hour.has_value()) message.set_hour(static_cast<int32_t>(*explanation.hour));
  for (size_t r = 0; r < explanation.resources.size(); ++r) {
    EncodeResource(explanation.resources[r], policy.resources[r], message.add_resources());
  }
  return message;
}

google::protobuf::RepeatedPtrField<v1::UnlimitedContainers> EncodeUnlimitedContainers(
    const PodResources& pod, const ResourceNames& names, const LimitPolicy& policy) {
  google::protobuf::RepeatedPtrField<v1::UnlimitedContainers> messages;
  if (policy.pod_limits != PodLimits::kEffective) return messages;
  for (const ScoredResource& resource : policy.resources) {
    const std::optional<ResourceId> id = names.Find(resource.name);
    if (!id.has_value()) continue;  // no node offers it, and the pod does not name it
    const std::vector<std::string> without = ContainersWithoutLimit(pod, *id, names, /*use_status=*/false);
    if (without.empty()) continue;
    v1::UnlimitedContainers* const message = messages.Add();
    message->set_resource(resource.name);
    message->set_total(static_cast<int32_t>(without.size()));
    for (size_t i = 0; i < std::min(without.size(), kMaxContainersReported); ++i) {
      message->add_containers(absl::CHexEscape(without[i].substr(0, kMaxContainerName)));
    }
  }
  return messages;
}

}  // namespace loadline
