#include "core/fit/load_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/fit/line_left.h"
#include "core/fit/pod_fit.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/naive_line.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseLineTest, ReadsDecimalsExactly) {
  EXPECT_EQ(ParseLine("1"), 1'000);
  EXPECT_EQ(ParseLine("1.5"), 1'500);
  EXPECT_EQ(ParseLine("0.1"), 100);
  EXPECT_EQ(ParseLine("0.125"), 125);
  EXPECT_EQ(ParseLine("1000"), 1'000'000);
  EXPECT_EQ(ParseLine("1000.000"), 1'000'000);
  EXPECT_EQ(ParseLine("0003"), 3'000);
}

TEST(ParseLineTest, RefusesWhatIsNoLine) {
  for (const char* const text :
       {"",         ".",    "1.",     ".5",    "-1", "+1", "1e3", "1,5", "0.099", "0",
        "1000.001", "1001", "1.5000", "00003", " 1", "1 ", "0x1", "nan", "inf",   "1.5x"}) {
    EXPECT_EQ(ParseLine(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseLine(absl::string_view("1\0", 2)), std::nullopt);
}

TEST(LineTextTest, IsTheShortest) {
  EXPECT_EQ(LineText(1'500), "1.5");
  EXPECT_EQ(LineText(1'000), "1");
  EXPECT_EQ(LineText(125), "0.125");
  EXPECT_EQ(LineText(1'000'000), "1000");
  EXPECT_EQ(LineText(10'050), "10.05");
}

TEST(LimitCeilingTest, RoundsDownAndSaturates) {
  EXPECT_EQ(LimitCeiling(1'500, 3), 4);
  EXPECT_EQ(LimitCeiling(1'500, 2), 3);
  EXPECT_EQ(LimitCeiling(100, 9), 0);
  EXPECT_EQ(LimitCeiling(1'000'000, int64_t{1} << 62), int64_t{1} << 62);
  EXPECT_EQ(LimitCeiling(3'000, 0), 0);
}

FitPod Limited(int64_t cpu, int64_t memory) {
  return {.requests = {{"cpu", 1}, {"memory", 1}}, .limits = {{"cpu", cpu}, {"memory", memory}}};
}

struct LineCase {
  std::string name;
  LoadLine line;
  FitNode node;
  std::vector<FitPod> there;
  FitPod pod;
  StatusClass status_class;  // kNone: it fits
  std::vector<std::string> reasons;
};

class LoadLineTest : public ::testing::TestWithParam<LineCase> {};

TEST_P(LoadLineTest, GivesTheVerdict) {
  FitCluster cluster;
  cluster.Add(GetParam().node, GetParam().there);
  Snapshot snapshot(cluster.state());
  FitOptions options;
  options.load_line = GetParam().line;
  PodFit fit(&snapshot, cluster.Incoming(GetParam().pod), &options);
  const bool fits = GetParam().status_class == StatusClass::kNone;
  EXPECT_EQ(fit.Fits(NodeIndex{0}), fits);
  const Verdict verdict = fit.Judge(NodeIndex{0});
  EXPECT_EQ(verdict.judgement, fits ? Judgement::kFits : Judgement::kDoesNotFit);
  EXPECT_EQ(verdict.filter, fits ? FilterName::kNone : FilterName::kLoadLine);
  EXPECT_EQ(verdict.status_class, GetParam().status_class);
  EXPECT_EQ(verdict.reasons, GetParam().reasons);
  // Without a line, none of it matters.
  const FitOptions off;
  EXPECT_TRUE(PodFit(&snapshot, cluster.Incoming(GetParam().pod), &off).Fits(NodeIndex{0}));
}

LoadLine WithLabels(LoadLine line) {
  line.node_label_prefix = "lines.example.com";
  return line;
}

LoadLine Exempting(LoadLine line, const std::string& name) {
  line.exempt_namespaces.insert(name);
  return line;
}

FitPod InNamespace(FitPod pod, const std::string& name) {
  pod.namespace_name = name;
  return pod;
}

FitNode Labeled(const std::string& key, const std::string& value) {
  return {
      .name = "a", .allocatable = {{"cpu", 4000}, {"memory", 100}, {"pods", 110}}, .labels = {{key, value}}};
}

const FitNode kHundred = {.name = "a", .allocatable = {{"cpu", 4000}, {"memory", 100}, {"pods", 110}}};
const char kMemoryLine[] = "load line: memory limits would exceed 1.5 x allocatable";
const char kCpuLine[] = "load line: cpu limits would exceed 3 x allocatable";
constexpr StatusClass kMayHelp = StatusClass::kUnschedulable;
constexpr StatusClass kNoHelp = StatusClass::kUnschedulableAndUnresolvable;

INSTANTIATE_TEST_SUITE_P(
    Cases, LoadLineTest,
    ::testing::ValuesIn(std::vector<LineCase>{
        {"ExactlyAtTheLine", StrictLine(0, 1'500), kHundred, {Limited(1, 90)}, Limited(1, 60), {}, {}},
        {"OneByteAbove",
         StrictLine(0, 1'500),
         kHundred,
         {Limited(1, 90)},
         Limited(1, 61),
         kMayHelp,
         {kMemoryLine}},
        {"AnEmptyNode", StrictLine(0, 1'500), kHundred, {}, Limited(1, 100), {}, {}},
        {"OnePodCountsAtMostAsTheNode", StrictLine(0, 1'500), kHundred, {}, Limited(1, 1'000), {}, {}},
        {"BelowOneThatAloneIsTooMuch",
         StrictLine(0, 500),
         kHundred,
         {},
         Limited(1, 51),
         kNoHelp,
         {"load line: memory limits would exceed 0.5 x allocatable"}},
        {"BelowOne", StrictLine(0, 500), kHundred, {}, Limited(1, 50), {}, {}},
        {"BothResources",
         StrictLine(3'000, 1'500),
         kHundred,
         {Limited(4'000, 100), Limited(4'000, 1), Limited(4'000, 1)},
         Limited(1, 100),
         kMayHelp,
         {kCpuLine, kMemoryLine}},
        {"OnlyTheResourceNamed",
         StrictLine(3'000, 0),
         kHundred,
         {Limited(1, 100), Limited(1, 100), Limited(1, 100)},
         Limited(1, 100),
         {},
         {}},
        // A pod without a limit of memory counts as the whole node, without one of cpu as its request.
        {"WithoutLimits",
         StrictLine(3'000, 1'500),
         kHundred,
         {Limited(1, 51)},
         {.requests = {{"cpu", 1}, {"memory", 1}}},
         kMayHelp,
         {kMemoryLine}},
        {"WithoutLimitsOnRoom",
         StrictLine(3'000, 1'500),
         kHundred,
         {Limited(1, 50)},
         {.requests = {{"cpu", 1}, {"memory", 1}}},
         {},
         {}},
        {"BestEffortCountsAsAllCpu",
         StrictLine(500, 0),
         kHundred,
         {},
         {},
         kNoHelp,
         {"load line: cpu limits would exceed 0.5 x allocatable"}},
        {"AboveItAlready",
         StrictLine(0, 1'500),
         kHundred,
         {Limited(1, 100), Limited(1, 100)},
         Limited(1, 1),
         kMayHelp,
         {kMemoryLine}},
        {"FinishedPodsDoNotCount",
         StrictLine(0, 1'500),
         kHundred,
         {{.requests = {{"cpu", 1}},
           .traits = {.phase = PodPhase::kSucceeded},
           .limits = {{"memory", 100}}}},
         Limited(1, 100),
         {},
         {}},
        {"ALabelRaisesIt",
         WithLabels(StrictLine(0, 1'500)),
         Labeled("lines.example.com/memory", "2"),
         {Limited(1, 100)},
         Limited(1, 100),
         {},
         {}},
        {"ALabelLowersIt",
         WithLabels(StrictLine(0, 1'500)),
         Labeled("lines.example.com/memory", "1.25"),
         {Limited(1, 100)},
         Limited(1, 26),
         kMayHelp,
         {"load line: memory limits would exceed 1.25 x allocatable"}},
        {"ALabelOfAnotherResource",
         WithLabels(StrictLine(0, 1'500)),
         Labeled("lines.example.com/cpu", "1000"),
         {Limited(1, 100)},
         Limited(1, 51),
         kMayHelp,
         {kMemoryLine}},
        {"ALabelThatIsNoLine",
         WithLabels(StrictLine(0, 1'500)),
         Labeled("lines.example.com/memory", "off"),
         {Limited(1, 100)},
         Limited(1, 51),
         kMayHelp,
         {kMemoryLine}},
        {"LabelsAreOffByDefault",
         StrictLine(0, 1'500),
         Labeled("lines.example.com/memory", "2"),
         {Limited(1, 100)},
         Limited(1, 51),
         kMayHelp,
         {kMemoryLine}},
        {"AnExemptPodGoesWhereItWants",
         Exempting(StrictLine(0, 1'500), "kube-system"),
         kHundred,
         {Limited(1, 100)},
         InNamespace(Limited(1, 100), "kube-system"),
         {},
         {}},
        {"AndCountsForOthers",
         Exempting(StrictLine(0, 1'500), "kube-system"),
         kHundred,
         {InNamespace(Limited(1, 100), "kube-system")},
         Limited(1, 51),
         kMayHelp,
         {kMemoryLine}},
        {"ALabelOfThePodExemptsNothing",
         Exempting(StrictLine(0, 1'500), "kube-system"),
         kHundred,
         {Limited(1, 100)},
         {.requests = {{"cpu", 1}, {"memory", 1}},
          .labels = {{"lines.example.com/memory", "1000"}, {"namespace", "kube-system"}},
          .limits = {{"memory", 51}}},
         kMayHelp,
         {kMemoryLine}},
        {"TheNodeLacksWhatThePodLimits",
         [] {
           LoadLine line;
           line.sums.resources = {{kEphemeralStorage, {{MissingLimit::kRequest}, {MissingLimit::kRequest}}}};
           line.lines = {2'000};
           return line;
         }(),
         kHundred,
         {},
         {.requests = {{"cpu", 1}, {"memory", 1}}, .limits = {{"ephemeral-storage", 1}}},
         kNoHelp,
         {"load line: ephemeral-storage limits would exceed 2 x allocatable"}},
    }),
    [](const auto& info) { return info.param.name; });

// Moves of a snapshot keep the sums, and take them back.
TEST(LoadLineMovesTest, FollowsMovesAndReverts) {
  FitCluster cluster;
  cluster.Add(kHundred, {Limited(1, 100)});
  cluster.Add({.name = "b", .allocatable = kHundred.allocatable});
  Snapshot snapshot(cluster.state());
  FitOptions options;
  options.load_line = StrictLine(0, 1'500);
  PodFit fit(&snapshot, cluster.Incoming(Limited(1, 60)), &options);
  EXPECT_FALSE(fit.Fits(NodeIndex{0}));
  EXPECT_TRUE(fit.OnlyNeedsRoom());
  snapshot.Fork();
  snapshot.PlacePod(NodeIndex{1}, fit.shape());
  snapshot.PlacePod(NodeIndex{1}, fit.shape());
  EXPECT_FALSE(fit.Fits(NodeIndex{1}));
  snapshot.RemovePod(NodeIndex{0}, 0);
  EXPECT_TRUE(fit.Fits(NodeIndex{0}));
  const NodeIndex added = snapshot.AddNode({"c", cluster.Shape(kHundred), "c"});
  snapshot.PlacePod(added, fit.shape());
  snapshot.PlacePod(added, fit.shape());
  EXPECT_FALSE(fit.Fits(added));
  snapshot.CheckConsistent();
  snapshot.Revert();
  snapshot.CheckConsistent();
  EXPECT_FALSE(fit.Fits(NodeIndex{0}));
  EXPECT_TRUE(fit.Fits(NodeIndex{1}));
  const NodeIndex again = snapshot.AddNode({"c", cluster.Shape(kHundred), "c"});
  EXPECT_TRUE(fit.Fits(again));
}

// Sums that somebody uses are kept; of the others a few are kept.
TEST(LoadLineMovesTest, KeepsFewSumsThatNobodyUses) {
  FitCluster cluster;
  cluster.Add(kHundred, {Limited(1, 100)});
  Snapshot snapshot(cluster.state());
  const auto spec = [](int32_t ratio) {
    LimitSumsSpec result = StrictLine(0, 1'500).sums;
    result.max_limit_ratio = ratio;
    return result;
  };
  const std::shared_ptr<const LimitSums> held = snapshot.SumLimits(spec(1));
  std::weak_ptr<const LimitSums> dropped = snapshot.SumLimits(spec(2));
  for (int32_t ratio = 3; ratio < 100; ++ratio) snapshot.SumLimits(spec(ratio));
  EXPECT_TRUE(dropped.expired());
  EXPECT_EQ(snapshot.SumLimits(spec(1)), held);
  EXPECT_EQ(held->sum(NodeIndex{0}, 0), 100);
  snapshot.CheckConsistent();
}

// An exempt pod takes room from others without asking for it, so that it is not counted by columns.
TEST(LoadLineMovesTest, ExemptPodsDoNotOnlyNeedRoom) {
  FitCluster cluster;
  cluster.Add(kHundred);
  Snapshot snapshot(cluster.state());
  FitOptions options;
  options.load_line = Exempting(StrictLine(0, 1'500), "kube-system");
  EXPECT_FALSE(PodFit(&snapshot, cluster.Incoming(InNamespace(Limited(1, 1), "kube-system")), &options)
                   .OnlyNeedsRoom());
  EXPECT_TRUE(PodFit(&snapshot, cluster.Incoming(Limited(1, 1)), &options).OnlyNeedsRoom());
}

TEST(LineLeftTest, IsTheLessOfBoth) {
  FitCluster cluster;
  const NodeShape node = cluster.Shape(kHundred);
  const LoadLine line = StrictLine(3'000, 1'500);
  LineLeft left(line, node);
  EXPECT_EQ(left.Left(), (CpuMemory{12'000, 150}));
  const PodShape pod = cluster.Shape(Limited(500, 60));
  EXPECT_EQ(left.TakenBy(pod), (CpuMemory{500, 60}));
  EXPECT_EQ(left.TakenBy(cluster.Shape({.requests = {{"cpu", 7}, {"memory", 1}}})), (CpuMemory{7, 100}));
  left.Add(pod);
  left.Add(pod);
  EXPECT_EQ(left.Left(), (CpuMemory{11'000, 30}));
  left.Add(pod);
  EXPECT_EQ(left.Left(), (CpuMemory{10'500, 0}));
  const LoadLine none;
  EXPECT_EQ(LineLeft(none, node).Left(), (CpuMemory{kMaxAmount, kMaxAmount}));
}

// Random nodes filled by the filter, compared with a count by hand.
TEST(LoadLinePropertyTest, NoPodLiftsANodeAboveTheLine) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    FitCluster cluster;
    const int64_t cpu = draw(0, 2) == 0 ? 0 : draw(kLowestLine, 4'000);
    const int64_t memory = draw(0, 3) == 0 && cpu > 0 ? 0 : draw(kLowestLine, 3'000);
    const FitNode node{.name = "a",
                       .allocatable = {{"cpu", draw(1, 4'000)}, {"memory", draw(1, 1'000)}, {"pods", 1'000}}};
    cluster.Add(node);
    Snapshot snapshot(cluster.state());
    FitOptions options;
    options.load_line = StrictLine(cpu, memory);
    std::vector<PodShape> placed;
    for (int i = 0; i < 40; ++i) {
      FitPod pod;
      if (draw(0, 3) > 0) pod.requests = {{"cpu", draw(0, 2)}, {"memory", draw(0, 2)}};
      if (draw(0, 3) > 0) pod.limits.push_back({"cpu", draw(1, 1'500)});
      if (draw(0, 3) > 0) pod.limits.push_back({"memory", draw(1, 400)});
      const IncomingPod incoming = cluster.Incoming(pod);
      const FitOptions off;
      if (!PodFit(&snapshot, incoming, &off).Fits(NodeIndex{0})) continue;
      placed.push_back(incoming.shape);
      std::vector<const PodShape*> pods;
      for (const PodShape& shape : placed) pods.push_back(&shape);
      bool lifts = false;
      for (const auto& [resource, at] : {std::pair{kCpu, cpu}, std::pair{kMemory, memory}}) {
        if (at == 0) continue;
        const std::vector<size_t> lifters = NaiveLifters(pods, cluster.Shape(node), resource, at);
        lifts = lifts || (!lifters.empty() && lifters.back() + 1 == pods.size());
      }
      PodFit fit(&snapshot, incoming, &options);
      ASSERT_EQ(fit.Fits(NodeIndex{0}), !lifts) << "round " << round << " pod " << i;
      if (lifts) {
        ++refused;
        placed.pop_back();
      } else {
        snapshot.PlacePod(NodeIndex{0}, fit.shape());
      }
    }
    snapshot.CheckConsistent();
  }
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace loadline
