// Which of the nodes that can go go now, and what the next loop has to know of that.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/drain/being_deleted.h"
#include "core/drain/planner_impl.h"
#include "core/fit/pod_fit.h"

namespace loadline {
namespace {

// Whether some node or pod of the cluster has each resource that the pod requests; if not, no node there
// takes it.
bool HasResourcesOf(const ResourceNames& names, const IncomingPod& pod) {
  return absl::c_all_of(pod.shape.requests, [&](const auto& request) {
    return request.value == 0 || names.Find(pod.names.name(request.id)).has_value();
  });
}

}  // namespace

// Decides which of the nodes that can go start now.
Deletions DrainPlanner::Impl::DecideStarts() {
  DeletionsUnderWay under_way;
  under_way.risky = risky_by_taint_;
  SizeLimits limits(problem_->groups, options_->minimum);
  std::vector<bool> deleting(judged_.size(), false);
  for (const Slot slot : deleting_) {
    deleting[IndexOf(slot)] = true;
    const auto known = std::find_if(state_.deleting.begin(), state_.deleting.end(),
                                    [&](const DeletingNode& node) { return node.node == name(slot); });
    // Of a node that only its taint tells about, a drain is assumed: the smaller limit.
    const bool drain = known == state_.deleting.end() || known->drain;
    ++(drain ? under_way.drain : under_way.empty);
    under_way.risky = under_way.risky || (known != state_.deleting.end() && known->risky);
  }
  for (const Slot slot : slots_) {
    limits.AddNode(judged(slot).group, AllocatableOf(slot), deleting[IndexOf(slot)]);
  }
  std::vector<DeletionCandidate> candidates;
  for (const PlannedNode& planned : planned_) {
    candidates.push_back({.group = judged(planned.slot).group,
                          .allocatable = AllocatableOf(planned.slot),
                          .ready = IsReady(cluster(), planned.slot),
                          .empty = planned.empty,
                          .on_completion = !planned.waits_for.empty(),
                          .risky = planned.risky,
                          .since_s = planned.since_s});
  }
  Deletions deletions =
      SelectDeletions(candidates, problem_->groups, under_way, options_->deletion, problem_->now_s, &limits);
  if (deletions.start.empty()) return deletions;
  if (problem_->groups_grow) {
    Hold(std::vector<bool>(candidates.size(), true), NodeReason::kGroupsGrow, &deletions);
  } else if (!problem_->on_the_way.empty()) {
    Hold(NodesThatHoldRoom(deletions), NodeReason::kHoldsRoomForWaitingPods, &deletions);
  }
  return deletions;
}

// Those that are marked do not start, nor do other nodes of their atomic groups.
void DrainPlanner::Impl::Hold(std::vector<bool> held, NodeReason reason, Deletions* deletions) const {
  std::vector<bool> held_groups(problem_->groups.size(), false);
  for (const size_t i : deletions->start) {
    if (held[i]) held_groups[static_cast<size_t>(judged(planned_[i].slot).group)] = true;
  }
  std::erase_if(deletions->start, [&](size_t i) {
    const size_t group = static_cast<size_t>(judged(planned_[i].slot).group);
    if (!held[i] && !(problem_->groups[group].atomic && held_groups[group])) return false;
    deletions->decisions[i].start = false;
    deletions->decisions[i].waits = held[i] ? reason : NodeReason::kAtomicScaleDownFailed;
    return true;
  });
  if (deletions->start.empty()) deletions->status = DrainStatus::kNoNodeDeleted;
}

// A copy of a node that goes, without the pods that move.
NodeIndex DrainPlanner::Impl::AddEmptied(const PlannedNode& planned) {
  Snapshot& snapshot = board_->snapshot();
  const NodeIndex copy =
      snapshot.AddNode({absl::StrCat(snapshot.name(planned.node), "/emptied"),
                        cluster().node_shape(planned.slot), cluster().hostname(planned.slot)});
  const std::span<const NodePods::Pod> pods = cluster().pods(planned.slot).pods();
  for (size_t i = 0; i < pods.size(); ++i) {
    if (cluster().pod_shapes()[pods[i].shape].finished ||
        absl::c_linear_search(planned.sources, static_cast<int32_t>(i))) {
      continue;
    }
    snapshot.PlacePod(copy, snapshot.ShapeOf(pods[i].shape));
  }
  return copy;
}

// Marks nodes that would start, where they are the room that pods need if nodes on their way never come. Such
// pods are put onto nodes of the plan as if these were empty: first those that do not start in any case, then
// the others, the last one first. Where the budget ends, all are marked.
std::vector<bool> DrainPlanner::Impl::NodesThatHoldRoom(const Deletions& deletions) {
  const std::vector<bool> all(planned_.size(), true);
  std::vector<size_t> order;
  for (size_t i = 0; i < planned_.size(); ++i) {
    if (!deletions.decisions[i].start) order.push_back(i);
  }
  order.insert(order.end(), deletions.start.rbegin(), deletions.start.rend());
  Snapshot& snapshot = board_->snapshot();
  follows_ = false;  // the board is not as it was, once it has seen the pods
  snapshot.Fork();
  std::vector<NodeIndex> copies;
  for (const size_t i : order) copies.push_back(AddEmptied(planned_[i]));
  std::vector<bool> held(planned_.size(), false);
  for (const PodsOnTheWay& pods : problem_->on_the_way) {
    if (!HasResourcesOf(cluster().resource_names(), pods.pod)) continue;
    const int32_t shape = board_->shape(board_->KindOf(pods.pod));
    IncomingPod incoming = pods.pod;
    incoming.shape = snapshot.pod_shape(shape);
    incoming.names = cluster().resource_names();
    PodFit fit(&snapshot, std::move(incoming), &options_->fit, budget_);
    int64_t left = pods.count;
    for (size_t at = 0; at < order.size() && left > 0;) {
      if (!budget_->Spend(fit.UnitsPerNode())) break;
      fit.Refresh(budget_);
      if (!fit.Fits(copies[at])) {
        ++at;
        continue;
      }
      snapshot.PlacePod(copies[at], shape);
      held[order[at]] = true;
      --left;
    }
    if (budget_->ended()) break;
  }
  snapshot.Revert();
  return budget_->ended() ? all : held;
}

// Puts what was planned into the answer.
void DrainPlanner::Impl::Select() {
  const Deletions deletions = DecideStarts();
  plan_.status = plan_.brake == DrainBrake::kNone ? deletions.status : DrainStatus::kNotTried;
  plan_.limit = deletions.limit;
  plan_.remove.reserve(planned_.size());
  for (size_t i = 0; i < planned_.size(); ++i) {
    PlannedNode& planned = planned_[i];
    DrainRemoval& removal = plan_.remove.emplace_back();
    removal.slot = planned.slot;
    removal.empty = planned.empty;
    removal.risky = planned.risky;
    removal.moves = std::move(planned.told);
    if (removal.moves.empty()) {
      removal.moves.reserve(planned.moves.size());
      for (const PlannedMove& move : planned.moves) removal.moves.push_back({move.pod, move.to_slot});
    }
    removal.waits_for = planned.waits_for;
    removal.since_s = planned.since_s;
    removal.ready_at_s = deletions.decisions[i].ready_at_s;
    removal.start = deletions.decisions[i].start;
    removal.waits = deletions.decisions[i].waits;
    const int32_t group = judged(planned.slot).group;
    plan_.price_saved += problem_->groups[static_cast<size_t>(group)].node_price.value_or(0);
  }
}

// What the next loop holds against what it finds: without nodes whose deletion was started, or starts now.
void DrainPlanner::Impl::RememberCounts() {
  std::vector<Slot> leaving = RememberedDeleting(cluster(), state_.deleting);
  for (const DrainRemoval& removal : plan_.remove) {
    if (removal.start) leaving.push_back(removal.slot);
  }
  for (DeletingNode& node : state_.deleting) node.left_out = true;
  state_.nodes = cluster().node_count() - static_cast<int64_t>(leaving.size());
  state_.pods = std::move(pods_now_);
  TakeAwayPods(cluster(), leaving, &state_.pods);
}

}  // namespace loadline
