// The properties of every group: checked on random ones by what the numbers mean, not by how they are worked
// out.
#include <gtest/gtest.h>

#include <random>

#include "core/size/size_group.h"
#include "test/core/size/naive_usage.h"
#include "test/core/size/pass_time.h"
#include "test/testing/group_simulation.h"

namespace loadline {
namespace {

constexpr int kGroups = 12'000;

class RandomGroups {
 public:
  explicit RandomGroups(uint64_t seed) : random_(seed) {}

  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  // Equal nodes, thresholds in order, and no bound that matters.
  GroupSimulation Next(SizeMode mode, int64_t untainted) {
    GroupSimulation group;
    SizeOptions& options = group.options;
    options.mode = mode;
    options.max_nodes = options.cloud_max = kMostNodes;
    options.scale_up_percent = static_cast<int32_t>(Pick(3, 120));
    options.taint_upper_percent = static_cast<int32_t>(Pick(2, options.scale_up_percent - 1));
    options.taint_lower_percent = static_cast<int32_t>(Pick(1, options.taint_upper_percent - 1));
    options.fast_rate = Pick(1, 6);
    options.slow_rate = Pick(0, options.fast_rate);
    options.grace = {kMinute, 10 * kMinute};
    options.cool_down_ms = kMinute;
    group.node_size = {Pick(1, 64) * 250, Pick(1, 64) << 28};
    group.AddNodes(untainted, NodeClass::kUntainted, kPassTime - 60 * kMinute);
    group.facts.pods = Pick(1, 50);
    return group;
  }

 private:
  std::mt19937_64 random_;
};

// Returns whether so many of the group's nodes are too few.
bool TooFew(const GroupSimulation& group, int64_t nodes) {
  return ExceedsPercent(group.facts.requests, group.node_size, nodes, group.options.scale_up_percent);
}

// Growth brings the group to its threshold. By default one node less would not; compat may ask for one more,
// also where none is needed.
TEST(SizePropertiesTest, GrowthIsJustEnough) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    RandomGroups random(11);
    int grew = 0, from_zero = 0, one_more = 0;
    for (int i = 0; i < kGroups; ++i) {
      const int64_t untainted = random.Pick(0, 3) == 0 ? 0 : random.Pick(1, 40);
      GroupSimulation group = random.Next(mode, untainted);
      group.facts.requests = {random.Pick(1, 300) * random.Pick(1, 4000),
                              random.Pick(1, 300) * random.Pick(1, int64_t{1} << 32)};
      if (untainted == 0) group.state.cached_node = group.node_size;
      const SizeDecision decision = group.Pass(kPassTime);
      const bool needed = untainted == 0 || TooFew(group, untainted);
      ASSERT_TRUE(decision.delta > 0 || !needed);
      if (decision.delta <= 0) continue;
      ++(untainted == 0 ? from_zero : grew);
      EXPECT_EQ(decision.ask_cloud, decision.delta);
      ASSERT_FALSE(TooFew(group, untainted + decision.delta));
      if (TooFew(group, untainted + decision.delta - 1)) continue;
      ASSERT_EQ(mode, SizeMode::kCompat);
      ASSERT_TRUE(decision.delta == 1 || TooFew(group, untainted + decision.delta - 2));
      ++one_more;
    }
    EXPECT_GT(grew, 1000);
    EXPECT_GT(from_zero, 1000);
    EXPECT_LT(one_more, mode == SizeMode::kDefault ? 1 : grew / 10);
  }
}

// Requests are exactly a percentage of the capacity, in the dimension that decides: 100 nodes of 1 cpu have
// so many cpu of one percent each.
TEST(SizePropertiesTest, ExactlyAtAThreshold) {
  RandomGroups random(12);
  int slowly = 0;
  for (int i = 0; i < kGroups; ++i) {
    const int64_t untainted = 100 * random.Pick(1, 3);
    GroupSimulation group = random.Next(SizeMode::kDefault, untainted);
    const CpuMemory percent{group.node_size.cpu * untainted / 100, group.node_size.memory * untainted / 100};
    const bool by_cpu = random.Pick(0, 1) == 0;
    const auto at = [&](int32_t threshold) {
      group.facts.requests = Times(percent, threshold);
      (by_cpu ? group.facts.requests.memory : group.facts.requests.cpu) /= 2;
      return SizeGroup(group.options, group.facts, {}, kPassTime);
    };
    for (const int32_t threshold : {group.options.scale_up_percent, group.options.taint_upper_percent}) {
      const SizeDecision decision = at(threshold);
      ASSERT_EQ(decision.delta, 0);
      ASSERT_EQ(decision.reason, SizeReason::kWithinThresholds);
      ASSERT_TRUE(decision.taint.empty());
    }
    const SizeDecision decision = at(group.options.taint_lower_percent);
    ASSERT_EQ(decision.wanted, -group.options.slow_rate);
    ASSERT_NE(decision.action, SizeAction::kRemoveFast);
    slowly += decision.delta == -group.options.slow_rate && decision.delta < 0 ? 1 : 0;
  }
  EXPECT_GT(slowly, kGroups / 2);
}

// A default group below its minimum reaches it in one pass, whatever it lacks: untainted nodes or nodes at
// all.
TEST(SizePropertiesTest, BelowTheMinimumItGrowsToTheMinimum) {
  RandomGroups random(13);
  for (int i = 0; i < kGroups; ++i) {
    GroupSimulation group = random.Next(SizeMode::kDefault, random.Pick(0, 4));
    group.AddNodes(random.Pick(0, 3), NodeClass::kTainted, kPassTime - random.Pick(0, 30) * kMinute);
    group.AddNodes(random.Pick(0, 2), NodeClass::kCordoned, kPassTime - 60 * kMinute);
    group.options.min_nodes = group.options.cloud_min =
        group.Count(NodeClass::kUntainted) + random.Pick(1, 5);
    group.facts.pods = random.Pick(0, 3);
    group.facts.requests = {group.facts.pods * random.Pick(0, 500), group.facts.pods << 28};
    const SizeDecision decision = group.Pass(kPassTime);
    ASSERT_EQ(decision.action, SizeAction::kScaleUp) << Name(decision.reason);
    ASSERT_GE(group.Count(NodeClass::kUntainted), group.options.min_nodes);
  }
}

// At constant demand a default group acts until it is at rest and then never again; what it lost to a lower
// threshold it does not win back. Invariant E3.
TEST(SizePropertiesTest, AtRestItStaysAtRest) {
  RandomGroups random(14);
  for (int i = 0; i < 300; ++i) {
    GroupSimulation group = random.Next(SizeMode::kDefault, random.Pick(1, 20));
    group.options.slow_rate = 1;
    group.facts.requests = {random.Pick(1, 30) * random.Pick(1, 1000), random.Pick(1, 30) << 28};
    int rested = 0;
    bool grew = false, shrank = false;
    for (int pass = 0; pass < 1000; ++pass) {
      const SizeDecision decision = group.Pass(kPassTime + pass * kMinute);
      const bool acts = decision.delta != 0 || !decision.remove.empty();
      grew |= decision.delta > 0;
      shrank |= decision.delta < 0;
      // Tainted nodes are deleted a while after the last one was tainted.
      ASSERT_FALSE(acts && rested > 20) << "pass " << pass;
      rested = acts ? 0 : rested + 1;
    }
    EXPECT_GT(rested, 900);
    EXPECT_FALSE(grew && shrank);
  }
}

}  // namespace
}  // namespace loadline
