#include "core/observe/loop_memory.h"

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline {

uint64_t KeyOfNode(const ClusterState& cluster, Slot slot) {
  const std::string& uid = cluster.traits(slot).uid;
  return FleetKey(uid.empty() ? cluster.name(slot) : absl::string_view(uid));
}

void ForgetFutureTimes(int64_t now_ms, LoopMemory* memory) {
  for (std::optional<int64_t>* const time_ms : {&memory->grown_for_pods_ms, &memory->batch_since_ms}) {
    if (time_ms->has_value() && **time_ms > now_ms) time_ms->reset();
  }
  for (OpenAction& action : memory->open) action.at_ms = std::min(action.at_ms, now_ms);
  for (auto& [uid, since_ms] : memory->abandoned_since_ms) since_ms = std::min(since_ms, now_ms);
  for (auto& [group, at_ms] : memory->swap_refused_ms) at_ms = std::min(at_ms, now_ms);
  absl::erase_if(memory->swap_refused_ms,
                 [&](const auto& refusal) { return now_ms - refusal.second >= kSwapRefusedForMs; });
  for (MoveUnderWay& move : memory->moves) {
    move.at_ms = std::min(move.at_ms, now_ms);
    move.step_ms = std::min(move.step_ms, now_ms);
  }
  for (auto& [node, since_ms] : memory->resting_since_ms) since_ms = std::min(since_ms, now_ms);
  for (auto& [node, given_up] : memory->given_up) given_up.last_ms = std::min(given_up.last_ms, now_ms);
  if (memory->load.has_value()) {
    memory->load->since_ms = std::min(memory->load->since_ms, now_ms);
    if (auto& away_ms = memory->load->away_since_ms; away_ms.has_value())
      away_ms = std::min(*away_ms, now_ms);
  }
  for (auto& [node, tried_ms] : memory->soft_taint_tried_ms) tried_ms = std::min(tried_ms, now_ms);
  for (auto& [of, purchase] : memory->purchases) {
    if (purchase.asked_ms.has_value()) purchase.asked_ms = std::min(*purchase.asked_ms, now_ms);
    purchase.until_ms = std::min(purchase.until_ms, now_ms + kMostVainMs);
  }
  for (auto& [uid, since_s] : memory->unneeded_since_s) since_s = std::min(since_s, now_ms / 1000);
  for (auto& [group, size] : memory->sizes) {
    if (size.locked_ms.has_value()) size.locked_ms = std::min(*size.locked_ms, now_ms);
    if (size.asked.has_value()) size.asked->ms = std::min(size.asked->ms, now_ms);
  }
  if (!memory->slack.has_value()) return;
  for (SlackState::Excess& excess : memory->slack->excesses) {
    excess.since_s = std::min(excess.since_s, now_ms / 1000);
  }
}

}  // namespace loadline
