#include "core/drain/verify.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/pod_role.h"
#include "core/drain/being_deleted.h"
#include "core/drain/candidate_rounds.h"
#include "core/drain/missing_replicas.h"
#include "core/drain/node_trial.h"

namespace loadline {
namespace {

std::string PodName(absl::string_view namespace_name, absl::string_view name) {
  return absl::StrCat(namespace_name, "/", name);
}

const DeletingNode* FindRemembered(const DrainState& state, absl::string_view name) {
  const auto found = std::find_if(state.deleting.begin(), state.deleting.end(),
                                  [&](const DeletingNode& node) { return node.node == name; });
  return found == state.deleting.end() ? nullptr : &*found;
}

// The namespace with this hash, as the cluster knows it; else empty.
std::string NamespaceNamed(uint64_t hash, const ClusterState& cluster) {
  for (const auto& [key, object] : cluster.objects().of(ObjectKind::kNamespace)) {
    if (HashOfNamespace(key.name) == hash) return key.name;
  }
  const std::span<const int64_t> pods = cluster.pods_of_shape();
  for (size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == 0) continue;
    const std::string& name = cluster.pod_shapes()[static_cast<int32_t>(i)].namespace_name;
    if (HashOfNamespace(name) == hash) return name;
  }
  return "";
}

std::string WhatVanished(const VanishedCounts& counts, const ClusterState& cluster) {
  std::string text = absl::StrCat(counts.all.vanished, " of the ", counts.all.before,
                                  counts.all.before == 1 ? " pod" : " pods", " of the last loop ",
                                  counts.all.vanished == 1 ? "is" : "are", " gone, and nothing says why");
  if (counts.one_namespace.before == counts.all.before) return text;
  const std::string name = NamespaceNamed(counts.namespace_hash, cluster);
  if (!name.empty())
    absl::StrAppend(&text, "; ", counts.one_namespace.vanished,
                    counts.one_namespace.vanished == 1 ? " was" : " were", " in namespace ", name);
  return text;
}

// Nodes that were about to go were left out of the counts of the last call, and so they are now.
BrakeFound FindWhatVanished(const DrainCall& call, const DrainState& state, std::span<const OwnerPods> pods) {
  const ClusterState& cluster = call.cluster();
  const int64_t percent = std::clamp<int64_t>(call.options().most_vanished_percent, 0, 100);
  std::vector<Slot> leaving;
  for (const DeletingNode& node : state.deleting) {
    const std::optional<Slot> slot = FindDeletingNode(cluster, node);
    if (slot.has_value() && node.left_out) leaving.push_back(*slot);
  }
  std::vector<OwnerPods> now(pods.begin(), pods.end());
  TakeAwayPods(cluster, leaving, &now);
  const VanishedCounts vanished = VanishedPods(state.pods, now, pods, cluster.objects());
  if (TooManyVanished(vanished, percent)) {
    return {DrainBrake::kPodsVanished, WhatVanished(vanished, cluster)};
  }
  const int64_t nodes = cluster.node_count() - static_cast<int64_t>(leaving.size());
  if (state.nodes >= 0 && absl::int128(state.nodes - nodes) * 100 > absl::int128(state.nodes) * percent) {
    return {
        DrainBrake::kNodesVanished,
        absl::StrCat("of ", state.nodes, state.nodes == 1 ? " node" : " nodes",
                     " of the last loop that had to stay, ", nodes, nodes == 1 ? " is" : " are", " left")};
  }
  return {};
}

// Has a pod go where its replacement is expected.
void HintReplacement(const DrainCall& call, uint64_t fingerprint,
                     std::vector<ExpectedReplacements>* replacements, MovingPod* pod) {
  const auto found = absl::c_find_if(*replacements, [&](const ExpectedReplacements& entry) {
    return entry.count > 0 && entry.fingerprint == fingerprint;
  });
  if (found == replacements->end()) return;
  --found->count;
  const std::optional<Slot> to = call.cluster().Find(found->node);
  if (to.has_value()) pod->hint = call.judged(*to).node;
}

// Pods that a node being deleted still has.
DrainTrial::Outcome PlaceFromDeleting(Slot slot, const DrainState& state,
                                      std::vector<ExpectedReplacements>* replacements, DrainCall* call,
                                      TrialFollower* follower, std::string* text) {
  const NodePods& all = call->cluster().pods(slot);
  std::vector<MovingPod> pods;
  std::vector<BudgetUse> uses;
  for (size_t i = 0; i < all.pods().size(); ++i) {
    const PodShape& shape = call->cluster().pod_shapes()[all.pods()[i].shape];
    // One that is terminating was evicted: its replacement is known, or counts as a recent eviction.
    if (shape.finished || TraitsOf(shape).deleted_s.has_value()) continue;
    const PodOutcome outcome = call->judge.Judge(slot, all.pods()[i].shape).outcome;
    if (outcome == PodOutcome::kSkip || outcome == PodOutcome::kDaemon) continue;
    pods.push_back(MovingPodOf(*call, slot, PodRef::Pod(i), follower));
    uses.push_back(pods.back().use);
  }
  const DeletingNode* const remembered = FindRemembered(state, call->name(slot));
  if (remembered == nullptr) {
    const DisruptionBudgets::Answer asked = call->budgets.Ask(uses);
    if (asked.risky || NothingIsLeft(asked.refusal)) call->risky_deletion = true;
  } else {
    FormerNode planned;
    for (const DestinationHint& hint : remembered->hints) {
      planned.hints.emplace_back(DrainCall::KeyOfText(hint.pod), hint.node);
    }
    SetHints(*call, planned, &pods);
  }
  for (MovingPod& pod : pods) {
    const int32_t shape = all.pods()[pod.pod.position()].shape;
    HintReplacement(*call, call->cluster().pod_shapes()[shape].fingerprint, replacements, &pod);
  }
  for (const BudgetUse& use : uses) call->budgets.Take(use);
  DrainTrial& trial = follower->trial();
  trial.Sort(&pods);
  const DrainTrial::Answer answer =
      trial.Drain(call->judged(slot).node, pods, /*hints_only=*/false, call->work(), /*may_stop=*/true);
  if (answer.outcome != DrainTrial::Outcome::kNoPlace) return answer.outcome;
  const MovingPod& pod = pods[answer.pod];
  *text = absl::StrCat("node ", call->name(slot), " is being deleted, and its pod ",
                       PodName(pod.namespace_name, pod.name), " fits nowhere else");
  return answer.outcome;
}

// In the order in which they were evicted.
std::vector<const RecentEviction*> EvictionsToReplace(const DrainState& state,
                                                      const ClusterObjects& objects) {
  std::vector<const RecentEviction*> evictions;
  for (const RecentEviction& eviction : state.recent_evictions) {
    if (IsReplaced(eviction.shape, objects)) evictions.push_back(&eviction);
  }
  std::sort(evictions.begin(), evictions.end(), [](const RecentEviction* a, const RecentEviction* b) {
    const auto rank = [](const RecentEviction* eviction) {
      return std::tie(eviction->at_s, eviction->shape.namespace_name, eviction->name, eviction->uid);
    };
    return rank(a) < rank(b);
  });
  return evictions;
}

// Replacements have no node yet, and are placed as if they had come.
DrainTrial::Outcome PlaceReplacements(const DrainState& state, DrainCall* call, DrainTrial* trial,
                                      std::string* text) {
  const ClusterObjects& objects = call->cluster().objects();
  const std::vector<const RecentEviction*> evictions = EvictionsToReplace(state, objects);
  MissingReplicas missing(call->cluster(), evictions);
  for (const RecentEviction* eviction : evictions) {
    if (!missing.Take(*eviction)) continue;
    IncomingPod replacement;
    replacement.shape = eviction->shape;
    replacement.names = eviction->names;
    MovingPod pod;
    pod.kind = trial->KindOf(replacement);
    pod.name = eviction->name;
    pod.uid = eviction->uid;
    const DrainTrial::Outcome outcome =
        trial->Place({&pod, 1}, /*hints_only=*/false, call->work(), /*may_stop=*/true).outcome;
    if (outcome == DrainTrial::Outcome::kPlaced) continue;
    if (outcome == DrainTrial::Outcome::kNoPlace) {
      *text = absl::StrCat("the replacement of pod ", PodName(eviction->shape.namespace_name, eviction->name),
                           ", which was evicted from node ", eviction->node, ", fits nowhere");
    }
    return outcome;
  }
  return DrainTrial::Outcome::kPlaced;
}

}  // namespace

