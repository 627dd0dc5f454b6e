#include "core/sim/loop_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/cluster/gpu_resources.h"
#include "core/observe/hand_over.h"
#include "core/observe/see_fleet.h"

namespace loadline {
namespace {

constexpr int64_t kMsOfMinute = 60'000;
// The most new nodes and soft taints of one loop. Published: Cluster Autoscaler's defaults of
// --max-nodes-per-scaleup and --max-bulk-soft-taint-count.
constexpr int64_t kMostNewNodes = 1'000;
constexpr int64_t kMostSoftTaints = 10;

MachineState StateOf(const SimMachine& machine) {
  switch (machine.state) {
    case SimMachine::State::kOrdered:
      return machine.phantom ? MachineState::kRunning : MachineState::kCreating;
    case SimMachine::State::kRunning:
      return MachineState::kRunning;
    case SimMachine::State::kDeleting:
    case SimMachine::State::kGone:
      return MachineState::kDeleting;
  }
  return MachineState::kUnknown;
}

// The earliest of some times that lie ahead.
class Earliest {
 public:
  explicit Earliest(int64_t now_ms) : now_ms_(now_ms) {}
  void Note(int64_t at_ms) {
    if (at_ms > now_ms_) first_ms_ = std::min(first_ms_.value_or(at_ms), at_ms);
  }
  void Note(const std::optional<int64_t>& since_ms, int64_t period_ms) {
    if (since_ms.has_value()) Note(*since_ms + period_ms);
  }
  std::optional<int64_t> first_ms() const { return first_ms_; }

