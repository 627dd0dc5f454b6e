// What the loop under test does about a plan.
#include <algorithm>
#include <utility>

#include "core/sim/tested_loop.h"

namespace loadline {
namespace {

// For how long a node whose removal an earlier process began may wait for a plan that removes it.
constexpr int64_t kHandOverMs = 60'000;

}  // namespace

// At most as many in one loop as scale-down may delete, and never below the minimum of the group.
bool TestedLoop::GiveUp() {
  for (int32_t group = 0; group < static_cast<int32_t>(view_->groups.size()); ++group) {
    const FleetGroupView& view = view_->groups[static_cast<size_t>(group)];
    for (const std::vector<int32_t>* const positions : {&view.delete_failed, &view.delete_late}) {
      for (const int32_t position : *positions) {
        const int32_t machine = fleet_.MachineAt(group, position);
        const CloudAnswer answer = actuation_.DeleteLate(machine);
        if (Ends()) return false;
        const bool certain = answer == CloudAnswer::kDone;
        if (certain || answer == CloudAnswer::kUnknown) fleet_.NoteGivenUp(machine, certain);
      }
    }
  }
  fleet_.Settle(NowMs());
  KeepState();
  return true;
}

bool TestedLoop::Grow() {
  for (const LoopGrowth& growth : plan_.growth) {
    if (growth.nodes() <= 0) continue;
    const CloudAnswer answer = actuation_.Grow(growth.group, growth.nodes(), growth.for_slack);
    if (Ends()) return false;
    fleet_.NoteIncrease(growth.group, growth.nodes(), answer);
    if (growth.for_pods > 0 && answer == CloudAnswer::kDone) leader_->grown_ms = world_.now_ms();
  }
  fleet_.Settle(NowMs());
  return true;
}

// Nodes whose removal an earlier process began, and that are not to go now.
bool TestedLoop::Release() {
  absl::flat_hash_map<int32_t, int64_t> waiting;
  for (const int32_t node : abandoned_) {
    const std::optional<Slot> slot = seen_.SlotOf(node);
    const auto planned = std::find_if(plan_.scale_down.remove.begin(), plan_.scale_down.remove.end(),
                                      [&](const DrainRemoval& removal) { return removal.slot == slot; });
    const bool candidate = planned != plan_.scale_down.remove.end();
    if (candidate && planned->start) continue;
    const auto known = leader_->inherited_ms.find(node);
    const int64_t since_ms = known == leader_->inherited_ms.end() ? world_.now_ms() : known->second;
    if (candidate && world_.now_ms() - since_ms < kHandOverMs) {
      waiting[node] = since_ms;
      continue;
    }
    actuation_.Release(node);
    if (Ends()) return false;
  }
  leader_->inherited_ms = std::move(waiting);
  return true;
}

bool TestedLoop::Shrink() {
  if (fleet_.cools_down()) return true;
  for (const DrainRemoval& removal : plan_.scale_down.remove) {
    if (!removal.start) continue;
    // Placeholders go without a word.
    const int64_t pods = std::count_if(removal.moves().begin(), removal.moves().end(),
                                       [](const DrainMove& move) { return !move.pod.is_placeholder(); });
    if (!actuation_.Start(seen_.NodeIn(removal.slot), pods)) {
      fleet_.NoteTaintingFailed();
      fleet_.Settle(NowMs());
      return true;
    }
    if (Ends()) return false;
  }
  return true;
}

// When the answer may become another one although nothing changes.
void TestedLoop::NoteNextTime() {
  next_ms_.reset();
  const auto note_ms = [&](int64_t at_ms) {
    const int64_t after_ms = at_ms - NowMs();
    if (after_ms <= 0) return;
    const int64_t here_ms = world_.now_ms() + after_ms;
    next_ms_ = std::min(next_ms_.value_or(here_ms), here_ms);
  };
  const std::optional<int64_t> of_fleet = fleet_.NextTimeMs(NowMs());
  if (of_fleet.has_value()) note_ms(*of_fleet);
  for (const DrainRemoval& removal : plan_.scale_down.remove) note_ms(removal.ready_at_s * 1000);
  if (const std::optional<int64_t> end_s = seen_.NextLateEndS(NowS())) note_ms(*end_s * 1000);
  if (problem_.decisions.slack) {
    for (const auto& [name, since_s] : leader_->slack.excess_since_s()) {
      note_ms((since_s + problem_.slack.removal_delay_s) * 1000);
    }
  }
  // Until then replacements have their places.
  note_ms((leader_->evicted_s + problem_.scale_down.recent_eviction_s) * 1000);
  // Until then the cloud may come to say that it deletes them.
  for (const int32_t node : seen_.registered()) {
    const int64_t asked_ms = world_.node(node).asked_ms;
    if (asked_ms >= 0) note_ms(NowMs() - world_.now_ms() + asked_ms + kDeletionPatienceMs);
  }
  if (plan_.batch_wait_ms.has_value()) note_ms(NowMs() + *plan_.batch_wait_ms);
}

}  // namespace loadline
