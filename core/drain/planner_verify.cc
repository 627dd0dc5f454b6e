// What holds new drains back: a cluster that is not known or not well, and pods of earlier drains without a
// place.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/drain/planner_impl.h"

namespace loadline {
namespace {

// How many replacements an owner has yet to create; nullopt: it is not known, and each eviction counts.
std::optional<int64_t> MissingReplicas(const ClusterObjects& objects, const PodShape& shape) {
  const std::optional<PodOwner>& owner = TraitsOf(shape).owner;
  if (!owner.has_value()) return std::nullopt;
  for (const auto& [name, kind] : {std::pair{"StatefulSet", ObjectKind::kStatefulSet},
                                   {"Job", ObjectKind::kJob},
                                   {"ReplicaSet", ObjectKind::kReplicaSet},
                                   {"ReplicationController", ObjectKind::kReplicationController}}) {
    if (owner->kind != name) continue;
    const Workload* const workload = objects.FindWorkload(kind, shape.namespace_name, owner->name);
    if (workload == nullptr) return std::nullopt;
    if (!workload->uid.empty() && !owner->uid.empty() && workload->uid != owner->uid) return std::nullopt;
    return std::max<int64_t>(0, workload->target_replicas - workload->current_replicas);
  }
  return std::nullopt;
}

// Whether nobody creates another one.
bool IsNotReplaced(const PodTraits& traits) {
  return traits.mirror || traits.static_pod || traits.placeholder || IsDaemonPod(traits);
}

std::string PodName(absl::string_view namespace_name, absl::string_view name) {
  return absl::StrCat(namespace_name, "/", name);
}

}  // namespace

// Those that nothing else tells of yet: a pod that is terminating or gone is no longer among the ready ones.
std::vector<AcceptedEviction> DrainPlanner::Impl::Evictions() const {
  std::vector<AcceptedEviction> evictions;
  for (const RecentEviction& eviction : state_.recent_evictions) {
    const std::optional<Slot> slot = cluster().Find(eviction.node);
    if (!slot.has_value()) continue;
    const NodePods& pods = cluster().pods(*slot);
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      if (pods.name(i) != eviction.name || pods.uid(i) != eviction.uid) continue;
      const PodShape& shape = cluster().pod_shapes()[pods.pods()[i].shape];
      if (!TraitsOf(shape).deleted_s.has_value()) evictions.push_back({eviction.name, eviction.shape});
    }
  }
  return evictions;
}

DrainBrake DrainPlanner::Impl::FindBrake(std::string* text) const {
  if (!problem_->doubt.empty()) {
    *text = problem_->doubt;
    return DrainBrake::kDoubt;
  }
  if (!problem_->unhealthy.empty()) {
    *text = problem_->unhealthy;
    return DrainBrake::kUnhealthy;
  }
  if (state_.at_s > problem_->now_s) {
    *text = absl::StrCat("the last loop was at ", state_.at_s, ", and now it is ", problem_->now_s);
    return DrainBrake::kClockWentBack;
  }
  const auto vanished = [&](int64_t before, int64_t now) {
    return before > 0 &&
           absl::int128(before - now) * 100 >
               absl::int128(before) * std::clamp<int64_t>(options_->most_vanished_percent, 0, 100);
  };
  if (vanished(state_.pods, cluster().total_pods())) {
    *text = absl::StrCat("there were ", state_.pods, " pods in the last loop, and now there are ",
                         cluster().total_pods());
    return DrainBrake::kPodsVanished;
  }
  // Nodes that were to go are expected to be gone.
  const int64_t gone =
      std::count_if(state_.deleting.begin(), state_.deleting.end(),
                    [&](const DeletingNode& node) { return !cluster().Find(node.node).has_value(); });
  if (vanished(state_.nodes, cluster().node_count() + gone)) {
    *text = absl::StrCat("there were ", state_.nodes, " nodes in the last loop, and now there are ",
                         cluster().node_count());
    return DrainBrake::kNodesVanished;
  }
  return DrainBrake::kNone;
}

// Nothing new is drained, and timers go on, or start anew where what they count on may not have been so.
void DrainPlanner::Impl::Brake() {
  const bool anew = plan_.brake == DrainBrake::kUnhealthy || plan_.brake == DrainBrake::kPodsVanished ||
                    plan_.brake == DrainBrake::kNodesVanished;
  for (FormerEntry& entry : formers_) {
    FormerNode former = entry.intact.has_value() ? Forget(*entry.intact) : std::move(entry.former);
    const std::optional<Slot> slot = cluster().Find(former.node);
    if (!slot.has_value()) continue;
    const std::string& uid = cluster().traits(*slot).uid;
    if (!uid.empty() && !former.uid.empty() && uid != former.uid) continue;
    former.since_s = anew ? problem_->now_s : TimerStart(former.since_s, problem_->now_s);
    Hold(std::move(former));
  }
  follows_ = false;
  const NodeReason reason = plan_.brake == DrainBrake::kRecentEvictions ? NodeReason::kRecentEvictionsWait
                                                                        : NodeReason::kNotUnneededOtherReason;
  for (const Slot slot : slots_) {
    if (judged(slot).reason == NodeReason::kNone) Note(slot, reason);
  }
}

