#include "core/expand/plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/expand/joint_planner.h"
#include "core/expand/plan_nodes.h"

namespace loadline {
namespace {

// Returns the highest priority of a pod that is left over, if one of a lower priority has a new node.
std::optional<int32_t> LeastToPlan(const ScaleUpPlan& plan, const std::vector<int32_t>& priorities) {
  std::optional<int32_t> left, placed;
  for (size_t i = 0; i < priorities.size(); ++i) {
    if (plan.unplaced[i] > 0) left = std::max(left.value_or(priorities[i]), priorities[i]);
  }
  for (const PlannedNodes& nodes : plan.nodes) {
    for (const PodCount& entry : nodes.pods) {
      const int32_t priority = priorities[static_cast<size_t>(entry.pods)];
      placed = std::min(placed.value_or(priority), priority);
    }
  }
  return left.has_value() && placed.has_value() && *placed < *left ? left : std::nullopt;
}

// The most times that groups of some priority add nodes. Chosen: each costs a full plan, and leaves
// fewer pods over.
constexpr int kMostSteps = 12;

// Groups of one priority, and their positions among all.
struct Tier {
  GrowableGroups groups;
  StrongVector<GrowableIndex, GrowableIndex> of_all;
};

// Plans with the groups of the highest priority, then for the pods that these leave over with those of the
// next one, and so on. Groups without a priority come last.
class TieredPlanner {
 public:
  TieredPlanner(Estimator* estimator, Snapshot* snapshot, const GrowableGroups& groups,
                const PlanOptions& options, WorkBudget* budget)
      : estimator_(*estimator), snapshot_(*snapshot), groups_(groups), options_(options), budget_(budget) {
    const auto differs = [&](const NodeGroup& group) { return group.priority != groups.begin()->priority; };
    if (std::none_of(groups.begin(), groups.end(), differs)) return;
    std::map<std::optional<int64_t>, Tier> tiers;  // nullopt is the lowest
    for (const GrowableIndex group : groups.indices()) {
      Tier& tier = tiers[groups[group].priority];
      tier.groups.push_back(groups[group]);
      tier.of_all.push_back(group);
    }
    for (auto at = tiers.rbegin(); at != tiers.rend(); ++at) tiers_.push_back(std::move(at->second));
  }

  bool TakesAny(const std::vector<int64_t>& waiting) {
    return PlannerOf(groups_, options_.max_new_nodes).TakesAny(waiting);
  }

  ScaleUpPlan Plan(const std::vector<int64_t>& waiting) {
    if (tiers_.empty()) return PlannerOf(groups_, options_.max_new_nodes).Plan(waiting);
    ScaleUpPlan plan;
    plan.unplaced = waiting;
    std::vector<WantedNodes> wanted;
    usd_alone_ = 0;
    looked_ahead_ = false;
    for (int step = 0; step < kMostSteps; ++step) {
      snapshot_.Fork();
      PlanNodes nodes(&estimator_, &snapshot_, groups_, waiting, options_.max_new_nodes, budget_);
      nodes.Place(std::exchange(wanted, {}));  // all at once, as a scheduler sees them
      const bool better = step == 0 || nodes.pods_waiting() < Total(plan.unplaced);
      if (better) {
        plan.nodes = nodes.Nodes();
        plan.existing = nodes.existing();
        plan.unplaced = nodes.waiting();
        plan.cost = nodes.cost();
      }
      const bool more =
          better && nodes.pods_waiting() > 0 && !budget_->ended() && Grow(nodes, &wanted, &plan);
      snapshot_.Revert();
      estimator_.fresh().StartOver();
      if (!more) break;
    }
    plan.lower_bound = std::min(plan.lower_bound, plan.cost);
    if (looked_ahead_ && usd_alone_ < plan.cost) plan.cost_alone = usd_alone_;
    plan.cut_short = plan.cut_short || budget_->ended();
    plan.cut_short_by = budget_->end();
    return plan;
  }

 private:
  JointPlanner PlannerOf(const GrowableGroups& groups, NodeLimit limit) {
    PlanOptions options = options_;
    options.max_new_nodes = limit;
    return {&estimator_, &snapshot_, groups, options, budget_};
  }

  // Adds nodes of the first groups that take any of the pods that still wait; false: none does.
  bool Grow(const PlanNodes& nodes, std::vector<WantedNodes>* wanted, ScaleUpPlan* plan) {
    const StrongVector<GrowableIndex, int64_t> room = nodes.room();
    *wanted = nodes.Contents();
    for (const Tier& tier : tiers_) {
      GrowableGroups groups = tier.groups;
      for (const GrowableIndex i : groups.indices())
        groups[i].target = groups[i].max_nodes - room[tier.of_all[i]];
      const ScaleUpPlan more = PlannerOf(groups, nodes.nodes_left()).Plan(nodes.waiting());
      plan->cut_short = plan->cut_short || more.cut_short;
      if (more.nodes.empty()) continue;
      for (const PlannedNodes& run : more.nodes) {
        wanted->push_back({tier.of_all[run.group], run.nodes, run.pods});
      }
      plan->type_penalty += more.type_penalty;
      usd_alone_ += more.cost_alone.value_or(more.cost);
      looked_ahead_ = looked_ahead_ || more.cost_alone.has_value();
      plan->lower_bound += more.lower_bound;
      if (!plan->best_single.group.has_value() && more.best_single.group.has_value()) {
        plan->best_single = more.best_single;
        plan->best_single.group = tier.of_all[*more.best_single.group];
      }
      return true;
    }
    return false;
  }

