#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/score/limit_score.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/testing/cluster_builder.h"
#include "test/testing/usage.h"

namespace loadline {
namespace {

ExpectedUseOptions On() {
  ExpectedUseOptions options;
  options.on = true;
  options.request_floor = true;
  return options;
}

LimitPolicy Strict(Aggregate aggregate = Aggregate::kWeightedMean) {
  LimitPolicy policy = StrictPolicy({{"cpu", 1}, {"memory", 3}});
  policy.aggregate = aggregate;
  return policy;
}

// A pod of the experiment, and its profile.
struct Workload24 {
  std::string name;
  TestPod pod;
  bool known = false;
  WorkloadUsage usage;
};

int64_t InHour(const HourlyAmounts& hours, size_t hour, int64_t request, int64_t limit) {
  if (hours[hour] == 0) return limit;
  return std::min(limit, std::max(request, hours[hour]));
}

// The pod as it counts in one hour, by its limits alone.
TestPod Frozen(const Workload24& workload, size_t hour) {
  TestPod pod = workload.pod;
  if (!workload.known) return pod;
  pod.limits[0].second = InHour(workload.usage.cpu_milli, hour, pod.requests[0].second, pod.limits[0].second);
  pod.limits[1].second =
      InHour(workload.usage.memory_bytes, hour, pod.requests[1].second, pod.limits[1].second);
  return pod;
}

class RandomWorld {
 public:
  explicit RandomWorld(uint64_t seed) : random_(seed) {
    for (int node = 0; node < 12; ++node) {
      // A node in six lacks memory.
      nodes_.push_back({{"cpu", Between(4'000, 64'000)}});
      if (node % 6 != 5) nodes_.back().emplace_back("memory", Between(1 << 20, 1 << 24));
      pods_on_.emplace_back();
      for (int64_t pods = Between(0, 9); pods > 0; --pods) pods_on_.back().push_back(Draw());
    }
    incoming_ = Draw();
  }

  // Raw scores by hour with profiles.
  std::vector<int64_t> WithProfiles(const LimitPolicy& policy) {
    ClusterBuilder builder;
    ClusterState& cluster = builder.cluster();
    for (size_t node = 0; node < nodes_.size(); ++node) {
      builder.Node("node-" + std::to_string(node), nodes_[node]);
      std::vector<PodContent> contents;
      for (const Workload24& there : pods_on_[node]) {
        PodShape shape = ShapeOf(there, &builder);
        const uint64_t fingerprint = shape.fingerprint;
        contents.push_back({cluster.pod_shapes().Acquire(std::move(shape)), 0, "", "", fingerprint});
        if (there.known) SetUsage(there.name, there.usage, &cluster.objects());
      }
      const Slot slot{static_cast<int32_t>(node)};
      cluster.SetNode(slot, std::string(cluster.name(slot)), cluster.node_shape(slot), contents);
    }
    if (incoming_.known) SetUsage(incoming_.name, incoming_.usage, &cluster.objects());
    LimitColumns columns(policy);
    columns.CatchUp(cluster, std::make_shared<const ExpectedUse>(On(), cluster.objects(), kProfileTimeS));
    return ScoreRaw(columns, cluster, ShapeOf(incoming_, &builder), AllSlots(cluster)).values;
  }

  // The lowest of the raw scores of 24 clusters without profiles, whose pods have other limits in each.
  std::vector<int64_t> HourByHour(const LimitPolicy& policy) {
    std::vector<int64_t> lowest(nodes_.size(), INT64_MAX);
    for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
      ClusterBuilder builder;
      for (size_t node = 0; node < nodes_.size(); ++node) {
        std::vector<TestPod> pods;
        for (const Workload24& there : pods_on_[node]) pods.push_back(Frozen(there, hour));
        builder.Node("node-" + std::to_string(node), nodes_[node], pods);
      }
      LimitColumns columns(policy);
      columns.CatchUp(builder.cluster());
      const PodShape incoming = builder.Shape(Frozen(incoming_, hour));
      const std::vector<int64_t> raw =
          ScoreRaw(columns, builder.cluster(), incoming, AllSlots(builder.cluster())).values;
      for (size_t i = 0; i < raw.size(); ++i) lowest[i] = std::min(lowest[i], raw[i]);
    }
    return lowest;
  }

