#include "core/expand/plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/expand/plan_nodes.h"
#include "core/expand/plan_problem.h"
#include "core/expand/share_growth.h"
#include "core/pack/packing.h"

namespace loadline {
namespace {

// The most times that a plan is made again with further nodes, and with a type less. Chosen: a round costs a
// full plan, and each leaves fewer pods over, or a type less.
constexpr int kMostRounds = 12;

int64_t Total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// A plan that competes.
struct Candidate {
  std::vector<PlannedNodes> nodes;
  std::vector<ExistingUse> existing;
  std::vector<int64_t> waiting;
  std::vector<int64_t> on_new_nodes;
  int64_t pods_waiting = 0;
  int64_t node_count = 0;
  double cost = 0;
  double type_penalty = 0;
  std::optional<PackingBound> bound;  // where the packing found it already

  // Fewer pods left over, then less cost, then fewer nodes.
  bool BetterThan(const Candidate& other) const {
    if (pods_waiting != other.pods_waiting) return pods_waiting < other.pods_waiting;
    const double mine = cost + type_penalty;
    const double theirs = other.cost + other.type_penalty;
    if (mine != theirs) return mine < theirs;
    return node_count < other.node_count;
  }
};

class Planner {
 public:
  // `waiting`: how many of each of the estimator's pods wait for new nodes.
  Planner(Estimator* estimator, Snapshot* snapshot, const GrowableGroups& groups, const PlanOptions& options,
          std::vector<int64_t> waiting, WorkBudget* budget)
      : estimator_(*estimator),
        snapshot_(*snapshot),
        groups_(groups),
        options_(options),
        budget_(budget),
        waiting_(std::move(waiting)) {
    estimator_.set_counts(waiting_);
  }

  // Returns whether a new node takes any of the pods.
  bool TakesAny() { return BestSingle(Fresh()).option.pods > 0; }

  ScaleUpPlan Run() {
    ScaleUpPlan plan;
    const Single single = BestSingle(Fresh());
    Candidate best = Complete(Wanted(single), nullptr, &plan.best_single);
    plan.best_single.group = single.option.group;
    Candidate joint = Joint(/*banned=*/{});
    if (options_.usd_per_further_type > 0) joint = WithFewerTypes(std::move(joint));
    // Between equals we take the joint plan, which shares nodes among groups that are alike.
    if (!best.BetterThan(joint)) best = std::move(joint);
    best = Balanced(std::move(best));
    const PackingBound bound = best.bound.has_value() ? *best.bound : BoundOf(best);
    plan.existing = std::move(best.existing);
    plan.nodes = std::move(best.nodes);
    plan.unplaced = std::move(best.waiting);
    plan.cost = best.cost;
    plan.type_penalty = best.type_penalty;
    plan.lower_bound = std::min(bound.cost, best.cost);
    plan.cut_short = budget_->ended() || !bound.proven;
    plan.cut_short_by = budget_->end();
    return plan;
  }

 private:
  using TypeKey = std::pair<double, std::vector<std::pair<int32_t, int64_t>>>;
  struct Single {
    SingleOption option;
    NodeEstimate estimate;
  };

  PlanNodes Fresh() { return {&estimator_, &snapshot_, groups_, waiting_, options_.max_new_nodes, budget_}; }

  // Returns the option to grow one group that takes the most of the pending pods; among equals, the cheapest.
  Single BestSingle(const PlanNodes& nodes) {
    Single best;
    estimator_.set_counts(nodes.waiting());
    const StrongVector<GrowableIndex, int64_t> room = nodes.room();
    for (const GrowableIndex group : groups_.indices()) {
      if (room[group] == 0) continue;
      const NodeThreshold limits[] = {{.max_nodes = room[group]}, {.max_nodes = nodes.nodes_left()}};
      NodeEstimate estimate = estimator_.Estimate(groups_[group], NodeLimiter(limits), budget_);
      const double cost = UsdOf(groups_[group]) * static_cast<double>(estimate.nodes);
      const SingleOption& known = best.option;
      const bool better =
          estimate.pods != known.pods
              ? estimate.pods > known.pods
              : estimate.pods > 0 && (cost != known.cost ? cost < known.cost : estimate.nodes < known.nodes);
      if (!better) continue;
      best.option = {group, estimate.nodes, estimate.pods, cost};
      best.estimate = std::move(estimate);
    }
    return best;
  }

