#include "core/drain/node_trial.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/drain/node_reason.h"

namespace loadline {
namespace {

// Returns whether the answers of the rules for the pods stay the same: pods that are terminating end at some
// time, and pods of kube-system may move when they are old.
bool IsSettled(const ClusterState& cluster, Slot slot) {
  const std::span<const NodePods::Pod> pods = cluster.pods(slot).pods();
  return std::none_of(pods.begin(), pods.end(), [&](const NodePods::Pod& pod) {
    const PodShape& shape = cluster.pod_shapes()[pod.shape];
    return TraitsOf(shape).deleted_s.has_value() || shape.namespace_name == "kube-system";
  });
}

void NoteBlock(Slot slot, const NodePodsJudgement::Block& block, DrainCall* call) {
  call->Note(slot, NodeReason::kBlockedByPod, PodRef::Pod(block.pod));
  call->judged(slot).pod_reason = block.reason;
  if (block.reason != PodReason::kNotEnoughPdb) return;
  const int32_t shape = call->cluster().pods(slot).pods()[block.pod].shape;
  call->judged(slot).budget = call->budgets.Refuses(call->budgets.UseOf(shape));
}

}  // namespace

MovingPod MovingPodOf(const DrainCall& call, Slot slot, PodRef pod, TrialFollower* follower) {
  MovingPod moving;
  moving.pod = pod;
  moving.key = call.KeyOf(slot, pod);
  moving.kind = follower->KindOf(call, slot, pod);
  if (pod.is_placeholder()) {
    moving.placeholder = true;
    moving.name = call.placeholder(pod).name;
    return moving;
  }
  const NodePods& pods = call.cluster().pods(slot);
  const size_t i = pod.position();
  const PodShape& shape = call.cluster().pod_shapes()[pods.pods()[i].shape];
  const PodTraits& traits = TraitsOf(shape);
  moving.use = call.budgets.UseOf(pods.pods()[i].shape);
  moving.priority = traits.priority;
  moving.placeholder = traits.placeholder;
  moving.namespace_name = shape.namespace_name;
  moving.name = pods.name(i);
  moving.uid = pods.uid(i);
  return moving;
}

void SetHints(const DrainCall& call, const FormerNode& former, std::vector<MovingPod>* pods) {
  absl::flat_hash_map<uint64_t, const std::string*> hints;
  for (const auto& [key, node] : former.hints) hints.try_emplace(key, &node);
  for (MovingPod& pod : *pods) {
    const auto hint = hints.find(pod.key);
    if (hint == hints.end()) continue;
    const std::optional<Slot> to = call.cluster().Find(*hint->second);
    if (!to.has_value()) continue;
    const JudgedNode& node = call.judged(*to);
    if (!node.former || !node.eligible) pod.hint = node.node;  // it is not to go itself
  }
}

std::optional<NodeTrial> AskPods(Slot slot, const FormerNode* former, DrainCall* call,
                                 TrialFollower* follower) {
  const std::span<const NodePods::Pod> all = call->cluster().pods(slot).pods();
  const NodePodsJudgement judgement = call->judge.JudgeNode(slot);
  if (judgement.block.has_value()) {
    NoteBlock(slot, *judgement.block, call);
    return std::nullopt;
  }
  NodeTrial trial;
  PlannedNode& planned = trial.planned;
  planned.slot = slot;
  planned.node = call->judged(slot).node;
  planned.uid = call->cluster().traits(slot).uid;
  planned.empty = true;
  for (const size_t pod : judgement.wait) planned.waits_for.push_back(static_cast<int32_t>(pod));
  std::vector<BudgetUse> uses;
  for (const size_t pod : judgement.move) {
    // A finished pod holds nothing, and nothing takes its place.
    if (call->cluster().pod_shapes()[all[pod].shape].finished) continue;
    planned.sources.push_back(PodRef::Pod(pod));
    trial.pods.push_back(MovingPodOf(*call, slot, planned.sources.back(), follower));
    planned.empty = planned.empty && trial.pods.back().placeholder;
    uses.push_back(trial.pods.back().use);
  }
  const DisruptionBudgets::Answer answer = call->budgets.Ask(uses);
  if (answer.refused.has_value()) {
    call->Note(slot, NodeReason::kBlockedByPod, planned.sources[*answer.refused]);
    call->judged(slot).pod_reason = PodReason::kNotEnoughPdb;
    call->judged(slot).budget = answer.refusal;
    return std::nullopt;
  }
  planned.risky = answer.risky;
  for (const PodRef placeholder : call->PlaceholdersOn(slot)) {
    planned.sources.push_back(placeholder);
    trial.pods.push_back(MovingPodOf(*call, slot, placeholder, follower));
  }
  if (former != nullptr) SetHints(*call, *former, &trial.pods);
  follower->trial().Sort(&trial.pods);
  return trial;
}

PlannedNode Accept(NodeTrial trial, const DrainTrial& trial_cluster, DrainCall* call) {
  PlannedNode planned = std::move(trial.planned);
  auto moves = std::make_shared<DrainRemoval::Moves>();
  moves->reserve(trial.pods.size());
  planned.placed.reserve(trial.pods.size());
  for (const MovingPod& pod : trial.pods) {
    call->budgets.Take(pod.use);
    moves->push_back({pod.pod, trial_cluster.snapshot().slot(pod.to)});
    planned.placed.push_back({pod.key, pod.kind, pod.to});
    const Slot to = moves->back().to;
    if (planned.destinations.empty() || planned.destinations.back() != to) planned.destinations.push_back(to);
  }
  std::sort(planned.destinations.begin(), planned.destinations.end());
  planned.destinations.erase(std::unique(planned.destinations.begin(), planned.destinations.end()),
                             planned.destinations.end());
  planned.moves = std::move(moves);
  planned.settled = IsSettled(call->cluster(), planned.slot);
  call->Note(planned.slot, NodeReason::kNone);
  call->judged(planned.slot).planned = true;
  return planned;
}

}  // namespace loadline