  // Replaces all nodes by as many large ones, without pods.
  void Clear() {
    for (NamedAmounts& node : nodes_) node = {{"cpu", 64'000}, {"memory", int64_t{1} << 40}};
    for (auto& there : pods_on_) there.clear();
  }
  void Add(size_t node, const TestPod& pod, const WorkloadUsage& usage) {
    pods_on_[node].push_back({"Deployment/" + std::to_string(++count_), pod, true, usage});
  }
  void SetIncoming(const TestPod& pod, const WorkloadUsage& usage) {
    incoming_ = {"Deployment/" + std::to_string(++count_), pod, true, usage};
  }

  void ForgetProfiles() {
    for (auto& there : pods_on_) {
      for (Workload24& workload : there) workload.known = false;
    }
    incoming_.known = false;
  }

 private:
  int64_t Between(int64_t lowest, int64_t highest) {
    return lowest + static_cast<int64_t>(random_() % static_cast<uint64_t>(highest - lowest + 1));
  }

  HourlyAmounts DrawHours(int64_t most) {
    HourlyAmounts hours;
    const bool flat = Between(0, 3) == 0;
    for (int64_t& hour : hours) hour = flat ? most / 2 : Between(0, 9) == 0 ? 0 : Between(1, most);
    return hours;
  }

  Workload24 Draw() {
    Workload24 workload;
    workload.name = "Deployment/" + std::to_string(++count_);
    const int64_t cpu = Between(100, 70'000);
    const int64_t memory = Between(1 << 16, 1 << 23);
    workload.pod.limits = {{"cpu", cpu}, {"memory", memory}};
    workload.pod.requests = {{"cpu", Between(1, cpu)}, {"memory", Between(1, memory)}};
    workload.known = Between(0, 3) > 0;
    workload.usage = UseOfDay(DrawHours(cpu * 5 / 4), DrawHours(memory * 5 / 4));
    return workload;
  }

  PodShape ShapeOf(const Workload24& workload, ClusterBuilder* builder) {
    return OfWorkload(builder->Shape(workload.pod), workload.name);
  }

  std::mt19937_64 random_;
  int count_ = 0;
  std::vector<NamedAmounts> nodes_;
  std::vector<std::vector<Workload24>> pods_on_;
  Workload24 incoming_;
};

class HourlyScoreTest : public ::testing::TestWithParam<LimitPolicy> {};

TEST_P(HourlyScoreTest, IsTheLowestOfTheScoresOfTheHours) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RandomWorld world(seed);
    EXPECT_EQ(world.WithProfiles(GetParam()), world.HourByHour(GetParam())) << "seed " << seed;
  }
}

TEST_P(HourlyScoreTest, WithoutProfilesIsThatOfTheLimits) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    RandomWorld world(seed);
    world.ForgetProfiles();
    EXPECT_EQ(world.WithProfiles(GetParam()), world.HourByHour(GetParam())) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, HourlyScoreTest,
                         ::testing::Values(Strict(), Strict(Aggregate::kWeightedSum),
                                           Strict(Aggregate::kWorst),
                                           Kep217Policy({{"cpu", 1}, {"memory", 1}})));

// Amounts so large that the hours of a node differ by less than a float tells: the lowest is found all the
// same.
TEST_P(HourlyScoreTest, HoursMayDifferByOneUnit) {
  std::mt19937_64 random(1);
  for (int64_t units : {1, 7, 100, 100'000}) {
    const auto near = [&](int64_t amount) {
      HourlyAmounts hours;
      for (int64_t& hour : hours) {
        hour = amount + static_cast<int64_t>(random() % static_cast<uint64_t>(units + 1));
      }
      return hours;
    };
    constexpr int64_t kLimit = int64_t{1} << 38;
    RandomWorld world(static_cast<uint64_t>(units));
    world.Clear();
    for (size_t node = 0; node < 12; ++node) {
      world.Add(node,
                {.limits = {{"cpu", 60'000}, {"memory", kLimit}}, .requests = {{"cpu", 1}, {"memory", 1}}},
                UseOfDay(AllDay(10'000), near(kLimit / 4)));
    }
    world.SetIncoming(
        {.limits = {{"cpu", 60'000}, {"memory", kLimit}}, .requests = {{"cpu", 1}, {"memory", 1}}},
        UseOfDay(near(20'000), near(kLimit / 8)));
    EXPECT_EQ(world.WithProfiles(GetParam()), world.HourByHour(GetParam())) << units << " units";
  }
}

// Two nodes of 10 cores, each with a pod of 8 cores. One is busy at 3:00, the other at 4:00. A pod that is
// busy at 4:00 fits better beside the first, although the limits are the same.
TEST(HourlyScoreTest, PutsPodsWhereTheirHoursAreFree) {
  ClusterBuilder builder;
  ClusterState& cluster = builder.cluster();
  for (const std::string hour : {"3", "4"}) {
    const Slot slot{cluster.slot_end()};
    builder.Node("busy-at-" + hour, {{"cpu", 10'000}});
    PodShape shape = OfWorkload(builder.Shape({.limits = {{"cpu", 8'000}}}), "StatefulSet/" + hour);
    const uint64_t fingerprint = shape.fingerprint;
    const PodContent content{cluster.pod_shapes().Acquire(std::move(shape)), 0, "", "", fingerprint};
    cluster.SetNode(slot, "busy-at-" + hour, cluster.node_shape(slot), {&content, 1});
    SetUsage("StatefulSet/" + hour,
             UseOfDay(AllDayBut(1'000, static_cast<size_t>(hour[0] - '0'), 6'000), AllDay(1)),
             &cluster.objects());
  }
  SetUsage("StatefulSet/new", UseOfDay(AllDayBut(500, 4, 4'000), AllDay(1)), &cluster.objects());
  LimitColumns columns(StrictPolicy({{"cpu", 1}}));
  columns.CatchUp(cluster, std::make_shared<const ExpectedUse>(On(), cluster.objects(), kProfileTimeS));
  const PodShape pod = OfWorkload(builder.Shape({.limits = {{"cpu", 8'000}}}), "StatefulSet/new");
  std::vector<int32_t> scores;
  ScoreNodes(columns, cluster, pod, AllSlots(cluster), &scores);
  EXPECT_THAT(scores, ::testing::ElementsAre(100, 0));
  const std::vector<size_t> explained = {0, 1};
  const std::vector<NodeExplanation> nodes =
      ExplainNodes(columns, cluster, pod, AllSlots(cluster), explained);
  // At 3:00 6,000 + 500 of 10,000, at 4:00 1,000 + 4,000; and 6,000 + 4,000 at 4:00.
  EXPECT_EQ(nodes[0].hour, 3u);
  EXPECT_NEAR(nodes[0].raw_score, 35, 1e-6);
  EXPECT_EQ(nodes[0].resources[0].node_limits, 6'000);
  EXPECT_EQ(nodes[0].resources[0].pod.amount, 500);
  EXPECT_EQ(nodes[1].hour, 4u);
  EXPECT_NEAR(nodes[1].raw_score, 0, 1e-6);
}

// A pod without a profile, of 4 cores, on a node of 10 beside a pod of 8 cores that uses 2, but 4 at 5:00.
struct Unknown {
  std::string name;
  int64_t known_limit;  // 0: not stated
  TestPod pod;
  int64_t counted;  // of CPU, with the pod
};
class UnknownPodTest : public ::testing::TestWithParam<Unknown> {};

TEST_P(UnknownPodTest, CountsAsTheShareThatKnownWorkloadsUse) {
  ClusterBuilder builder;
  ClusterState& cluster = builder.cluster();
  builder.Node("a", {{"cpu", 10'000}});
  WorkloadUsage usage = UseOfDay(AllDayBut(2'000, 5, 4'000), AllDay(1));
  usage.cpu_limit_milli = GetParam().known_limit;
  SetUsage("Deployment/known", usage, &cluster.objects());
  const PodShape unknown = OfWorkload(builder.Shape(GetParam().pod), "Deployment/unknown");
  std::vector<PodContent> contents;
  for (const PodShape& shape :
       {OfWorkload(builder.Shape({.limits = {{"cpu", 8'000}}}), "Deployment/known"), unknown}) {
    contents.push_back({cluster.pod_shapes().Acquire(shape), 0, "", "", shape.fingerprint});
  }
  const Slot slot{0};
  cluster.SetNode(slot, "a", cluster.node_shape(slot), contents);
  ExpectedUseOptions options;
  options.on = true;
  const auto expected = std::make_shared<const ExpectedUse>(options, cluster.objects(), kProfileTimeS);
  for (const LimitPolicy& policy : {StrictPolicy({{"cpu", 1}}), Kep217Policy({{"cpu", 1}})}) {
    LimitColumns columns(policy);
    columns.CatchUp(cluster, expected);
    const std::vector<size_t> first = {0};
    const NodeExplanation node = ExplainNodes(columns, cluster, unknown, AllSlots(cluster), first)[0];
    EXPECT_EQ(node.hour, 5u);
    EXPECT_EQ(node.resources[0].node_limits, 4'000 + GetParam().counted);
    EXPECT_EQ(node.resources[0].pod.amount, GetParam().counted);
    const double raw = 100 - 0.01 * static_cast<double>(4'000 + 2 * GetParam().counted);
    EXPECT_NEAR(node.raw_score, policy.arithmetic == Arithmetic::kTruncating ? std::trunc(raw) : raw, 1e-6);
    // Lines keep to the limit.
    EXPECT_EQ(columns.limits(slot, 0, 5), 4'000 + 4'000);
    EXPECT_EQ(columns.limits(slot, 0, 4), 2'000 + 4'000);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, UnknownPodTest,
    ::testing::Values(Unknown{"HalfOfItsLimit", 8'000, {.limits = {{"cpu", 4'000}}}, 2'000},
                      Unknown{"WhateverItRequests",
                              8'000,
                              {.limits = {{"cpu", 4'000}}, .requests = {{"cpu", 3'000}}},
                              2'000},
                      Unknown{"NotAboveItsLimit", 3'000, {.limits = {{"cpu", 4'000}}}, 4'000},
                      Unknown{"RoundedDown", 12'000, {.limits = {{"cpu", 4'000}}}, 1'333},
                      Unknown{"ByItsLimitIfNoneStatesOne", 0, {.limits = {{"cpu", 4'000}}}, 4'000}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace loadline
