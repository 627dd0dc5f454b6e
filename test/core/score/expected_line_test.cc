// The line of expected use, as filter, growth and scheduler see it. A node of 10 cores has a pod of 100 to
// 8,000 millicores that is expected to use 1,000, but 6,000 at 3:00. The line is 0.8 of cpu.
#include <memory>
#include <string>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/fit/line_left.h"
#include "core/fit/load_line.h"
#include "core/fit/pod_fit.h"
#include "core/score/line_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/testing/cluster_builder.h"
#include "test/testing/usage.h"

namespace loadline {
namespace {

constexpr char kDb[] = "StatefulSet/db";
constexpr char kReason[] = "load line: expected use of cpu would exceed 0.8 x allocatable";

class ExpectedLineTest : public ::testing::Test {
 protected:
  ExpectedLineTest() {
    builder_.Node("node", {{"cpu", 10'000}, {"memory", 1'000}, {"pods", 100}});
    PodShape there = OfWorkload(builder_.Shape(Pod()), kDb);
    const uint64_t fingerprint = there.fingerprint;
    const PodContent content{cluster().pod_shapes().Acquire(there), 0, "", "", fingerprint};
    cluster().SetNode(Slot{0}, "node", cluster().node_shape(Slot{0}), {&content, 1});
    SetUsage(kDb, UseOfDay(AllDayBut(1'000, 3, 6'000), AllDay(1)), &cluster().objects());
    SetUsage("Job/at-3", UseOfDay(AllDayBut(1'000, 3, 2'001), AllDay(1)), &cluster().objects());
    SetUsage("Job/at-4", UseOfDay(AllDayBut(1'000, 4, 7'000), AllDay(1)), &cluster().objects());
    SetUsage("Job/large", UseOfDay(AllDay(8'000), AllDay(1)), &cluster().objects());
    ExpectedUseOptions options;
    options.on = true;
    AddExpectedLine(kCpu, {{MissingLimit::kAllocatable}, {MissingLimit::kRequest}}, 800, &line_);
    line_.sums.expected = std::make_shared<const ExpectedUse>(options, cluster().objects(), kProfileTimeS);
    policy_ = StrictPolicy({{"cpu", 1}, {"memory", 1}});
  }

  static TestPod Pod() { return {.limits = {{"cpu", 8'000}}, .requests = {{"cpu", 100}}}; }
  ClusterState& cluster() { return builder_.cluster(); }

  // Returns the verdict of the check of a scheduling cycle.
  LineVerdict Check(const std::string& workload) {
    LimitColumns columns(policy_);
    columns.CatchUp(cluster(), line_.sums.expected);
    const LineCheck check(&line_, &columns, ColumnsOfLine(line_, policy_), &cluster());
    const LineCheck::Pod pod = check.MakePod(OfWorkload(builder_.Shape(Pod()), workload));
    LineVerdict verdict = check.Explain(pod, Slot{0});
    EXPECT_EQ(check.Keeps(pod, Slot{0}), verdict.reasons.empty());
    return verdict;
  }

  // Returns the verdict of the filter, which drains and growth ask.
  Verdict Judge(const std::string& workload) {
    Snapshot snapshot(cluster());
    FitOptions options;
    options.load_line = line_;
    IncomingPod pod;
    pod.shape = OfWorkload(builder_.Shape(Pod()), workload);
    pod.names = cluster().resource_names();
    return PodFit(&snapshot, pod, &options).Judge(NodeIndex{0});
  }

  ClusterBuilder builder_;
  LoadLine line_;
  LimitPolicy policy_;
};

TEST_F(ExpectedLineTest, HoldsInEachHour) {
  EXPECT_THAT(Check("Job/at-3").reasons, ::testing::ElementsAre(kReason));  // 8,001 at 3:00
  EXPECT_FALSE(Check("Job/at-3").unresolvable);
  EXPECT_THAT(Judge("Job/at-3").reasons, ::testing::ElementsAre(kReason));
  EXPECT_THAT(Check("Job/at-4").reasons, ::testing::IsEmpty());  // 8,000 at 4:00
  EXPECT_EQ(Judge("Job/at-4").filter, FilterName::kNone);
}

TEST_F(ExpectedLineTest, CountsLimitsWhereNothingIsKnown) {
  EXPECT_THAT(Check("Job/unknown").reasons, ::testing::ElementsAre(kReason));
  EXPECT_THAT(Judge("Job/unknown").reasons, ::testing::ElementsAre(kReason));
}

TEST_F(ExpectedLineTest, AndTheLineOfLimitsHoldBoth) {
  line_.lines.push_back(1'500);
  line_.sums.resources.push_back({kCpu, line_.sums.resources[0].rules});
  const std::string limits = "load line: cpu limits would exceed 1.5 x allocatable";  // 16,000
  EXPECT_THAT(Check("Job/at-4").reasons, ::testing::ElementsAre(limits));
  EXPECT_THAT(Check("Job/at-3").reasons, ::testing::ElementsAre(limits, kReason));
  EXPECT_THAT(Judge("Job/at-3").reasons, ::testing::ElementsAre(limits, kReason));
}

TEST_F(ExpectedLineTest, LeavesTheLeastOfAllHours) {
  LineLeft left(line_, cluster().node_shape(Slot{0}));
  left.Add(OfWorkload(builder_.Shape(Pod()), kDb));
  EXPECT_EQ(left.Left().cpu, 2'000);
  EXPECT_EQ(left.Left().memory, kMaxAmount);
  EXPECT_EQ(left.TakenBy(OfWorkload(builder_.Shape(Pod()), "Job/at-4")).cpu, 7'000);
  EXPECT_EQ(left.TakenBy(OfWorkload(builder_.Shape(Pod()), "Job/unknown")).cpu, 8'000);
}

TEST_F(ExpectedLineTest, FollowsMoves) {
  Snapshot snapshot(cluster());
  const auto sums = snapshot.SumLimits(line_.sums);
  const int32_t shape = snapshot.InternShape(OfWorkload(builder_.Shape(Pod()), "Job/at-4"));
  EXPECT_EQ(sums->sum(NodeIndex{0}, 3), 6'000);
  snapshot.Fork();
  snapshot.PlacePod(NodeIndex{0}, shape);
  EXPECT_EQ(sums->sum(NodeIndex{0}, 3), 7'000);
  EXPECT_EQ(sums->sum(NodeIndex{0}, 4), 8'000);
  snapshot.CheckConsistent();
  snapshot.Revert();
  EXPECT_EQ(sums->sum(NodeIndex{0}, 4), 1'000);
}

}  // namespace
}  // namespace loadline
