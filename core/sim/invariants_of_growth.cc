// The invariants at the moment in which a group is asked to grow.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
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
  const auto goes = [&](const Going& going) { return IsUnderWay(going); };
  if (growth.for_moves > 0 && std::any_of(going_.begin(), going_.end(), goes)) {
    Violation("D13", absl::StrCat("group ", of.name, " grows for a move while nodes go"));
  }
  int64_t need = world_.waiting();
  for (const Going& going : going_) need += nodes_[going.node].to_move;
  if (grown_now_ > need) {
    Violation("C2", absl::StrCat(grown_now_, " nodes are asked for, where ", need, " pods need one"));
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
