#include "core/observe/hand_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kHandOverNowS = 1'700'000'000;
constexpr int64_t kPatienceMs = 300'000;

struct MarkCase {
  std::string name;
  int64_t deleting_ago_s = 0;  // 0: the cloud was not asked
  bool acknowledged_by_mark = false;
  bool acknowledged_before = false;
  bool listed = true;
  MachineState state = MachineState::kRunning;
  bool under_way = false;
  // The state of the node: being removed, abandoned, stuck.
  bool going = false;
  bool abandoned = false;
  bool stuck = false;
};

class JudgeMarksTest : public ::testing::TestWithParam<MarkCase> {};

TEST_P(JudgeMarksTest, TellsWhatBecomesOfANode) {
  const MarkCase& c = GetParam();
  FitCluster cluster;
  FitNode node{.name = "n"};
  node.traits.uid = "uid-n";
  cluster.Add(node);
  LoopObservation seen;
  seen.marks.push_back({.slot = Slot{0},
                        .deleting_s = c.deleting_ago_s > 0 ? kHandOverNowS - c.deleting_ago_s : 0,
                        .acknowledged = c.acknowledged_by_mark});
  if (c.under_way) seen.under_way.push_back({Slot{0}, "g"});
  absl::flat_hash_map<Slot, MachineState> listed;
  if (c.listed) listed[Slot{0}] = c.state;
  LoopMemory memory;
  if (c.acknowledged_before) memory.acknowledged.insert(FleetKey("uid-n"));
  const MarkedNodes nodes =
      JudgeMarks(cluster.state(), seen, listed, kPatienceMs, kHandOverNowS * 1000, memory);
  EXPECT_EQ(!nodes.going.empty(), c.going);
  EXPECT_EQ(!nodes.abandoned.empty(), c.abandoned);
  EXPECT_EQ(!nodes.stuck.empty(), c.stuck);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, JudgeMarksTest,
    ::testing::ValuesIn(std::vector<MarkCase>{
        {.name = "NobodyWasAsked", .abandoned = true},
        {.name = "ItGoesOnHere", .under_way = true},
        {.name = "AskedAMomentAgo", .deleting_ago_s = 299, .going = true},
        {.name = "AskedLongAgo", .deleting_ago_s = 300, .abandoned = true},
        {.name = "AskedLongAgoAndDeleting",
         .deleting_ago_s = 300,
         .state = MachineState::kDeleting,
         .going = true},
        {.name = "DeletedBySomebodyElse", .state = MachineState::kDeleting, .going = true},
        {.name = "AskedLongAgoAndGone", .deleting_ago_s = 300, .listed = false, .going = true},
        {.name = "Acknowledged", .deleting_ago_s = 10, .acknowledged_by_mark = true, .going = true},
        {.name = "AcknowledgedLongAgo",
         .deleting_ago_s = 300,
         .acknowledged_by_mark = true,
         .going = true,
         .stuck = true},
        {.name = "AcknowledgedAndTheWatchLags", .acknowledged_before = true, .going = true},
        {.name = "StuckAlthoughItGoesOnHere",
         .deleting_ago_s = 300,
         .acknowledged_before = true,
         .under_way = true,
         .stuck = true},
    }),
    [](const auto& info) { return info.param.name; });

// The mark may not be seen yet; another node of that name is another node.
TEST(HandOverTest, AcknowledgedNodesWithoutAMarkGo) {
  FitCluster cluster;
  for (const std::string name : {"a", "b"}) {
    FitNode node{.name = name};
    node.traits.uid = "uid-" + name;
    cluster.Add(node);
  }
  LoopMemory memory;
  NoteAcknowledged(cluster.state(), std::vector<std::string>{"uid-b", "uid-of-one-that-is-gone"}, &memory);
  EXPECT_THAT(memory.acknowledged, ElementsAre(FleetKey("uid-b")));
  const MarkedNodes nodes = JudgeMarks(cluster.state(), {}, {}, kPatienceMs, kHandOverNowS * 1000, memory);
  EXPECT_THAT(nodes.going, ElementsAre(Slot{1}));
  cluster.Remove(Slot{1});
  NoteAcknowledged(cluster.state(), {}, &memory);
  EXPECT_THAT(memory.acknowledged, IsEmpty());
}

class GiveBackTest : public ::testing::Test {
 protected:
  GiveBackTest() {
    for (const std::string name : {"starts", "waits", "stays"}) {
      FitNode node{.name = name};
      node.traits.uid = "uid-" + name;
      marks_.push_back({.slot = Slot{static_cast<int32_t>(marks_.size())}});
      cluster_.Add(node);
    }
    plan_.remove.resize(2);
    plan_.remove[0].slot = Slot{0};
    plan_.remove[0].start = true;
    plan_.remove[1].slot = Slot{1};
  }

  std::vector<Slot> At(int64_t seconds, const DrainPlan* plan) {
    return GiveBack(cluster_.state(), marks_, plan, (kHandOverNowS + seconds) * 1000, &memory_);
  }

  FitCluster cluster_;
  std::vector<NodeMark> marks_;
  DrainPlan plan_;
  LoopMemory memory_;
};

TEST_F(GiveBackTest, WaitsAMinuteForThePlanToComeToANode) {
  EXPECT_THAT(At(0, &plan_), ElementsAre(Slot{2}));
  EXPECT_THAT(At(59, &plan_), ElementsAre(Slot{2}));
  EXPECT_THAT(At(60, &plan_), ElementsAre(Slot{1}, Slot{2}));
  EXPECT_THAT(memory_.abandoned_since_ms, IsEmpty());
}

// It is given back at once by a plan that does not remove it, and the time begins anew after one that starts
// it.
TEST_F(GiveBackTest, TheTimeCountsWithoutABreak) {
  EXPECT_THAT(At(0, &plan_), ElementsAre(Slot{2}));
  plan_.remove[1].start = true;
  EXPECT_THAT(At(30, &plan_), ElementsAre(Slot{2}));
  plan_.remove[1].start = false;
  EXPECT_THAT(At(70, &plan_), ElementsAre(Slot{2}));
  plan_.remove.pop_back();
  EXPECT_THAT(At(80, &plan_), ElementsAre(Slot{1}, Slot{2}));
}

TEST_F(GiveBackTest, WithoutAPlanAllAreGivenBack) {
  EXPECT_THAT(At(0, nullptr), ElementsAre(Slot{0}, Slot{1}, Slot{2}));
}

}  // namespace
}  // namespace loadline