DrainBrake DrainPlanner::Impl::Verify(std::string* text) {
  if (deleting_.empty() && state_.recent_evictions.empty()) return DrainBrake::kNone;
  follows_ = false;
  board_->SetOrder(Destinations(Ordered(Candidates(), OrderBy::kLoad)));
  for (const Slot slot : deleting_) {
    if (!PlaceFromDeleting(slot, text)) return DrainBrake::kNodesBeingDeleted;
  }
  return PlaceEvicted(text) ? DrainBrake::kNone : DrainBrake::kRecentEvictions;
}

// Pods that a node being deleted still has. What their budgets have left is taken and not asked for: they go
// in any case.
bool DrainPlanner::Impl::PlaceFromDeleting(Slot slot, std::string* text) {
  const NodePods& all = cluster().pods(slot);
  FormerNode former;
  const auto known = std::find_if(state_.deleting.begin(), state_.deleting.end(),
                                  [&](const DeletingNode& node) { return node.node == name(slot); });
  std::vector<MovingPod> pods;
  for (size_t i = 0; i < all.pods().size(); ++i) {
    const PodShape& shape = cluster().pod_shapes()[all.pods()[i].shape];
    // One that is terminating was evicted: its replacement is known, or counts as a recent eviction.
    if (shape.finished || TraitsOf(shape).deleted_s.has_value()) continue;
    const PodOutcome outcome = judge_->Judge(slot, all.pods()[i].shape).outcome;
    if (outcome == PodOutcome::kSkip || outcome == PodOutcome::kDaemon) continue;
    pods.push_back(PodAt(slot, static_cast<int32_t>(i)));
    budgets_->Take(pods.back().use);
  }
  if (known != state_.deleting.end()) {
    absl::flat_hash_map<std::string, const std::string*> hints;
    for (const DestinationHint& hint : known->hints) hints.try_emplace(hint.pod, &hint.node);
    for (MovingPod& pod : pods) {
      const auto hint = hints.find(TextOf(slot, pod.pod));
      const std::optional<Slot> to = hint == hints.end() ? std::nullopt : cluster().Find(*hint->second);
      if (to.has_value() && !is_former_[IndexOf(*to)]) pod.hint = judged(*to).node;
    }
  }
  board_->Sort(&pods);
  WorkBudget unlimited;
  const DrainBoard::Answer answer =
      board_->Drain(judged(slot).node, pods, /*hints_only=*/false, &unlimited, /*may_stop=*/false);
  if (answer.outcome == DrainBoard::Outcome::kPlaced) return true;
  const MovingPod& pod = pods[answer.pod];
  *text = absl::StrCat("node ", name(slot), " is being deleted, and its pod ",
                       PodName(pod.namespace_name, pod.name), " fits nowhere else");
  return false;
}

// Replacements that owners have yet to create. They have no node, and are placed as if they had come.
bool DrainPlanner::Impl::PlaceEvicted(std::string* text) {
  std::vector<const RecentEviction*> evictions;
  for (const RecentEviction& eviction : state_.recent_evictions) {
    if (!IsNotReplaced(TraitsOf(eviction.shape))) evictions.push_back(&eviction);
  }
  std::sort(evictions.begin(), evictions.end(), [](const RecentEviction* a, const RecentEviction* b) {
    const auto rank = [](const RecentEviction* eviction) {
      return std::tie(eviction->at_s, eviction->shape.namespace_name, eviction->name, eviction->uid);
    };
    return rank(a) < rank(b);
  });
  absl::flat_hash_map<std::string, int64_t> placed;  // by owner
  for (const RecentEviction* eviction : evictions) {
    if (const auto missing = MissingReplicas(cluster().objects(), eviction->shape)) {
      const PodOwner& owner = *TraitsOf(eviction->shape).owner;
      int64_t& count = placed[absl::StrCat(owner.uid, "/", eviction->shape.namespace_name, "/", owner.kind,
                                           "/", owner.name)];
      if (count >= *missing) continue;
      ++count;
    }
    MovingPod pod;
    pod.kind = board_->KindOfFormerPod(eviction->shape);
    pod.name = eviction->name;
    pod.uid = eviction->uid;
    WorkBudget unlimited;
    if (board_->Place({&pod, 1}, /*hints_only=*/false, &unlimited, /*may_stop=*/false).outcome ==
        DrainBoard::Outcome::kPlaced) {
      continue;
    }
    *text = absl::StrCat("the replacement of pod ", PodName(eviction->shape.namespace_name, eviction->name),
                         ", which was evicted from node ", eviction->node, ", fits nowhere");
    return false;
  }
  return true;
}

}  // namespace loadline
