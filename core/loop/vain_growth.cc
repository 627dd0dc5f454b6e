#include "core/loop/vain_growth.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/fingerprint.h"
#include "core/cluster/node_model.h"
#include "core/cluster/scoped_fork.h"
#include "core/fit/pod_fit.h"
#include "core/fleet/fleet_state.h"
#include "core/fleet/texts.h"
#include "core/size/group_facts.h"

namespace loadline {
namespace {

// Of the nodes that have come since only so many are asked, the newest.
constexpr size_t kMostJudged = 8;
// One judgement, in units of work of about 100 ns.
constexpr int64_t kJudgement = 100;
// A label that new nodes of a group carry in plans, so that pods can be kept off them.
constexpr absl::string_view kPlannedGroup = "loadline.dev/planned-node-group";

int64_t PeriodAfter(int64_t failures, int64_t initial_ms) {
  int64_t period_ms = std::min(std::max<int64_t>(1, initial_ms), kMostVainMs);
  for (int64_t i = 1; i < failures && period_ms < kMostVainMs; ++i) {
    period_ms = std::min(kMostVainMs, 2 * period_ms);
  }
  return period_ms;
}

// Judges pods of the question on nodes that are there.
class NodeJudge {
 public:
  enum class Answer { kTakes, kRefuses, kUnknown };

  NodeJudge(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget)
      : problem_(problem), snapshot_(*snapshot), budget_(*budget) {}

  // Returns whether the node refuses a pod both as it is and without pods that do not belong to it, and why.
  Answer Ask(size_t pods, Slot slot, std::string* why) {
    const std::optional<NodeIndex> node = snapshot_.FindSlot(slot);
    if (!node.has_value() || !budget_.Spend(kJudgement)) return Answer::kUnknown;
    const ScopedFork supposed(&snapshot_);
    const Answer as_it_is = Ask(pods, *node, why);
    if (as_it_is != Answer::kRefuses) return as_it_is;
    // From behind: the last pod takes the place of one that goes.
    for (size_t i = snapshot_.pods(*node).size(); i-- > 0;) {
      const PodShape& shape = snapshot_.pod_shape(snapshot_.pods(*node)[i].shape);
      if (!BelongsToNode(shape, snapshot_.objects())) snapshot_.RemovePod(*node, i);
    }
    return Ask(pods, *node, why);
  }

 private:
  Answer Ask(size_t pods, NodeIndex node, std::string* why) {
    PodFit fit(&snapshot_, problem_.pending[pods].pod, &problem_.scale_down.fit, &budget_);
    fit.Refresh(&budget_);
    const Verdict verdict = fit.Judge(node);
    if (budget_.ended() || verdict.judgement == Judgement::kCannotJudge) return Answer::kUnknown;
    *why = absl::StrJoin(verdict.reasons, ", ");
    return verdict.judgement == Judgement::kFits ? Answer::kTakes : Answer::kRefuses;
  }

  const LoopProblem& problem_;
  Snapshot& snapshot_;
  WorkBudget& budget_;
};

// Nodes of a group that have joined since, the newest first.
std::vector<Slot> NodesSince(const LoopProblem& problem, int32_t group, int64_t asked_ms) {
  const ClusterState& cluster = *problem.drain.cluster;
  std::vector<std::pair<int64_t, Slot>> since;
  for (size_t i = 0; i < problem.drain.group_of.size(); ++i) {
    const Slot slot{static_cast<int32_t>(i)};
    if (problem.drain.group_of[i] != group || !cluster.Occupied(slot)) continue;
    // What a node is for a while says nothing of the next one.
    if (!IsHealthyNode(cluster, slot, problem.startup_taints) ||
        HasTaintOf(TaintKind::kCondition, cluster.node_shape(slot), problem.startup_taints)) {
      continue;
    }
    const std::optional<int64_t> created_s = cluster.traits(slot).created_s;
    // Kubernetes cuts its times to seconds.
    if (created_s.has_value() && *created_s >= asked_ms / 1000) since.emplace_back(-*created_s, slot);
  }
  std::sort(since.begin(), since.end());
  std::vector<Slot> nodes;
  for (size_t i = 0; i < std::min(since.size(), kMostJudged); ++i) nodes.push_back(since[i].second);
  return nodes;
}

class PurchaseJudge {
 public:
  PurchaseJudge(const BackOffOptions& back_off, int64_t now_ms, const LoopProblem& problem,
                Snapshot* snapshot, WorkBudget* budget)
      : back_off_(back_off), now_ms_(now_ms), problem_(problem), judge_(problem, snapshot, budget) {}

