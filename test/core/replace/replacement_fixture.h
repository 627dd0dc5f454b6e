// A world for tests of moves that are carried out over several loops: it does what each plan says.
#ifndef LOADLINE_TEST_CORE_REPLACE_REPLACEMENT_FIXTURE_H_
#define LOADLINE_TEST_CORE_REPLACE_REPLACEMENT_FIXTURE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/observe/loop_memory_bytes.h"
#include "core/replace/replacement.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {

inline constexpr int64_t kMinuteMs = 60'000;

template <typename Amounts>
int64_t Cpu(const Amounts& amounts) {
  for (const auto& [name, value] : amounts) {
    if (name == "cpu") return value;
  }
  return 0;
}

class ReplacementTest : public LoopTest {
 protected:
  ReplacementTest() {
    problem_.decisions = {.scale_up = true, .slack = false, .scale_down = true, .replace = true};
    problem_.replacement.options.least_saving_percent = 0;
    problem_.replacement.prices.usd_per_pod = 0.0005;
    AddGroup("small", 2000, 0.10, 0);
    AddGroup("big", 4000, 0.18, 0);
  }

  void AddNode(const std::string& name, GroupIndex group, int pods, int64_t milli_cpu = 500) {
    TestNode& node = nodes_.emplace_back();
    node.node = NodeOf(name, Cpu(templates_[group].allocatable));
    node.group = group;
    ++problem_.groups[group].target;
    for (int i = 0; i < pods; ++i) node.pods.push_back(Replica(name + "-" + std::to_string(i), milli_cpu));
  }

  // Two full small nodes, 0.20 USD per hour, whose pods one big node takes for 0.18.
  void TwoSmallNodes() {
    AddNode("small-1", GroupIndex{0}, 4);
    AddNode("small-2", GroupIndex{0}, 4);
  }

  // A machine that was asked for is a node.
  void Arrive(const std::string& name, GroupIndex group) {
    AddNode(name, group, 0);
    nodes_.back().node.traits.created_s = now_ms_ / 1000;
    --problem_.groups[group].target;
  }

  // The memory is passed as bytes, as for another process.
  LoopPlan Loop(int64_t later_ms = 10'000) {
    now_ms_ += later_ms;
    problem_.drain.now_s = now_ms_ / 1000;
    problem_.replacement.now_ms = now_ms_;
    absl::StatusOr<LoopMemory> read = DecodeLoopMemory(EncodeLoopMemory(memory_));
    EXPECT_TRUE(read.ok()) << read.status();
    memory_ = *std::move(read);
    problem_.replacement.moves = memory_.moves;
    problem_.replacement.resting_since_ms = memory_.resting_since_ms;
    problem_.replacement.given_up = memory_.given_up;
    problem_.replacement.load = memory_.load;
    LoopPlan plan = Plan();
    memory_.moves = plan.replacement.moves;
    memory_.resting_since_ms = plan.replacement.resting_since_ms;
    memory_.given_up = plan.replacement.given_up;
    memory_.load = plan.replacement.load;
    for (const LoopGrowth& growth : plan.growth) problem_.groups[growth.group].target += growth.nodes();
    return plan;
  }

  std::vector<std::string> Started(const LoopPlan& plan) const {
    std::vector<std::string> started;
    for (const DrainRemoval& removal : plan.scale_down.remove) {
      if (removal.start) started.push_back(nodes_[IndexOf(removal.slot)].node.name);
    }
    return started;
  }

  // Nodes that start to go are gone, and their pods are where the plan says.
  void Drain(const LoopPlan& plan) {
    std::vector<size_t> gone;
    for (const DrainRemoval& removal : plan.scale_down.remove) {
      if (!removal.start) continue;
      TestNode& node = nodes_[IndexOf(removal.slot)];
      for (const DrainMove& move : removal.moves())
        nodes_[IndexOf(move.to)].pods.push_back(node.pods[move.pod.position()]);
      EXPECT_EQ(removal.moves().size(), node.pods.size()) << node.node.name;
      --problem_.groups[*node.group].target;
      gone.push_back(IndexOf(removal.slot));
    }
    std::sort(gone.rbegin(), gone.rend());
    for (const size_t slot : gone) nodes_.erase(nodes_.begin() + static_cast<int64_t>(slot));
  }

  // Returns the cost of the targets of all groups, USD per hour.
  double Cost() const {
    double usd = 0;
    for (const NodeGroup& group : problem_.groups)
      usd += *group.usd_per_hour * static_cast<double>(group.target);
    return usd;
  }

  int64_t now_ms_ = kLoopNow * 1000;
  LoopMemory memory_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_REPLACE_REPLACEMENT_FIXTURE_H_
