#include "test/plugin/answer_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace loadline {

AnswerChecker::AnswerChecker(const SimulatedCluster& cluster, const LoopLimits& limits,
                             const v1::PlanLoopResponse& response)
    : cluster_(cluster), limits_(limits), response_(response) {
  for (size_t workload = 0; workload < cluster.workloads(); ++workload) {
    if (cluster.waiting(workload) == 0) continue;
    workload_of_.push_back(workload);
    wanted_.push_back(cluster.waiting(workload));
  }
  for (const v1::DrainedPods& pods : response.drained()) {
    int64_t workload = -1;
    EXPECT_TRUE(absl::SimpleAtoi(absl::StripPrefix(pods.owner_name(), "app-"), &workload));
    workload_of_.push_back(static_cast<size_t>(workload));
    wanted_.push_back(pods.count());
  }
}

void AnswerChecker::Check() {
  CheckPods();
  CheckLeftOver();
  CheckGrowth();
  CheckRemovals();
  CheckMoves();
  CheckMinimum();
  CheckBudgets();
  CheckParallelism();
  CheckSlack();
  CheckTexts();
}

// --- rooms -----------------------------------------------------------------------------------------------

AnswerChecker::Room AnswerChecker::NewRoom(size_t group) const {
  return {group, cluster_.groups()[group].node, SimulatedCluster::kPodsPerNode};
}

AnswerChecker::Room AnswerChecker::RoomOn(const SimulatedNode& node) const {
  Room room{node.group, node.free, SimulatedCluster::kPodsPerNode - static_cast<int64_t>(node.pods.size())};
  for (const SimulatedPod& pod : node.pods) ++room.pods[pod.workload];
  return room;
}

AnswerChecker::Room* AnswerChecker::RoomAt(int32_t slot) {
  const auto node = cluster_.nodes().find(slot);
  if (node == cluster_.nodes().end() || node->second.leaves >= 0) {
    ADD_FAILURE() << "slot " << slot << " takes pods, and its node leaves or is not there";
    return nullptr;
  }
  return &rooms_.try_emplace(slot, RoomOn(node->second)).first->second;
}

bool AnswerChecker::Put(size_t workload, Room* room) const {
  const SimulatedSize& pod = cluster_.pod(workload);
  if (!cluster_.Permits(workload, room->group)) return false;
  if (cluster_.rules(workload).alone && room->pods.contains(workload)) return false;
  if (pod.milli_cpu > room->free.milli_cpu || pod.mib > room->free.mib || room->slots < 1) return false;
  room->free.milli_cpu -= pod.milli_cpu;
  room->free.mib -= pod.mib;
  --room->slots;
  ++room->pods[workload];
  return true;
}

void AnswerChecker::ExpectRoom(size_t workload, int64_t count, const std::string& where, Room* room) const {
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_TRUE(Put(workload, room)) << "app-" << workload << " does not fit on " << where;
  }
}

