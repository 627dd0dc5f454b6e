// Growth waits while pods still come, and not for ever.
#include "core/grow/growth_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct BatchCase {
  std::string name;
  GrowthBatch batch;
  std::vector<size_t> need_nodes;
  std::vector<size_t> on_the_way;
  std::optional<int64_t> wait_ms;
};

class BatchWaitTest : public ::testing::TestWithParam<BatchCase> {};

TEST_P(BatchWaitTest, SaysForHowLong) {
  const BatchCase& c = GetParam();
  EXPECT_EQ(BatchWaitMs(c.batch, c.need_nodes, c.on_the_way), c.wait_ms);
}

GrowthBatch BatchOf(std::optional<int64_t> since_growth_ms, std::vector<PodAges> ages) {
  return {.idle_ms = 1'000, .max_ms = 10'000, .since_growth_ms = since_growth_ms, .ages = std::move(ages)};
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BatchWaitTest,
    ::testing::ValuesIn(std::vector<BatchCase>{
        {"NobodyNeedsANode", BatchOf({}, {{0, 0}}), {}, {}, std::nullopt},
        {"OneThatJustCame", BatchOf({}, {{0, 0}}), {0}, {}, 1'000},
        {"OneMillisecondBeforeItIsIdle", BatchOf({}, {{999, 999}}), {0}, {}, 1},
        {"Idle", BatchOf({}, {{1'000, 1'000}}), {0}, {}, std::nullopt},
        {"TheLastOneCounts", BatchOf({}, {{5'000, 5'000}, {4'000, 300}}), {0, 1}, {}, 700},
        {"OneThatNeedsNoNodeDoesNot", BatchOf({}, {{5'000, 5'000}, {4'000, 300}}), {0}, {}, std::nullopt},
        {"OneThatTakesANodeOnItsWayDoes", BatchOf({}, {{5'000, 5'000}, {4'000, 300}}), {0}, {1}, 700},
        {"AndBeginsNone", BatchOf({}, {{5'000, 900}, {20'000, 300}}), {0}, {1}, 700},
        {"NorWaitsForOthersAlone", BatchOf({}, {{0, 0}}), {}, {0}, std::nullopt},
        {"NoLongerThanTheMaximum", BatchOf({}, {{9'800, 100}}), {0}, {}, 200},
        {"AtTheMaximum", BatchOf({}, {{10'000, 0}}), {0}, {}, std::nullopt},
        {"TheFirstOfAllBeginsIt", BatchOf({}, {{500, 500}, {9'900, 9'900}}), {0, 1}, {}, 100},
        {"OneThatCameLongAgoDoesAsWell", BatchOf({}, {{0, 0}, {}}), {0, 1}, {}, std::nullopt},
        {"SoDoesOneThatNobodyTells", BatchOf({}, {{0, 0}}), {0, 1}, {}, std::nullopt},
        {"GrowthEndsTheLastOne", BatchOf(3'000, {{0, 0}, {}}), {0, 1}, {}, 1'000},
        {"AndBeginsTheNextOne", BatchOf(9'700, {{60'000, 0}}), {0}, {}, 300},
        {"LongAfterGrowth", BatchOf(10'000, {{60'000, 0}}), {0}, {}, std::nullopt},
        {"GrowthMakesNoneWaitThatCameBefore", BatchOf(100, {{60'000, 60'000}}), {0}, {}, std::nullopt},
        {"Off", {.idle_ms = 0, .max_ms = 10'000, .ages = {{0, 0}}}, {0}, {}, std::nullopt},
        {"OffWithoutAMaximum", {.idle_ms = 1'000, .max_ms = 0, .ages = {{0, 0}}}, {0}, {}, std::nullopt},
    }),
    [](const auto& info) { return info.param.name; });

class GrowthBatchTest : public LoopTest {
 protected:
  GrowthBatchTest() { problem_.batch = BatchOf({}, {{2'000, 100}}); }
};

TEST_F(GrowthBatchTest, NothingGrowsForPodsAndNothingGoesWhileTheyCome) {
  problem_.decisions = {.scale_up = true, .slack = true, .scale_down = true};
  AddGroup("g", 1000, 1, /*target=*/2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 900)}}, {NodeOf("b", 1000), {}}};
  Pending(Replica("w", 1000), 3);
  LoopPlan plan = Plan();
  EXPECT_EQ(plan.batch_wait_ms, 900);
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_FALSE(plan.scale_up.nodes.empty()) << "it says what would grow";
  EXPECT_EQ(plan.no_scale_down, NoScaleDown::kGrowing);
  EXPECT_THAT(Removed(plan), IsEmpty());

  problem_.batch.ages = {{3'000, 1'100}};
  slack_ = {};
  plan = Plan();
  EXPECT_EQ(plan.batch_wait_ms, std::nullopt);
  ASSERT_EQ(plan.growth.size(), 1u);
  EXPECT_EQ(plan.growth[0].for_pods, 2) << "one pod takes b";
}

// The pod that came last fits on a. The other one needs a new node at once.
TEST_F(GrowthBatchTest, PodsThatFitOnNodesThatAreThereHoldNobodyUp) {
  AddGroup("g", 2000, 1, /*target=*/1);
  nodes_ = {{NodeOf("a", 1000), {}}};
  problem_.batch.ages = {{100, 100}, {5'000, 5'000}};
  Pending(Replica("small", 1000), 1);
  FitPod large = Replica("large", 2000);
  large.traits.owner->uid = "uid-large";
  Pending(large, 1);
  LoopPlan plan = Plan();
  EXPECT_EQ(plan.batch_wait_ms, std::nullopt);
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));

  problem_.batch.ages = {{5'000, 5'000}, {100, 100}};
  plan = Plan();
  EXPECT_EQ(plan.batch_wait_ms, 900);
  EXPECT_THAT(plan.growth, IsEmpty());
}

TEST_F(GrowthBatchTest, ReplacementsOfPodsOfNodesBeingDeletedDoNotWait) {
  AddGroup("g", 1000, 1, 1);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 400)}}};
  nodes_[0].node.taints = {{"ToBeDeletedByClusterAutoscaler", std::to_string(kLoopNow), "NoSchedule"}};
  drain_.deleting = {{.node = "a", .uid = "", .since_s = kLoopNow, .drain = true}};
  problem_.batch.ages.clear();
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 0}));
}

}  // namespace
}  // namespace loadline
