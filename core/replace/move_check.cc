#include "core/replace/move_check.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cluster/leaving.h"
#include "core/cluster/pod_role.h"
#include "core/fit/pod_fit.h"
#include "core/observe/move_objects.h"
#include "core/replace/consolidation_question.h"
#include "core/replace/load_rest.h"
#include "core/replace/replacement.h"

namespace loadline {
namespace {

struct MovingPodPlace {
  NodeIndex from;
  int32_t shape = 0;  // of the snapshot
  uint64_t key = 0;
  std::optional<size_t> target;  // planned
  std::string name;
};

// Positions of targets in the order in which a pod tries them.
std::vector<size_t> OrderOfTargets(const MovingPodPlace& pod, size_t targets) {
  std::vector<size_t> order;
  if (pod.target.has_value()) order.push_back(*pod.target);
  for (size_t i = 0; i < targets; ++i) {
    if (i != pod.target) order.push_back(i);
  }
  return order;
}

class PodPlacer {
 public:
  PodPlacer(const FitOptions& options, const ResourceNames& names, const std::vector<NodeIndex>& targets,
            Snapshot* snapshot, WorkBudget* budget)
      : options_(options), names_(names), targets_(targets), snapshot_(*snapshot), budget_(*budget) {}

  // Pods that have their planned places first; those that wait for others are tried again.
  std::optional<std::string> PlaceAll(std::vector<MovingPodPlace> waiting, MoveUnderWay* move) {
    for (bool only_planned = true; !waiting.empty();) {
      std::vector<MovingPodPlace> later;
      for (MovingPodPlace& pod : waiting) {
        if (const std::optional<size_t> took = Place(pod, only_planned)) {
          move->places.push_back({pod.key, static_cast<int64_t>(*took)});
        } else {
          later.push_back(std::move(pod));
        }
      }
      if (later.size() == waiting.size()) {
        if (!only_planned) return absl::StrCat("pod ", later.front().name, " has no place any more");
        only_planned = false;
      }
      waiting = std::move(later);
    }
    return std::nullopt;
  }

 private:
  std::optional<size_t> Place(const MovingPodPlace& pod, bool only_planned) {
    IncomingPod incoming;
    incoming.shape = snapshot_.pod_shape(pod.shape);
    incoming.names = names_;
    PodFit fit(&snapshot_, std::move(incoming), &options_, &budget_);
    for (const size_t target : OrderOfTargets(pod, targets_.size())) {
      if (only_planned && target != pod.target) return std::nullopt;
      const NodeIndex node = targets_[target];
      if (node == NodeIndex{-1} || !budget_.Spend(fit.UnitsPerNode()) || !fit.Fits(node)) continue;
      snapshot_.PlacePod(node, pod.shape);
      return target;
    }
    return std::nullopt;
  }

  const FitOptions& options_;
  const ResourceNames& names_;
  const std::vector<NodeIndex>& targets_;
  Snapshot& snapshot_;
  WorkBudget& budget_;
};

const ConsolidationNode* FindNode(const ConsolidationQuestion& question, Slot slot) {
  for (const ConsolidationNode& node : question.problem.nodes) {
    if (node.slot == slot) return &node;
  }
  return nullptr;
}

// Returns the price of the nodes of a move, those that came by what they are: a group may make nodes of
// another kind than its template. `unknown`: the price of a node whose price is not known.
double UsdOfOrders(NodeGroupSpan groups, const MoveNodes& nodes, const MoveUnderWay& move, double unknown) {
  double usd = 0;
  size_t first = 0;  // of the order, among those that came
  for (const MoveUnderWay::Order& order : move.orders) {
    const size_t end = first + static_cast<size_t>(order.nodes);
    for (const NodeGroup& group : groups) {
      if (group.name != order.group) continue;
      for (size_t i = first; i < end; ++i) {
        const bool is_there =
            i < std::min(move.came.size(), nodes.targets.size()) && nodes.targets[i] != Slot{-1};
        usd += (is_there ? UsdOf(group, nodes.targets[i]) : group.usd_per_hour).value_or(unknown);
      }
    }
    first = end;
  }
  return usd;
}

}  // namespace

std::optional<std::string> CheckMove(const LoopProblem& problem, const MoveNodes& nodes,
                                     double saving_lasts_hours, Snapshot* snapshot, WorkBudget* budget,
                                     MoveUnderWay* move) {
  const ClusterState& cluster = *problem.drain.cluster;
  ConsolidationQuestion question =
      PrepareConsolidation(problem.drain, problem.scale_down, problem.groups, problem.replacement.prices);
  SetAges(&question.problem);
  std::vector<MovingPodPlace> pods;
  MoveTerms terms;
  for (const Slot slot : nodes.remove) {
    const ConsolidationNode* const node = FindNode(question, slot);
    if (node == nullptr || !node->may_go || !node->usd_per_hour.has_value()) {
      return absl::StrCat("node ", cluster.name(slot), " can no longer be removed");
    }
    terms.Remove(*node->usd_per_hour, node->age_hours);
    for (const LeavingPod& pod : node->pods) {
      if (pod.placeholder) continue;  // slack finds another place for it
      const size_t position = static_cast<size_t>(pod.position);
      MovingPodPlace& entry = pods.emplace_back();
      entry.from = *snapshot->FindSlot(slot);
      entry.shape = snapshot->ShapeOf(cluster.pods(slot).pods()[position].shape);
      entry.key = KeyOfPod(cluster, slot, position);
      if (const MoveUnderWay::Place* const place = PlaceOf(*move, entry.key))
        entry.target = static_cast<size_t>(place->target);
      entry.name = std::string(cluster.pods(slot).name(position));
      terms.Disturb(pod.usd);
    }
  }
  // Its new nodes are there: what it has cost to bring them is spent either way.
  ConsolidationOptions options = problem.replacement.options;
  options.surge_hours = 0;
  UseSavingLasts(saving_lasts_hours, &options);
  terms.Add(UsdOfOrders(problem.groups, nodes, *move, terms.removed()));
  if (terms.saves() <= 0 || terms.saves() + 1e-9 < terms.Required(options)) {
    return absl::StrCat("it would save ", terms.saves(), " USD per hour now, which is not enough");
  }
  snapshot->Fork();
  RemoveExpendablePods(snapshot);
  for (const Slot slot : nodes.remove) {
    const NodeIndex node = *snapshot->FindSlot(slot);
    std::vector<int32_t> shapes;
    for (const MovingPodPlace& pod : pods) {
      if (pod.from == node) shapes.push_back(pod.shape);
    }
    Vacate(node, shapes, snapshot);
  }
  std::vector<NodeIndex> targets;
  for (const Slot slot : nodes.targets) {
    targets.push_back(slot == Slot{-1} ? NodeIndex{-1} : snapshot->FindSlot(slot).value_or(NodeIndex{-1}));
  }
  move->places.clear();
  std::optional<std::string> why =
      PodPlacer(problem.scale_down.fit, cluster.resource_names(), targets, snapshot, budget)
          .PlaceAll(std::move(pods), move);
  snapshot->Revert();
  std::sort(move->places.begin(), move->places.end(),
            [](const auto& a, const auto& b) { return a.pod < b.pod; });
  return why;
}

}  // namespace loadline
