// The facts that the parts of the naive checker share, as the tests state them, and the plan that is checked.
// Each part checks a plan by one kind of rule.
#ifndef LOADLINE_TEST_CORE_DRAIN_NAIVE_PARTS_H_
#define LOADLINE_TEST_CORE_DRAIN_NAIVE_PARTS_H_

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/core/drain/drain_cluster.h"
#include "test/core/drain/naive_checker.h"

namespace loadline {

inline bool Finished(const FitPod& pod) { return HasFinished(pod.traits.phase); }

inline std::string LabelOf(const std::vector<Label>& labels, const std::string& key) {
  for (const Label& label : labels) {
    if (label.key == key) return label.value;
  }
  return "";
}

// "In" with one value.
inline bool Selects(const LabelSelector& selector, const FitPod& pod) {
  if (selector.nothing) return false;
  return std::all_of(selector.requirements.begin(), selector.requirements.end(),
                     [&](const Requirement& requirement) {
                       return LabelOf(pod.labels, requirement.key) == requirement.values.at(0);
                     });
}

inline bool IsDaemon(const FitPod& pod) {
  return pod.traits.daemon_by_annotation ||
         (pod.traits.owner.has_value() && pod.traits.owner->kind == "DaemonSet");
}

inline bool TakesNothing(const FitPod& pod) {
  return Finished(pod) || pod.traits.deleted_s.has_value() || pod.traits.placeholder;
}

inline bool Moves(const NamedRemoval& removal, const FitPod& pod) {
  return std::any_of(removal.moves.begin(), removal.moves.end(),
                     [&](const NamedMove& move) { return move.pod == pod.name; });
}

// A plan, what it is about, and what was found wrong with it so far.
class PlanCheck {
 public:
  PlanCheck(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan,
            std::vector<std::string>* errors)
      : cluster_(cluster), state_(state), plan_(plan), errors_(*errors) {
    for (const DrainNode& node : cluster.nodes) nodes_[node.node.name] = &node;
    for (const NamedRemoval& removal : plan.remove) removed_.insert(removal.node);
  }

 protected:
  void Report(const std::string& number, const std::string& text) { errors_.push_back(number + ": " + text); }

  bool Deleting(const std::string& node) const {
    return std::find(state_.deleting.begin(), state_.deleting.end(), node) != state_.deleting.end();
  }

  const DrainCluster& cluster_;
  const CheckedState& state_;
  const NamedPlan& plan_;
  std::map<std::string, const DrainNode*> nodes_;
  std::set<std::string> removed_;
  std::vector<std::string>& errors_;
};

// Adds to `errors` what is wrong by the disruption budgets.
void CheckBudgets(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan,
                  std::vector<std::string>* errors);
// Adds to `errors` what becomes of pods that move in any case.
void CheckUnderWay(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan,
                   std::vector<std::string>* errors);
// Adds to `errors` pods that do not fit, or may not be, where they move to.
void CheckPlacement(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan,
                    std::vector<std::string>* errors);

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_DRAIN_NAIVE_PARTS_H_