// True as well where the search takes too long.
bool AnswerChecker::FindRoom(const std::vector<size_t>& workloads, size_t next, std::vector<Room>* rooms,
                             int64_t* tries) const {
  if (next == workloads.size()) return true;
  for (Room& room : *rooms) {
    if (++*tries > 20'000) return true;
    const Room before = room;
    if (!Put(workloads[next], &room)) continue;
    if (FindRoom(workloads, next + 1, rooms, tries)) return true;
    room = before;
    if (before.pods.empty()) return false;  // other empty nodes are the same
  }
  return false;
}

// --- what is there ---------------------------------------------------------------------------------------

size_t AnswerChecker::WorkloadOf(const v1::PodRun& run) const {
  return workload_of_.at(static_cast<size_t>(run.pod()));
}

size_t AnswerChecker::GroupNamed(const std::string& name) const {
  size_t i = 0;
  while (i < cluster_.groups().size() && cluster_.groups()[i].name != name) ++i;
  EXPECT_LT(i, cluster_.groups().size());
  return i;
}

int64_t AnswerChecker::Leaving() const {
  return std::count_if(cluster_.nodes().begin(), cluster_.nodes().end(),
                       [](const auto& node) { return node.second.leaves >= 0; });
}

int64_t AnswerChecker::NewNodes() const {
  int64_t nodes = 0;
  for (const v1::LoopGrowth& growth : response_.growth()) {
    nodes += growth.nodes_for_pods() + growth.nodes_for_slack();
  }
  return nodes;
}

int64_t AnswerChecker::Grown(size_t group) const {
  int64_t nodes = cluster_.CurrentNodes(group);
  for (const v1::LoopGrowth& growth : response_.growth()) {
    if (growth.node_group() != cluster_.groups()[group].name) continue;
    nodes += growth.nodes_for_pods() + growth.nodes_for_slack();
  }
  return nodes;
}

bool AnswerChecker::MayGrowFurther(size_t group) const {
  int64_t all = 0;
  for (size_t i = 0; i < cluster_.groups().size(); ++i) all += Grown(i);
  return cluster_.groups()[group].backs_off == 0 && Grown(group) < cluster_.groups()[group].max_nodes &&
         (limits_.max_new_nodes == 0 || NewNodes() < limits_.max_new_nodes) &&
         (limits_.max_nodes_total == 0 || all < limits_.max_nodes_total);
}

// --- growth ----------------------------------------------------------------------------------------------

// C2, C3: each pod has one place or none, and the places hold.
void AnswerChecker::CheckPods() {
  std::vector<int64_t> found(wanted_.size(), 0);
  const auto count = [&](const v1::PodRun& run, int64_t times = 1) {
    found.at(static_cast<size_t>(run.pod())) += times * run.count();
  };
  for (const v1::ExistingPlacement& placement : response_.existing()) {
    count(placement.pods());
    Room* const room = RoomAt(placement.slot());
    if (room == nullptr) return;
    ExpectRoom(WorkloadOf(placement.pods()), placement.pods().count(),
               absl::StrCat("the node in slot ", placement.slot()), room);
  }
  std::map<size_t, std::vector<size_t>> on_the_way;  // workloads, by group
  for (const v1::UpcomingPlacement& placement : response_.upcoming()) {
    count(placement.pods());
    std::vector<size_t>& workloads = on_the_way[GroupNamed(placement.node_group())];
    workloads.insert(workloads.end(), static_cast<size_t>(placement.pods().count()),
                     WorkloadOf(placement.pods()));
  }
  for (auto& [group, workloads] : on_the_way) CheckUpcoming(group, &workloads);
  for (const v1::PlannedNodes& nodes : response_.scale_up().nodes()) {
    Room room = NewRoom(static_cast<size_t>(nodes.group()));
    for (const v1::PodRun& run : nodes.pods()) {
      count(run, nodes.nodes());
      ExpectRoom(WorkloadOf(run), run.count(), absl::StrCat("a new node of group ", nodes.group()), &room);
    }
    EXPECT_FALSE(room.pods.empty()) << "a node for nothing";
  }
  for (const v1::PodRun& run : response_.scale_up().unplaced()) count(run);
  EXPECT_EQ(found, wanted_);
}

// C2 of nodes on their way: some way to put the pods onto as many nodes as come.
void AnswerChecker::CheckUpcoming(size_t group, std::vector<size_t>* workloads) const {
  std::sort(workloads->begin(), workloads->end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t workload) { return std::pair(-cluster_.pod(workload).milli_cpu, workload); };
    return key(a) < key(b);
  });
  const auto nodes = std::count_if(cluster_.machines().begin(), cluster_.machines().end(),
                                   [&](const SimulatedMachine& machine) { return machine.group == group; });
  std::vector<Room> rooms(static_cast<size_t>(nodes), NewRoom(group));
  int64_t tries = 0;
  EXPECT_TRUE(FindRoom(*workloads, 0, &rooms, &tries))
      << workloads->size() << " pods have no room on " << nodes << " nodes of "
      << cluster_.groups()[group].name;
}