  // False: it has helped, and is to be forgotten. `vain`: its group and pods are set, the rest is filled in
  // where the group does not grow for them.
  bool Judge(Purchase* purchase, VainGrowth* vain) {
    const uint64_t model = problem_.model_keys[static_cast<size_t>(vain->group)];
    if (purchase->asked_ms.has_value()) {
      for (const Slot slot : NodesSince(problem_, vain->group, *purchase->asked_ms)) {
        const NodeJudge::Answer answer = judge_.Ask(vain->pods, slot, &vain->reason);
        if (answer == NodeJudge::Answer::kTakes) return false;
        if (answer == NodeJudge::Answer::kUnknown) return true;
        vain->node = slot;
      }
      if (vain->node == Slot{-1}) return true;  // none has come yet
      NoteVain(model, vain->node, purchase);
    } else {
      Compare(model, purchase, vain);
    }
    if (purchase->until_ms > now_ms_) vain->until_ms = purchase->until_ms;
    return true;
  }

 private:
  const ClusterState& cluster() const { return *problem_.drain.cluster; }

  void NoteVain(uint64_t model, Slot node, Purchase* purchase) const {
    purchase->asked_ms.reset();
    ++purchase->failures;
    purchase->until_ms = now_ms_ + PeriodAfter(purchase->failures, back_off_.initial_ms);
    purchase->model_judged = model;
    purchase->node = KeyOfNode(cluster(), node);
    purchase->node_shape = cluster().node_shape(node).fingerprint;
  }

  // Holds what is remembered against what is there now. A node that is gone is no change: it was removed
  // since it did not help. The model is then what it was before the node came.
  void Compare(uint64_t model, Purchase* purchase, VainGrowth* vain) {
    if (purchase->until_ms <= now_ms_) return;
    bool has_changed = model != purchase->model_asked && model != purchase->model_judged;
    for (size_t i = 0; i < problem_.drain.group_of.size(); ++i) {
      const Slot slot{static_cast<int32_t>(i)};
      if (problem_.drain.group_of[i] != vain->group || !cluster().Occupied(slot)) continue;
      if (KeyOfNode(cluster(), slot) != purchase->node) continue;
      vain->node = slot;
      has_changed = has_changed || cluster().node_shape(slot).fingerprint != purchase->node_shape;
      if (judge_.Ask(vain->pods, slot, &vain->reason) != NodeJudge::Answer::kRefuses) vain->reason.clear();
    }
    if (has_changed) purchase->until_ms = now_ms_;
  }

  const BackOffOptions& back_off_;
  int64_t now_ms_;
  const LoopProblem& problem_;
  NodeJudge judge_;
};

// Takes pods off the new nodes of groups, by a requirement that only these fail.
PodShape KeptOff(PodShape shape, const std::vector<std::string>& groups) {
  PodRules rules = shape.rules == nullptr ? PodRules() : *shape.rules;
  if (!rules.node_affinity.has_value()) rules.node_affinity.emplace().terms.emplace_back();
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(shape.base_fingerprint));
  for (const std::string& group : groups) builder.Add(absl::string_view(group));
  for (NodeSelectorTerm& term : rules.node_affinity->terms) {
    term.labels.push_back({std::string(kPlannedGroup), SelectorOperator::kNotIn, groups, 0});
  }
  shape.rules = std::make_shared<const PodRules>(std::move(rules));
  shape.base_fingerprint = builder.Finish();
  builder.Add(static_cast<int64_t>(shape.fingerprint));
  shape.fingerprint = builder.Finish();
  return shape;
}

void KeepOff(const std::vector<VainGrowth>& vain, LoopProblem* problem) {
  absl::btree_map<size_t, std::vector<std::string>> groups_by_pods;
  for (const VainGrowth& of : vain) {
    LoopGroup& group = problem->groups[static_cast<size_t>(of.group)];
    groups_by_pods[of.pods].push_back(group.drain.name);
    if (group.node->labels.Find(kPlannedGroup) != nullptr) continue;
    group.node->labels.Set(kPlannedGroup, group.drain.name);
    group.node = CompleteNodeShape(*std::move(group.node), problem->names);
  }
  for (auto& [pods, groups] : groups_by_pods) {
    std::sort(groups.begin(), groups.end());
    IncomingPod& pod = problem->pending[pods].pod;
    pod.shape = KeptOff(std::move(pod.shape), groups);
  }
}

void ForgetOld(int64_t now_ms, LoopMemory* memory) {
  absl::erase_if(memory->purchases, [&](auto& entry) {
    Purchase& purchase = entry.second;
    if (purchase.asked_ms.has_value() && now_ms - *purchase.asked_ms >= kPurchaseAgeMs) {
      purchase.asked_ms.reset();
    }
    return !purchase.asked_ms.has_value() && now_ms - purchase.until_ms >= kMostVainMs;
  });
}

}  // namespace

