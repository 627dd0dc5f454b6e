// Nodes on their way that the provider has not begun to make, and a cheaper mix.
#include "core/grow/swap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A small node of 1,000m costs 1.0 and a large one of 4,000m 2.0. Two small ones were asked for, for two
// pods.
class SwapTest : public LoopTest {
 protected:
  SwapTest() {
    AddGroup("large", 4000, 2.0, /*target=*/0);
    AddGroup("small", 1000, 1.0, /*target=*/2);
    problem_.groups[GroupIndex{1}].not_begun = 2;
    Pending(Replica("first", 1000), 2);
  }
};

// Two pods more: another two small nodes, or a large one beside the small ones, come to 4.0; a large one
// alone takes all four for 2.0.
TEST_F(SwapTest, ACheaperMixTakesThePlaceOfWhatIsNotBegun) {
  Pending(Replica("second", 1000), 2);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, ElementsAre(TakeBack{GroupIndex{1}, 2}));
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(0, 0));
  EXPECT_THAT(plan.expected, IsEmpty());
}

// Five pods: a large node for four, and of the small ones one is still needed.
TEST_F(SwapTest, WhatThePlanWouldAskForAgainIsNotGivenUp) {
  Pending(Replica("second", 1000), 3);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, ElementsAre(TakeBack{GroupIndex{1}, 1}));
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
}

// All groups together may grow by one node: the large one replaces a small one on its way.
TEST_F(SwapTest, WhatIsGivenUpCountsForNothingAgainstWhatAllGroupsMayGrowBy) {
  Pending(Replica("second", 1000), 3);
  problem_.growth.max_new_nodes = 1;
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, ElementsAre(TakeBack{GroupIndex{1}, 1}));
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(0, 0));
}

TEST_F(SwapTest, WhatIsBegunStays) {
  problem_.groups[GroupIndex{1}].not_begun = 0;
  Pending(Replica("second", 1000), 2);
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, IsEmpty());
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
  problem_.groups[GroupIndex{1}].not_begun = 1;
  plan = Plan();
  EXPECT_THAT(plan.take_back, ElementsAre(TakeBack{GroupIndex{1}, 1}))
      << "three pods on the large one, one on the other";
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
}

// Seven pods: two have the small nodes, and for five a large and a small one cost 3.0. Without the small ones
// it would be two large ones for 4.0, which is less than what all of that costs, but the small ones come
// anyway.
TEST_F(SwapTest, WhatIsBegunIsNotPlannedWithout) {
  problem_.groups[GroupIndex{1}].not_begun = 0;
  Pending(Replica("second", 1000), 5);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, IsEmpty());
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}, LoopGrowth{GroupIndex{1}, 1}));
}

// Three small nodes are on their way, two of them not begun; a move had ordered one of the three, and ends.
// One more is given up, not two.
TEST_F(SwapTest, WhatAMoveTakesBackIsNotGivenUpAgain) {
  problem_.groups[GroupIndex{1}].target = 3;
  problem_.decisions.replace = true;
  problem_.replacement.now_ms = kLoopNow * 1000;
  MoveUnderWay& move = problem_.replacement.moves.emplace_back();
  move.at_ms = problem_.replacement.now_ms - problem_.replacement.node_wait_ms;
  move.orders = {{"small", 1}};
  move.came = {0};
  Pending(Replica("second", 1000), 2);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, ElementsAre(TakeBack{GroupIndex{1}, 2}));
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
}

// A pod of 900m has a node of 8 CPUs on its way, because eight such pods on it cost less each. For
// another pod a third group grows. With a small node for the first one both would cost 0.995 and not
// 1.28, but the next pod of 900m would have growth ask for a large node again.
TEST_F(SwapTest, ANodeForFurtherPodsIsKept) {
  for (int i = 0; i < 30; ++i) {
    const std::string name = "full-" + std::to_string(i);
    nodes_.push_back({NodeOf(name, 8'000), {Replica(name, 8'000)}, std::nullopt});
  }
  problem_.groups.clear();
  templates_.clear();
  AddGroup("large", 8'000, 0.38, /*target=*/1);
  AddGroup("small", 1'000, 0.095, /*target=*/0);
  AddGroup("other", 16'000, 0.9, /*target=*/0);
  problem_.groups[GroupIndex{0}].not_begun = 1;
  ClearPending();
  Pending(Replica("first", 900), 1);
  Pending(Replica("second", 15'500), 1);
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, IsEmpty());
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{2}, 1}));
  problem_.looks_ahead = false;
  EXPECT_THAT(Plan().take_back, ElementsAre(TakeBack{GroupIndex{0}, 1}));
  // Eight more of these pods fill the first large node, and the ninth has another one.
  problem_.looks_ahead = true;
  problem_.groups[GroupIndex{0}].target = problem_.groups[GroupIndex{0}].not_begun = 2;
  Pending(Replica("first", 900), 8);
  plan = Plan();
  EXPECT_THAT(plan.take_back, IsEmpty());
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{2}, 1}));
}

TEST_F(SwapTest, WithoutNewPodsNothingIsSwapped) {
  EXPECT_THAT(Plan().take_back, IsEmpty());
  Pending(Replica("second", 1000), 2);
  problem_.groups[GroupIndex{0}].target = 1;  // the last plan, of which the small nodes were not taken back
  EXPECT_THAT(Plan().take_back, IsEmpty()) << "all have a place";
}