// Pods are left over only where no node that stays has room for one more, and no group may grow that has.
void AnswerChecker::CheckLeftOver() {
  for (const v1::PodRun& run : response_.scale_up().unplaced()) {
    if (run.count() == 0) continue;
    const size_t workload = WorkloadOf(run);
    for (const auto& [slot, node] : cluster_.nodes()) {
      if (node.leaves >= 0) continue;
      const auto filled = rooms_.find(slot);
      Room room = filled == rooms_.end() ? RoomOn(node) : filled->second;
      EXPECT_FALSE(Put(workload, &room)) << "app-" << workload << " is left over, and fits on " << node.name;
    }
    for (size_t group = 0; group < cluster_.groups().size(); ++group) {
      Room room = NewRoom(group);
      EXPECT_FALSE(MayGrowFurther(group) && Put(workload, &room))
          << "app-" << workload << " is left over, and " << cluster_.groups()[group].name << " may grow";
    }
  }
}

// C1, and no group that is blocked.
void AnswerChecker::CheckGrowth() const {
  std::map<int32_t, int64_t> for_pods;
  for (const v1::PlannedNodes& nodes : response_.scale_up().nodes()) for_pods[nodes.group()] += nodes.nodes();
  for (const v1::LoopGrowth& growth : response_.growth()) {
    const size_t group = GroupNamed(growth.node_group());
    EXPECT_EQ(growth.nodes_for_pods(), for_pods[static_cast<int32_t>(group)]);
    EXPECT_GT(growth.nodes_for_pods() + growth.nodes_for_slack(), 0);
    EXPECT_LE(Grown(group), cluster_.groups()[group].max_nodes);
    EXPECT_EQ(cluster_.groups()[group].backs_off, 0);
  }
  if (NewNodes() > 0) {
    int64_t all = 0;
    for (size_t group = 0; group < cluster_.groups().size(); ++group) all += Grown(group);
    if (limits_.max_new_nodes > 0) {
      EXPECT_LE(NewNodes(), limits_.max_new_nodes);
    }
    if (limits_.max_nodes_total > 0) {
      EXPECT_LE(all, limits_.max_nodes_total);
    }
  }
  EXPECT_TRUE(response_.has_scale_down()) << "drains are planned in every loop";
  EXPECT_EQ(response_.no_scale_down(), response_.growth().empty() ? "" : "groups grow");
}

// --- drains ----------------------------------------------------------------------------------------------

// D9, D10: nodes that go are known and not going yet.
void AnswerChecker::CheckRemovals() {
  std::set<int32_t> once;
  for (const v1::NodeRemoval& removal : response_.scale_down().remove()) {
    const SimulatedNode& node = cluster_.nodes().at(removal.slot());
    EXPECT_TRUE(once.insert(removal.slot()).second);
    EXPECT_EQ(removal.node(), node.name);
    EXPECT_EQ(removal.uid(), SimulatedCluster::Uid(node.number));
    EXPECT_EQ(removal.provider_id(), SimulatedCluster::ProviderId(node));
    EXPECT_LT(node.leaves, 0);
    EXPECT_TRUE(!removal.start() || response_.growth().empty()) << "nothing starts to go while groups grow";
  }
}

// D4, D12: all pods fit elsewhere, beside those that are expected there.
void AnswerChecker::CheckMoves() {
  std::set<int32_t> goes;
  for (const v1::NodeRemoval& removal : response_.scale_down().remove()) goes.insert(removal.slot());
  for (const v1::NodeRemoval& removal : response_.scale_down().remove()) {
    const SimulatedNode& node = cluster_.nodes().at(removal.slot());
    std::vector<bool> moved(node.pods.size(), false);
    for (const v1::PodMove& move : removal.moves()) {
      EXPECT_FALSE(goes.contains(move.to_slot()));
      if (move.placeholder()) continue;
      const size_t pod = static_cast<size_t>(move.pod());
      EXPECT_FALSE(moved.at(pod));
      moved[pod] = true;
      const size_t workload = node.pods[pod].workload;
      const bool has_budget = cluster_.rules(workload).max_unavailable.has_value();
      EXPECT_EQ(move.budget(), has_budget ? absl::StrCat("app-", workload) : "");
      Room* const room = RoomAt(move.to_slot());
      if (room != nullptr) ExpectRoom(workload, 1, move.to(), room);
    }
    EXPECT_THAT(moved, ::testing::Each(true));
  }
}

