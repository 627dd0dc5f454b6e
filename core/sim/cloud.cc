#include "core/sim/cloud.h"

#include <algorithm>

#include "core/sim/shapes_of.h"

namespace loadline {
namespace {

constexpr int64_t kSimMinuteMs = 60'000;
constexpr int64_t kSimHourMs = 3'600'000;
// Published: AWS gives two minutes before it takes back a spot machine.
constexpr int64_t kSpotNoticeMs = 120'000;
// From Ready=Unknown to the deletion of the pods: tolerationSeconds of the default tolerations.
constexpr int64_t kTolerateLostMs = 300'000;
// Chosen: a slow start, an unready flap and a machine that is taken back while it starts, each long enough to
// be seen by several loops.
constexpr int64_t kSlowFactor = 10;
constexpr int64_t kFlapMs = 10'000;
constexpr int64_t kTakenBackMs = 45'000;

}  // namespace

Cloud::Cloud(World* world)
    : world_(*world),
      start_(world->scenario().seed, SimPurpose::kMachineStart),
      faults_(world->scenario().seed, SimPurpose::kCloudFaults),
      spot_(world->scenario().seed, SimPurpose::kSpot),
      node_faults_(world->scenario().seed, SimPurpose::kNodeFaults),
      hand_(world->scenario().seed, SimPurpose::kHand),
      hand_mark_(world->scenario().seed, SimPurpose::kHandMark),
      startup_(world->scenario().seed, SimPurpose::kStartupTaint) {
  const size_t groups = world->scenario().groups.size();
  targets_.resize(groups);
  machines_.resize(groups);
  no_capacity_until_ms_.resize(groups);
  gone_ms_.resize(groups);
  ordered_ms_.resize(groups);
}

void Cloud::Start() {
  for (const GroupIndex group : targets_.indices()) {
    for (int64_t i = 0; i < world_.group(group).nodes; ++i) {
      const SimMachineIndex machine = Order(group);
      ++targets_[group];
      Register(machine, kNoStartupTaint);
      world_.SetReady(*world_.machine(machine).node, true);
    }
  }
  const SimFaults& faults = world_.scenario().faults;
  if (faults.node_unready + faults.node_lost + faults.node_flaps + faults.node_returns > 0) {
    world_.After(kSimHourMs, SimEventKind::kNodeFaultHour);
  }
  if (faults.hand_scaling > 0) world_.After(kSimHourMs, SimEventKind::kHandHour);
  if (faults.hand_mark > 0) world_.After(kSimHourMs, SimEventKind::kHandMarkHour);
}

bool Cloud::Throttled() {
  const int64_t most = world_.scenario().faults.calls_per_minute;
  const int64_t minute = world_.now_ms() / kSimMinuteMs;
  if (minute != minute_) calls_ = 0;
  minute_ = minute;
  return ++calls_ > most && most > 0;
}

SimMachineIndex Cloud::Order(GroupIndex group) {
  const SimMachineIndex machine = world_.AddMachine(group);
  machines_[group].push_back(machine);
  ordered_ms_[group] += world_.now_ms();
  return machine;
}

CloudAnswer Cloud::Grow(GroupIndex group, int64_t machines) {
  const SimFaults& faults = world_.scenario().faults;
  if (Throttled()) return CloudAnswer::kThrottled;
  if (faults_.Chance(faults.failed_call)) return CloudAnswer::kFailed;
  const bool lost = faults_.Chance(faults.lost_answer);
  if (lost && faults_.Chance(500'000)) return CloudAnswer::kUnknown;
  const CloudAnswer answer = Ordered(group, machines);
  return lost ? CloudAnswer::kUnknown : answer;
}

CloudAnswer Cloud::Ordered(GroupIndex group, int64_t machines) {
  const SimGroup& of = world_.group(group);
  const SimFaults& faults = world_.scenario().faults;
  if (machines < 1 || targets_[group] + machines > of.max_nodes) return CloudAnswer::kRefused;
  if (faults_.Chance(faults.stock_out)) {
    no_capacity_until_ms_[group] = world_.now_ms() + faults.stock_out_s * 1000;
  }
  if (world_.now_ms() < no_capacity_until_ms_[group]) return CloudAnswer::kNoCapacity;
  targets_[group] += machines;
  ++version_;
  const bool taken_back = faults_.Chance(faults.taken_back);
  for (int64_t i = 0; i < machines; ++i) {
    const SimMachineIndex machine = Order(group);
    int64_t start_ms = start_.Between(of.start_s_min * 1000, of.start_s_max * 1000);
    if (faults_.Chance(faults.slow_start)) start_ms *= kSlowFactor;
    if (taken_back) world_.After(kTakenBackMs, SimEventKind::kMachineTaken, machine);
    if (faults_.Chance(faults.phantom)) {
      world_.machine(machine).phantom = true;
    } else if (faults_.Chance(faults.failed_machine)) {
      world_.After(start_ms, SimEventKind::kMachineFails, machine);
    } else {
      world_.After(start_ms, SimEventKind::kMachineUp, machine);
    }
  }
  return CloudAnswer::kDone;
}

CloudAnswer Cloud::Delete(SimMachineIndex machine) {
  const SimFaults& faults = world_.scenario().faults;
  if (Throttled()) return CloudAnswer::kThrottled;
  if (faults_.Chance(faults.failed_call)) return CloudAnswer::kFailed;
  const bool lost = faults_.Chance(faults.lost_answer);
  if (lost && faults_.Chance(500'000)) return CloudAnswer::kUnknown;
  const SimMachine& of = world_.machine(machine);
  if (of.state == SimMachine::State::kDeleting || of.state == SimMachine::State::kGone) {
    return lost ? CloudAnswer::kUnknown : CloudAnswer::kRefused;
  }
  Deleted(machine);
  return lost ? CloudAnswer::kUnknown : CloudAnswer::kDone;
}

void Cloud::Deleted(SimMachineIndex machine) {
  SimMachine& of = world_.machine(machine);
  of.state = SimMachine::State::kDeleting;
  --targets_[of.group];
  ++version_;
  const SimFaults& faults = world_.scenario().faults;
  const int64_t takes_ms = 1000 * (faults_.Chance(faults.stuck_deletion) ? faults.stuck_deletion_s
                                                                         : world_.group(of.group).stop_s);
  world_.After(takes_ms, SimEventKind::kMachineGone, machine);
}

void Cloud::MachineUp(SimMachineIndex machine) {
  if (world_.machine(machine).state != SimMachine::State::kOrdered) return;
  const SimFaults& faults = world_.scenario().faults;
  int8_t taint = kNoStartupTaint;
  if (startup_.Chance(faults.startup_taint)) {
    taint = static_cast<int8_t>(startup_.Between(0, static_cast<int64_t>(SimStartupTaints().size()) - 1));
  }
  Register(machine, taint);
  if (taint == kNoStartupTaint) return;
  world_.After(startup_.Between(1, faults.startup_taint_s) * 1000, SimEventKind::kStartupEnds,
               *world_.machine(machine).node);
}

void Cloud::Register(SimMachineIndex machine, int8_t startup_taint) {
  const SimMachine& of = world_.machine(machine);
  ++version_;
  const SimGroup& group = world_.group(of.group);
  const int64_t late_s = group.gpus > 0 ? world_.scenario().faults.late_devices_s : 0;
  const SimNodeIndex node = world_.AddNode(machine, /*devices=*/late_s == 0, startup_taint);
  world_.After(group.ready_s * 1000, SimEventKind::kNodeReady, node);
  if (late_s > 0) world_.After((group.ready_s + late_s) * 1000, SimEventKind::kDevicesReady, node);
  if (group.spot && world_.scenario().faults.spot_interruption > 0) {
    world_.After(kSimHourMs, SimEventKind::kSpotHour, machine);
  }
}

void Cloud::NodeReady(SimNodeIndex node) { world_.SetReady(node, true); }

// Takes a machine out of all lists.
void Cloud::Lose(SimMachineIndex machine) {
  SimMachine& of = world_.machine(machine);
  if (of.state != SimMachine::State::kDeleting) --targets_[of.group];
  of.state = SimMachine::State::kGone;
  std::vector<SimMachineIndex>& machines = machines_[of.group];
  machines.erase(std::lower_bound(machines.begin(), machines.end(), machine));
  gone_ms_[of.group] += world_.now_ms() - of.ordered_ms;
  ordered_ms_[of.group] -= of.ordered_ms;
  ++version_;
  if (of.node.has_value()) world_.RemoveNode(*of.node);
}

void Cloud::MachineGone(SimMachineIndex machine) {
  if (world_.machine(machine).state != SimMachine::State::kGone) Lose(machine);
}

void Cloud::SpotHour(SimMachineIndex machine) {
  const SimMachine& of = world_.machine(machine);
  if (of.state != SimMachine::State::kRunning) return;
  if (!world_.node(*of.node).present) {
    world_.After(kSimHourMs, SimEventKind::kSpotHour, machine);
    return;
  }
  if (!spot_.Chance(world_.scenario().faults.spot_interruption)) {
    world_.After(kSimHourMs, SimEventKind::kSpotHour, machine);
    return;
  }
  world_.SetReclaimed(*of.node);
  world_.After(kSpotNoticeMs, SimEventKind::kSpotEnd, machine);
}

void Cloud::SpotEnd(SimMachineIndex machine) { MachineGone(machine); }

void Cloud::NodeFaultHour() {
  std::vector<SimNodeIndex> nodes = world_.nodes().values();
  std::sort(nodes.begin(), nodes.end());
  for (const SimNodeIndex node : nodes) FailNode(node);
  world_.After(kSimHourMs, SimEventKind::kNodeFaultHour);
}

void Cloud::FailNode(SimNodeIndex node) {
  const SimFaults& faults = world_.scenario().faults;
  const SimMachineIndex machine = world_.node(node).machine;
  if (node_faults_.Chance(faults.node_lost)) {
    MachineGone(machine);
  } else if (node_faults_.Chance(faults.node_unready) && world_.node(node).ready) {
    world_.SetReady(node, false);
    world_.After(faults.node_unready_s * 1000, SimEventKind::kNodeBack, node);
    world_.After(kTolerateLostMs, SimEventKind::kPodsOfLostNode, node);
  } else if (node_faults_.Chance(faults.node_flaps) && world_.node(node).ready) {
    world_.SetFlaps(node, static_cast<int32_t>(2 * node_faults_.Between(3, 30)));
    NodeFlaps(node);
  } else if (node_faults_.Chance(faults.node_returns) && world_.node(node).ready) {
    world_.RemoveNode(node);
    world_.After(kSimMinuteMs, SimEventKind::kNodeReturns, machine);
  }
}

void Cloud::NodeFlaps(SimNodeIndex node) {
  const SimNode& of = world_.node(node);
  if (!of.present || of.flaps == 0) return;
  world_.SetFlaps(node, of.flaps - 1);
  world_.SetReady(node, of.flaps % 2 == 0);
  world_.After(kFlapMs, SimEventKind::kNodeFlaps, node);
}

void Cloud::NodeReturns(SimMachineIndex machine) {
  if (world_.machine(machine).state != SimMachine::State::kRunning) return;
  const SimNodeIndex node = world_.AddNode(machine, /*devices=*/true);
  world_.After(world_.group(world_.machine(machine).group).ready_s * 1000, SimEventKind::kNodeReady, node);
}

void Cloud::MachineFails(SimMachineIndex machine) {
  SimMachine& of = world_.machine(machine);
  if (of.state != SimMachine::State::kOrdered) return;
  of.faulty = true;
  ++version_;
}

void Cloud::MachineTaken(SimMachineIndex machine) {
  if (world_.machine(machine).state == SimMachine::State::kOrdered) Lose(machine);
}

// Changes machines by hand, like somebody at the console of the cloud.
void Cloud::HandHour() {
  world_.After(kSimHourMs, SimEventKind::kHandHour);
  for (const GroupIndex group : targets_.indices()) {
    if (!hand_.Chance(world_.scenario().faults.hand_scaling)) continue;
    const std::vector<SimMachineIndex>& machines = machines_[group];
    const int64_t which = hand_.Between(0, 2 * static_cast<int64_t>(machines.size()));
    if (which >= static_cast<int64_t>(machines.size())) {
      Ordered(group, hand_.Between(1, 3));
      continue;
    }
    const SimMachineIndex machine = machines[static_cast<size_t>(which)];
    if (world_.machine(machine).state != SimMachine::State::kRunning) continue;
    world_.machine(machine).deleted_by_hand = true;
    Deleted(machine);
  }
}

void Cloud::HandMarkHour() {
  const SimFaults& faults = world_.scenario().faults;
  world_.After(kSimHourMs, SimEventKind::kHandMarkHour);
  StrongVector<GroupIndex, std::vector<SimNodeIndex>> nodes(targets_.size());
  for (const SimNodeIndex node : world_.nodes()) nodes[world_.node(node).group].push_back(node);
  for (std::vector<SimNodeIndex>& of_group : nodes) {
    if (of_group.empty() || !hand_mark_.Chance(faults.hand_mark)) continue;
    std::sort(of_group.begin(), of_group.end());
    const auto last = static_cast<int64_t>(of_group.size()) - 1;
    const SimNodeIndex node = of_group[static_cast<size_t>(hand_mark_.Between(0, last))];
    const auto mark = static_cast<SimMark>(hand_mark_.Between(0, kSimMarks - 1));
    world_.SetMark(node, mark, true);
    world_.After(faults.hand_mark_s * 1000, SimEventKind::kHandMarkEnds,
                 static_cast<int32_t>(node) * kSimMarks + static_cast<int32_t>(mark));
  }
}

void Cloud::HandMarkEnds(int32_t subject) {
  world_.SetMark(SimNodeIndex{subject / kSimMarks}, static_cast<SimMark>(subject % kSimMarks), false);
}

void Cloud::NodeBack(SimNodeIndex node) { world_.SetReady(node, true); }

void Cloud::PodsOfLostNode(SimNodeIndex node) {
  const SimNode& of = world_.node(node);
  if (!of.present || of.ready) return;
  const std::vector<SimPodIndex> pods = of.pods.values();
  for (const SimPodIndex pod : pods) {
    if (!world_.IsDaemon(pod)) world_.Terminate(pod);
  }
}

double Cloud::Usd() const {
  double usd = 0;
  for (const GroupIndex group : targets_.indices()) {
    const int64_t running_ms =
        static_cast<int64_t>(machines_[group].size()) * world_.now_ms() - ordered_ms_[group];
    usd += world_.group(group).usd_per_hour *
           (static_cast<double>(gone_ms_[group] + running_ms) / static_cast<double>(kSimHourMs));
  }
  return usd;
}

double Cloud::UsdPerHour() const {
  double usd = 0;
  for (const GroupIndex group : targets_.indices()) {
    usd += world_.group(group).usd_per_hour * static_cast<double>(machines_[group].size());
  }
  return usd;
}

}  // namespace loadline