TEST_F(SwapTest, ASmallSavingIsNotWorthIt) {
  Pending(Replica("second", 1000), 2);
  // Before: 2 * 1.0 + 2 * 1.0. Then 3.81: 4.75 percent less; 3.79: 5.25 percent.
  problem_.groups[GroupIndex{0}].usd_per_hour = 3.81;
  EXPECT_THAT(Plan().take_back, IsEmpty());
  problem_.groups[GroupIndex{0}].usd_per_hour = 3.79;
  EXPECT_THAT(Plan().take_back, ElementsAre(TakeBack{GroupIndex{1}, 2}));
}

TEST_F(SwapTest, LimitsHoldEvenIfNothingIsTakenBack) {
  Pending(Replica("second", 1000), 2);
  problem_.maxima = {{.milli_cpu = 5'999}};  // the large one beside both small ones: 6,000
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.take_back, IsEmpty());
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{1}, 2}));
  problem_.maxima = {{.milli_cpu = 6'000}};
  EXPECT_THAT(Plan().take_back, ElementsAre(TakeBack{GroupIndex{1}, 2}));
}

TEST_F(SwapTest, GroupsThatMustNotShrinkOrMayNotGrowKeepTheirNodes) {
  Pending(Replica("second", 1000), 2);
  problem_.groups[GroupIndex{1}].min_nodes = 2;
  EXPECT_THAT(Plan().take_back, IsEmpty());
  problem_.groups[GroupIndex{1}].min_nodes = 0;
  problem_.groups[GroupIndex{1}].blocked_reason = "back-off";
  EXPECT_THAT(Plan().take_back, IsEmpty());
  problem_.groups[GroupIndex{1}].blocked_reason.clear();
  problem_.groups[GroupIndex{0}].usd_per_hour = 0.5;
  problem_.batch = {.idle_ms = 1'000, .max_ms = 10'000, .ages = {{500, 500}, {500, 500}}};
  EXPECT_THAT(Plan().take_back, IsEmpty()) << "growth waits for further pods";
}

// Random pods come in waves, and the cloud begins nodes at random. Of what was asked for and not begun, a
// plan may give up some: what is asked for never costs more by that, no pod loses its place, and without new
// pods the same question never swaps.
TEST(SwapPropertyTest, NeverCostsMoreNorSwapsBackAndForthNorLeavesAPodOver) {
  int swaps = 0;
  for (int seed = 0; seed < 150; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    };
    class World : public LoopTest {
     public:
      using LoopTest::AddGroup;
      using LoopTest::Pending;
      using LoopTest::Plan;
      using LoopTest::problem_;
      void TestBody() override {}
    } world;
    using NodeCounts = StrongVector<GroupIndex, int64_t>;
    NodeCounts begun;
    const int64_t groups = draw(2, 4);
    for (int64_t i = 0; i < groups; ++i) {
      const int64_t cores = int64_t{1} << draw(0, 3);
      world.AddGroup("g" + std::to_string(i), cores * 1000,
                     static_cast<double>(cores * draw(70, 130)) / 100.0, 0,
                     /*max=*/30);
      begun.push_back(0);
    }
    const auto cost = [&](const NodeCounts& nodes) {
      double usd = 0;
      for (const GroupIndex g : nodes.indices()) {
        usd += *world.problem_.groups[g].usd_per_hour * static_cast<double>(nodes[g]);
      }
      return usd;
    };
    const auto targets = [&](const LoopPlan* plan) {
      NodeCounts nodes;
      for (const NodeGroup& group : world.problem_.groups) nodes.push_back(group.target);
      if (plan == nullptr) return nodes;
      for (const LoopGrowth& growth : plan->growth) nodes[growth.group] += growth.nodes();
      for (const TakeBack& back : plan->take_back) nodes[back.group] -= back.nodes;
      return nodes;
    };
    for (int wave = 0; wave < 5; ++wave) {
      if (wave != 3) {
        world.Pending(Replica("w" + std::to_string(wave), 100 * draw(2, 30)), draw(1, 6));
      }
      for (int again = 0; again < 3; ++again) {
        for (const GroupIndex g : begun.indices()) world.problem_.groups[g].not_begun = 0;
        const LoopPlan without = world.Plan();
        for (const GroupIndex g : begun.indices()) {
          NodeGroup& group = world.problem_.groups[g];
          begun[g] = std::min(begun[g], group.target);
          group.not_begun = group.target - begun[g];
        }
        const LoopPlan plan = world.Plan();
        EXPECT_LE(cost(targets(&plan)), cost(targets(&without)) + 1e-9)
            << "seed " << seed << " wave " << wave;
        for (size_t pods = 0; pods < plan.scale_up.unplaced.size(); ++pods) {
          EXPECT_LE(plan.scale_up.unplaced[pods], without.scale_up.unplaced[pods]) << "seed " << seed;
        }
        if (without.growth.empty()) {
          EXPECT_THAT(plan.take_back, IsEmpty()) << "seed " << seed;
        }
        if (!plan.take_back.empty()) {
          ++swaps;
          EXPECT_LE(cost(targets(&plan)), cost(targets(&without)) - kLeastSavedUsd);
        }
        NodeCounts taken_back(begun.size());
        for (const TakeBack& back : plan.take_back) taken_back[back.group] += back.nodes;
        for (const GroupIndex g : taken_back.indices()) {
          EXPECT_LE(taken_back[g], world.problem_.groups[g].not_begun) << "seed " << seed;
        }
        const NodeCounts next = targets(&plan);
        for (const GroupIndex g : next.indices()) world.problem_.groups[g].target = next[g];
      }
      for (const GroupIndex g : begun.indices()) {
        begun[g] = draw(begun[g], world.problem_.groups[g].target);
      }
    }
  }
  EXPECT_GT(swaps, 20) << "that is too few to show anything";
}

}  // namespace
}  // namespace loadline
