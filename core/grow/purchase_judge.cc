#include "core/grow/purchase_judge.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "core/cluster/node_model.h"
#include "core/cluster/scoped_fork.h"
#include "core/fit/pod_fit.h"
#include "core/observe/see_fleet.h"
#include "core/size/group_facts.h"

namespace loadline {
namespace {

// The most nodes that are judged after a purchase, the newest ones first. Chosen: nodes of one group seldom
// differ.
constexpr size_t kMostJudged = 8;
// The units of work, of about 100 ns each, of one judgement. Estimated: all filters of a pod that is new to
// them.
constexpr int64_t kJudgement = 100;

int64_t PeriodAfter(int64_t failures, int64_t initial_ms) {
  int64_t period_ms = std::min(std::max<int64_t>(1, initial_ms), kMostVainMs);
  for (int64_t i = 1; i < failures && period_ms < kMostVainMs; ++i) {
    period_ms = std::min(kMostVainMs, 2 * period_ms);
  }
  return period_ms;
}

// Returns the fingerprint of the node's shape without passing taints, and of whether it has started.
uint64_t ShapeOf(const LoopProblem& problem, Slot node) {
  const ClusterState& cluster = *problem.drain.cluster;
  const uint64_t lasting = WithoutPassingTaints(cluster.node_shape(node), problem.startup_taints).fingerprint;
  return HasStarted(cluster, node, problem.startup_taints) ? lasting : ~lasting;
}

}  // namespace

GroupedNodes::GroupedNodes(const DrainProblem& drain, size_t groups, const StartupTaints& startup_taints)
    : cluster_(*drain.cluster),
      not_started_(drain.not_started),
      startup_taints_(startup_taints),
      nodes_(groups),
      newest_(groups),
      by_key_(groups) {
  for (const auto [slot, group] : drain.group_of) {
    if (!cluster_.Occupied(slot)) continue;
    nodes_[group].push_back(slot);
  }
}

std::optional<Slot> GroupedNodes::Find(GroupIndex group, uint64_t key) {
  std::optional<NodeByKey>& by_key = by_key_[group];
  if (!by_key.has_value()) {
    by_key.emplace();
    for (const Slot slot : nodes_[group]) by_key->emplace(KeyOfNode(cluster_, slot), slot);
  }
  const auto found = by_key->find(key);
  return found == by_key->end() ? std::nullopt : std::optional(found->second);
}

std::vector<Slot> GroupedNodes::JoinedSince(GroupIndex group, int64_t asked_ms, size_t most) {
  std::optional<std::vector<Aged>>& newest = newest_[group];
  if (!newest.has_value()) newest = Newest(group);
  std::vector<Slot> joined;
  for (const auto& [minus_created_s, slot] : *newest) {
    // Kubernetes cuts its times to seconds.
    if (-minus_created_s < asked_ms / 1000 || joined.size() == most) break;
    if (WillStayAsItIs(slot)) joined.push_back(slot);
  }
  return joined;
}

std::vector<GroupedNodes::Aged> GroupedNodes::Newest(GroupIndex group) const {
  std::vector<Aged> newest;
  for (const Slot slot : nodes_[group]) {
    const std::optional<int64_t> created_s = cluster_.traits(slot).created_s;
    if (created_s.has_value()) newest.emplace_back(-*created_s, slot);
  }
  std::sort(newest.begin(), newest.end());
  return newest;
}

bool GroupedNodes::WillStayAsItIs(Slot slot) const {
  const NodeShape& shape = cluster_.node_shape(slot);
  if (absl::c_binary_search(not_started_, slot) || IsLeaving(cluster_, slot, startup_taints_)) return false;
  return cluster_.traits(slot).ready && !shape.unschedulable &&
         !HasTaintOf(TaintKind::kCondition, shape, startup_taints_);
}

bool PurchaseJudge::HasHelped(GroupIndex group, size_t pods, Purchase* purchase) {
  if (!purchase->asked_ms.has_value()) return false;
  const std::vector<Slot> nodes = NodesOf(group, *purchase);
  std::string why;
  for (const Slot slot : nodes) {
    const Answer answer = Ask(pods, slot, &why);
    if (answer != Answer::kRefuses) return answer == Answer::kTakes;
  }
  if (!nodes.empty()) NoteVain(problem_, back_off_, now_ms_, group, nodes.back(), purchase);
  return false;
}

std::vector<Slot> PurchaseJudge::NodesOf(GroupIndex group, const Purchase& purchase) {
  if (!purchase.asked_ms.has_value()) return {};
  return nodes_.JoinedSince(group, *purchase.asked_ms, kMostJudged);
}

std::optional<Slot> PurchaseJudge::Compare(GroupIndex group, Purchase* purchase) {
  const uint64_t model = problem_.model_keys[group];
  const std::optional<Slot> node = nodes_.Find(group, purchase->node);
  const bool has_changed = (model != purchase->model_asked && model != purchase->model_judged) ||
                           (node.has_value() && ShapeOf(problem_, *node) != purchase->node_shape);
  if (has_changed) purchase->until_ms = std::min(purchase->until_ms, now_ms_);
  return node;
}

std::string PurchaseJudge::ReasonOf(size_t pods, Slot node) {
  std::string why;
  return Ask(pods, node, &why) == Answer::kRefuses ? why : "";
}

PurchaseJudge::Answer PurchaseJudge::Ask(size_t pods, Slot slot, std::string* why) {
  const std::optional<NodeIndex> node = snapshot_.FindSlot(slot);
  if (!node.has_value()) return Answer::kUnknown;
  const auto pods_there = static_cast<int64_t>(snapshot_.pods(*node).size());
  if (!budget_.Spend(kJudgement + pods_there)) return Answer::kUnknown;
  const ScopedFork supposed(&snapshot_);
  const Answer as_it_is = AskAsItIs(pods, *node, why);
  if (as_it_is != Answer::kRefuses) return as_it_is;
  // From the last one to the first, since the last pod takes the place of the one that is removed.
  bool has_run_pods = false;
  for (size_t i = snapshot_.pods(*node).size(); i-- > 0;) {
    const PodShape& shape = snapshot_.pod_shape(snapshot_.pods(*node)[i].shape);
    if (BelongsToNode(shape, snapshot_.objects())) continue;
    snapshot_.RemovePod(*node, i);
    has_run_pods = true;
  }
  // A node that has run pods started once: its state of today says nothing about the next node.
  if (has_run_pods && !HasStarted(*problem_.drain.cluster, slot, problem_.startup_taints))
    return Answer::kUnknown;
  return AskAsItIs(pods, *node, why);
}

PurchaseJudge::Answer PurchaseJudge::AskAsItIs(size_t pods, NodeIndex node, std::string* why) {
  PodFit fit(&snapshot_, problem_.pending[pods].pod, &problem_.scale_down.fit, &budget_);
  fit.Refresh(&budget_);
  const Verdict verdict = fit.Judge(node);
  if (budget_.ended() || verdict.judgement == Judgement::kCannotJudge) return Answer::kUnknown;
  *why = absl::StrJoin(verdict.reasons, ", ");
  return verdict.judgement == Judgement::kFits ? Answer::kTakes : Answer::kRefuses;
}

void NoteVain(const LoopProblem& problem, const BackOffOptions& back_off, int64_t now_ms, GroupIndex group,
              Slot node, Purchase* purchase) {
  purchase->asked_ms.reset();
  ++purchase->failures;
  purchase->until_ms = now_ms + PeriodAfter(purchase->failures, back_off.initial_ms);
  purchase->model_judged = problem.model_keys[group];
  purchase->node = KeyOfNode(*problem.drain.cluster, node);
  purchase->node_shape = ShapeOf(problem, node);
}

}  // namespace loadline
