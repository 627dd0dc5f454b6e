#include "core/sim/world.h"

#include "core/base/check.h"
#include "core/cluster/pod_role.h"

namespace loadline {
namespace {

// Takes an entry out of a list whose order means nothing; `places` has the position of each entry.
template <StrongIndex Index>
void TakeOut(Index number, StrongVector<SimPlace, Index>* list, StrongVector<Index, SimPlace>* places) {
  const SimPlace place = (*places)[number];
  const Index last = list->back();
  (*list)[place] = last;
  (*places)[last] = place;
  list->pop_back();
}

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      replicas_(scenario.workloads.size()),
      pod_start_(scenario.seed, SimPurpose::kPodStart),
      pod_end_(scenario.seed, SimPurpose::kPodEnd),
      api_(scenario.seed, SimPurpose::kApi) {}

template <typename Subject, typename Value>
void World::Note(SimEventKind kind, Subject subject, Value value) {
  digest_.Add(now_ms_);
  digest_.Add(static_cast<int64_t>(kind));
  digest_.Add(static_cast<int64_t>(subject));
  digest_.Add(static_cast<int64_t>(value));
}

void World::Tell(SimPodIndex pod) {
  for (SimObserver* const observer : observers_) observer->PodChanged(pod);
}

void World::TellNode(SimNodeIndex node) {
  for (SimObserver* const observer : observers_) observer->NodeChanged(node);
}

SimBudget World::BudgetOf(SimWorkloadIndex workload) const {
  const SimWorkload& of = this->workload(workload);
  const SimReplicas& has = replicas(workload);
  SimBudget budget;
  budget.expected =
      of.kind == SimWorkloadKind::kDeployment ? has.wanted : static_cast<int64_t>(has.alive.size());
  budget.healthy = has.ready;
  budget.desired = budget.expected > of.max_unavailable ? budget.expected - of.max_unavailable : 0;
  return budget;
}

bool World::IsExpendable(SimWorkloadIndex workload) const {
  return loadline::IsExpendable(this->workload(workload).priority, /*placeholder=*/false);
}

SimPodIndex World::CreatePod(SimWorkloadIndex workload) {
  const SimPodIndex number = pods_.end_index();
  SimPod& pod = pods_.emplace_back();
  pod.workload = workload;
  SimReplicas& has = replicas(workload);
  pod.revision = static_cast<int32_t>(has.revision);
  pod.created_ms = now_ms_;
  place_alive_.push_back(has.alive.end_index());
  has.alive.push_back(number);
  ++waiting_;
  ++pods_alive_;
  Tell(number);
  return number;
}

void World::Bind(SimPodIndex pod, SimNodeIndex node) {
  SimPod& of = At(pod);
  SimNode& to = nodes_[node];
  LOADLINE_CHECK(of.phase == SimPodPhase::kWaiting && to.present)
      << "pod " << IndexOf(pod) << " to node " << IndexOf(node);
  of.phase = SimPodPhase::kStarting;
  of.node = node;
  of.bound_ms = now_ms_;
  of.unschedulable = false;
  of.place = to.pods.end_index();
  to.pods.push_back(pod);
  const SimWorkload& workload = this->workload(of.workload);
  to.requested = Plus(to.requested, workload.request);
  --waiting_;
  if (workload.kind != SimWorkloadKind::kDaemon) counts_.waited_ms.push_back(now_ms_ - of.created_ms);
  Note(SimEventKind::kSchedule, pod, node);
  After(pod_start_.Between(workload.start_s_min * 1000, workload.start_s_max * 1000),
        SimEventKind::kPodRunning, pod);
  Tell(pod);
}

void World::MarkUnschedulable(SimPodIndex pod) {
  if (At(pod).unschedulable) return;
  At(pod).unschedulable = true;
  Tell(pod);
}

void World::SetRunning(SimPodIndex pod) {
  SimPod& of = At(pod);
  if (of.phase != SimPodPhase::kStarting || !node(*of.node).ready) return;
  of.phase = SimPodPhase::kRunning;
  ++replicas(of.workload).ready;
  Tell(pod);
}

void World::Finish(SimPodIndex pod) {
  if (At(pod).phase != SimPodPhase::kRunning) return;
  Forget(pod);
  LeaveNode(pod);
  At(pod).phase = SimPodPhase::kGone;
  Note(SimEventKind::kPodFinished, pod, 0);
  Tell(pod);
}

void World::Forget(SimPodIndex pod) {
  SimPod& of = At(pod);
  SimReplicas& has = replicas(of.workload);
  if (of.phase == SimPodPhase::kRunning) --has.ready;
  if (of.phase == SimPodPhase::kWaiting) --waiting_;
  --pods_alive_;
  TakeOut(pod, &has.alive, &place_alive_);
}

void World::LeaveNode(SimPodIndex pod) {
  SimPod& of = At(pod);
  if (!of.place.has_value()) return;
  SimNode& from = nodes_[*of.node];
  const SimPodIndex last = from.pods.back();
  from.pods[*of.place] = last;
  At(last).place = of.place;
  from.pods.pop_back();
  of.place = std::nullopt;
  from.requested = Minus(from.requested, workload(of.workload).request);
}

void World::Terminate(SimPodIndex pod) {
  SimPod& of = At(pod);
  if (of.phase == SimPodPhase::kTerminating || of.phase == SimPodPhase::kGone) return;
  int64_t grace_s = workload(of.workload).grace_s;
  const bool at_once = of.phase == SimPodPhase::kWaiting || !node(*of.node).ready || grace_s == 0;
  Forget(pod);
  of.phase = SimPodPhase::kTerminating;
  of.terminating_ms = now_ms_;
  if (at_once) {
    Vanish(pod);
    return;
  }
  if (pod_end_.Chance(scenario_.faults.stuck_pod)) grace_s += scenario_.faults.stuck_pod_s;
  After(grace_s * 1000, SimEventKind::kPodGone, pod);
  Tell(pod);
}

void World::Vanish(SimPodIndex pod) {
  if (At(pod).phase != SimPodPhase::kTerminating) return;
  LeaveNode(pod);
  At(pod).phase = SimPodPhase::kGone;
  Note(SimEventKind::kPodGone, pod, 0);
  Tell(pod);
}

void World::Preempt(SimPodIndex pod) {
  Terminate(pod);
  Vanish(pod);
}

bool World::WriteFails() { return api_down_since_ms() >= 0 || api_.Chance(scenario_.faults.failed_write); }

void World::ApiHour() {
  constexpr int64_t kApiHourMs = 3'600'000;
  After(kApiHourMs, SimEventKind::kApiHour);
  if (now_ms_ < api_up_ms_ || !api_.Chance(scenario_.faults.api_down)) return;
  api_down_ms_ = now_ms_;
  api_up_ms_ = now_ms_ + scenario_.faults.api_down_s * 1000;
}

SimEviction World::Evict(SimPodIndex pod) {
  const SimPod& of = At(pod);
  if (WriteFails()) return SimEviction::kFailed;
  if (of.phase == SimPodPhase::kTerminating || of.phase == SimPodPhase::kGone) return SimEviction::kDone;
  if (workload(of.workload).two_budgets) return SimEviction::kTwoBudgets;
  // A pod that is not ready is not among the healthy ones; it is evicted while they are enough.
  if (workload(of.workload).max_unavailable >= 0) {
    const SimBudget budget = BudgetOf(of.workload);
    const bool ready = of.phase == SimPodPhase::kRunning;
    if (ready ? budget.allowed() == 0 : budget.healthy < budget.desired) {
      ++counts_.refused_evictions;
      return SimEviction::kRefused;
    }
  }
  ++counts_.evictions;
  At(pod).evicted = true;
  Note(SimEventKind::kActuate, pod, *of.node);
  Terminate(pod);
  return SimEviction::kDone;
}

SimMachineIndex World::AddMachine(GroupIndex group) {
  const SimMachineIndex number = machines_.end_index();
  SimMachine& machine = machines_.emplace_back();
  machine.group = group;
  machine.ordered_ms = now_ms_;
  Note(SimEventKind::kMachineUp, number, group);
  return number;
}

SimNodeIndex World::AddNode(SimMachineIndex machine, bool devices, int8_t startup_taint) {
  SimMachine& of = this->machine(machine);
  const SimNodeIndex number = nodes_.end_index();
  SimNode& node = nodes_.emplace_back();
  node.group = of.group;
  node.machine = machine;
  node.joined_ms = now_ms_;
  node.devices = devices;
  node.startup_taint = startup_taint;
  of.node = number;
  of.had_node = true;
  of.state = SimMachine::State::kRunning;
  place_present_.push_back(present_.end_index());
  present_.push_back(number);
  ++counts_.nodes_added;
  Note(SimEventKind::kNodeReady, number, machine);
  TellNode(number);
  return number;
}

void World::SetReady(SimNodeIndex node, bool ready) {
  SimNode& of = nodes_[node];
  if (!of.present || of.ready == ready) return;
  of.ready = ready;
  TellNode(node);
  for (const SimPodIndex pod : of.pods) {
    SimPod& on = At(pod);
    if (ready) {
      if (on.phase == SimPodPhase::kStarting) After(1000, SimEventKind::kPodRunning, pod);
    } else if (on.phase == SimPodPhase::kRunning) {
      on.phase = SimPodPhase::kStarting;
      --replicas(on.workload).ready;
      Tell(pod);
    }
  }
}

void World::OfferDevices(SimNodeIndex node) {
  SimNode& of = nodes_[node];
  if (!of.present || of.devices) return;
  of.devices = true;
  TellNode(node);
}

void World::TakeStartupTaint(SimNodeIndex node) {
  SimNode& of = nodes_[node];
  if (!of.present || of.startup_taint == kNoStartupTaint) return;
  of.startup_taint = kNoStartupTaint;
  TellNode(node);
}

void World::SetMark(SimNodeIndex node, SimMark mark, bool is_set) {
  SimNode& of = nodes_[node];
  if (!of.present || of.Has(mark) == is_set) return;
  of.marks ^= BitOf(mark);
  TellNode(node);
}

void World::SetTainted(SimNodeIndex node, bool tainted) {
  SimNode& of = nodes_[node];
  if (!of.present || of.tainted == tainted) return;
  of.tainted = tainted;
  of.asked_ms = -1;
  of.soft_tainted_s = -1;
  TellNode(node);
}

void World::SetSoftTaint(SimNodeIndex node, int64_t since_s) {
  SimNode& of = nodes_[node];
  if (!of.present || of.tainted || of.soft_tainted_s == since_s) return;
  of.soft_tainted_s = since_s;
  for (SimObserver* const observer : observers_) observer->SoftTaintChanged(node);
}

void World::SetReclaimed(SimNodeIndex node) {
  SimNode& of = nodes_[node];
  if (!of.present) return;
  of.reclaimed = true;
  TellNode(node);
}

void World::RemoveNode(SimNodeIndex node) {
  SimNode& of = nodes_[node];
  if (!of.present) return;
  of.ready = false;  // nobody is left to wait for pods that end
  while (!of.pods.empty()) {
    const SimPodIndex pod = of.pods.back();
    if (At(pod).phase == SimPodPhase::kTerminating) {
      Vanish(pod);
    } else {
      Terminate(pod);
    }
  }
  of.present = false;
  TakeOut(node, &present_, &place_present_);
  ++counts_.nodes_removed;
  Note(SimEventKind::kMachineGone, node, 0);
  TellNode(node);
}

void World::SetWanted(SimWorkloadIndex workload, int64_t wanted) {
  if (replicas(workload).wanted == wanted) return;
  replicas(workload).wanted = wanted;
  for (SimObserver* const observer : observers_) observer->WorkloadChanged(workload);
}

void World::NextRevision(SimWorkloadIndex workload) {
  ++replicas(workload).revision;
  for (SimObserver* const observer : observers_) observer->WorkloadChanged(workload);
}

}  // namespace loadline
