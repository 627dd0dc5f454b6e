#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
    return {absl::StrCat("placeholder ", placeholder.name), "", &placeholder.pod->shape};
  }
  const NodePods& pods = problem.cluster->pods(keep.slot);
  const PodShape& shape = problem.cluster->pod_shapes()[pods.pods()[i].shape];
  return {absl::StrCat("pod ", shape.namespace_name, "/", pods.name(i)), shape.namespace_name, &shape};
}

std::string RoomFor(const KeepingPod& pod) {
  if (pod.shape == nullptr) return "more room on nodes that stay";
  return absl::StrFormat("a node that stays and takes %s, which requests %.3g cpu and %.4g MiB of memory",
                         pod.name, static_cast<double>(pod.shape->requests.Get(kCpu)) / 1000,
                         static_cast<double>(pod.shape->requests.Get(kMemory)) / (1 << 20));
}

std::string ForBudget(const KeepingPod& pod, BudgetRefusal refusal) {
  switch (refusal) {
    case BudgetRefusal::kSeveralBudgets:
      return absl::StrCat("let only one disruption budget select ", pod.name,
                          ": the API refuses to evict a pod under several");
    case BudgetRefusal::kInvalidSelector:
      return absl::StrCat("correct the selectors of disruption budgets in namespace ", pod.namespace_name);
    case BudgetRefusal::kTooCostly:
      return absl::StrCat("fewer disruption budgets, or shorter selectors of them, in namespace ",
                          pod.namespace_name, ": finding out which pods they mean costs too much");
    case BudgetRefusal::kStale:
      return absl::StrCat("wait until the status of the disruption budget of ", pod.name, " is up to date");
    case BudgetRefusal::kUnhealthy:
      return absl::StrCat("get ", pod.name,
                          " ready, or set unhealthyPodEvictionPolicy: AlwaysAllow in its disruption budget");
    case BudgetRefusal::kNone:
    case BudgetRefusal::kExhausted:
      break;
  }
  return absl::StrCat("more ready replicas than the disruption budget of ", pod.name, " asks for");
}

// Returns the advice where annotations protect `object` by a value that nobody knows.
std::string ForUnknownProtection(absl::string_view unknown, absl::string_view object) {
  return absl::StrCat("correct ", unknown, " of ", object,
                      ": nobody knows the value, and so it protects as \"true\" would");
}

std::string ForDoNotDisrupt(const KeepingPod& pod, int64_t now_s) {
  const std::optional<int64_t>& until_s = TraitsOf(*pod.shape).do_not_disrupt_until_s;
  if (!until_s.has_value())
    return absl::StrCat("take karpenter.sh/do-not-disrupt, or do-not-evict, off ", pod.name);
  return absl::StrCat("wait ", *until_s - now_s, " s: until then karpenter.sh/do-not-disrupt protects ",
                      pod.name, "; or take it off");
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

std::string ForUtilization(const DrainProblem& problem, Slot slot) {
  const std::optional<Utilization> utilization =
      NodeUtilization(*problem.cluster, slot, UtilizationOptions(), problem.now_s);
  if (!utilization.has_value()) return "";
  return absl::StrFormat("less requested on it than the threshold: %.1f %% of its %s are",
                         utilization->value * 100, utilization->resource);
}

}  // namespace

std::string WhatWouldHelp(const DrainProblem& problem, const DrainKeep& keep) {
  const absl::string_view advice = EntryOf(keep.reason).advice;
  switch (keep.reason) {
    case NodeReason::kNodeGroupMinSizeReached: {
      const NodeGroup& group = problem.groups[*problem.group_of[keep.slot]];
      return absl::StrCat("a smaller minimum of group ", group.name, ", which is ", group.min_nodes);
    }
    case NodeReason::kNotUnderutilized:
      return ForUtilization(problem, keep.slot);
    case NodeReason::kNoPlaceToMovePods:
    case NodeReason::kPlaceholdersNeedRoom:
      return RoomFor(PodOf(problem, keep));
    case NodeReason::kBlockedByPod:
      return ForPod(PodOf(problem, keep), keep, problem.now_s);
    case NodeReason::kScaleDownDisabledAnnotation:
    case NodeReason::kDoNotDisrupt: {
      const std::string& unknown = problem.cluster->traits(keep.slot).unknown_protection;
      return unknown.empty() ? std::string(advice) : ForUnknownProtection(unknown, "the node");
    }
    case NodeReason::kBlockedByOnCompletionPod:
      return absl::StrCat(PodOf(problem, keep).name, " has to run to completion");
    case NodeReason::kUnreadable:
      return absl::StrCat("correct the node: ", problem.cluster->traits(keep.slot).unreadable);
    default:  // the table says all
      return std::string(advice);
  }
}

}  // namespace loadline
