#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/quantity.h"
#include "core/base/texts.h"
#include "core/drain/drain_question.h"
#include "core/drain/node_reason.h"

namespace loadline {
namespace {

constexpr char kSafeToEvict[] = "annotate it with cluster-autoscaler.kubernetes.io/safe-to-evict: \"true\"";

// The pod that keeps a node, and what is known of it.
struct KeepingPod {
  std::string name;  // "pod default/web-0", "placeholder slack-3"
  std::string namespace_name;
  const PodShape* shape = nullptr;
};

KeepingPod PodOf(const DrainProblem& problem, const DrainKeep& keep) {
  if (!keep.pod.has_value()) return {};
  const size_t i = keep.pod->position();
  if (keep.pod->is_placeholder()) {
    const DrainPlaceholder& placeholder = problem.placeholders[i];
    return {absl::StrCat(placeholder.is_room ? "the " : "placeholder ", placeholder.name), "",
            &placeholder.pod->shape};
  }
  const NodePods& pods = problem.cluster->pods(keep.slot);
  const PodShape& shape = problem.cluster->pod_shapes()[pods.pods()[i].shape];
  return {absl::StrCat("pod ", shape.namespace_name, "/", pods.name(i)), shape.namespace_name, &shape};
}

std::string RoomFor(const KeepingPod& pod) {
  return absl::StrFormat("a node that stays and takes %s, which requests %.3g cpu and %s memory", pod.name,
                         static_cast<double>(pod.shape->requests.Get(kCpu)) / 1000,
                         MemoryText(pod.shape->requests.Get(kMemory)));
}

// The same with what the closest node lacks, where that is not CPU or memory alone.
std::string RoomFor(const KeepingPod& pod, const Verdict& nearest) {
  const bool other = absl::c_any_of(nearest.reasons, [](const std::string& reason) {
    return reason != "Insufficient cpu" && reason != "Insufficient memory";
  });
  return other ? absl::StrCat(RoomFor(pod), ": ", absl::StrJoin(nearest.reasons, "; ")) : RoomFor(pod);
}

// Returns what a node that takes the pod would have to be like, where this filter refuses it on the node that
// is closest. Empty: the filter refuses all nodes alike, or says it all by itself.
std::string PlaceBeyond(FilterName filter, const KeepingPod& pod) {
  switch (filter) {
    case FilterName::kNodeUnschedulable:
      return absl::StrCat("a node that stays, is ready and not cordoned, and takes ", pod.name);
    case FilterName::kTaintToleration:
      return absl::StrCat("a node that stays and has only taints that ", pod.name, " tolerates");
    case FilterName::kNodeAffinity:
      return absl::StrCat("a node that stays and matches node selector and node affinity of ", pod.name);
    case FilterName::kNodePorts:
      return absl::StrCat("a node that stays on which the host ports of ", pod.name, " are free");
    case FilterName::kVolumeRestrictions:
      return absl::StrCat("a node that stays and on which no other pod uses the volumes of ", pod.name);
    case FilterName::kNodeVolumeLimits:
      return absl::StrCat("a node that stays and can attach the volumes of ", pod.name, " as well");
    case FilterName::kVolumeBinding:
      return absl::StrCat("a node that stays and reaches the volumes of ", pod.name);
    case FilterName::kVolumeZone:
      return absl::StrCat("a node that stays in the zone of the volumes of ", pod.name);
    case FilterName::kPodTopologySpread:
      return absl::StrCat("a node that stays in a domain that the spread constraints of ", pod.name,
                          " permit");
    case FilterName::kInterPodAffinity:
      return absl::StrCat("a node that stays and that affinity and anti-affinity between ", pod.name,
                          " and other pods permit");
    case FilterName::kDynamicResources:
      return absl::StrCat("a node that stays and has the devices that ", pod.name, " claims");
    case FilterName::kNodeDeclaredFeatures:
      return absl::StrCat("a node that stays and declares the features that ", pod.name, " needs");
    case FilterName::kLoadLine:
      return absl::StrCat("a node that stays and is below the load line with the limits of ", pod.name);
    case FilterName::kNone:
    case FilterName::kNodeName:
    case FilterName::kNodeResourcesFit:
      break;
  }
  return "";
}

std::string ForPlace(const KeepingPod& pod, const std::optional<Verdict>& nearest) {
  if (pod.shape == nullptr) return "more room on nodes that stay";
  if (!nearest.has_value()) return RoomFor(pod);
  if (nearest->filter == FilterName::kNodeResourcesFit) return RoomFor(pod, *nearest);
  const std::string reason = absl::StrJoin(nearest->reasons, "; ");
  switch (nearest->judgement) {
    case Judgement::kFits:
      return absl::StrCat(RoomFor(pod), ", beside the other pods of the node");
    case Judgement::kCannotJudge:
      return absl::StrCat("whether another node takes ", pod.name, " has to be known: ", reason);
    case Judgement::kDoesNotFit:
      break;
  }
  const std::string place = PlaceBeyond(nearest->filter, pod);
  if (place.empty()) return absl::StrCat("a node that stays and takes ", pod.name, ": ", reason);
  return absl::StrCat(place, ": ", reason);
}

std::string ForBudget(const KeepingPod& pod, BudgetRefusal refusal) {
  switch (refusal) {
    case BudgetRefusal::kSeveralBudgets:
      return absl::StrCat("let only one disruption budget select ", pod.name,
                          ": the API refuses to evict a pod under several");
    case BudgetRefusal::kInvalidSelector:
      return absl::StrCat("correct the disruption budget in namespace ", pod.namespace_name,
                          " that cannot be read: it may select any pod");
    case BudgetRefusal::kTooCostly:
      return absl::StrCat("fewer disruption budgets, or shorter selectors of them, in namespace ",
                          pod.namespace_name, ": finding out which pods they mean costs too much");
    case BudgetRefusal::kStale:
      return absl::StrCat("wait until the status of the disruption budget of ", pod.name, " is up to date");
    case BudgetRefusal::kUnhealthy:
      return absl::StrCat("get ", pod.name,
                          " ready, or set unhealthyPodEvictionPolicy: AlwaysAllow in its disruption budget");
    case BudgetRefusal::kNeverAllows:
      return absl::StrCat("change the disruption budget of ", pod.name,
                          ", or run more replicas if its minAvailable is a number: it asks for as many pods "
                          "as there are");
    case BudgetRefusal::kNone:
    case BudgetRefusal::kExhausted:
      break;
  }
  return absl::StrCat("more ready replicas than the disruption budget of ", pod.name, " asks for");
}

// Returns the advice where annotations protect `object` by a value that nobody knows.
std::string ForUnknownProtection(absl::string_view unknown, absl::string_view object) {
  const absl::string_view known = absl::StrContains(unknown, "/safe-to-evict:") ? "false" : "true";
  return absl::StrCat("correct ", unknown, " of ", object,
                      ": nobody knows the value, and so it protects as \"", known, "\" would");
}

std::string ForDoNotDisrupt(const KeepingPod& pod, int64_t now_s) {
  const std::optional<int64_t>& until_s = TraitsOf(*pod.shape).do_not_disrupt_until_s;
  if (!until_s.has_value())
    return absl::StrCat("take karpenter.sh/do-not-disrupt, or do-not-evict, off ", pod.name);
  return absl::StrCat("wait ", DurationText((*until_s - now_s) * 1000),
                      ": until then karpenter.sh/do-not-disrupt protects ", pod.name, "; or take it off");
}

std::string ForPod(const KeepingPod& pod, const DrainKeep& keep, int64_t now_s) {
  const bool annotated = keep.pod_reason == PodReason::kNotSafeToEvictAnnotation ||
                         keep.pod_reason == PodReason::kDoNotDisruptAnnotation;
  if (annotated && !TraitsOf(*pod.shape).unknown_protection.empty())
    return ForUnknownProtection(TraitsOf(*pod.shape).unknown_protection, pod.name);

  switch (keep.pod_reason) {
    case PodReason::kControllerNotFound:
      return absl::StrCat("the owner that ", pod.name, " names has to exist: nothing would replace the pod");
    case PodReason::kMinReplicasReached:
      return absl::StrCat("more replicas of ", pod.name, ", or a smaller min-replica-count");
    case PodReason::kNotReplicated:
      return absl::StrCat("have ", pod.name, " run by a controller that replaces it, or ", kSafeToEvict);
    case PodReason::kLocalStorageRequested:
      return absl::StrCat("name volume ", TraitsOf(*pod.shape).local_volume, " of ", pod.name,
                          " in cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes, or ",
                          kSafeToEvict);
    case PodReason::kNotSafeToEvictAnnotation:
      return absl::StrCat("take cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\" off ", pod.name);
    case PodReason::kDoNotDisruptAnnotation:
      return ForDoNotDisrupt(pod, now_s);
    case PodReason::kUnmovableKubeSystemPod:
      return absl::StrCat("a disruption budget for ", pod.name, ", or ", kSafeToEvict);
    case PodReason::kNotEnoughPdb:
      return ForBudget(pod, keep.budget);
    case PodReason::kUnreadable:
      return absl::StrCat("correct ", pod.name, ": ", TraitsOf(*pod.shape).unreadable);
    case PodReason::kNone:
    case PodReason::kUnexpectedError:
      break;
  }
  return "";
}

std::string ForUtilization(const DrainProblem& problem, const EligibilityOptions& options, Slot slot) {
  NodeQuestion question{.slot = slot, .group = &problem.groups[*problem.group_of[slot]]};
  if (const auto pools = problem.pools.find(slot); pools != problem.pools.end())
    question.pools = pools->second;
  const JudgedUtilization judged = UtilizationOf(*problem.cluster, question, options, problem.now_s);
  if (!judged.utilization.has_value()) return "";
  return absl::StrFormat("less requested on it than the threshold of %.4g %%: %.1f %% of its %s are",
                         judged.threshold * 100, judged.utilization->value * 100,
                         judged.utilization->resource);
}

absl::string_view AdviceFor(DrainBrake brake) {
  switch (brake) {
    case DrainBrake::kDoubt:
      return "all kinds of objects that decide have to be listed, and a moment ago";
    case DrainBrake::kUnhealthy:
      return "get nodes ready, or raise ok-total-unready-count or max-total-unready-percentage";
    case DrainBrake::kPodsVanished:
    case DrainBrake::kNodesVanished:
      return "wait for the next loop, which takes what is left for the cluster";
    case DrainBrake::kClockWentBack:
      return "wait until the time of the last loop has come again, or set the clock right";
    case DrainBrake::kNodesBeingDeleted:
      return "room on nodes that stay for the pods of nodes that are being deleted";
    case DrainBrake::kRecentEvictions:
      return "room on nodes that stay for the replacements of evicted pods";
    case DrainBrake::kNotVerified:
      return "more time: the next loop looks at their pods first";
    case DrainBrake::kNone:
      break;
  }
  return "what the brake names has to pass";
}

// Returns the advice for a node of which no share can be computed.
std::string ForAllocatable(const DrainProblem& problem, Slot slot, absl::string_view otherwise) {
  const ResourceAmounts& allocatable = problem.cluster->node_shape(slot).allocatable;
  if (allocatable.Get(kCpu) <= 0)
    return "it has to report allocatable cpu above 0: its kubelet has not, or no longer does";
  if (allocatable.Get(kMemory) <= 0)
    return "it has to report allocatable memory above 0: its kubelet has not, or no longer does";
  return std::string(otherwise);
}

}  // namespace

std::string WhatWouldHelp(const DrainProblem& problem, const DrainOptions& options, const DrainPlan& plan,
                          const DrainKeep& keep) {
  const absl::string_view advice = EntryOf(keep.reason).advice;
  switch (keep.reason) {
    case NodeReason::kNodeGroupMinSizeReached: {
      const NodeGroup& group = problem.groups[*problem.group_of[keep.slot]];
      return absl::StrCat("a smaller minimum of group ", group.name, ", which is ", group.min_nodes);
    }
    case NodeReason::kNotUnneededOtherReason:
      return std::string(AdviceFor(plan.brake));
    case NodeReason::kNotUnderutilized:
      return ForUtilization(problem, options.eligibility, keep.slot);
    case NodeReason::kNoPlaceToMovePods:
    case NodeReason::kPlaceholdersNeedRoom:
      return ForPlace(PodOf(problem, keep), keep.nearest);
    case NodeReason::kBlockedByPod:
      return ForPod(PodOf(problem, keep), keep, problem.now_s);
    case NodeReason::kScaleDownDisabledAnnotation:
    case NodeReason::kDoNotDisrupt: {
      const std::string& unknown = problem.cluster->traits(keep.slot).unknown_protection;
      return unknown.empty() ? std::string(advice) : ForUnknownProtection(unknown, "the node");
    }
    case NodeReason::kBlockedByOnCompletionPod:
      return absl::StrCat(PodOf(problem, keep).name, " has to run to completion");
    case NodeReason::kUnexpectedError:
      return ForAllocatable(problem, keep.slot, advice);
    case NodeReason::kUnreadable:
      return absl::StrCat("correct the node: ", problem.cluster->traits(keep.slot).unreadable);
    default:  // the table says all
      return std::string(advice);
  }
}

}  // namespace loadline
