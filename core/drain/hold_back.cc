#include "core/drain/hold_back.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/drain/eligibility.h"
#include "core/drain/node_reason.h"
#include "core/fit/pod_fit.h"

namespace loadline {
namespace {

// Returns whether some node or pod of the cluster has each resource that the pod requests; if not, no node
// there takes it.
bool HasResourcesOf(const ResourceNames& names, const IncomingPod& pod) {
  return absl::c_all_of(pod.shape.requests, [&](const auto& request) {
    return request.value == 0 || names.Find(pod.names.name(request.id)).has_value();
  });
}

DeletionsUnderWay CountDeletions(const DrainCall& call, const DrainState& state) {
  DeletionsUnderWay under_way;
  under_way.risky = call.risky_deletion;
  for (const Slot slot : call.deleting) {
    const auto known = absl::c_find_if(
        state.deleting, [&](const DeletingNode& node) { return node.node == call.name(slot); });
    const bool is_known = known != state.deleting.end();
    // If only the taint tells that a node is being deleted, we assume a drain, which has the smaller limit.
    const bool drains = (!is_known || known->drain) && !absl::c_binary_search(call.problem().drained, slot);
    ++(drains ? under_way.drain : under_way.empty);
    under_way.risky = under_way.risky || (is_known && known->risky);
  }
  return under_way;
}

// The group of a node, also of one that is being deleted.
std::optional<GroupIndex> GroupOf(const DrainCall& call, Slot slot) {
  const std::optional<GroupIndex> group = call.judged(slot).group;
  return group.has_value() ? group : call.problem().going_group_of[slot];
}

// Returns what budgets of groups allow beside the removals under way.
NodeAllowance AllowanceBeside(const DrainCall& call, const DrainState& state,
                              const absl::flat_hash_set<Slot>& replaced) {
  StrongVector<GroupIndex, int64_t> nodes(call.problem().groups.size(), 0);
  if (call.options().deletion.budgets.empty()) return NodeAllowance({}, call.problem().groups, nodes, 0);
  for (const Slot slot : call.nodes()) {
    if (const std::optional<GroupIndex> group = GroupOf(call, slot)) ++nodes[*group];
  }
  NodeAllowance allowance(call.options().deletion.budgets, call.problem().groups, nodes, call.now_s());
  for (const Slot slot : call.deleting) {
    const bool is_empty = absl::c_any_of(state.deleting, [&](const DeletingNode& node) {
      return node.node == call.name(slot) && !node.drain;
    });
    allowance.Take(GroupOf(call, slot), replaced.contains(slot) ? RemovalReason::kReplaced
                                        : is_empty              ? RemovalReason::kEmpty
                                                                : RemovalReason::kUnderutilized);
  }
  return allowance;
}

// The minima without the nodes of the plan: those that start are taken from it.
SizeLimits LimitsBeforePlan(const DrainCall& call) {
  SizeLimits limits(call.problem().groups, call.options().minimum);
  for (const Slot slot : call.nodes()) {
    if (!call.CountsForMinimum(slot)) continue;
    const JudgedNode& node = call.judged(slot);
    limits.AddNode(node.group, call.OfferOf(slot), node.being_deleted);
  }
  return limits;
}

// Defers nodes that are marked, and the other nodes of their atomic groups.
void Hold(std::span<const PlannedNode> planned, const std::vector<bool>& held, NodeReason reason,
          const DrainCall& call, Deletions* deletions) {
  const auto group_of = [&](size_t i) { return *call.judged(planned[i].slot).group; };
  StrongVector<GroupIndex, bool> held_groups(call.problem().groups.size(), false);
  for (const size_t i : deletions->start) {
    if (held[i]) held_groups[group_of(i)] = true;
  }
  std::erase_if(deletions->start, [&](size_t i) {
    if (!held[i] && !(call.problem().groups[group_of(i)].atomic && held_groups[group_of(i)])) return false;
    deletions->decisions[i].start = false;
    deletions->decisions[i].waits = held[i] ? reason : NodeReason::kAtomicScaleDownFailed;
    return true;
  });
  if (deletions->start.empty()) deletions->status = DrainStatus::kNoNodeDeleted;
}

// Marks the nodes that pods are nominated to.
std::vector<bool> NominatedTo(std::span<const PlannedNode> planned, const DrainProblem& problem) {
  const absl::flat_hash_set<Slot> slots(problem.nominated.begin(), problem.nominated.end());
  std::vector<bool> nominated;
  for (const PlannedNode& node : planned) nominated.push_back(slots.contains(node.slot));
  return nominated;
}

// Adds a copy of a node to be removed, without the pods that move.
NodeIndex AddEmptied(const PlannedNode& planned, const ClusterState& cluster, Snapshot* snapshot) {
  NodeShape shape = WithCsiNodeOf(cluster.node_shape(planned.slot), snapshot->name(planned.node));
  const NodeIndex copy = snapshot->AddNode({absl::StrCat(snapshot->name(planned.node), "/emptied"),
                                            std::move(shape), cluster.hostname(planned.slot)});
  const std::span<const NodePods::Pod> pods = cluster.pods(planned.slot).pods();
  size_t moving = 0;  // those that move are in order of position, before placeholders
  for (size_t i = 0; i < pods.size(); ++i) {
    if (moving < planned.sources.size() && planned.sources[moving] == PodRef::Pod(i)) {
      ++moving;
      continue;
    }
    if (cluster.pod_shapes()[pods[i].shape].finished) continue;
    snapshot->PlacePod(copy, snapshot->ShapeOf(pods[i].shape));
  }
  return copy;
}

// Marks the nodes whose removal would start although waiting pods need their room if upcoming nodes never
// register. The pods are placed onto nodes of the plan as if these were empty: first onto nodes that do not
// start in any case, then onto the others, the last one first. If the work budget ends, all nodes are marked.
std::vector<bool> NodesThatHoldRoom(std::span<const PlannedNode> planned, const Deletions& deletions,
                                    DrainCall* call, TrialFollower* follower) {
  std::vector<size_t> order;
  for (size_t i = 0; i < planned.size(); ++i) {
    if (!deletions.decisions[i].start) order.push_back(i);
  }
  order.insert(order.end(), deletions.start.rbegin(), deletions.start.rend());
  follower->Spoil();  // the trial cluster is changed once it has seen the pods
  DrainTrial& trial_cluster = follower->trial();
  Snapshot& snapshot = trial_cluster.snapshot();
  WorkBudget* const work = call->work();
  snapshot.Fork();
  std::vector<NodeIndex> copies;
  for (const size_t i : order) copies.push_back(AddEmptied(planned[i], call->cluster(), &snapshot));
  std::vector<bool> held(planned.size(), false);
  for (const PodsOnTheWay& pods : call->problem().on_the_way) {
    if (!HasResourcesOf(call->cluster().resource_names(), pods.pod)) continue;
    const int32_t shape = trial_cluster.shape(trial_cluster.KindOf(pods.pod));
    IncomingPod incoming = pods.pod;
    incoming.shape = snapshot.pod_shape(shape);
    incoming.names = call->cluster().resource_names();
    PodFit fit(&snapshot, std::move(incoming), &call->options().fit, work);
    int64_t left = pods.count;
    for (size_t at = 0; at < order.size() && left > 0;) {
      if (!work->Spend(fit.UnitsPerNode())) break;
      fit.Refresh(work);
      if (!fit.Fits(copies[at])) {
        ++at;
        continue;
      }
      snapshot.PlacePod(copies[at], shape);
      held[order[at]] = true;
      --left;
    }
    if (work->ended()) break;
  }
  snapshot.Revert();
  return work->ended() ? std::vector<bool>(planned.size(), true) : held;
}

}  // namespace

Deletions DecideStarts(std::span<const PlannedNode> planned, const DrainState& state, DrainCall* call,
                       TrialFollower* follower) {
  SizeLimits limits = LimitsBeforePlan(*call);
  absl::flat_hash_set<Slot> replaced;
  for (const ReplacedNode& node : call->problem().replaced) replaced.insert(node.slot);
  std::vector<DeletionCandidate> candidates;
  for (const PlannedNode& node : planned) {
    candidates.push_back({.group = call->judged(node.slot).group,
                          .allocatable = call->OfferOf(node.slot),
                          .ready = IsReady(call->cluster(), node.slot),
                          .empty = node.empty,
                          .replaced = replaced.contains(node.slot),
                          .on_completion = !node.waits_for.empty(),
                          .risky = node.risky,
                          .since_s = node.since_s});
  }
  NodeAllowance allowance = AllowanceBeside(*call, state, replaced);
  Deletions deletions = SelectDeletions(candidates, call->problem().groups, CountDeletions(*call, state),
                                        call->options().deletion, call->now_s(), &limits, &allowance);
  if (deletions.start.empty()) return deletions;
  if (!call->problem().nominated.empty()) {
    Hold(planned, NominatedTo(planned, call->problem()), NodeReason::kHoldsRoomForNominatedPods, *call,
         &deletions);
    if (deletions.start.empty()) return deletions;
  }
  if (call->problem().groups_grow) {
    Hold(planned, std::vector<bool>(planned.size(), true), NodeReason::kGroupsGrow, *call, &deletions);
  } else if (!call->problem().on_the_way.empty()) {
    Hold(planned, NodesThatHoldRoom(planned, deletions, call, follower), NodeReason::kHoldsRoomForWaitingPods,
         *call, &deletions);
  }
  return deletions;
}

}  // namespace loadline
