#include "core/observe/hand_over.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace loadline {

MarkedNodes JudgeMarks(const ClusterState& cluster, const LoopObservation& seen,
                       const absl::flat_hash_map<Slot, MachineState>& listed, int64_t patience_ms,
                       int64_t now_ms, const LoopMemory& memory) {
  absl::flat_hash_set<Slot> under_way, marked;
  for (const RemovalUnderWay& removal : seen.under_way) {
    if (removal.slot.has_value()) under_way.insert(*removal.slot);
  }
  MarkedNodes nodes;
  for (const NodeMark& mark : seen.marks) {
    marked.insert(mark.slot);
    if (!cluster.Occupied(mark.slot)) continue;
    const bool acknowledged =
        mark.acknowledged || memory.acknowledged.contains(KeyOfNode(cluster, mark.slot));
    const auto machine = listed.find(mark.slot);
    const bool has_waited = mark.deleting_s != 0 && now_ms - mark.deleting_s * 1000 >= patience_ms;
    if (acknowledged && machine != listed.end() && has_waited) nodes.stuck.push_back(mark);
    if (under_way.contains(mark.slot)) continue;
    // Whoever asked for it: one that somebody else deletes after its removal began must take no pods again.
    const bool is_deleted = machine != listed.end() && machine->second == MachineState::kDeleting;
    const bool asked = mark.deleting_s != 0 && (machine == listed.end() || !has_waited);
    if (acknowledged || is_deleted || asked) {
      nodes.going.push_back(mark.slot);
    } else {
      nodes.abandoned.push_back(mark);
    }
  }
  // A watch may lag behind: the mark is not seen yet.
  for (int32_t i = 0; i < cluster.slot_end() && !memory.acknowledged.empty(); ++i) {
    const Slot slot{i};
    if (!cluster.Occupied(slot) || marked.contains(slot) || under_way.contains(slot)) continue;
    if (memory.acknowledged.contains(KeyOfNode(cluster, slot))) nodes.going.push_back(slot);
  }
  const auto by_slot = [](const NodeMark& a, const NodeMark& b) { return a.slot < b.slot; };
  std::sort(nodes.going.begin(), nodes.going.end());
  std::sort(nodes.abandoned.begin(), nodes.abandoned.end(), by_slot);
  std::sort(nodes.stuck.begin(), nodes.stuck.end(), by_slot);
  return nodes;
}

void NoteAcknowledged(const ClusterState& cluster, std::span<const std::string> uids, LoopMemory* memory) {
  for (const std::string& uid : uids) memory->acknowledged.insert(FleetKey(uid));
  if (memory->acknowledged.empty()) return;
  absl::btree_set<uint64_t> there;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    if (!cluster.Occupied(Slot{i})) continue;
    const uint64_t key = KeyOfNode(cluster, Slot{i});
    if (memory->acknowledged.contains(key)) there.insert(key);
  }
  memory->acknowledged = std::move(there);
}

std::vector<Slot> GiveBack(const ClusterState& cluster, std::span<const NodeMark> abandoned,
                           const DrainPlan* plan, int64_t now_ms, LoopMemory* memory) {
  absl::flat_hash_set<Slot> starts, waits;
  if (plan != nullptr) {
    for (const DrainRemoval& removal : plan->remove) (removal.start ? starts : waits).insert(removal.slot);
  }
  absl::btree_map<uint64_t, int64_t> waiting;
  std::vector<Slot> back;
  for (const NodeMark& mark : abandoned) {
    if (starts.contains(mark.slot)) continue;
    const uint64_t key = KeyOfNode(cluster, mark.slot);
    const auto known = memory->abandoned_since_ms.find(key);
    const int64_t since_ms = known != memory->abandoned_since_ms.end() ? known->second : now_ms;
    if (waits.contains(mark.slot) && now_ms - since_ms < kHandOverMs) {
      waiting.emplace(key, since_ms);
    } else {
      back.push_back(mark.slot);
    }
  }
  memory->abandoned_since_ms = std::move(waiting);
  return back;
}

}  // namespace loadline