  Estimator& estimator_;
  Snapshot& snapshot_;
  const GrowableGroups& groups_;
  const PlanOptions& options_;
  WorkBudget* budget_;
  std::vector<Tier> tiers_;  // empty: all groups have one priority
  double usd_alone_ = 0;     // of the nodes of the steps, had they been chosen for their pods alone
  bool looked_ahead_ = false;
};

// Plans for pods on new nodes so that none is left over for one of a lower priority: where the plan for all
// of them would do that, those below the highest priority that is left over wait for the next plan.
ScaleUpPlan PlanByPriority(const std::vector<PendingPods>& pods, TieredPlanner* planner, WorkBudget* budget) {
  std::vector<int64_t> waiting;
  std::vector<int32_t> priorities;
  for (const PendingPods& entry : pods) {
    waiting.push_back(entry.count);
    priorities.push_back(TraitsOf(entry.pod.shape).priority);
  }
  ScaleUpPlan plan = planner->Plan(waiting);
  const std::optional<int32_t> least = LeastToPlan(plan, priorities);
  if (!least.has_value() || budget->ended()) return plan;
  const auto only_from_least = [&](std::vector<int64_t> counts) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] *= priorities[i] >= *least;
    return counts;
  };
  const std::vector<int64_t> left = only_from_least(plan.unplaced);
  if (!planner->TakesAny(left)) return plan;  // no limit keeps them back
  const std::vector<int64_t> first = only_from_least(waiting);
  ScaleUpPlan alone = planner->Plan(first);
  if (budget->ended() || Total(alone.unplaced) >= Total(left)) return plan;
  for (size_t i = 0; i < first.size(); ++i) alone.unplaced[i] += waiting[i] - first[i];
  return alone;
}

// Positions in an order that does not depend on the order in which things were given.
std::vector<size_t> CanonicalPods(const std::vector<PendingPods>& pods) {
  std::vector<size_t> order(pods.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const PodShape& left = pods[a].pod.shape;
    const PodShape& right = pods[b].pod.shape;
    if (left.namespace_name != right.namespace_name) return left.namespace_name < right.namespace_name;
    return left.fingerprint < right.fingerprint;
  });
  return order;
}

// The given position of a group, by its position in that order.
using GivenGroups = StrongVector<GrowableIndex, GrowableIndex>;

GivenGroups CanonicalGroups(const GrowableGroups& groups) {
  GivenGroups order;
  for (const GrowableIndex group : groups.indices()) order.push_back(group);
  std::stable_sort(order.begin(), order.end(),
                   [&](GrowableIndex a, GrowableIndex b) { return groups[a].name < groups[b].name; });
  return order;
}

bool NoneWaits(const std::vector<PendingPods>& pods) {
  return std::all_of(pods.begin(), pods.end(), [](const PendingPods& entry) { return entry.count <= 0; });
}

// Back to positions as they were given.
void Rename(const std::vector<size_t>& pods, const GivenGroups& groups, ScaleUpPlan* plan) {
  for (ExistingUse& use : plan->existing) {
    use.pods.pods = static_cast<int32_t>(pods[static_cast<size_t>(use.pods.pods)]);
  }
  for (PlannedNodes& nodes : plan->nodes) {
    nodes.group = groups[nodes.group];
    for (PodCount& entry : nodes.pods)
      entry.pods = static_cast<int32_t>(pods[static_cast<size_t>(entry.pods)]);
  }
  std::vector<int64_t> unplaced(plan->unplaced.size());
  for (size_t i = 0; i < unplaced.size(); ++i) unplaced[pods[i]] = plan->unplaced[i];
  plan->unplaced = std::move(unplaced);
  for (size_t& position : plan->cut_off) position = pods[position];
  std::sort(plan->cut_off.begin(), plan->cut_off.end());
  std::optional<GrowableIndex>& single = plan->best_single.group;
  if (single.has_value()) single = groups[*single];
}

}  // namespace

ScaleUpPlan PlanScaleUp(Snapshot* snapshot, const FitOptions* fit, std::vector<PendingPods> pods,
                        std::vector<IncomingPod> daemons, const GrowableGroups& groups,
                        const PlanOptions& options, WorkBudget* budget) {
  if (NoneWaits(pods) && !budget->ended()) {  // as in most loops
    ScaleUpPlan nothing;
    nothing.unplaced.resize(pods.size());
    return nothing;
  }
  const std::vector<size_t> pod_order = CanonicalPods(pods);
  const GivenGroups group_order = CanonicalGroups(groups);
  std::vector<PendingPods> sorted_pods;
  for (const size_t i : pod_order) sorted_pods.push_back(std::move(pods[i]));
  GrowableGroups sorted_groups;
  sorted_groups.reserve(groups.size());
  for (const GrowableIndex group : group_order) sorted_groups.push_back(groups[group]);

  snapshot->Fork();
  ScaleUpPlan plan;
  {
    Estimator estimator(snapshot, fit, std::move(sorted_pods), std::move(daemons), budget);
    std::vector<ExistingUse> existing = estimator.UseExistingRoom(budget);
    TieredPlanner planner(&estimator, snapshot, sorted_groups, options, budget);
    plan = PlanByPriority(estimator.pods(), &planner, budget);
    if (plan.cut_short_by == BudgetEnd::kNotEnded) {
      plan.cut_short_by = estimator.cut_short_by();
      plan.cut_off = estimator.cut_off();
    }
    plan.cut_short = plan.cut_short || plan.cut_short_by != BudgetEnd::kNotEnded;
    plan.existing.insert(plan.existing.begin(), existing.begin(), existing.end());
  }
  snapshot->Revert();
  Rename(pod_order, group_order, &plan);
  return plan;
}

}  // namespace loadline