  static std::vector<WantedNodes> Wanted(const Single& single) {
    return single.option.group.has_value() ? NodesOf(*single.option.group, single.estimate)
                                           : std::vector<WantedNodes>();
  }

  // A plan that begins with these nodes; for what waits then it adds those of one best option after the
  // other, and each time places all pods anew. `packing`: where the nodes come from one. `first`: what the
  // nodes to begin with come to alone.
  Candidate Complete(std::vector<WantedNodes> wanted, const Packing* packing, SingleOption* first) {
    std::optional<Candidate> best;
    for (int round = 0; round < kMostRounds; ++round) {
      snapshot_.Fork();
      PlanNodes nodes = Fresh();
      nodes.Place(std::exchange(wanted, {}));
      Candidate candidate = Describe(nodes);
      if (round == 0 && first != nullptr) {
        *first = {std::nullopt, candidate.node_count, Total(waiting_) - candidate.pods_waiting,
                  candidate.cost};
      }
      if (round == 0 && packing != nullptr && estimator_.AllOnlyNeedRoom()) {
        candidate.bound = PackingBound{packing->lower_bound, packing->proven};
      }
      bool more = candidate.pods_waiting > 0 && !budget_->ended();
      if (!best.has_value() || candidate.BetterThan(*best)) {
        best = std::move(candidate);
      } else {
        more = false;  // further nodes did not help
      }
      if (more) {
        const Single next = BestSingle(nodes);
        more = next.option.pods > 0;
        wanted = nodes.Contents();
        const std::vector<WantedNodes> added = Wanted(next);
        wanted.insert(wanted.end(), added.begin(), added.end());
      }
      snapshot_.Revert();
      estimator_.fresh().StartOver();
      estimator_.set_counts(waiting_);
      if (!more) break;
    }
    return *std::move(best);
  }

  Candidate Describe(const PlanNodes& nodes) const {
    Candidate candidate;
    candidate.nodes = nodes.Nodes();
    candidate.existing = nodes.existing();
    candidate.waiting = nodes.waiting();
    candidate.on_new_nodes = nodes.OnNewNodes();
    candidate.pods_waiting = nodes.pods_waiting();
    candidate.cost = nodes.cost();
    candidate.node_count = nodes.node_count();
    candidate.type_penalty = Penalty(candidate);
    return candidate;
  }

  Candidate Joint(const std::set<TypeKey>& banned) {
    StrongVector<GrowableIndex, int64_t> room = Fresh().room();
    for (const GrowableIndex group : groups_.indices()) {
      if (banned.contains(KeyOf(group))) room[group] = 0;
    }
    const PlanProblem problem = MakePlanProblem(&estimator_, &snapshot_, groups_, waiting_, room,
                                                options_.max_new_nodes, PlanView::kAsPlanned, budget_);
    const Packing packing = Pack(problem.packing, budget_);
    Candidate candidate = Complete(NodesOf(problem, packing, groups_, !estimator_.AllOnlyNeedRoom(), budget_),
                                   &packing, nullptr);
    if (!banned.empty()) candidate.bound.reset();  // it holds without those types only
    return candidate;
  }

  // Shares the nodes among groups that balance, if that leaves no more pods over, and takes no more nodes.
  Candidate Balanced(Candidate best) {
    const bool balances = std::any_of(groups_.begin(), groups_.end(),
                                      [](const NodeGroup& group) { return group.balance_set.has_value(); });
    if (!balances || best.nodes.empty()) return best;
    snapshot_.Fork();
    PlanNodes nodes = Fresh();
    nodes.Place(ShareGrowth(best.nodes, groups_, &estimator_, &snapshot_, budget_));
    Candidate shared = Describe(nodes);
    snapshot_.Revert();
    estimator_.fresh().StartOver();
    if (shared.on_new_nodes == best.on_new_nodes) shared.bound = best.bound;
    const bool worse = shared.pods_waiting > best.pods_waiting || shared.node_count > best.node_count;
    return worse ? best : shared;
  }

