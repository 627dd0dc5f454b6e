// How the planner follows the cluster: what stands on the board from one call to the next.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "core/drain/being_deleted.h"
#include "core/drain/planner_impl.h"

namespace loadline {
namespace {

constexpr char kPlaceholderPrefix[] = "placeholder/";

uint64_t Key(absl::string_view text) { return absl::HashOf(text); }

std::vector<SeenPlaceholder> Seen(const std::vector<DrainPlaceholder>& placeholders) {
  std::vector<SeenPlaceholder> seen;
  seen.reserve(placeholders.size());
  for (const DrainPlaceholder& placeholder : placeholders) {
    seen.push_back({placeholder.node, placeholder.name, placeholder.pod.shape.fingerprint});
  }
  return seen;
}

}  // namespace

void DrainPlanner::Impl::SetState(DrainState state) {
  state_ = std::move(state);
  planned_.clear();
  held_.clear();
  board_.reset();
  board_of_ = nullptr;
  plan_ = {};
}

std::string DrainPlanner::Impl::TextOf(Slot slot, int32_t pod) const {
  if (pod < 0)
    return absl::StrCat(kPlaceholderPrefix, problem_->placeholders[static_cast<size_t>(-1 - pod)].name);
  const NodePods& pods = cluster().pods(slot);
  const size_t i = static_cast<size_t>(pod);
  const absl::string_view uid = pods.uid(i);
  if (!uid.empty()) return std::string(uid.data(), uid.size());
  return absl::StrCat(cluster().pod_shapes()[pods.pods()[i].shape].namespace_name, "/", pods.name(i));
}

uint64_t DrainPlanner::Impl::KeyOf(Slot slot, int32_t pod) const {
  if (pod >= 0) {
    const absl::string_view uid = cluster().pods(slot).uid(static_cast<size_t>(pod));
    if (!uid.empty()) return Key(uid);
  }
  return Key(TextOf(slot, pod));
}

void DrainPlanner::Impl::Sync() {
  deleting_ = NodesBeingDeleted(cluster(), state_.deleting, problem_->now_s);
  CountPlaceholders();
  formers_.clear();
  if (CanFollow()) {
    Follow();
  } else {
    for (const PlannedNode& planned : planned_) formers_.push_back({std::nullopt, Forget(planned)});
    if (board_ == nullptr) ReadUnneeded();
    Rebuild();
  }
  for (FormerNode& former : held_) formers_.push_back({std::nullopt, std::move(former)});
  held_.clear();
  planned_.clear();
  counter_.Follow(cluster(), board_of_ == problem_->cluster ? cluster().changes(journal_) : std::nullopt);
  journal_ = cluster().change_count();
  board_of_ = problem_->cluster;
  follows_ = true;
  placeholders_seen_ = Seen(problem_->placeholders);
  SortSlots();
  MarkFormers();
}

void DrainPlanner::Impl::CountPlaceholders() {
  placeholders_on_.clear();
  if (problem_->placeholders.empty()) return;
  placeholders_on_.resize(static_cast<size_t>(cluster().slot_end()));
  for (size_t i = 0; i < problem_->placeholders.size(); ++i) {
    if (const std::optional<Slot> slot = cluster().Find(problem_->placeholders[i].node)) {
      placeholders_on_[IndexOf(*slot)].push_back(-1 - static_cast<int32_t>(i));
    }
  }
}

// Whether what stands on the board can be kept. It stands there as if each node had been placed in turn:
// where pods ask for room only, leaving one node out changes nothing for those behind it, so that only what
// was touched has to be placed again. Where pods look at each other that does not hold, nor where pods of
// nodes being deleted came first.
bool DrainPlanner::Impl::CanFollow() const {
  if (board_ == nullptr || !follows_ || board_of_ != problem_->cluster || board_->pods_depend()) return false;
  if (!deleting_.empty() || !state_.recent_evictions.empty() || !problem_->walk.empty()) return false;
  if (!cluster().changes(journal_).has_value()) return false;
  const Snapshot& snapshot = board_->snapshot();
  // Nodes and shapes that are gone stay numbered.
  if (snapshot.node_end() > 2 * cluster().node_count() + 64) return false;
  return snapshot.pod_shape_end() <= 4 * static_cast<int64_t>(cluster().pod_shapes().size()) + 10'000;
}

std::vector<Slot> DrainPlanner::Impl::WithOtherPlaceholders() const {
  std::vector<SeenPlaceholder> now = Seen(problem_->placeholders);
  if (now == placeholders_seen_) return {};
  std::vector<SeenPlaceholder> before = placeholders_seen_;
  std::sort(now.begin(), now.end());
  std::sort(before.begin(), before.end());
  std::vector<SeenPlaceholder> other;
  std::set_symmetric_difference(now.begin(), now.end(), before.begin(), before.end(),
                                std::back_inserter(other));
  std::vector<Slot> slots;
  for (const SeenPlaceholder& placeholder : other) {
    if (const std::optional<Slot> slot = cluster().Find(placeholder.node)) slots.push_back(*slot);
  }
  for (const PlannedNode& planned : planned_) {
    const bool moves_any =
        std::any_of(planned.sources.begin(), planned.sources.end(), [](int32_t pod) { return pod < 0; });
    if (moves_any) slots.push_back(planned.slot);
  }
  return slots;
}

void DrainPlanner::Impl::Follow() {
  std::vector<bool> changed(static_cast<size_t>(cluster().slot_end()), false);
  std::vector<Slot> reload;
  const auto note = [&](Slot slot) {
    if (!changed[IndexOf(slot)]) reload.push_back(slot);
    changed[IndexOf(slot)] = true;
  };
  const std::span<const Slot> changes = *cluster().changes(journal_);
  for (const Slot slot : changes) {
    if (IndexOf(slot) < known_reasons_.size()) known_reasons_[IndexOf(slot)].reset();
    note(slot);
  }
  for (const Slot slot : WithOtherPlaceholders()) note(slot);
  std::vector<const PlannedNode*> with_changes;
  for (PlannedNode& planned : planned_) {
    const bool touched = changed[IndexOf(planned.slot)] ||
                         std::any_of(planned.moves.begin(), planned.moves.end(),
                                     [&](const PlannedMove& move) { return changed[IndexOf(move.to_slot)]; });
    if (!touched) {
      formers_.push_back({std::move(planned), {}});
      continue;
    }
    formers_.push_back({std::nullopt, Forget(planned)});
    if (changed[IndexOf(planned.slot)]) {
      with_changes.push_back(&planned);
    } else {
      reload.push_back(planned.slot);
    }
    // Those on nodes that changed go as these are read anew.
    for (const PlannedMove& move : planned.moves) {
      if (!changed[IndexOf(move.to_slot)]) board_->TakeBack(move.kind, move.to);
    }
  }
  board_->Reload(reload);
  Dress(reload);
  board_->NoteNewPods();
  const bool stands = !board_->pods_depend() &&
                      std::none_of(with_changes.begin(), with_changes.end(),
                                   [&](const PlannedNode* planned) { return AsksOtherwise(*planned); });
  if (stands) return;
  for (FormerEntry& entry : formers_) {
    if (entry.intact.has_value()) entry = {std::nullopt, Forget(*entry.intact)};
  }
  Rebuild();
}

// Whether a pod that was to move from the node is still there and asks for something else: it may need room
// that nodes behind this one in the plan have taken.
bool DrainPlanner::Impl::AsksOtherwise(const PlannedNode& planned) {
  if (!cluster().Occupied(planned.slot)) return false;
  absl::flat_hash_map<uint64_t, int32_t> kinds;
  for (const PlannedMove& move : planned.moves) kinds.emplace(move.key, move.kind);
  const auto differs = [&](int32_t pod) {
    const MovingPod now = PodAt(planned.slot, pod);
    const auto before = kinds.find(now.key);
    return before != kinds.end() && before->second != now.kind;
  };
  const int32_t pods = static_cast<int32_t>(cluster().pods(planned.slot).pods().size());
  for (int32_t pod = 0; pod < pods; ++pod) {
    if (differs(pod)) return true;
  }
  const size_t slot = IndexOf(planned.slot);
  return slot < placeholders_on_.size() &&
         std::any_of(placeholders_on_[slot].begin(), placeholders_on_[slot].end(), differs);
}

void DrainPlanner::Impl::Rebuild() {
  known_reasons_.clear();
  fit_ = std::make_unique<FitOptions>(options_->fit);
  board_.reset();  // first: two at a time would take twice the memory
  board_ = std::make_unique<DrainBoard>(cluster(), fit_.get());
  std::vector<Slot> all;
  for (int32_t i = 0; i < cluster().slot_end(); ++i) {
    if (cluster().Occupied(Slot{i})) all.push_back(Slot{i});
  }
  Dress(all);
  board_->NoteNewPods();
  for (const Slot slot : deleting_) board_->snapshot().MarkLeaving(*board_->snapshot().FindSlot(slot));
}

// The state that was handed over.
void DrainPlanner::Impl::ReadUnneeded() {
  for (UnneededNode& node : state_.unneeded) {
    FormerNode former{std::move(node.node), std::move(node.uid), node.since_s, {}};
    for (DestinationHint& hint : node.hints) former.hints.emplace_back(Key(hint.pod), std::move(hint.node));
    formers_.push_back({std::nullopt, std::move(former)});
  }
  state_.unneeded.clear();
}

void DrainPlanner::Impl::Dress(std::span<const Slot> slots) {
  for (const Slot slot : slots) {
    if (!cluster().Occupied(slot)) continue;
    const NodeIndex node = *board_->snapshot().FindSlot(slot);
    if (IndexOf(slot) < placeholders_on_.size()) {
      for (const int32_t pod : placeholders_on_[IndexOf(slot)]) {
        board_->AddPlaceholder(node,
                               board_->KindOf(problem_->placeholders[static_cast<size_t>(-1 - pod)].pod));
      }
    }
    if (cluster().node_shape(slot).unschedulable || !IsReady(cluster(), slot)) {
      board_->snapshot().MakeGhost(node);
    }
  }
}

void DrainPlanner::Impl::SortSlots() {
  slots_.clear();
  const Snapshot& snapshot = board_->snapshot();
  judged_.assign(static_cast<size_t>(cluster().slot_end()), {});
  for (int32_t i = 0; i < snapshot.node_end(); ++i) {
    if (!snapshot.Contains(NodeIndex{i})) continue;
    const Slot slot = snapshot.slot(NodeIndex{i});
    slots_.push_back(slot);
    judged(slot).node = NodeIndex{i};
    if (IndexOf(slot) < problem_->group_of.size()) judged(slot).group = problem_->group_of[IndexOf(slot)];
    if (static_cast<size_t>(judged(slot).group) >= problem_->groups.size()) judged(slot).group = -1;
  }
  const auto by_name = [&](Slot a, Slot b) { return name(a) < name(b); };
  if (!std::is_sorted(slots_.begin(), slots_.end(), by_name))
    std::sort(slots_.begin(), slots_.end(), by_name);
}

void DrainPlanner::Impl::MarkFormers() {
  is_former_.assign(static_cast<size_t>(cluster().slot_end()), false);
  for (const FormerEntry& entry : formers_) {
    const std::optional<Slot> slot =
        entry.intact.has_value() ? entry.intact->slot : cluster().Find(entry.former.node);
    if (slot.has_value()) is_former_[IndexOf(*slot)] = true;
  }
}

FormerNode DrainPlanner::Impl::Forget(const PlannedNode& planned) const {
  const Snapshot& snapshot = board_->snapshot();
  FormerNode former{snapshot.name(planned.node), planned.uid, planned.since_s, {}};
  for (const PlannedMove& move : planned.moves) former.hints.emplace_back(move.key, snapshot.name(move.to));
  return former;
}

void DrainPlanner::Impl::Withdraw(std::span<const PlannedNode> nodes) {
  std::vector<Slot> reload;
  for (const PlannedNode& planned : nodes) {
    for (const PlannedMove& move : planned.moves) board_->TakeBack(move.kind, move.to);
    reload.push_back(planned.slot);
  }
  board_->Reload(reload);
  Dress(reload);
}

}  // namespace loadline
