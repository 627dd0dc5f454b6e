#include "core/expand/joint_planner.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "core/expand/look_ahead.h"
#include "core/expand/plan_nodes.h"
#include "core/expand/plan_problem.h"
#include "core/expand/share_growth.h"
#include "core/pack/packing.h"

namespace loadline {
namespace {

// The most times that a plan is made again with further nodes, and with a type less. Chosen: a round costs a
// full plan, and each leaves fewer pods over, or a type less.
constexpr int kMostRounds = 12;
// The part of the rest of the budget that the look at further pods may take. Chosen: a plan that is complete
// without it stays so.
constexpr double kForFurther = 0.5;

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
    const double cost_alone = best.cost;
    best = WithFurther(std::move(best));
    if (best.cost > cost_alone) plan.cost_alone = cost_alone;
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

  // Returns the one node that is best with further pods in mind, or the plan for those that wait alone.
  Candidate WithFurther(Candidate best) {
    if (options_.further.most == 0 || best.nodes.empty() || budget_->ended()) return best;
    const WorkPhase phase(budget_, kForFurther);
    const std::optional<WantedNodes> node = LookAhead{&estimator_, groups_, options_.further, budget_}.Choose(
        best.on_new_nodes, best.nodes, Fresh().room());
    estimator_.set_counts(waiting_);
    if (!node.has_value()) return best;
    Candidate ahead = Balanced(Complete({*node}, nullptr, nullptr));
    return budget_->ended() || ahead.pods_waiting > best.pods_waiting ? best : ahead;
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

}  // namespace

bool JointPlanner::TakesAny(const std::vector<int64_t>& waiting) const {
  return Planner(estimator, snapshot, groups, options, waiting, budget).TakesAny();
}

ScaleUpPlan JointPlanner::Plan(const std::vector<int64_t>& waiting) const {
  return Planner(estimator, snapshot, groups, options, waiting, budget).Run();
}

}  // namespace loadline
