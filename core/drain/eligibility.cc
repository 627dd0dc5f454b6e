#include "core/drain/eligibility.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "core/cluster/node_annotations.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/node_reason.h"

namespace loadline {
namespace {

// The age from which on a deletion taint no longer means that the node is being deleted. Published: Cluster
// Autoscaler gives a deletion five minutes (MaxCloudProviderNodeDeletionTime).
constexpr int64_t kDeletionTaintAgeS = 5 * 60;

double ThresholdFor(const ClusterState& state, const NodeQuestion& question,
                    const EligibilityOptions& options) {
  const NodeGroup& group = *question.group;
  if (HasGpuLabel(state.node_shape(question.slot).labels, options.utilization.gpu_labels)) {
    return group.gpu_utilization_threshold.value_or(options.gpu_utilization_threshold);
  }
  return group.utilization_threshold.value_or(options.utilization_threshold);
}

NodeReason ReasonOutsideGroups(NodeKind kind) {
  switch (kind) {
    case NodeKind::kMachine:
      break;
    case NodeKind::kControlPlane:
      return NodeReason::kControlPlane;
    case NodeKind::kVirtual:
      return NodeReason::kVirtualNode;
  }
  return NodeReason::kNotAutoscaled;
}

// Returns the reason that an annotation of the node states.
std::optional<NodeReason> ReasonOfAnnotations(const NodeTraits& traits) {
  for (const NodeAnnotationEntry& entry : NodeAnnotations()) {
    if (!States(traits, entry.annotation)) continue;
    switch (entry.annotation) {
      case NodeAnnotation::kDoNotDisrupt:
        return NodeReason::kDoNotDisrupt;
      case NodeAnnotation::kScaleDownDisabled:
      case NodeAnnotation::kNoDelete:
        return NodeReason::kScaleDownDisabledAnnotation;
    }
  }
  return std::nullopt;
}

}  // namespace

Eligibility CheckEligibility(const ClusterState& state, const NodeQuestion& question,
                             const EligibilityOptions& options, int64_t now_s) {
  const auto stays = [](NodeReason reason) { return Eligibility{reason, std::nullopt}; };
  const NodeGroup* const group = question.group;
  if (group == nullptr) return stays(ReasonOutsideGroups(state.traits(question.slot).kind));
  const bool left_alone = group->sized && !question.chosen;
  if (!left_alone && group->target <= group->min_nodes) return stays(NodeReason::kNodeGroupMinSizeReached);
  if (question.being_deleted || IsBeingDeleted(state, question.slot, now_s)) {
    return stays(NodeReason::kCurrentlyBeingDeleted);
  }
  const NodeTraits& traits = state.traits(question.slot);
  if (const auto reason = ReasonOfAnnotations(traits)) return stays(*reason);
  if (question.takes_replaced_pods) return stays(NodeReason::kPartOfReplacement);
  if (!traits.unreadable.empty()) return stays(NodeReason::kUnreadable);
  if (group->sized) return stays(left_alone ? NodeReason::kSizedByUtilization : NodeReason::kNone);
  const JudgedUtilization judged = UtilizationOf(state, question, options, now_s);
  Eligibility eligibility;
  eligibility.utilization = judged.utilization;
  if (!eligibility.utilization.has_value()) {
    eligibility.reason = NodeReason::kUnexpectedError;
  } else if (!options.scale_down_unready_enabled && !IsReady(state, question.slot)) {
    eligibility.reason = NodeReason::kScaleDownUnreadyDisabled;
  } else if (!question.replaced && eligibility.utilization->value > judged.threshold) {
    eligibility.reason = NodeReason::kNotUnderutilized;
  } else if (question.destination) {
    eligibility.reason = NodeReason::kAlreadyADestination;
  }
  return eligibility;
}

JudgedUtilization UtilizationOf(const ClusterState& state, const NodeQuestion& question,
                                const EligibilityOptions& options, int64_t now_s) {
  UtilizationOptions counting = options.utilization;
  counting.ignore_daemonsets =
      question.group->ignore_daemonsets_utilization.value_or(counting.ignore_daemonsets);
  return {NodeUtilization(state, question.slot, counting, now_s, question.pools),
          ThresholdFor(state, question, options)};
}

bool IsReady(const ClusterState& state, Slot slot) {
  if (!state.traits(slot).ready) return false;
  const std::vector<Taint>& taints = state.node_shape(slot).taints;
  return taints.empty() || absl::c_none_of(taints, SaysNotReady);
}

std::optional<int64_t> TaintTime(const ClusterState& state, Slot slot, absl::string_view key) {
  for (const Taint& taint : state.node_shape(slot).taints) {
    if (taint.key == key) return ParseWholeNumber(taint.value);
  }
  return std::nullopt;
}

absl::string_view WhyNoDestination(const ClusterState& state, Slot slot) {
  if (!IsReady(state, slot)) return "not ready";
  if (state.node_shape(slot).unschedulable) return "cordoned";
  return state.traits(slot).kind == NodeKind::kVirtual ? "virtual" : "";
}

bool IsBeingDeleted(const ClusterState& state, Slot slot, int64_t now_s) {
  if (state.traits(slot).deleted_s.has_value()) return true;
  const std::vector<Taint>& taints = state.node_shape(slot).taints;
  if (taints.empty()) return false;
  if (absl::c_any_of(taints, SaysBeingDeleted)) return true;
  const std::optional<int64_t> since_s = TaintTime(state, slot, kToBeDeletedTaint);
  return since_s.has_value() && *since_s > now_s - kDeletionTaintAgeS;
}

}  // namespace loadline
