#include <algorithm>
#include <map>
#include <set>

#include "test/core/drain/naive_parts.h"

namespace loadline {
namespace {

class BudgetCheck : public PlanCheck {
 public:
  using PlanCheck::PlanCheck;

  void Run() {
    std::vector<Budget> budgets;
    for (const DrainBudget& entry : cluster_.budgets) {
      Budget budget{&entry};
      budget.stale = entry.budget.observed_generation < entry.budget.generation;
      int64_t ready = 0;
      for (const auto& [name, node] : nodes_) {
        for (const FitPod& pod : node->pods) {
          ready += pod.namespace_name == entry.namespace_name && pod.traits.ready && !TakesNothing(pod) &&
                   (!entry.budget.selector_error.empty() || Selects(entry.budget.selector, pod));
        }
      }
      budget.left = std::min<int64_t>(entry.budget.disruptions_allowed,
                                      ready - std::max<int32_t>(0, entry.budget.desired_healthy));
      budgets.push_back(budget);
    }
    // Pods that are going already take theirs.
    for (const std::string& name : state_.deleting) {
      if (!nodes_.contains(name)) continue;
      for (const FitPod& pod : nodes_[name]->pods) {
        if (TakesNothing(pod) || IsDaemon(pod) || pod.traits.mirror) continue;
        if (Budget* budget = TakenFrom(&budgets, pod)) --budget->left;
      }
    }
    // Evicted pods that are not reported as terminating yet count as well.
    for (const Evicted& evicted : state_.evictions) {
      if (!nodes_.contains(evicted.node)) continue;
      for (const FitPod& pod : nodes_[evicted.node]->pods) {
        if (pod.name != evicted.pod.name || pod.uid != evicted.pod.uid || TakesNothing(pod)) continue;
        if (Budget* budget = TakenFrom(&budgets, pod)) --budget->left;
      }
    }
    std::map<const Budget*, int64_t> taken;
    for (const NamedRemoval& removal : plan_.remove) {
      if (!nodes_.contains(removal.node)) continue;
      for (const FitPod& pod : nodes_[removal.node]->pods) {
        if (!Moves(removal, pod) || TakesNothing(pod)) continue;
        std::vector<Budget*> matching;
        for (Budget& budget : budgets) {
          if (budget.budget->namespace_name != pod.namespace_name) continue;
          if (!budget.budget->budget.selector_error.empty()) {
            Report("D1", pod.name + " is in a namespace with an invalid budget");
          } else if (Selects(budget.budget->budget.selector, pod)) {
            matching.push_back(&budget);
          }
        }
        if (matching.size() > 1) Report("D1", pod.name + " is under several budgets");
        if (matching.size() != 1) continue;
        const DisruptionBudget& budget = matching[0]->budget->budget;
        if (!pod.traits.ready) {
          if (budget.unhealthy_policy == DisruptionBudget::UnhealthyPolicy::kAlwaysAllow) continue;
          if (matching[0]->stale) Report("D1", pod.name + " is under a stale budget");
          if (budget.current_healthy < budget.desired_healthy)
            Report("D1", pod.name + " is not ready and protected");
          if (budget.desired_healthy > 0) continue;
        }
        if (matching[0]->stale) Report("D1", pod.name + " is under a stale budget");
        if (removal.risky) {
          // One by one, as the budget recovers; but one at least was left for the first.
          if (matching[0]->left - taken[matching[0]] < 1) risky_without_.insert(removal.node);
        } else if (++taken[matching[0]] > matching[0]->left) {
          Report("D1", matching[0]->budget->name + " has less left than the plan takes");
        }
      }
    }
    for (const std::string& node : risky_without_)
      Report("D1", node + " is under a budget that has nothing left");
    // A risky node is drained alone.
    const int64_t starts =
        std::count_if(plan_.remove.begin(), plan_.remove.end(),
                      [](const NamedRemoval& removal) { return removal.start && !removal.empty; });
    for (const NamedRemoval& removal : plan_.remove) {
      if (removal.risky && removal.start && starts > 1)
        Report("D1", removal.node + " is risky and not alone");
    }
  }

 private:
  struct Budget {
    const DrainBudget* budget;
    int64_t left = 0;
    bool stale = false;
  };

  static Budget* TakenFrom(std::vector<Budget>* budgets, const FitPod& pod) {
    Budget* found = nullptr;
    for (Budget& budget : *budgets) {
      if (budget.budget->namespace_name != pod.namespace_name) continue;
      if (!budget.budget->budget.selector_error.empty()) return nullptr;
      if (!Selects(budget.budget->budget.selector, pod)) continue;
      if (found != nullptr) return nullptr;
      found = &budget;
    }
    if (found == nullptr) return nullptr;
    const DisruptionBudget& budget = found->budget->budget;
    const bool takes =
        pod.traits.ready ||
        (budget.unhealthy_policy != DisruptionBudget::UnhealthyPolicy::kAlwaysAllow && !found->stale &&
         budget.current_healthy >= budget.desired_healthy && budget.desired_healthy <= 0);
    return takes ? found : nullptr;
  }

  std::set<std::string> risky_without_;
};

}  // namespace

void CheckBudgets(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan,
                  std::vector<std::string>* errors) {
  BudgetCheck(cluster, state, plan, errors).Run();
}

}  // namespace loadline