 private:
  int64_t now_ms_;
  std::optional<int64_t> first_ms_;
};

void NoteFleet(const FleetState& state, const FleetOptions& options, Earliest* next) {
  for (const auto& [key, machine] : state.machines) {
    next->Note(machine.missing_since_ms, options.provision_ms);
    next->Note(machine.given_up_ms, options.deletion_patience_ms);
  }
  for (const auto& [key, group] : state.groups) {
    next->Note(group.short_since_ms, options.provision_ms);
    if (group.request.has_value()) next->Note(group.request->until_ms);
    if (!group.back_off.has_value()) continue;
    next->Note(group.back_off->until_ms);
    next->Note(group.back_off->since_ms + options.back_off.reset_ms + 1);
  }
  next->Note(state.grown_ms, options.after_add_ms);
  next->Note(state.deleted_ms, options.after_delete_ms);
  next->Note(state.taint_failed_ms, options.after_failure_ms);
}

}  // namespace

ObserveOptions ObserveOptionsOf(const SimSettings& settings) {
  ObserveOptions options;
  options.max_new_nodes = kMostNewNodes;
  options.max_soft_taints = kMostSoftTaints;
  FleetOptions& fleet = options.fleet;
  fleet.provision_ms = settings.max_node_provision_s * 1000;
  fleet.startup_ms = 15 * kMsOfMinute;
  fleet.back_off = {5 * kMsOfMinute, 30 * kMsOfMinute, 180 * kMsOfMinute};
  fleet.deletion_patience_ms = kDeletionPatienceMs;
  fleet.max_deletions = settings.max_scale_down_parallelism;
  fleet.ok_unready_nodes = 3;
  fleet.max_unready_percent = 45;
  fleet.after_add_ms = settings.after_add_s * 1000;
  fleet.after_delete_ms = settings.after_delete_s * 1000;
  fleet.after_failure_ms = settings.after_failure_s * 1000;
  return options;
}

LoopView::LoopView(const World* world, const Cloud* cloud, const ObservedCluster* seen,
                   const Actuation* actuation)
    : world_(*world),
      cloud_(*cloud),
      seen_(*seen),
      actuation_(*actuation),
      list_(world->scenario().seed, SimPurpose::kCloudList) {
  const StrongVector<GroupIndex, SimGroup>& groups = world_.scenario().groups;
  machines_.resize(groups.size());
  for (const SimGroup& of : groups) {
    CloudGroup& group = reported_.groups.emplace_back();
    group.name = of.name;
    group.min_nodes = of.min_nodes;
    group.max_nodes = of.max_nodes;
    if (of.gpus > 0) group.template_devices.push_back(FleetKey(kNvidiaGpu));
  }
  reported_.first = true;
  RandomStream unread(world->scenario().seed, SimPurpose::kUnreadGroup);
  for (size_t i = 0; i < groups.size(); ++i) {
    std::vector<bool>& hours = unread_hours_.emplace_back();
    for (int64_t hour = 0; hour < world->scenario().days * 24; ++hour) {
      hours.push_back(unread.Chance(world->scenario().faults.unread_group));
    }
  }
}

std::string LoopView::MachineId(SimMachineIndex machine) { return absl::StrCat("m", IndexOf(machine)); }

bool LoopView::NoteUnread(GroupIndex group) {
  constexpr int64_t kHourMs = 60 * kMsOfMinute;
  const std::vector<bool>& hours = unread_hours_[group];
  const auto hour = static_cast<size_t>(world_.now_ms() / kHourMs);
  const bool unread = hour < hours.size() && hours[hour] &&
                      world_.now_ms() % kHourMs < world_.scenario().faults.unread_group_s * 1000;
  std::string& problem = reported_.groups[group].problem;
  if (unread == !problem.empty()) return false;
  problem = unread ? "no answer" : "";
  return true;
}

void LoopView::NoteDeletions(GroupIndex group) {
  CloudGroup& reported = reported_.groups[group];
  for (size_t i = 0; i < reported.machines.size(); ++i) {
    const std::optional<SimNodeIndex> node = world_.machine(machines_[group][i]).node;
    if (reported.machines[i].state == MachineState::kDeleting || !node.has_value() ||
        !actuation_.Acknowledged(*node)) {
      continue;
    }
    reported.machines[i].state = MachineState::kDeleting;
    --reported.target;
  }
}

void LoopView::List(GroupIndex group) {
  CloudGroup& reported = reported_.groups[group];
  reported.target = cloud_.target(group);
  machines_[group] = cloud_.machines(group);
  reported.machines.clear();
  for (const SimMachineIndex machine : cloud_.machines(group)) {
    CloudMachine& entry = reported.machines.emplace_back();
    entry.id = MachineId(machine);
    entry.state = StateOf(world_.machine(machine));
    if (world_.machine(machine).faulty) entry.fault = MachineFault{"no-such-image", "", false};
  }
}

bool LoopView::ListMachines() {
  bool changed = false;
  for (const GroupIndex group : machines_.indices()) changed |= NoteUnread(group);
  const bool any_read = std::any_of(reported_.groups.begin(), reported_.groups.end(),
                                    [](const CloudGroup& group) { return group.problem.empty(); });
  listed_now_ = !list_.Chance(world_.scenario().faults.failed_list) && any_read;
  if (!listed_now_) {
    if (changed) version_ = -1;
    return false;
  }
  if (!changed && version_ == cloud_.version()) return false;
  version_ = cloud_.version();
  for (const GroupIndex group : machines_.indices()) {
    if (reported_.groups[group].problem.empty()) {
      List(group);
    } else {
      NoteDeletions(group);
    }
  }
  return true;
}

// Forgets the machines: a new process knows nothing of a group that cannot be read now.
void LoopView::Restart() {
  reported_.first = true;
  version_ = -1;
  for (const GroupIndex group : machines_.indices()) {
    machines_[group].clear();
    reported_.groups[group].machines.clear();
    reported_.groups[group].target = 0;
  }
}

const LoopObservation& LoopView::Observe() {
  for (const GroupIndex group : machines_.indices()) {
    for (size_t k = 0; k < machines_[group].size(); ++k) {
      reported_.groups[group].machines[k].node = seen_.SlotOfMachine(machines_[group][k]);
    }
  }
  reported_.marks.clear();
  for (const SimNodeIndex node : seen_.registered()) {
    const std::optional<Slot> slot = seen_.SlotOf(node);
    if (!slot.has_value() || !seen_.Tainted(node)) continue;
    const int64_t asked_ms = world_.node(node).asked_ms;
    NodeMark& mark = reported_.marks.emplace_back();
    mark.slot = *slot;
    if (asked_ms >= 0) mark.deleting_s = kSimEpochS + asked_ms / 1000;
    mark.acknowledged = actuation_.Acknowledged(node);
  }
  reported_.under_way.clear();
  for (const SimNodeIndex node : actuation_.under_way()) {
    const bool is_shown = seen_.Registered(node);
    reported_.under_way.push_back(
        {is_shown ? seen_.SlotOf(node) : std::nullopt, world_.group(world_.node(node).group).name});
  }
  return reported_;
}

std::optional<int64_t> NextLookMs(const LoopMemory& memory, const LoopObservation& reported,
                                  const ClusterState& cluster, const FleetOptions& options, int64_t now_ms) {
  Earliest next(now_ms);
  NoteFleet(memory.fleet, options, &next);
  for (const auto& [node, since_ms] : memory.abandoned_since_ms) next.Note(since_ms + kHandOverMs);
  for (const auto& [group, refused_ms] : memory.swap_refused_ms) next.Note(refused_ms + kSwapRefusedForMs);
  for (const auto& [of, purchase] : memory.purchases) {
    next.Note(purchase.asked_ms, kPurchaseAgeMs);
    next.Note(purchase.until_ms);
    next.Note(purchase.until_ms + kMostVainMs);
  }
  // Until then the cloud may come to say that it deletes them.
  for (const NodeMark& mark : reported.marks) {
    if (mark.deleting_s > 0) next.Note(mark.deleting_s * 1000 + options.deletion_patience_ms);
  }
  const bool has_devices =
      std::any_of(reported.groups.begin(), reported.groups.end(),
                  [](const CloudGroup& group) { return !group.template_devices.empty(); });
  const StartupTaints known;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    // The devices that nodes of groups will offer depend on how old their nodes are.
    if (!cluster.Occupied(Slot{i}) || (!has_devices && HasStarted(cluster, Slot{i}, known))) continue;
    next.Note(cluster.traits(Slot{i}).created_s.value_or(0) * 1000 + options.startup_ms);
  }
  return next.first_ms();
}

}  // namespace loadline
