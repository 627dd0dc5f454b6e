#include "core/removal/step_removal.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A node that was tainted at 0, with a client of the API server that carries out its orders.
class StepRemovalTest : public ::testing::Test {
 protected:
  static RemovalPod Pod(std::string uid) {
    RemovalPod pod;
    pod.name = "default/" + uid;
    pod.uid = std::move(uid);
    return pod;
  }

  // The first look, at 5 s.
  RemovalOrders LookAgain() {
    const RemovalOrders first = StepRemoval(rules_, {}, 0, &removal_);
    EXPECT_EQ(first.due_ms, 5'000);
    EXPECT_TRUE(first.look_at_node && first.look_at_pods);
    now_ms_ = first.due_ms;
    return Step(true, true);
  }

  // A step with what is there now. `evictions` are answered by `code`.
  RemovalOrders Step(bool node, bool pods, int32_t code = 0) {
    RemovalFacts seen;
    seen.siblings = siblings_;
    if (node) seen.node = node_;
    if (pods) seen.pods = pods_;
    for (const std::string& uid : ordered_) {
      seen.evictions.push_back({.uid = uid, .code = code, .cause = cause_, .error = "no"});
    }
    return Take(seen);
  }

  RemovalOrders Take(const RemovalFacts& seen) {
    RemovalOrders orders = StepRemoval(rules_, seen, now_ms_, &removal_);
    ordered_.clear();
    for (const EvictionOrder& order : orders.evictions) ordered_.push_back(order.uid);
    return orders;
  }

  RemovalRules rules_;
  Removal removal_;
  SeenNode node_;
  SeenPods pods_;
  RemovalSiblings siblings_;
  EvictionAnswer::Cause cause_ = EvictionAnswer::Cause::kBudget;
  std::vector<std::string> ordered_;
  int64_t now_ms_ = 0;
};

TEST_F(StepRemovalTest, AnEmptyNodeIsLookedAtTwiceMarkedAndAskedFor) {
  RemovalOrders orders = LookAgain();
  EXPECT_TRUE(orders.look_at_node);  // for annotations that delay it
  orders = Step(true, false);
  EXPECT_TRUE(orders.look_at_pods && !orders.mark);
  orders = Step(false, true);
  EXPECT_TRUE(orders.mark && !orders.ask);
  orders = Take({.marked = MarkOutcome{}});
  EXPECT_TRUE(orders.ask);
  orders = Take({.asked = AskOutcome{}});
  ASSERT_TRUE(orders.end.has_value());
  EXPECT_EQ(orders.end->result, RemovalResult::kDeleted);
  EXPECT_FALSE(orders.end->give_back);
}

// 250 ms after their evictions, then after twice that time, up to once in 5 s: counted by hand.
TEST_F(StepRemovalTest, PodsAreLookedAtSoonAndThenLessOften) {
  pods_.pods = {Pod("p")};
  EXPECT_TRUE(LookAgain().evictions[0].first);
  RemovalOrders orders = Step(false, true, 201);
  std::vector<int64_t> looks;
  while (looks.size() < 8) {
    looks.push_back(orders.due_ms - 5'000);
    now_ms_ = orders.due_ms;
    orders = Step(false, true);
  }
  EXPECT_THAT(looks, ElementsAre(250, 500, 1'000, 2'000, 4'000, 5'000, 10'000, 15'000));
}

TEST_F(StepRemovalTest, APodThatDoesNotEndKeepsTheNodeAfterGraceAndHeadroom) {
  pods_.pods = {Pod("p")};
  LookAgain();
  RemovalOrders orders = Step(false, true, 201);
  while (!orders.end.has_value()) {
    now_ms_ = orders.due_ms;
    orders = Step(false, true);
  }
  EXPECT_EQ(now_ms_, 635'000);
  EXPECT_EQ(orders.end->result, RemovalResult::kFailedToEvict);
  EXPECT_THAT(orders.end->error, HasSubstr("default/p: still there 630 s after its eviction"));
  EXPECT_TRUE(orders.end->give_back);
}

// A refusal is tried again 8 to 12 s later, for two minutes, and never before the node was seen to be ours.
TEST_F(StepRemovalTest, ARefusedEvictionIsTriedAgainUntilItsTimeIsUp) {
  pods_.pods = {Pod("p")};
  RemovalOrders orders = LookAgain();
  int attempts = 0;
  while (!orders.end.has_value()) {
    ASSERT_EQ(ordered_.size(), 1);
    EXPECT_EQ(orders.evictions[0].first, attempts++ == 0);
    orders = Step(false, true, 429);
    EXPECT_THAT(orders.counted, ElementsAre("budget"));
    if (orders.end.has_value()) break;
    EXPECT_TRUE(orders.evictions.empty() && orders.look_at_node);
    const int64_t wait_ms = orders.due_ms - now_ms_;
    EXPECT_TRUE(wait_ms >= 8'000 && wait_ms <= 12'000) << wait_ms;
    EXPECT_THAT(Step(false, true).evictions, IsEmpty()) << "before its time";
    EXPECT_THAT(Step(true, true).evictions, IsEmpty()) << "before its time";
    now_ms_ = orders.due_ms;
    orders = Step(true, true);
  }
  EXPECT_THAT(orders.end->error, HasSubstr("not evicted in time: no"));
  EXPECT_TRUE(attempts >= 10 && attempts <= 15) << attempts;
  EXPECT_GE(now_ms_, 113'000);
}

TEST_F(StepRemovalTest, NobodyIsEvictedFromANodeThatIsNotOursAnyMore) {
  for (const NodeStanding standing : {NodeStanding::kReplaced, NodeStanding::kNotOurs, NodeStanding::kGone}) {
    removal_ = {};
    pods_.pods = {Pod("p")};
    node_.standing = NodeStanding::kOurs;
    LookAgain();
    now_ms_ = Step(false, true, 429).due_ms;
    node_.standing = standing;
    const RemovalOrders orders = Step(true, true);
    EXPECT_THAT(orders.evictions, IsEmpty());
    ASSERT_TRUE(orders.end.has_value());
    EXPECT_EQ(orders.end->give_back, standing != NodeStanding::kGone);
    EXPECT_EQ(orders.end->fails_siblings, standing != NodeStanding::kGone);
  }
}

// 409: another pod has the name. The next list does not show the UID any more.
TEST_F(StepRemovalTest, APodThatWasReplacedByOneOfItsNameIsGone) {
  pods_.pods = {Pod("p")};
  LookAgain();
  pods_.pods = {Pod("another")};
  const RemovalOrders orders = Step(false, true, 409);
  EXPECT_EQ(removal_.stage, RemovalStage::kDelayed);
  EXPECT_THAT(orders.evictions, IsEmpty());
}

// Even where there is no time for another attempt.
TEST_F(StepRemovalTest, ThatAPodIsGoneCountsForMoreThanTheAnswer) {
  rules_.max_pod_eviction_ms = 0;
  pods_.pods = {Pod("p")};
  LookAgain();
  pods_.pods.clear();
  EXPECT_FALSE(Step(false, true, 409).end.has_value());
  EXPECT_EQ(removal_.stage, RemovalStage::kDelayed);
}

// Each attempt takes a look at node and pods, so that the number of looks must not grow with that of pods.
TEST_F(StepRemovalTest, PodsThatAreRefusedTogetherAreTriedAgainTogether) {
  for (int i = 0; i < 50; ++i) pods_.pods.push_back(Pod(std::to_string(i)));
  EXPECT_EQ(LookAgain().evictions.size(), 50);
  now_ms_ = Step(false, true, 429).due_ms;
  EXPECT_EQ(Step(true, true).evictions.size(), 50);
}

// Something else than its time may have brought the step about.
TEST_F(StepRemovalTest, NobodyGivesUpWithoutALook) {
  pods_.pods = {Pod("p")};
  LookAgain();
  Step(false, true, 201);
  now_ms_ = 700'000;
  RemovalOrders orders = Step(false, false);
  EXPECT_TRUE(!orders.end.has_value() && orders.look_at_pods && orders.due_ms == now_ms_);
  pods_.pods.clear();
  Step(false, true);
  EXPECT_EQ(removal_.stage, RemovalStage::kDelayed);
}

TEST_F(StepRemovalTest, APodWithAllTimeLeftIsInTheNextGroup) {
  rules_.priority_groups = {{.priority = 0, .grace_s = 100}, {.priority = 10, .grace_s = 100}};
  RemovalPod ends = Pod("ends");
  ends.priority = 10;
  ends.deleted_s = 0;
  ends.grace_s = 10'000;
  pods_.pods = {Pod("p"), ends};
  LookAgain();
  Step(false, true, 201);
  now_ms_ = 125'000;
  pods_.pods = {ends};
  Step(false, true);
  now_ms_ = 254'999;  // 100 s and 30 s of headroom after that
  EXPECT_FALSE(Step(false, true).end.has_value());
  now_ms_ = 255'000;
  EXPECT_TRUE(Step(false, true).end.has_value());
}

TEST_F(StepRemovalTest, OnlyBudgetsAreOverruledAndOnlyIfThatIsAllowed) {
  const auto ends_with = [&](bool allowed, EvictionAnswer::Cause cause, int32_t deletion) {
    removal_ = {};
    rules_.max_pod_eviction_ms = 0;
    rules_.delete_despite_budgets = allowed;
    cause_ = cause;
    pods_.pods = {Pod("p")};
    LookAgain();
    RemovalOrders orders = Step(false, true, 429);
    if (orders.end.has_value()) return orders.end->error;
    EXPECT_TRUE(orders.look_at_node);
    orders = Step(true, true);
    EXPECT_TRUE(orders.evictions.size() == 1 && orders.evictions[0].despite_budget);
    orders = Step(false, true, deletion);
    EXPECT_EQ(orders.counted[0], deletion == 200 ? "deleted_despite_budget" : "forbidden");
    return orders.end.has_value() ? orders.end->error : std::string("deleted");
  };
  EXPECT_THAT(ends_with(false, EvictionAnswer::Cause::kBudget, 0), HasSubstr("not evicted in time"));
  EXPECT_THAT(ends_with(true, EvictionAnswer::Cause::kOther, 0), HasSubstr("not evicted in time"));
  EXPECT_EQ(ends_with(true, EvictionAnswer::Cause::kBudget, 200), "deleted");
  EXPECT_THAT(ends_with(true, EvictionAnswer::Cause::kBudget, 403),
              HasSubstr("its budgets refuse its eviction, and its deletion failed"));
}

// The pods of the lowest priority go first; the next ones when these are gone, and after a look at the node.
TEST_F(StepRemovalTest, PriorityGroupsGoOneAfterTheOther) {
  rules_.priority_groups = {{.priority = 0, .grace_s = 20}, {.priority = 1000, .grace_s = 10}};
  RemovalPod low = Pod("low");
  low.priority = -5;
  RemovalPod high = Pod("high");
  high.priority = 2000;
  RemovalPod daemon = Pod("daemon");
  daemon.daemon_set = true;
  daemon.priority = 1000;
  pods_.pods = {high, daemon, low};
  EXPECT_EQ(LookAgain().evictions[0].grace_s, 20);
  EXPECT_THAT(ordered_, ElementsAre("low"));
  now_ms_ = Step(false, true, 201).due_ms;
  pods_.pods = {high, daemon};
  EXPECT_THAT(Step(false, true).evictions, IsEmpty());
  EXPECT_EQ(Step(true, true).evictions[0].grace_s, 10);
  EXPECT_THAT(ordered_, ElementsAre("high", "daemon"));
}

TEST_F(StepRemovalTest, ADaemonSetPodThatIsRefusedHoldsNobody) {
  RemovalPod daemon = Pod("daemon");
  daemon.daemon_set = true;
  pods_.pods = {daemon};
  rules_.max_pod_eviction_ms = 0;
  EXPECT_EQ(LookAgain().evictions.size(), 1);
  Step(false, true, 403);
  EXPECT_EQ(removal_.stage, RemovalStage::kDelayed);
}

TEST_F(StepRemovalTest, OthersDelayTheDeletionForSomeTime) {
  LookAgain();
  node_.delays = {"delay-deletion.example/backup"};
  RemovalOrders orders = Step(true, false);
  EXPECT_EQ(orders.due_ms, 10'000);
  now_ms_ = 124'999;
  EXPECT_EQ(Step(true, false).due_ms, 125'000);
  now_ms_ = 125'000;
  orders = Step(true, false);
  EXPECT_THAT(orders.note, HasSubstr("still delayed by delay-deletion.example/backup"));
  EXPECT_EQ(removal_.stage, RemovalStage::kReady);
}

TEST_F(StepRemovalTest, APodThatComesWhileTheNodeWaitsKeepsIt) {
  LookAgain();
  Step(true, false);
  RemovalPod late = Pod("late");
  late.planned = PlannedPod::kNew;
  pods_.pods = {late};
  const RemovalOrders orders = Step(false, true);
  ASSERT_TRUE(orders.end.has_value());
  EXPECT_THAT(orders.end->error, HasSubstr("default/late is on the node that is to be deleted"));
}

TEST_F(StepRemovalTest, NodesThatGoTogetherWaitForEachOtherTwice) {
  siblings_ = {.not_ready = 1, .not_marked = 1};
  LookAgain();
  RemovalOrders orders = Step(true, false);
  EXPECT_EQ(removal_.stage, RemovalStage::kReady);
  EXPECT_FALSE(orders.look_at_pods) << "they may change until the others are ready";
  siblings_.not_ready = 0;
  EXPECT_TRUE(Step(false, false).look_at_pods);
  EXPECT_TRUE(Step(false, true).mark);
  orders = Take({.marked = MarkOutcome{}, .siblings = siblings_});
  EXPECT_FALSE(orders.ask);
  siblings_.not_marked = 0;
  EXPECT_TRUE(Step(false, false).ask);
}

TEST_F(StepRemovalTest, OthersAreGatheredAndThenLookedAt) {
  rules_.batch_interval_ms = 60'000;
  LookAgain();
  EXPECT_EQ(Step(true, false).due_ms, now_ms_) << "until it is known since when";
  siblings_.gathered_since_ms = 1'000;
  EXPECT_EQ(Step(false, false).due_ms, 61'000);
  now_ms_ = 61'000;
  EXPECT_TRUE(Step(false, false).look_at_pods);
  removal_.stage = RemovalStage::kReady;
  siblings_ = {.atomic = true};
  now_ms_ = 5'000;
  EXPECT_TRUE(Step(false, false).look_at_pods);
}

TEST_F(StepRemovalTest, IfOneOfThemStaysAllDoUnlessTheCloudIsAsked) {
  pods_.pods = {Pod("p")};
  LookAgain();
  siblings_.failed = "node a cannot be removed: no";
  RemovalOrders orders = Step(false, true, 201);
  ASSERT_TRUE(orders.end.has_value());
  EXPECT_EQ(orders.end->error, "its group is removed as a whole, and node a cannot be removed: no");
  EXPECT_TRUE(orders.end->give_back);
  removal_ = {.stage = RemovalStage::kAsking};
  orders = Take({.asked = AskOutcome{}, .siblings = siblings_});
  EXPECT_EQ(orders.end->result, RemovalResult::kDeleted);
}

TEST_F(StepRemovalTest, ANodeThatTheCloudMayDeleteIsNotGivenBack) {
  for (const auto result : {AskOutcome::Result::kRefused, AskOutcome::Result::kUnknown}) {
    removal_ = {.stage = RemovalStage::kAsking};
    const RemovalOrders orders = Take({.asked = AskOutcome{.result = result, .error = "no"}});
    EXPECT_EQ(orders.end->result, RemovalResult::kFailedToDelete);
    EXPECT_EQ(orders.end->give_back, result == AskOutcome::Result::kRefused);
  }
}

}  // namespace
}  // namespace loadline
