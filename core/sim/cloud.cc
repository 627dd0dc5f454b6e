#include "core/sim/cloud.h"

#include <algorithm>

namespace loadline {
namespace {

constexpr int64_t kSimMinuteMs = 60'000;
constexpr int64_t kSimHourMs = 3'600'000;
constexpr int64_t kSpotNoticeMs = 120'000;
constexpr int64_t kShutdownMs = 30'000;
// From the registration of a node to Ready.
constexpr int64_t kBootToReadyMs = 10'000;
// From Ready=Unknown to the deletion of the pods: tolerationSeconds of the default tolerations.
constexpr int64_t kTolerateLostMs = 300'000;
constexpr int64_t kSlowFactor = 10;

}  // namespace

Cloud::Cloud(World* world)
    : world_(*world),
      start_(world->scenario().seed, SimPurpose::kMachineStart),
      faults_(world->scenario().seed, SimPurpose::kCloudFaults),
      spot_(world->scenario().seed, SimPurpose::kSpot),
      node_faults_(world->scenario().seed, SimPurpose::kNodeFaults) {
  const size_t groups = world->scenario().groups.size();
  targets_.resize(groups);
  machines_.resize(groups);
  no_capacity_until_ms_.resize(groups);
  gone_ms_.resize(groups);
  ordered_ms_.resize(groups);
}

void Cloud::Start() {
  for (int32_t group = 0; group < static_cast<int32_t>(targets_.size()); ++group) {
    for (int64_t i = 0; i < world_.group(group).nodes; ++i) {
      const int32_t machine = Order(group);
      ++targets_[static_cast<size_t>(group)];
      MachineUp(machine);
      world_.SetReady(world_.machine(machine).node, true);
    }
  }
  const SimFaults& faults = world_.scenario().faults;
  if (faults.node_unready > 0 || faults.node_lost > 0) world_.After(kSimHourMs, SimEventKind::kNodeFaultHour);
}

bool Cloud::Throttled() {
  const int64_t most = world_.scenario().faults.calls_per_minute;
  const int64_t minute = world_.now_ms() / kSimMinuteMs;
  if (minute != minute_) calls_ = 0;
  minute_ = minute;
  return ++calls_ > most && most > 0;
}

int32_t Cloud::Order(int32_t group) {
  const int32_t machine = world_.AddMachine(group);
  machines_[static_cast<size_t>(group)].push_back(machine);
  ordered_ms_[static_cast<size_t>(group)] += world_.now_ms();
  return machine;
}

CloudAnswer Cloud::Grow(int32_t group, int64_t machines) {
  const size_t at = static_cast<size_t>(group);
  const SimGroup& of = world_.group(group);
  const SimFaults& faults = world_.scenario().faults;
  if (Throttled()) return CloudAnswer::kThrottled;
  if (faults_.Chance(faults.failed_call)) return CloudAnswer::kFailed;
  if (machines < 1 || targets_[at] + machines > of.max_nodes) return CloudAnswer::kRefused;
  if (faults_.Chance(faults.stock_out)) {
    no_capacity_until_ms_[at] = world_.now_ms() + faults.stock_out_s * 1000;
  }
  if (world_.now_ms() < no_capacity_until_ms_[at]) return CloudAnswer::kNoCapacity;
  targets_[at] += machines;
  ++version_;
  for (int64_t i = 0; i < machines; ++i) {
    const int32_t machine = Order(group);
    int64_t start_ms = start_.Between(of.start_s_min * 1000, of.start_s_max * 1000);
    if (faults_.Chance(faults.slow_start)) start_ms *= kSlowFactor;
    if (faults_.Chance(faults.phantom)) {
      world_.machine(machine).phantom = true;
    } else {
      world_.After(start_ms, SimEventKind::kMachineUp, machine);
    }
  }
  return CloudAnswer::kDone;
}

CloudAnswer Cloud::Delete(int32_t machine) {
  SimMachine& of = world_.machine(machine);
  const size_t at = static_cast<size_t>(of.group);
  if (Throttled()) return CloudAnswer::kThrottled;
  if (faults_.Chance(world_.scenario().faults.failed_call)) return CloudAnswer::kFailed;
  if (of.state == SimMachine::State::kDeleting || of.state == SimMachine::State::kGone) {
    return CloudAnswer::kRefused;
  }
  of.state = SimMachine::State::kDeleting;
  --targets_[at];
  ++version_;
  world_.After(kShutdownMs, SimEventKind::kMachineGone, machine);
  return CloudAnswer::kDone;
}

void Cloud::MachineUp(int32_t machine) {
  const SimMachine& of = world_.machine(machine);
  if (of.state != SimMachine::State::kOrdered) return;
  ++version_;
  const SimGroup& group = world_.group(of.group);
  const int64_t late_s = group.gpus > 0 ? world_.scenario().faults.late_devices_s : 0;
  const int32_t node = world_.AddNode(machine, /*devices=*/late_s == 0);
  world_.After(kBootToReadyMs, SimEventKind::kNodeReady, node);
  if (late_s > 0) world_.After(kBootToReadyMs + late_s * 1000, SimEventKind::kDevicesReady, node);
  if (group.spot && world_.scenario().faults.spot_interruption > 0) {
    world_.After(kSimHourMs, SimEventKind::kSpotHour, machine);
  }
}

void Cloud::NodeReady(int32_t node) { world_.SetReady(node, true); }

// Takes a machine out of all lists.
void Cloud::Lose(int32_t machine) {
  SimMachine& of = world_.machine(machine);
  const size_t at = static_cast<size_t>(of.group);
  if (of.state != SimMachine::State::kDeleting) --targets_[at];
  of.state = SimMachine::State::kGone;
  std::vector<int32_t>& machines = machines_[at];
  machines.erase(std::lower_bound(machines.begin(), machines.end(), machine));
  gone_ms_[at] += world_.now_ms() - of.ordered_ms;
  ordered_ms_[at] -= of.ordered_ms;
  ++version_;
  if (of.node >= 0) world_.RemoveNode(of.node);
}

void Cloud::MachineGone(int32_t machine) {
  if (world_.machine(machine).state != SimMachine::State::kGone) Lose(machine);
}

void Cloud::SpotHour(int32_t machine) {
  const SimMachine& of = world_.machine(machine);
  if (of.state != SimMachine::State::kRunning) return;
  if (!spot_.Chance(world_.scenario().faults.spot_interruption)) {
    world_.After(kSimHourMs, SimEventKind::kSpotHour, machine);
    return;
  }
  world_.SetReclaimed(of.node);
  world_.After(kSpotNoticeMs, SimEventKind::kSpotEnd, machine);
}

void Cloud::SpotEnd(int32_t machine) { MachineGone(machine); }

void Cloud::NodeFaultHour() {
  const SimFaults& faults = world_.scenario().faults;
  std::vector<int32_t> nodes = world_.nodes();
  std::sort(nodes.begin(), nodes.end());
  for (const int32_t node : nodes) {
    if (node_faults_.Chance(faults.node_lost)) {
      MachineGone(world_.node(node).machine);
    } else if (node_faults_.Chance(faults.node_unready) && world_.node(node).ready) {
      world_.SetReady(node, false);
      world_.After(faults.node_unready_s * 1000, SimEventKind::kNodeBack, node);
      world_.After(kTolerateLostMs, SimEventKind::kPodsOfLostNode, node);
    }
  }
  world_.After(kSimHourMs, SimEventKind::kNodeFaultHour);
}

void Cloud::NodeBack(int32_t node) { world_.SetReady(node, true); }

void Cloud::PodsOfLostNode(int32_t node) {
  const SimNode& of = world_.node(node);
  if (!of.present || of.ready) return;
  const std::vector<int32_t> pods = of.pods;
  for (const int32_t pod : pods) {
    if (!world_.IsDaemon(pod)) world_.Terminate(pod);
  }
}

double Cloud::Usd() const {
  double usd = 0;
  for (size_t i = 0; i < targets_.size(); ++i) {
    const int64_t running_ms = static_cast<int64_t>(machines_[i].size()) * world_.now_ms() - ordered_ms_[i];
    usd += world_.group(static_cast<int32_t>(i)).usd_per_hour *
           (static_cast<double>(gone_ms_[i] + running_ms) / static_cast<double>(kSimHourMs));
  }
  return usd;
}

double Cloud::UsdPerHour() const {
  double usd = 0;
  for (size_t i = 0; i < targets_.size(); ++i) {
    usd += world_.group(static_cast<int32_t>(i)).usd_per_hour * static_cast<double>(machines_[i].size());
  }
  return usd;
}

}  // namespace loadline
