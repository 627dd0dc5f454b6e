#include "core/loop/loop_timers.h"

namespace loadline {

std::vector<TimedNode> KnownTimers(const LoopMemory& memory, const ClusterState& cluster, int64_t now_s,
                                   int64_t ttl_s) {
  std::vector<TimedNode> timers;
  for (int32_t i = 0; i < cluster.slot_end() && !memory.unneeded_since_s.empty(); ++i) {
    if (!cluster.Occupied(Slot{i})) continue;
    const auto found = memory.unneeded_since_s.find(KeyOfNode(cluster, Slot{i}));
    if (found == memory.unneeded_since_s.end() || found->second > now_s || now_s - found->second > ttl_s) {
      continue;
    }
    timers.push_back({Slot{i}, found->second});
  }
  return timers;
}

void NoteTimers(const LoopPlan& plan, const ClusterState& cluster, LoopMemory* memory) {
  if (plan.scale_down_problem == nullptr) return;
  memory->unneeded_since_s.clear();
  for (const DrainRemoval& removal : plan.scale_down.remove) {
    memory->unneeded_since_s.emplace(KeyOfNode(cluster, removal.slot), removal.since_s);
  }
  for (const auto& [slot, since_s] : plan.scale_down.behind_budgets)
    memory->unneeded_since_s.emplace(KeyOfNode(cluster, slot), since_s);
}

}  // namespace loadline
