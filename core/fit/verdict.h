// The verdict on whether a pod may run on a node, and if not, why.
#ifndef LOADLINE_CORE_FIT_VERDICT_H_
#define LOADLINE_CORE_FIT_VERDICT_H_

#include <string>
#include <utility>
#include <vector>

namespace loadline {

// kube-scheduler's filters in the order of its default profile: the first that refuses decides.
enum class FilterName {
  kNone,
  kNodeUnschedulable,
  kNodeName,
  kTaintToleration,
  kNodeAffinity,
  kNodePorts,
  kNodeResourcesFit,
  kVolumeRestrictions,
  kNodeVolumeLimits,
  kVolumeBinding,
  kVolumeZone,
  kPodTopologySpread,
  kInterPodAffinity,
  kDynamicResources,
  kNodeDeclaredFeatures,
  kLoadLine,  // not of the default profile: that of our plugin
};
inline constexpr int kFilterNames = 16;

// The status of a refusal, which says whether preemption may help.
enum class StatusClass { kNone, kUnschedulable, kUnschedulableAndUnresolvable };

// The answer of a filter, or of all of them.
enum class Judgement {
  kFits,
  kDoesNotFit,
  // Nothing that could be worked out refuses the pod, but something could not be worked out.
  kCannotJudge,
};

// One pod on one node.
struct Verdict {
  Judgement judgement = Judgement::kFits;
  FilterName filter = FilterName::kNone;
  StatusClass status_class = StatusClass::kNone;
  // All reasons of that filter, worded as kube-scheduler words them; sorted, each once.
  std::vector<std::string> reasons;
  // The scheduler itself would end here with an error: later filters are not asked.
  bool final = false;
  // The filter refused the pod before any node was looked at.
  bool before_nodes = false;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// A no.
inline Verdict Refusal(FilterName filter, StatusClass status_class, std::vector<std::string> reasons) {
  return {Judgement::kDoesNotFit, filter, status_class, std::move(reasons)};
}

inline Verdict CannotJudge(FilterName filter, std::string reason) {
  return {Judgement::kCannotJudge, filter, StatusClass::kNone, {std::move(reason)}};
}

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_VERDICT_H_