BrakeFound FindBrake(const DrainCall& call, const DrainState& state, std::span<const OwnerPods> pods) {
  const DrainProblem& problem = call.problem();
  if (!problem.doubt.empty()) return {DrainBrake::kDoubt, problem.doubt};
  if (!problem.unhealthy.empty()) return {DrainBrake::kUnhealthy, problem.unhealthy};
  if (state.at_s > problem.now_s) {
    return {DrainBrake::kClockWentBack,
            absl::StrCat("the last loop was at ", state.at_s, ", and now it is ", problem.now_s)};
  }
  return FindWhatVanished(call, state, pods);
}

BrakeFound PlacePodsUnderWay(const DrainState& state, DrainCall* call, TrialFollower* follower) {
  if (!call->expects_pods_first()) return {};
  follower->Spoil();
  DrainTrial& trial = follower->trial();
  trial.SetOrder(Destinations(
      *call, Ordered(*call, Candidates(*call, trial.snapshot(), {}), OrderBy::kLoad, state.resume_at)));
  BrakeFound found;
  DrainTrial::Outcome outcome = DrainTrial::Outcome::kPlaced;
  DrainBrake brake = DrainBrake::kNodesBeingDeleted;
  std::vector<ExpectedReplacements> replacements = call->problem().replacements;
  for (size_t i = 0; i < call->deleting.size() && outcome == DrainTrial::Outcome::kPlaced; ++i) {
    outcome = PlaceFromDeleting(call->deleting[i], state, &replacements, call, follower, &found.text);
  }
  if (outcome == DrainTrial::Outcome::kPlaced) {
    brake = DrainBrake::kRecentEvictions;
    outcome = PlaceReplacements(state, call, &trial, &found.text);
  }
  switch (outcome) {
    case DrainTrial::Outcome::kPlaced:
      break;
    case DrainTrial::Outcome::kNoPlace:
      found.brake = brake;
      break;
    case DrainTrial::Outcome::kStopped:
      found.brake = DrainBrake::kNotVerified;
      found.text = absl::StrCat("the limit of ", Name(call->work()->end()),
                                " was reached before pods of nodes being deleted and replacements of evicted "
                                "pods had been looked at");
      break;
  }
  return found;
}

}  // namespace loadline