  // Leaves out one type after the other as long as that is worth the penalty.
  Candidate WithFewerTypes(Candidate best) {
    std::set<TypeKey> banned;
    for (int round = 0; round < kMostRounds && !budget_->ended(); ++round) {
      std::optional<std::pair<Candidate, TypeKey>> better;
      const std::set<TypeKey> used = TypesOf(best);
      if (used.size() < 2) return best;
      for (const TypeKey& type : used) {
        std::set<TypeKey> more = banned;
        more.insert(type);
        Candidate candidate = Joint(more);
        const Candidate& known = better.has_value() ? better->first : best;
        if (candidate.BetterThan(known)) better.emplace(std::move(candidate), type);
      }
      if (!better.has_value()) return best;
      best = std::move(better->first);
      banned.insert(better->second);
    }
    return best;
  }

  TypeKey KeyOf(GrowableIndex group) const {
    TypeKey key{UsdOf(groups_[group]), {}};
    for (const auto& [resource, amount] : groups_[group].model->shape.allocatable) {
      key.second.emplace_back(static_cast<int32_t>(resource), amount);
    }
    return key;
  }

  std::set<TypeKey> TypesOf(const Candidate& candidate) const {
    std::set<TypeKey> types;
    for (const PlannedNodes& entry : candidate.nodes) types.insert(KeyOf(entry.group));
    return types;
  }

  double Penalty(const Candidate& candidate) const {
    const size_t types = TypesOf(candidate).size();
    return types < 2 ? 0 : options_.usd_per_further_type * static_cast<double>(types - 1);
  }

  PackingBound BoundOf(const Candidate& candidate) {
    const PlanProblem problem =
        MakePlanProblem(&estimator_, &snapshot_, groups_, candidate.on_new_nodes, Fresh().room(),
                        options_.max_new_nodes, PlanView::kRelaxed, budget_);
    return problem.complete ? LowerBound(problem.packing, budget_) : PackingBound();
  }

  Estimator& estimator_;
  Snapshot& snapshot_;
  const GrowableGroups& groups_;
  const PlanOptions& options_;
  WorkBudget* budget_;
  std::vector<int64_t> waiting_;
};

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

// Plans for pods on new nodes so that none is left over for one of a lower priority: where the plan for all
// of them would do that, those below the highest priority that is left over wait for the next plan.
// `planner_for`: a planner for so many of each of `pods`.
ScaleUpPlan PlanByPriority(const std::vector<PendingPods>& pods,
                           absl::FunctionRef<Planner(std::vector<int64_t>)> planner_for, WorkBudget* budget) {
  std::vector<int64_t> waiting;
  std::vector<int32_t> priorities;
  for (const PendingPods& entry : pods) {
    waiting.push_back(entry.count);
    priorities.push_back(TraitsOf(entry.pod.shape).priority);
  }
  ScaleUpPlan plan = planner_for(waiting).Run();
  const std::optional<int32_t> least = LeastToPlan(plan, priorities);
  if (!least.has_value() || budget->ended()) return plan;
  const auto only_from_least = [&](std::vector<int64_t> counts) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] *= priorities[i] >= *least;
    return counts;
  };
  const std::vector<int64_t> left = only_from_least(plan.unplaced);
  if (!planner_for(left).TakesAny()) return plan;  // no limit keeps them back
  const std::vector<int64_t> first = only_from_least(waiting);
  ScaleUpPlan alone = planner_for(first).Run();
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
  for (const GrowableIndex group : group_order) sorted_groups.push_back(groups[group]);

  snapshot->Fork();
  ScaleUpPlan plan;
  {
    Estimator estimator(snapshot, fit, std::move(sorted_pods), std::move(daemons), budget);
    std::vector<ExistingUse> existing = estimator.UseExistingRoom(budget);
    const auto planner_for = [&](std::vector<int64_t> waiting) {
      return Planner(&estimator, snapshot, sorted_groups, options, std::move(waiting), budget);
    };
    plan = PlanByPriority(estimator.pods(), planner_for, budget);
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
