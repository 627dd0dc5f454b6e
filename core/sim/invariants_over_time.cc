// The invariants that need some time, and those that hold whenever somebody looks.
#include <algorithm>
#include <map>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/sim/invariant_checker.h"

namespace loadline {
namespace {

// Chosen: an hour in which all delays that the scenario allows can pass.
constexpr int64_t kProgressMs = 3'600'000;

}  // namespace

void InvariantChecker::CheckProgress() {
  CheckTaints();
  // Whatever keeps pods waiting is not the loop.
  SimFaults harmless;
  const SimFaults& faults = world_.scenario().faults;
  harmless.watch_lag_ms_min = faults.watch_lag_ms_min;
  harmless.watch_lag_ms_max = faults.watch_lag_ms_max;
  harmless.relist_s = faults.relist_s;
  harmless.doubled_event = faults.doubled_event;
  harmless.stock_out_s = faults.stock_out_s;
  harmless.node_unready_s = faults.node_unready_s;
  harmless.late_devices_s = faults.late_devices_s;
  harmless.hand_mark = faults.hand_mark;
  harmless.hand_mark_s = faults.hand_mark_s;
  harmless.startup_taint = faults.startup_taint;
  harmless.startup_taint_s = faults.startup_taint_s;
  harmless.stuck_deletion_s = faults.stuck_deletion_s;
  harmless.stuck_pod_s = faults.stuck_pod_s;
  harmless.unread_group_s = faults.unread_group_s;
  harmless.api_down_s = faults.api_down_s;
  if (faults != harmless) return;
  CheckWaiting();
  CheckEmptyNodes();
}

void InvariantChecker::CheckTaints() {
  const SimFaults& faults = world_.scenario().faults;
  const int64_t longest_ms = kProgressMs + (faults.api_down_s + faults.stuck_pod_s) * 1000;
  if (world_.pods_alive() <= 1 || world_.now_ms() - no_pods_ms_ <= longest_ms) return;
  for (const SimNodeIndex node : world_.nodes()) {
    const NodeNote& note = nodes_[node];
    const SimMachine& machine = world_.machine(world_.node(node).machine);
    if (!note.tainted || machine.state == SimMachine::State::kDeleting) continue;
    if (world_.now_ms() - note.tainted_since_ms <= longest_ms) continue;
    Violation("G3", absl::StrCat("node ", IndexOf(node), " is marked for deletion since ",
                                 note.tainted_since_ms, " ms"));
  }
}

void InvariantChecker::CheckSums(SimNodeIndex node, const CpuMemory& requested) {
  const NodeNote& note = nodes_[node];
  if (!SeesAll() || (note.cpu == requested.cpu && note.memory == requested.memory)) return;
  Violation("F5", absl::StrCat("the loop counts ", requested.cpu, " mCPU on node ", IndexOf(node), ", where ",
                               note.cpu, " are"));
}

// Called whenever a group may have grown or shrunk. If a change is lost, the group counts as full up
// to the next look.
void InvariantChecker::NoteWhetherFull(GroupIndex group) {
  GroupNote& note = groups_[group];
  const bool full = cloud_.target(group) >= world_.group(group).max_nodes;
  if (full || note.full) note.full_ms = world_.now_ms();
  note.full = full;
}

// Returns whether one more pod may be placed in a zone, by the constraint of its workload: nodes count whose
// group it may name, whatever their taints.
bool InvariantChecker::MaySpreadTo(SimWorkloadIndex workload, const std::string& zone) const {
  const SimWorkload& of = world_.workload(workload);
  if (of.max_zone_skew == 0) return true;
  if (zone.empty()) return false;
  std::map<std::string, int64_t> pods = {{zone, 0}};
  for (const SimNodeIndex node : world_.nodes()) {
    const SimGroup& group = world_.group(world_.node(node).group);
    if (group.zone.empty() || (!of.group.empty() && of.group != group.name)) continue;
    int64_t& in_zone = pods[group.zone];
    for (const SimPodIndex pod : world_.node(node).pods) {
      if (world_.pod(pod).workload == workload && !world_.IsTerminating(pod)) ++in_zone;
    }
  }
  const auto fewest = std::min_element(pods.begin(), pods.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return pods[zone] + 1 - fewest->second <= of.max_zone_skew;
}

// Returns whether a new node of the group takes a pod of the workload, with room to spare for the pods of
// DaemonSets there. A load line may have any node refuse it.
bool InvariantChecker::WouldTake(GroupIndex number, SimWorkloadIndex of) const {
  const SimWorkload& workload = world_.workload(of);
  const SimGroup& group = world_.group(number);
  if (has_line_ || (workload.group.empty() ? group.tainted : workload.group != group.name)) return false;
  return MaySpreadTo(of, group.zone) && 2 * workload.request.cpu <= group.allocatable.cpu &&
         workload.gpus <= group.gpus && 2 * workload.request.memory <= group.allocatable.memory;
}

// Returns whether some group that could grow all the time since then would take the pod.
bool InvariantChecker::WouldHaveNode(SimWorkloadIndex number, int64_t since_ms) const {
  return absl::c_any_of(groups_.indices(), [&](GroupIndex group) {
    return groups_[group].full_ms <= since_ms && WouldTake(group, number);
  });
}

// Returns whether a pod of the workload has waited since then.
bool InvariantChecker::Waits(SimWorkloadIndex workload, int64_t since_ms) const {
  // Whoever says to be of a DaemonSet waits for no new node, nor does an expendable pod.
  if (world_.workload(workload).forged_owner || world_.workload(workload).labelled_nodes_only) return false;
  if (world_.IsExpendable(workload)) return false;
  return absl::c_any_of(world_.replicas(workload).alive, [&](SimPodIndex pod) {
    const SimPod& of = world_.pod(pod);
    return of.phase == SimPodPhase::kWaiting && of.created_ms <= since_ms;
  });
}

void InvariantChecker::CheckWaiting() {
  if (world_.waiting() == 0) return;
  const int64_t before_ms =
      world_.now_ms() - kProgressMs - world_.scenario().settings.new_pod_scale_up_delay_s * 1000;
  for (const GroupIndex group : groups_.indices()) NoteWhetherFull(group);
  for (const SimWorkloadIndex workload : ready_.indices()) {
    if (!Waits(workload, before_ms) || !WouldHaveNode(workload, before_ms)) continue;
    Violation("E3", absl::StrCat("a pod of ", world_.workload(workload).name,
                                 " has waited for an hour, and all the time a group could grow for it"));
  }
}

void InvariantChecker::CheckEmptyNodes() {
  const SimSettings& settings = world_.scenario().settings;
  // If slack is kept, these nodes may be it.
  if (!settings.scale_down || settings.slack_percent > 0) return;
  if (world_.waiting() > 0 || world_.pods_alive() <= 1) return;
  // One that came for a move stays empty until its pods come, or the move is given up: some time after the
  // last eviction.
  const ReplacementPolicy& moves = settings.replacement;
  const int64_t move_ms = settings.replace ? moves.node_wait_ms + moves.drain_wait_ms : 0;
  const int64_t before_ms = world_.now_ms() - settings.unneeded_time_s * 1000 - kProgressMs - move_ms;
  // Others go first.
  const int64_t going_ms = world_.now_ms() - settings.after_delete_s * 1000 - kProgressMs / 2;
  if (grew_ms_ > before_ms || no_pods_ms_ > before_ms || removed_ms_ > going_ms) return;
  if (settings.replace && evicted_ms_ > before_ms) return;
  for (const SimNodeIndex node : world_.nodes()) {
    const SimNode& of = world_.node(node);
    const NodeNote& note = nodes_[node];
    if (note.to_move > 0 || note.empty_since_ms > before_ms || of.joined_ms > before_ms) continue;
    if (of.Has(SimMark::kKeep) || note.marked_ms > before_ms) continue;
    if (cloud_.target(of.group) <= world_.group(of.group).min_nodes) continue;
    Violation("E3", absl::StrCat("node ", IndexOf(node), " has been empty for more than an hour, and stays"));
    return;
  }
}

}  // namespace loadline