std::string TextOf(const VainGrowth& vain, const LoopProblem& problem, int64_t now_ms) {
  const PodShape& shape = problem.pending[vain.pods].pod.shape;
  const std::optional<PodOwner>& owner = TraitsOf(shape).owner;
  const std::string node =
      vain.node == Slot{-1} ? "a node that" : absl::StrCat("node ", problem.drain.cluster->name(vain.node));
  return absl::StrCat("node group ", problem.groups[static_cast<size_t>(vain.group)].drain.name, ": ", node,
                      " came for pods of ", shape.namespace_name, "/",
                      owner.has_value() ? owner->name : "a pod without owner", " and does not take them",
                      vain.reason.empty() ? "" : absl::StrCat(" (", vain.reason, ")"),
                      ": it does not grow for them for ", DurationText(vain.until_ms - now_ms),
                      " unless the node or what new nodes will be changes");
}

std::vector<VainGrowth> HoldVainGrowth(const BackOffOptions& back_off, int64_t now_ms, Snapshot* snapshot,
                                       WorkBudget* budget, LoopProblem* problem, LoopMemory* memory) {
  ForgetOld(now_ms, memory);
  problem->model_keys.clear();
  for (const LoopGroup& group : problem->groups) {
    problem->model_keys.push_back(group.node.has_value() ? group.node->fingerprint : 0);
  }
  problem->pending_shapes.clear();
  for (const PendingPods& pods : problem->pending) {
    problem->pending_shapes.push_back(pods.pod.shape.fingerprint);
  }
  std::vector<VainGrowth> all;
  if (memory->purchases.empty() || problem->pending.empty()) return all;
  absl::flat_hash_map<uint64_t, size_t> pods_of, group_of;
  for (size_t i = 0; i < problem->pending.size(); ++i) pods_of.emplace(problem->pending_shapes[i], i);
  for (size_t i = 0; i < problem->groups.size(); ++i) {
    if (problem->groups[i].node.has_value()) group_of.emplace(FleetKey(problem->groups[i].drain.name), i);
  }
  PurchaseJudge judge(back_off, now_ms, *problem, snapshot, budget);
  absl::erase_if(memory->purchases, [&](auto& entry) {
    const auto group = group_of.find(entry.first.first);
    const auto pods = pods_of.find(entry.first.second);
    if (group == group_of.end() || pods == pods_of.end()) return false;
    VainGrowth vain{static_cast<int32_t>(group->second), pods->second, Slot{-1}, 0, ""};
    if (!judge.Judge(&entry.second, &vain)) return true;
    if (vain.until_ms > 0) all.push_back(std::move(vain));
    return false;
  });
  std::sort(all.begin(), all.end(), [](const VainGrowth& a, const VainGrowth& b) {
    return std::tie(a.group, a.pods) < std::tie(b.group, b.pods);
  });
  KeepOff(all, problem);
  return all;
}

void NoteGrowthForPods(const LoopProblem& problem, const LoopPlan& plan, int64_t now_ms, LoopMemory* memory) {
  if (plan.batch_wait_ms.has_value()) return;
  for (const PlannedNodes& nodes : plan.scale_up.nodes) {
    const int32_t group = plan.grown[static_cast<size_t>(nodes.group)];
    const uint64_t key = FleetKey(problem.groups[static_cast<size_t>(group)].drain.name);
    for (const PodCount& pods : nodes.pods) {
      const size_t position = static_cast<size_t>(pods.pods);
      if (position >= problem.pending_shapes.size()) continue;  // of a node that is being deleted
      const std::pair<uint64_t, uint64_t> of{key, problem.pending_shapes[position]};
      if (memory->purchases.size() >= kMostPurchases && !memory->purchases.contains(of)) continue;
      Purchase& purchase = memory->purchases[of];
      if (!purchase.asked_ms.has_value()) purchase.asked_ms = now_ms;
      purchase.model_asked = problem.model_keys[static_cast<size_t>(group)];
    }
  }
}

}  // namespace loadline