// D2.
void AnswerChecker::CheckMinimum() const {
  std::map<size_t, int64_t> started;
  for (const v1::NodeRemoval& removal : response_.scale_down().remove()) {
    if (removal.start()) ++started[cluster_.nodes().at(removal.slot()).group];
  }
  for (const auto& [group, count] : started) {
    int64_t stay = 0;
    for (const auto& [slot, node] : cluster_.nodes()) stay += node.group == group && node.leaves < 0;
    EXPECT_GE(stay - count, cluster_.groups()[group].min_nodes);
  }
}

// D1: pods that wait and pods of nodes that leave have taken theirs.
void AnswerChecker::CheckBudgets() const {
  for (size_t workload = 0; workload < cluster_.workloads(); ++workload) {
    if (!cluster_.rules(workload).max_unavailable.has_value()) continue;
    int64_t left = std::min(cluster_.Running(workload),
                            *cluster_.rules(workload).max_unavailable - cluster_.waiting(workload));
    for (const auto& [slot, node] : cluster_.nodes()) {
      if (node.leaves >= 0) left -= SimulatedCluster::PodsOf(node, workload);
    }
    int64_t taken = 0;
    for (const v1::NodeRemoval& removal : response_.scale_down().remove()) {
      const int64_t pods = SimulatedCluster::PodsOf(cluster_.nodes().at(removal.slot()), workload);
      if (removal.risky() && pods > 0) {
        EXPECT_LT(taken, left) << "nothing is left for the first pod of " << removal.node();
      } else {
        taken += pods;
      }
    }
    EXPECT_LE(taken, std::max<int64_t>(0, left)) << "of the budget of app-" << workload;
  }
}

// D6, and D1 of a node that is to be drained alone.
void AnswerChecker::CheckParallelism() const {
  int64_t nodes = Leaving();
  int64_t drains = 0;
  for (const auto& [slot, node] : cluster_.nodes()) drains += node.leaves >= 0 && !node.pods.empty();
  int64_t started = 0;
  bool risky = false;
  for (const v1::NodeRemoval& removal : response_.scale_down().remove()) {
    if (!removal.start()) continue;
    ++started;
    risky = risky || removal.risky();
    drains += !cluster_.nodes().at(removal.slot()).pods.empty();
  }
  if (started == 0) return;
  EXPECT_LE(nodes + started, limits_.nodes_at_once);
  EXPECT_LE(drains, limits_.drains_at_once);
  EXPECT_TRUE(!risky || drains == 1) << "a node that is to be drained alone is one of " << drains;
}

// --- slack and texts -------------------------------------------------------------------------------------

// E1: placeholders lie in room that neither pods nor those that are expected take.
void AnswerChecker::CheckSlack() const {
  std::map<std::string, SimulatedSize> taken;
  const auto take = [&](const std::string& node, const SimulatedSize& size, int64_t count) {
    taken[node].milli_cpu += count * size.milli_cpu;
    taken[node].mib += count * size.mib;
  };
  for (const v1::Placeholder& placeholder : response_.state().slack().placeholders()) {
    if (placeholder.node().empty()) continue;
    // Whole MiB come out of it rounded down, never up.
    take(placeholder.node(), {placeholder.milli_cpu(), placeholder.memory_bytes() >> 20}, 1);
  }
  for (const v1::ExistingPlacement& placement : response_.existing()) {
    take(cluster_.nodes().at(placement.slot()).name, cluster_.pod(WorkloadOf(placement.pods())),
         placement.pods().count());
  }
  for (const auto& [slot, node] : cluster_.nodes()) {
    if (!taken.contains(node.name)) continue;
    EXPECT_LE(taken[node.name].milli_cpu, node.free.milli_cpu) << node.name;
    EXPECT_LE(taken[node.name].mib, node.free.mib) << node.name;
  }
}

// I2: what labels of metrics are made of holds no name.
void AnswerChecker::CheckTexts() const {
  std::set<std::string> texts = {response_.no_scale_down(), response_.scale_down().brake(),
                                 response_.scale_down().status(), response_.scale_down().limit()};
  for (const v1::NodeRemoval& removal : response_.scale_down().remove()) texts.insert(removal.waits());
  for (const v1::NodeKeep& keep : response_.scale_down().keep()) {
    texts.insert(keep.reason());
    texts.insert(keep.pod_reason());
  }
  for (const std::string& text : texts) {
    EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); }))
        << text;
  }
}

}  // namespace loadline
