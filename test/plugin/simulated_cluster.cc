#include "test/plugin/simulated_cluster.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"

namespace loadline {

size_t SimulatedCluster::AddGroup(SimulatedGroup group) {
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

size_t SimulatedCluster::AddWorkload(const SimulatedSize& pod, const SimulatedRules& rules) {
  workloads_.push_back(pod);
  rules_.push_back(rules);
  waiting_.push_back(0);
  return workloads_.size() - 1;
}

int32_t SimulatedCluster::AddNode(size_t group) {
  int32_t slot = slot_end_;
  if (free_slots_.empty()) {
    ++slot_end_;
  } else {
    slot = *free_slots_.begin();
    free_slots_.erase(free_slots_.begin());
  }
  const int64_t number = made_++;
  nodes_[slot] = {
      absl::StrFormat("%s-%07d", groups_[group].name, number), number, group, {}, groups_[group].node};
  changed_.insert(slot);
  return slot;
}

bool SimulatedCluster::Permits(size_t workload, size_t group) const {
  const SimulatedRules& rules = rules_[workload];
  return (rules.zone.empty() || rules.zone == groups_[group].zone) &&
         (rules.tolerates || !groups_[group].tainted);
}

int64_t SimulatedCluster::PodsOf(const SimulatedNode& node, size_t workload) {
  return std::count_if(node.pods.begin(), node.pods.end(),
                       [&](const SimulatedPod& pod) { return pod.workload == workload; });
}

bool SimulatedCluster::Fits(const SimulatedNode& node, size_t workload) const {
  const SimulatedSize& pod = workloads_[workload];
  if (!Permits(workload, node.group) || (rules_[workload].alone && PodsOf(node, workload) > 0)) return false;
  return node.leaves < 0 && node.free.milli_cpu >= pod.milli_cpu && node.free.mib >= pod.mib &&
         static_cast<int64_t>(node.pods.size()) < kPodsPerNode;
}

void SimulatedCluster::Bind(int32_t slot, size_t workload) {
  SimulatedNode& node = nodes_.at(slot);
  node.pods.push_back({workload, made_++});
  node.free.milli_cpu -= workloads_[workload].milli_cpu;
  node.free.mib -= workloads_[workload].mib;
  --waiting_[workload];
  changed_.insert(slot);
}

void SimulatedCluster::End(int32_t slot, size_t position) {
  SimulatedNode& node = nodes_.at(slot);
  const SimulatedSize& pod = workloads_[node.pods[position].workload];
  node.free.milli_cpu += pod.milli_cpu;
  node.free.mib += pod.mib;
  node.pods.erase(node.pods.begin() + static_cast<std::ptrdiff_t>(position));
  changed_.insert(slot);
}

void SimulatedCluster::Lose(int32_t slot) {
  for (const SimulatedPod& pod : nodes_.at(slot).pods) ++waiting_[pod.workload];
  nodes_.erase(slot);
  free_slots_.insert(slot);
  changed_.insert(slot);
}

int64_t SimulatedCluster::Running(size_t workload) const {
  int64_t count = 0;
  for (const auto& [slot, node] : nodes_) count += PodsOf(node, workload);
  return count;
}

void SimulatedCluster::Scale(size_t workload, int64_t replicas) {
  int64_t more = replicas - waiting_[workload] - Running(workload);
  if (more < 0) {
    const int64_t given_up = std::min(-more, waiting_[workload]);
    waiting_[workload] -= given_up;
    more += given_up;
  } else {
    waiting_[workload] += more;
  }
  std::vector<int32_t> slots;
  for (const auto& [slot, node] : nodes_) {
    for (const SimulatedPod& pod : node.pods) {
      if (pod.workload == workload) slots.push_back(slot);
    }
  }
  std::shuffle(slots.begin(), slots.end(), random_);
  for (size_t i = 0; more < 0; ++i, ++more) {
    const std::vector<SimulatedPod>& pods = nodes_.at(slots[i]).pods;
    const auto at = std::find_if(pods.begin(), pods.end(),
                                 [&](const SimulatedPod& pod) { return pod.workload == workload; });
    End(slots[i], static_cast<size_t>(at - pods.begin()));
  }
}

void SimulatedCluster::Fill(int32_t slot, size_t workload, int64_t pods) {
  for (int64_t i = 0; i < pods && Fits(nodes_.at(slot), workload); ++i) {
    ++waiting_[workload];
    Bind(slot, workload);
  }
}

void SimulatedCluster::ReplaceOne(int32_t slot) {
  const auto node = nodes_.find(slot);
  if (node == nodes_.end() || node->second.pods.empty()) return;
  const size_t position = Below(random_, node->second.pods.size());
  ++waiting_[node->second.pods[position].workload];
  End(slot, position);
}

void SimulatedCluster::Schedule() {
  for (size_t workload = 0; workload < workloads_.size(); ++workload) {
    for (auto& [slot, node] : nodes_) {
      while (waiting_[workload] > 0 && Fits(node, workload)) Bind(slot, workload);
    }
  }
}

void SimulatedCluster::ScheduleAnywhere() {
  std::vector<int32_t> slots;
  for (const auto& [slot, node] : nodes_) slots.push_back(slot);
  for (size_t workload = 0; workload < workloads_.size(); ++workload) {
    while (waiting_[workload] > 0 && !slots.empty()) {
      // From a node on that is drawn.
      const size_t first = Below(random_, slots.size());
      size_t tried = 0;
      const auto slot = [&] { return slots[(first + tried) % slots.size()]; };
      while (tried < slots.size() && !Fits(nodes_.at(slot()), workload)) ++tried;
      if (tried == slots.size()) break;
      Bind(slot(), workload);
    }
  }
}

void SimulatedCluster::Act(const v1::PlanLoopResponse& answer) {
  for (const v1::LoopGrowth& growth : answer.growth()) {
    const auto group = static_cast<size_t>(
        std::find_if(groups_.begin(), groups_.end(),
                     [&](const SimulatedGroup& g) { return g.name == growth.node_group(); }) -
        groups_.begin());
    for (int64_t i = 0; i < growth.nodes_for_pods() + growth.nodes_for_slack(); ++i) {
      const auto late = static_cast<int32_t>(Below(random_, static_cast<size_t>(faults_.start_loops) + 1));
      const bool fails = faults_.failed_machines > 0 && OneIn(random_, faults_.failed_machines);
      machines_.push_back({group, late, fails});
    }
  }
  for (const v1::NodeRemoval& removal : answer.scale_down().remove()) {
    if (!removal.start()) continue;
    nodes_.at(removal.slot()).leaves = faults_.drain_loops;
    changed_.insert(removal.slot());
  }
}

void SimulatedCluster::Step(int64_t seconds) {
  now_ += seconds;
  for (SimulatedGroup& group : groups_) group.backs_off = std::max(0, group.backs_off - 1);
  std::vector<SimulatedMachine> coming;
  for (SimulatedMachine machine : std::exchange(machines_, {})) {
    if (machine.loops-- > 0) {
      coming.push_back(machine);
    } else if (machine.fails) {
      groups_[machine.group].backs_off = 3;
    } else {
      AddNode(machine.group);
    }
  }
  machines_ = std::move(coming);
  std::vector<int32_t> gone;
  for (auto& [slot, node] : nodes_) {
    if (node.leaves >= 0 && node.leaves-- == 0) gone.push_back(slot);
  }
  for (const int32_t slot : gone) Lose(slot);
  if (faults_.lost_nodes > 0 && !nodes_.empty() && OneIn(random_, faults_.lost_nodes)) {
    Lose(std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(Below(random_, nodes_.size())))->first);
  }
}

int64_t SimulatedCluster::AllWaiting() const {
  return std::accumulate(waiting_.begin(), waiting_.end(), int64_t{0});
}

int64_t SimulatedCluster::CurrentNodes(size_t group) const {
  const auto of_group = [&](const auto& machine) { return machine.group == group; };
  return std::count_if(nodes_.begin(), nodes_.end(),
                       [&](const auto& node) { return of_group(node.second); }) +
         std::count_if(machines_.begin(), machines_.end(), of_group);
}

bool SimulatedCluster::Quiet() const {
  return machines_.empty() &&
         std::none_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.second.leaves >= 0; });
}

}  // namespace loadline
