// What holds new drains back: a cluster that is not known or not well, and pods of earlier drains without a
// place.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/drain/being_deleted.h"
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
bool IsNotReplaced(const PodShape& shape, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(shape);
  return traits.mirror || traits.static_pod || traits.placeholder || OfKnownDaemonSet(shape, objects);
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
  return FindWhatVanished(text);
}

// Nodes that were about to go were left out of the counts of the last loop, and so they are now.
DrainBrake DrainPlanner::Impl::FindWhatVanished(std::string* text) const {
  const auto too_many = [&](int64_t vanished, int64_t before) {
    return absl::int128(vanished) * 100 >
           absl::int128(before) * std::clamp<int64_t>(options_->most_vanished_percent, 0, 100);
  };
  std::vector<Slot> leaving;
  for (const DeletingNode& node : state_.deleting) {
    const std::optional<Slot> slot = FindDeletingNode(cluster(), node);
    if (slot.has_value() && node.left_out) leaving.push_back(*slot);
  }
  std::vector<OwnerPods> now = pods_now_;
  TakeAwayPods(cluster(), leaving, &now);
  const int64_t pods = TotalPods(state_.pods);
  const int64_t pods_vanished = VanishedPods(state_.pods, now, pods_now_, cluster().objects());
  if (too_many(pods_vanished, pods)) {
    *text = absl::StrCat(pods_vanished, " of the ", pods,
                         " pods of the last loop are gone, and nothing says why");
    return DrainBrake::kPodsVanished;
  }
  const int64_t nodes = cluster().node_count() - static_cast<int64_t>(leaving.size());
  if (state_.nodes >= 0 && too_many(state_.nodes - nodes, state_.nodes)) {
    *text = absl::StrCat("there were ", state_.nodes,
                         " nodes in the last loop that were to stay, and now there are ", nodes);
    return DrainBrake::kNodesVanished;
  }
  return DrainBrake::kNone;
}

// Nothing new is drained, and timers go on. They start anew where the cluster is not healthy, as in Cluster
// Autoscaler.
void DrainPlanner::Impl::Brake() {
  const bool anew = plan_.brake == DrainBrake::kUnhealthy;
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
  DrainBoard::Outcome outcome = DrainBoard::Outcome::kPlaced;
  DrainBrake otherwise = DrainBrake::kNodesBeingDeleted;
  for (size_t i = 0; i < deleting_.size() && outcome == DrainBoard::Outcome::kPlaced; ++i) {
    outcome = PlaceFromDeleting(deleting_[i], text);
  }
  if (outcome == DrainBoard::Outcome::kPlaced) {
    otherwise = DrainBrake::kRecentEvictions;
    outcome = PlaceEvicted(text);
  }
  switch (outcome) {
    case DrainBoard::Outcome::kPlaced:
      return DrainBrake::kNone;
    case DrainBoard::Outcome::kNoPlace:
      return otherwise;
    case DrainBoard::Outcome::kStopped:
      break;
  }
  const absl::string_view end = Name(budget_->end());
  *text = absl::StrCat("the limit of ", end,
                       " was reached before pods of nodes being deleted and replacements of evicted "
                       "pods had been looked at");
  return DrainBrake::kNotVerified;
}

// Pods that a node being deleted still has. What their budgets have left is taken and not asked for: they go
// in any case.
DrainBoard::Outcome DrainPlanner::Impl::PlaceFromDeleting(Slot slot, std::string* text) {
  const NodePods& all = cluster().pods(slot);
  const auto known = std::find_if(state_.deleting.begin(), state_.deleting.end(),
                                  [&](const DeletingNode& node) { return node.node == name(slot); });
  std::vector<MovingPod> pods;
  std::vector<BudgetUse> uses;
  for (size_t i = 0; i < all.pods().size(); ++i) {
    const PodShape& shape = cluster().pod_shapes()[all.pods()[i].shape];
    // One that is terminating was evicted: its replacement is known, or counts as a recent eviction.
    if (shape.finished || TraitsOf(shape).deleted_s.has_value()) continue;
    const PodOutcome outcome = judge_->Judge(slot, all.pods()[i].shape).outcome;
    if (outcome == PodOutcome::kSkip || outcome == PodOutcome::kDaemon) continue;
    pods.push_back(PodAt(slot, static_cast<int32_t>(i)));
    uses.push_back(pods.back().use);
  }
  if (known == state_.deleting.end()) {
    const DisruptionBudgets::Answer asked = budgets_->Ask(uses);
    risky_by_taint_ = risky_by_taint_ || asked.risky || asked.refusal == BudgetRefusal::kExhausted;
  }
  for (const BudgetUse& use : uses) budgets_->Take(use);
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
  const DrainBoard::Answer answer =
      board_->Drain(judged(slot).node, pods, /*hints_only=*/false, budget_, /*may_stop=*/true);
  if (answer.outcome != DrainBoard::Outcome::kNoPlace) return answer.outcome;
  const MovingPod& pod = pods[answer.pod];
  *text = absl::StrCat("node ", name(slot), " is being deleted, and its pod ",
                       PodName(pod.namespace_name, pod.name), " fits nowhere else");
  return answer.outcome;
}

// Replacements that owners have yet to create. They have no node, and are placed as if they had come.
DrainBoard::Outcome DrainPlanner::Impl::PlaceEvicted(std::string* text) {
  std::vector<const RecentEviction*> evictions;
  for (const RecentEviction& eviction : state_.recent_evictions) {
    if (!IsNotReplaced(eviction.shape, cluster().objects())) evictions.push_back(&eviction);
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
    IncomingPod replacement;
    replacement.shape = eviction->shape;
    replacement.names = eviction->names;
    pod.kind = board_->KindOf(replacement);
    pod.name = eviction->name;
    pod.uid = eviction->uid;
    const DrainBoard::Outcome outcome =
        board_->Place({&pod, 1}, /*hints_only=*/false, budget_, /*may_stop=*/true).outcome;
    if (outcome == DrainBoard::Outcome::kPlaced) continue;
    if (outcome == DrainBoard::Outcome::kStopped) return outcome;
    *text = absl::StrCat("the replacement of pod ", PodName(eviction->shape.namespace_name, eviction->name),
                         ", which was evicted from node ", eviction->node, ", fits nowhere");
    return outcome;
  }
  return DrainBoard::Outcome::kPlaced;
}

}  // namespace loadline
