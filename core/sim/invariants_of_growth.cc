// The invariants at the moment in which a group is asked to grow.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/replace/busy.h"
#include "core/sim/invariant_checker.h"

namespace loadline {
namespace {

// Published: the initial backoff of Cluster Autoscaler, five minutes.
constexpr int64_t kLeastBackOffMs = 300'000;
// The age below which a node may still be starting, whatever the clocks of its watchers say. Chosen:
// kStartupMs of the invariant checker, less a minute.
constexpr int64_t kStartsMs = 840'000;
// The times from a change of a node until the scheduler has tried all pods again, and until DaemonSets have
// added their pods. Chosen.
constexpr int64_t kSettledMs = 2'000;
constexpr int64_t kDaemonsMs = 30'000;
// The age from which a pod waits because no node has room for it, whatever the clocks say. Chosen: some
// loops.
constexpr int64_t kTriedMs = 60'000;
// The age from which a pod may have waited for too long to keep moves back, whatever the clocks say. Chosen:
// a minute less than in the loop.
constexpr int64_t kWantedMs = kLongestWantedMs - 60'000;

}  // namespace

void InvariantChecker::Grows(const SimGrowth& growth) {
  const GroupIndex group = growth.group;
  const int64_t machines = growth.machines;
  const SimGroup& of = world_.group(group);
  if (machines < 1) Violation("C1", absl::StrCat("group ", of.name, " is asked to grow by ", machines));
  if (cloud_.target(group) + machines > of.max_nodes) {
    Violation("C1",
              absl::StrCat("group ", of.name, " has ", cloud_.target(group), " and is asked to grow by ",
                           machines, ", with a maximum of ", of.max_nodes));
  }
  const int64_t failed_ms = groups_[group].failed_ms;
  if (failed_ms >= 0 &&
      world_.now_ms() - failed_ms < kLeastBackOffMs - 2 * world_.scenario().faults.leader_clock_ms) {
    Violation("C4",
              absl::StrCat("group ", of.name, " is asked to grow, and failed to at ", failed_ms, " ms"));
  }
  CheckUnready("C4", absl::StrCat("group ", of.name, " grows"), kStartupMs);
  CheckRefused(growth);
  grows_for_ = growth.workloads;
  if (grew_ms_ != world_.now_ms()) grown_now_ = 0;
  grew_ms_ = world_.now_ms();
  grown_now_ += machines - growth.for_slack - growth.for_moves;
  if (!SeesAll()) return;
  if (growth.for_moves > 0) CheckGrowthForMoves(growth);
  int64_t need = world_.waiting();
  for (const Going& going : going_) need += nodes_[going.node].to_move;
  if (grown_now_ > need) {
    Violation("C2", absl::StrCat(grown_now_, " nodes are asked for, where ", need, " pods need one"));
  }
}

void InvariantChecker::CheckGrowthForMoves(const SimGrowth& growth) {
  const GroupIndex group = growth.group;
  const std::string text = absl::StrCat("group ", world_.group(group).name, " grows for a move ");
  if (growth.for_moves < growth.machines) Violation("D13", absl::StrCat(text, "and for something else"));
  const auto goes = [&](const Going& going) {
    return IsUnderWay(going) && world_.node(going.node).group == group;
  };
  if (absl::c_any_of(going_, goes)) Violation("D13", absl::StrCat(text, "while one of its nodes goes"));
  const SimSettings& settings = world_.scenario().settings;
  const int64_t clocks_ms = 2 * world_.scenario().faults.leader_clock_ms;
  const auto comes = [&](SimMachineIndex machine) {
    const SimMachine& of = world_.machine(machine);
    const int64_t age_ms = world_.now_ms() - of.ordered_ms;
    return of.state == SimMachine::State::kOrdered && !of.faulty && age_ms >= kSettledMs &&
           age_ms < settings.max_node_provision_s * 1000 - clocks_ms;
  };
  if (absl::c_any_of(cloud_.machines(group), comes))
    Violation("D13", absl::StrCat(text, "while machines of it are on their way"));
  // Pods that a node has just become ready for are about to be bound.
  const auto is_new = [&](SimNodeIndex node) {
    return nodes_[node].offers_ms > world_.now_ms() - kDaemonsMs;
  };
  if (absl::c_any_of(world_.nodes(), is_new)) return;
  const int64_t settled_ms = world_.now_ms() - settings.new_pod_scale_up_delay_s * 1000 - kTriedMs;
  const int64_t wanted_ms = world_.now_ms() - kWantedMs;
  for (const SimWorkloadIndex workload : ready_.indices()) {
    if (!Waits(workload, settled_ms) || Waits(workload, wanted_ms) || !WouldTake(group, workload)) continue;
    Violation("D13", absl::StrCat(text, "while a pod of ", world_.workload(workload).name, " waits"));
  }
}

void InvariantChecker::Grew(GroupIndex group, CloudAnswer answer) {
  if (answer == CloudAnswer::kDone) {
    granted_ms_ = world_.now_ms();
  } else if (answer != CloudAnswer::kRefused) {
    groups_[group].failed_ms = world_.now_ms();
  }
  NoteWhetherFull(group);
  if (answer != CloudAnswer::kDone && answer != CloudAnswer::kUnknown) return;
  const std::vector<SimMachineIndex>& machines = cloud_.machines(group);
  for (size_t i = machines.size(); i-- > 0;) {
    if (world_.machine(machines[i]).ordered_ms != world_.now_ms()) break;
    bought_for_.emplace(machines[i], grows_for_);
  }
}

// Returns what the pods of the node leave free.
CpuMemory InvariantChecker::FreeOn(SimNodeIndex node) const {
  const NodeNote& note = nodes_[node];
  const SimGroup& group = world_.group(world_.node(node).group);
  return {group.allocatable.cpu - note.cpu, group.allocatable.memory - note.memory};
}

// By amounts; a workload whose pods depend on each other may be refused in spite of that, and a load line may
// refuse any.
bool InvariantChecker::HasRoomFor(SimWorkloadIndex workload, SimNodeIndex node) const {
  const SimWorkload& of = world_.workload(workload);
  const NodeNote& note = nodes_[node];
  const SimGroup& group = world_.group(world_.node(node).group);
  const CpuMemory free = FreeOn(node);
  if (of.max_zone_skew > 0 || (of.apart && note.to_move > 0) || has_line_) return false;
  return of.request.cpu <= free.cpu && of.request.memory <= free.memory &&
         of.gpus <= group.gpus - note.gpus && note.pods < group.pods;
}

// For all pods that wait at once, by amounts.
bool InvariantChecker::HasRoomForAll(SimNodeIndex node) const {
  const NodeNote& note = nodes_[node];
  const SimGroup& group = world_.group(world_.node(node).group);
  const CpuMemory free = FreeOn(node);
  CpuMemory wanted;
  int64_t gpus = 0;
  for (const SimWorkloadIndex workload : ready_.indices()) {
    const SimWorkload& of = world_.workload(workload);
    const int64_t waiting = absl::c_count_if(world_.replicas(workload).alive, [&](SimPodIndex pod) {
      return world_.pod(pod).phase == SimPodPhase::kWaiting;
    });
    wanted = Plus(wanted, Times(of.request, waiting));
    gpus += of.gpus * waiting;
  }
  return !has_line_ && wanted.cpu <= free.cpu && wanted.memory <= free.memory &&
         gpus <= group.gpus - note.gpus && note.pods + world_.waiting() <= group.pods;
}

// The node is like those that the group would grow by: they would not take the pods either, or the pods need
// none of them.
void InvariantChecker::CheckRefused(const SimGrowth& growth) {
  if (!SeesAll() || !RemembersAll()) return;
  const int64_t back_off_ms = kLeastBackOffMs - 2 * world_.scenario().faults.leader_clock_ms;
  for (const SimNodeIndex node : world_.nodes()) {
    const SimNode& of = world_.node(node);
    const auto bought = bought_for_.find(of.machine);
    if (of.group != growth.group || bought == bought_for_.end()) continue;
    const NodeNote& note = nodes_[node];
    const int64_t offers_for_ms = note.offers_ms < 0 ? -1 : world_.now_ms() - note.offers_ms;
    const bool refuses = offers_for_ms >= kSettledMs && offers_for_ms < back_off_ms;
    const int64_t age_ms = world_.now_ms() - of.joined_ms;
    const bool starts =
        of.WillOffer() && !of.Offers() && of.devices && age_ms >= kDaemonsMs && age_ms < kStartsMs;
    if (!refuses && !starts) continue;
    for (const SimWorkloadIndex workload : growth.workloads) {
      if (!absl::c_binary_search(bought->second, workload) || !HasRoomFor(workload, node)) continue;
      const std::string text = absl::StrCat("group ", world_.group(growth.group).name, " grows for ",
                                            world_.workload(workload).name, ", and node ", IndexOf(node),
                                            ", which came for it, has room and ");
      if (refuses) {
        Violation("C5", absl::StrCat(text, "has taken none of it for ", offers_for_ms, " ms"));
      } else if (going_.empty() && !world_.scenario().settings.replace && HasRoomForAll(node)) {
        Violation("C5", absl::StrCat(text, "starts since ", age_ms, " ms"));
      }
    }
  }
}

}  // namespace loadline
