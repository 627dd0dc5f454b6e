#include "core/cluster/expected_use.h"

#include <memory>
#include <string>
#include <vector>

#include "core/cluster/limit_sums.h"
#include "gtest/gtest.h"
#include "test/testing/usage.h"

namespace loadline {
namespace {

constexpr char kWeb[] = "Deployment/web";

PodShape Web(uint64_t pod_template = 0) { return OfWorkload(PodShape(), kWeb, pod_template); }

ExpectedUseOptions On() {
  ExpectedUseOptions options;
  options.on = true;
  return options;
}

// Returns the expected use of a pod of the workload in one hour; -1: nothing is known.
int64_t Expect(const WorkloadUsage& usage, const ExpectedUseOptions& options, size_t hour,
               const PodShape& pod = Web(), int64_t now_s = kProfileTimeS) {
  ClusterObjects objects;
  SetUsage(kWeb, usage, &objects);
  const ExpectedUse expected(options, objects, now_s);
  const HourlyAmounts* const found = expected.Find(pod, kCpu);
  return found == nullptr ? -1 : (*found)[hour];
}

TEST(ExpectedUseTest, IsTheProfileTimesTheMarginRoundedUp) {
  ExpectedUseOptions options = On();
  const WorkloadUsage usage = UseOfDay(AllDayBut(101, 5, 700), AllDay(1));
  EXPECT_EQ(Expect(usage, options, 4), 101);
  EXPECT_EQ(Expect(usage, options, 5), 700);
  options.cpu_margin_percent = 110;
  EXPECT_EQ(Expect(usage, options, 4), 112);  // 111.1
  EXPECT_EQ(Expect(usage, options, 5), 770);
}

TEST(ExpectedUseTest, SaturatesAtTheLargestAmount) {
  ExpectedUseOptions options = On();
  options.cpu_margin_percent = 1000;
  EXPECT_EQ(Expect(UseOfDay(AllDay(kMaxAmount), AllDay(1)), options, 0), kMaxAmount);
}

TEST(ExpectedUseTest, TakesTheMostOfNeighborHoursAroundMidnight) {
  ExpectedUseOptions options = On();
  options.neighbor_hours = 1;
  const WorkloadUsage usage = UseOfDay(AllDayBut(100, 0, 500), AllDay(1));
  EXPECT_EQ(Expect(usage, options, 23), 500);
  EXPECT_EQ(Expect(usage, options, 0), 500);
  EXPECT_EQ(Expect(usage, options, 1), 500);
  EXPECT_EQ(Expect(usage, options, 2), 100);
  EXPECT_EQ(Expect(UseOfDay(AllDayBut(100, 7, 0), AllDay(1)), options, 8), 0);  // its neighbor is not known
}

TEST(ExpectedUseTest, IsNotKnownWhereARuleSaysSo) {
  WorkloadUsage usage = UseOfDay(AllDay(100), AllDay(1));
  EXPECT_EQ(Expect(usage, On(), 0, OfWorkload(PodShape(), "Deployment/other")), -1);
  EXPECT_EQ(Expect(usage, On(), 0, PodShape()), -1) << "of no workload";
  usage.days = 2;
  EXPECT_EQ(Expect(usage, On(), 0), -1) << "new";
  usage.days = 3;
  EXPECT_EQ(Expect(usage, On(), 0), 100);
  usage.pod_template = 5;
  EXPECT_EQ(Expect(usage, On(), 0, Web(6)), -1) << "another image";
  EXPECT_EQ(Expect(usage, On(), 0, Web()), -1) << "a pod that does not state its template";
  EXPECT_EQ(Expect(usage, On(), 0, Web(5)), 100);
}

TEST(ExpectedUseTest, GetsStale) {
  const WorkloadUsage usage = UseOfDay(AllDay(100), AllDay(1));
  const int64_t last_s = kProfileTimeS + On().max_age_s;
  EXPECT_EQ(Expect(usage, On(), 0, Web(), last_s), 100);
  EXPECT_EQ(Expect(usage, On(), 0, Web(), last_s + 1), -1);
  EXPECT_EQ(Expect(usage, On(), 0, Web(), 0), -1) << "a view that knows no time";
}

TEST(ExpectedUseTest, OtherResourcesHaveNone) {
  ClusterObjects objects;
  SetUsage(kWeb, UseOfDay(AllDay(1), AllDay(2)), &objects);
  const ExpectedUse use(On(), objects, kProfileTimeS);
  EXPECT_EQ(use.Find(Web(), kEphemeralStorage), nullptr);
  EXPECT_EQ((*use.Find(Web(), kMemory))[3], 2);
}

// Two workloads that state their limits of CPU: 100 of 1,000 all day, and 300 of 500, but 700 in hour 5,
// which counts as 500. In that hour they use 600 of 1,500.
TEST(ExpectedUseTest, APodWithoutAProfileCountsAsTheKnownOnes) {
  ClusterObjects objects;
  WorkloadUsage usage = UseOfDay(AllDay(100), AllDay(7));
  usage.cpu_limit_milli = 1'000;
  SetUsage("Deployment/a", usage, &objects);
  usage.cpu_milli = AllDayBut(300, 5, 700);
  usage.cpu_limit_milli = 500;
  SetUsage("Deployment/b", usage, &objects);
  const auto at_most = [&](int64_t limit, int64_t request) {
    return ExpectedUse(On(), objects, kProfileTimeS).AtMostUnknown(kCpu, limit, request);
  };
  EXPECT_EQ(at_most(1'000, 0), 400);
  EXPECT_EQ(at_most(1'000, 450), 400) << "requests hide when pods are busy";
  ExpectedUseOptions with_floor = On();
  with_floor.request_floor = true;
  EXPECT_EQ(ExpectedUse(with_floor, objects, kProfileTimeS).AtMostUnknown(kCpu, 1'000, 450), 450);
  EXPECT_EQ(at_most(0, 0), 0);
  EXPECT_GT(at_most(kMaxAmount, 0), kMaxAmount / 5 * 2 - 1'000);
  const ExpectedUse use(On(), objects, kProfileTimeS);
  EXPECT_EQ(use.AtMostUnknown(kMemory, 1'000, 0), kMaxAmount) << "nobody states a limit of memory";
  EXPECT_EQ(use.AtMostUnknown(kEphemeralStorage, 1'000, 0), kMaxAmount);
  // An hour that is not known counts as the limit: 100 + 500 of 1,500 again.
  usage.cpu_milli = AllDayBut(300, 5, 0);
  SetUsage("Deployment/b", usage, &objects);
  EXPECT_EQ(at_most(1'000, 0), 400);
  // Profiles that do not count say nothing: new, and without any hour.
  usage.days = 1;
  SetUsage("Deployment/b", usage, &objects);
  EXPECT_EQ(at_most(1'000, 0), 100);
  usage.days = 7;
  usage.cpu_milli = AllDay(0);
  SetUsage("Deployment/b", usage, &objects);
  EXPECT_EQ(at_most(1'000, 0), 100);
}

TEST(ExpectedUseCacheTest, KeepsAnObjectForAsLongAsItHolds) {
  ClusterObjects objects;
  SetUsage(kWeb, UseOfDay(AllDay(1), AllDay(2)), &objects);
  ExpectedUseCache cache;
  EXPECT_EQ(cache.For(ExpectedUseOptions(), objects, kProfileTimeS), nullptr) << "off";
  const auto first = cache.For(On(), objects, kProfileTimeS);
  const int64_t last_s = kProfileTimeS + On().max_age_s;
  EXPECT_EQ(cache.For(On(), objects, last_s), first);
  const auto stale = cache.For(On(), objects, last_s + 1);
  EXPECT_NE(stale, first);
  EXPECT_TRUE(stale->empty());
  SetUsage(kWeb, UseOfDay(AllDay(3), AllDay(2)), &objects);
  const auto changed = cache.For(On(), objects, kProfileTimeS);
  EXPECT_NE(changed, first);
  EXPECT_EQ((*changed->Find(Web(), kCpu))[0], 3);
  objects.Remove({ObjectKind::kWorkloadUsage, "default", kWeb});
  EXPECT_TRUE(cache.For(On(), objects, kProfileTimeS)->empty());
}

// A pod of 200 to 1,000 millicores, of which 300 are expected but in hour 5, where it is 100.
TEST(LimitSumsTest, CountsExpectedUseBetweenRequestAndLimit) {
  ClusterObjects objects;
  SetUsage(kWeb, UseOfDay(AllDayBut(300, 5, 100), AllDay(1)), &objects);
  LimitSumsSpec spec;
  for (const std::optional<int8_t> hour :
       {std::optional<int8_t>(), std::optional<int8_t>(4), std::optional<int8_t>(5)}) {
    spec.resources.push_back({kCpu, {}, hour});
  }
  ExpectedUseOptions options = On();
  options.request_floor = true;
  spec.expected = std::make_shared<const ExpectedUse>(options, objects, kProfileTimeS);
  PodShape pod = Web();
  pod.requests[kCpu] = 200;
  pod.limits[kCpu] = 1'000;
  NodeShape node;
  node.allocatable[kCpu] = 4'000;
  const LimitSums sums(spec);
  EXPECT_EQ(sums.Counted(pod, node, 0).amount, 1'000);
  EXPECT_EQ(sums.Counted(pod, node, 1).amount, 300);
  EXPECT_EQ(sums.Counted(pod, node, 2).amount, 200);
  pod.limits[kCpu] = 250;
  EXPECT_EQ(sums.Counted(pod, node, 1).amount, 250) << "no more than the limit";
  EXPECT_EQ(sums.Counted(OfWorkload(pod, "Job/other"), node, 1).amount, 250) << "not known";
  spec.expected = std::make_shared<const ExpectedUse>(On(), objects, kProfileTimeS);
  EXPECT_EQ(LimitSums(spec).Counted(pod, node, 2).amount, 100) << "without a floor";
}

}  // namespace
}  // namespace loadline
