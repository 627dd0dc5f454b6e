#include "core/drain/trial_follower.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/drain/eligibility.h"

namespace loadline {

void TrialFollower::Reset() {
  trial_cluster_.reset();
  cluster_ = nullptr;
}

TrialFollower::Followed TrialFollower::Follow(const DrainCall& call, std::vector<PlannedNode> planned) {
  Followed followed;
  if (cluster_ == &call.cluster()) followed.changes = call.cluster().changes(journal_);
  if (CanFollow(call) && followed.changes.has_value()) {
    followed.formers = Update(call, std::move(planned), *followed.changes);
  } else {
    for (const PlannedNode& node : planned) followed.formers.push_back({std::nullopt, ByNames(node)});
    if (CanClear(call) && followed.changes.has_value()) {
      Clear(call, *followed.changes);
    } else {
      Rebuild(call);
    }
  }
  cluster_ = &call.cluster();
  journal_ = call.cluster().change_count();
  holds_plan_ = true;
  placeholders_seen_ = Seen(call.problem().placeholders);
  return followed;
}

bool TrialFollower::CanFollow(const DrainCall& call) const {
  return holds_plan_ && !call.expects_pods_first() && call.problem().walk.empty() && CanClear(call);
}

bool TrialFollower::CanClear(const DrainCall& call) const {
  if (trial_cluster_ == nullptr || trial_cluster_->pods_depend()) return false;
  const Snapshot& snapshot = trial_cluster_->snapshot();
  // Nodes and shapes that are gone stay numbered.
  if (snapshot.node_end() > 2 * call.cluster().node_count() + 64) return false;
  return snapshot.pod_shape_end() <= 4 * static_cast<int64_t>(call.cluster().pod_shapes().size()) + 10'000;
}

std::vector<TrialFollower::SeenPlaceholder> TrialFollower::Seen(
    std::span<const DrainPlaceholder> placeholders) {
  std::vector<SeenPlaceholder> seen;
  seen.reserve(placeholders.size());
  for (const DrainPlaceholder& placeholder : placeholders) {
    seen.push_back({placeholder.node, placeholder.name, placeholder.pod->shape.fingerprint});
  }
  return seen;
}

std::vector<Slot> TrialFollower::WithOtherPlaceholders(const DrainCall& call,
                                                       std::span<const PlannedNode> planned) const {
  std::vector<SeenPlaceholder> now = Seen(call.problem().placeholders);
  if (now == placeholders_seen_) return {};
  std::vector<SeenPlaceholder> before = placeholders_seen_;
  std::sort(now.begin(), now.end());
  std::sort(before.begin(), before.end());
  std::vector<SeenPlaceholder> other;
  std::set_symmetric_difference(now.begin(), now.end(), before.begin(), before.end(),
                                std::back_inserter(other));
  std::vector<Slot> slots;
  for (const SeenPlaceholder& placeholder : other) {
    if (const std::optional<Slot> slot = call.cluster().Find(placeholder.node)) slots.push_back(*slot);
  }
  for (const PlannedNode& node : planned) {
    const bool moves_any = std::any_of(node.sources.begin(), node.sources.end(),
                                       [](PodRef pod) { return pod.is_placeholder(); });
    if (moves_any) slots.push_back(node.slot);
  }
  return slots;
}

std::vector<FormerEntry> TrialFollower::Update(const DrainCall& call, std::vector<PlannedNode> planned,
                                               std::span<const Slot> changes) {
  std::vector<FormerEntry> formers;
  formers.reserve(planned.size());
  std::vector<bool> changed(static_cast<size_t>(call.cluster().slot_end()), false);
  std::vector<Slot> reload;
  const auto note = [&](Slot slot) {
    if (!changed[IndexOf(slot)]) reload.push_back(slot);
    changed[IndexOf(slot)] = true;
  };
  for (const Slot slot : changes) note(slot);
  for (const Slot slot : WithOtherPlaceholders(call, planned)) note(slot);
  std::vector<const PlannedNode*> with_changes;
  for (PlannedNode& node : planned) {
    const bool touched =
        changed[IndexOf(node.slot)] || std::any_of(node.destinations.begin(), node.destinations.end(),
                                                   [&](Slot to) { return changed[IndexOf(to)]; });
    if (!touched) {
      formers.push_back({std::move(node), {}});
      continue;
    }
    formers.push_back({std::nullopt, ByNames(node)});
    if (changed[IndexOf(node.slot)]) {
      with_changes.push_back(&node);
    } else {
      reload.push_back(node.slot);
    }
    // The pods on nodes that changed are removed when these nodes are read anew.
    for (size_t i = 0; i < node.placed.size(); ++i) {
      if (!changed[IndexOf((*node.moves)[i].to)])
        trial_cluster_->TakeBack(node.placed[i].kind, node.placed[i].to);
    }
  }
  trial_cluster_->Reload(reload);
  Prepare(call, reload);
  trial_cluster_->NoteNewPods();
  const bool stands = !trial_cluster_->pods_depend() &&
                      std::none_of(with_changes.begin(), with_changes.end(),
                                   [&](const PlannedNode* node) { return AsksOtherwise(call, *node); });
  if (stands) return formers;
  for (FormerEntry& entry : formers) {
    if (entry.intact.has_value()) entry = {std::nullopt, ByNames(*entry.intact)};
  }
  Rebuild(call);
  return formers;
}

// Returns whether a pod that was to move from the node is still there and asks for something else.
bool TrialFollower::AsksOtherwise(const DrainCall& call, const PlannedNode& planned) {
  if (!call.cluster().Occupied(planned.slot)) return false;
  absl::flat_hash_map<uint64_t, int32_t> kinds;
  for (const PlacedPod& pod : planned.placed) kinds.emplace(pod.key, pod.kind);
  const auto differs = [&](PodRef pod) {
    const auto before = kinds.find(call.KeyOf(planned.slot, pod));
    return before != kinds.end() && before->second != KindOf(call, planned.slot, pod);
  };
  const size_t pods = call.cluster().pods(planned.slot).pods().size();
  for (size_t i = 0; i < pods; ++i) {
    if (differs(PodRef::Pod(i))) return true;
  }
  return false;  // a placeholder that asks for something else has another key
}

void TrialFollower::Clear(const DrainCall& call, std::span<const Slot> changes) {
  std::vector<Slot> slots = trial_cluster_->Touched();
  slots.insert(slots.end(), changes.begin(), changes.end());
  for (const Slot slot : WithOtherPlaceholders(call, {})) slots.push_back(slot);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  trial_cluster_->Reload(slots);
  trial_cluster_->ForgetSearch();
  Prepare(call, slots);
  trial_cluster_->NoteNewPods();
  if (trial_cluster_->pods_depend()) return Rebuild(call);
  for (const Slot slot : call.deleting) trial_cluster_->snapshot().MarkLeaving(NodeIn(slot));
}

void TrialFollower::Rebuild(const DrainCall& call) {
  fit_ = std::make_unique<FitOptions>(call.options().fit);
  trial_cluster_.reset();  // first: two at a time would take twice the memory
  trial_cluster_ = std::make_unique<DrainTrial>(call.cluster(), fit_.get());
  std::vector<Slot> all;
  for (int32_t i = 0; i < call.cluster().slot_end(); ++i) {
    if (call.cluster().Occupied(Slot{i})) all.push_back(Slot{i});
  }
  Prepare(call, all);
  trial_cluster_->NoteNewPods();
  Snapshot& snapshot = trial_cluster_->snapshot();
  for (const Slot slot : call.deleting) snapshot.MarkLeaving(NodeIn(slot));
}

void TrialFollower::Prepare(const DrainCall& call, std::span<const Slot> slots) {
  for (const Slot slot : slots) {
    if (!call.cluster().Occupied(slot)) continue;
    const NodeIndex node = NodeIn(slot);
    for (const PodRef placeholder : call.PlaceholdersOn(slot)) {
      trial_cluster_->AddPlaceholder(node, trial_cluster_->KindOf(*call.placeholder(placeholder).pod));
    }
    if (!TakesMovedPods(call.cluster(), slot)) trial_cluster_->snapshot().CloseNode(node);
  }
}

NodeIndex TrialFollower::NodeIn(Slot slot) const {
  const std::optional<NodeIndex> node = trial_cluster_->snapshot().FindSlot(slot);
  LOADLINE_CHECK(node.has_value()) << "the trial_cluster lacks the node in slot "
                                   << static_cast<int32_t>(slot);
  return *node;
}

void TrialFollower::CheckConsistent(std::span<const PlannedNode> planned) const {
  if (trial_cluster_ == nullptr) return;
  trial_cluster_->CheckConsistent();
  if (!holds_plan_) return;
  std::vector<int32_t> received(static_cast<size_t>(trial_cluster_->snapshot().node_end()), 0);
  for (const PlannedNode& node : planned) {
    LOADLINE_CHECK(trial_cluster_->snapshot().Leaving(node.node)) << "a planned node takes pods";
    for (const PlacedPod& pod : node.placed) {
      ++received[CheckedIndex("node", IndexOf(pod.to), received.size())];
    }
  }
  for (size_t i = 0; i < received.size(); ++i) {
    const int32_t on_board = trial_cluster_->received(NodeIndex{static_cast<int32_t>(i)});
    LOADLINE_CHECK(on_board >= received[i])
        << "node " << i << " has taken " << on_board << ", planned " << received[i];
  }
}

int32_t TrialFollower::KindOf(const DrainCall& call, Slot slot, PodRef pod) {
  if (pod.is_placeholder()) return trial_cluster_->KindOf(*call.placeholder(pod).pod);
  return trial_cluster_->KindOf(call.cluster().pods(slot).pods()[pod.position()].shape);
}

FormerNode TrialFollower::ByNames(const PlannedNode& planned) const {
  const Snapshot& snapshot = trial_cluster_->snapshot();
  FormerNode former{snapshot.name(planned.node), planned.uid, planned.since_s, {}};
  for (const PlacedPod& pod : planned.placed) former.hints.emplace_back(pod.key, snapshot.name(pod.to));
  return former;
}

void TrialFollower::Withdraw(const DrainCall& call, std::span<const PlannedNode> nodes) {
  std::vector<Slot> reload;
  for (const PlannedNode& node : nodes) {
    for (const PlacedPod& pod : node.placed) trial_cluster_->TakeBack(pod.kind, pod.to);
    reload.push_back(node.slot);
  }
  trial_cluster_->Reload(reload);
  Prepare(call, reload);
}

}  // namespace loadline
