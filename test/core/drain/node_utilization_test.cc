#include "core/drain/node_utilization.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

constexpr int64_t kUtilizationTime = 10'000;
constexpr char kGpuResource[] = "nvidia.com/gpu";

FitPod Requesting(int64_t milli_cpu, int64_t memory) {
  return {.requests = {{"cpu", milli_cpu}, {"memory", memory}}};
}
FitPod DaemonRequesting(int64_t milli_cpu, int64_t memory) {
  FitPod pod = Requesting(milli_cpu, memory);
  pod.traits.daemon_by_annotation = true;
  return pod;
}
FitPod MirrorRequesting(int64_t milli_cpu, int64_t memory) {
  FitPod pod = Requesting(milli_cpu, memory);
  pod.traits.mirror = true;
  return pod;
}

// A node of 4,000m and 16 bytes.
class NodeUtilizationTest : public ::testing::Test {
 protected:
  std::optional<Utilization> Of(const std::vector<FitPod>& pods) {
    FitCluster cluster;
    cluster.Add(node_, pods);
    return NodeUtilization(cluster.state(), Slot{0}, options_, kUtilizationTime, pools_);
  }

  FitNode node_{.name = "n"};
  UtilizationOptions options_;
  std::vector<DevicePool> pools_;
};

TEST_F(NodeUtilizationTest, TheFullerOneCounts) {
  EXPECT_EQ(Of({Requesting(1'000, 8)}), (Utilization{0.5, "memory", 0.25, 0.5}));
  EXPECT_EQ(Of({Requesting(1'000, 1), Requesting(2'000, 3)}), (Utilization{0.75, "cpu", 0.75, 0.25}));
  EXPECT_EQ(Of({Requesting(2'000, 8)}), (Utilization{0.5, "cpu", 0.5, 0.5})) << "cpu of equal ones";
  EXPECT_EQ(Of({}), (Utilization{0, "cpu", 0, 0}));
}

TEST_F(NodeUtilizationTest, ANodeThatLacksOneCannotBeJudged) {
  node_.allocatable = {{"cpu", 4'000}};
  EXPECT_EQ(Of({}), std::nullopt);
  node_.allocatable = {{"memory", 16}};
  EXPECT_EQ(Of({}), std::nullopt);
}

// 1,000m and 4 bytes of an agent: what others have of the rest.
TEST_F(NodeUtilizationTest, IgnoredPodsAreTakenOffBothSides) {
  const std::vector<FitPod> daemon = {DaemonRequesting(1'000, 4), Requesting(1'500, 3)};
  const std::vector<FitPod> mirror = {MirrorRequesting(1'000, 4), Requesting(1'500, 3)};
  const Utilization all{0.625, "cpu", 0.625, 7.0 / 16}, rest{0.5, "cpu", 0.5, 0.25};
  EXPECT_EQ(Of(daemon), all);
  EXPECT_EQ(Of(mirror), all);
  options_.ignore_daemonsets = true;
  EXPECT_EQ(Of(daemon), rest);
  EXPECT_EQ(Of(mirror), all);
  options_ = {.ignore_mirror_pods = true};
  EXPECT_EQ(Of(daemon), all);
  EXPECT_EQ(Of(mirror), rest);
}

TEST_F(NodeUtilizationTest, WhereIgnoredPodsLeaveNothingAnyOtherPodIsTooMuch) {
  options_.ignore_daemonsets = true;
  EXPECT_EQ(Of({DaemonRequesting(4'000, 0)})->value, 0);
  EXPECT_EQ(Of({DaemonRequesting(4'000, 0), Requesting(1, 0)})->value,
            std::numeric_limits<double>::infinity());
}

// 30 s beyond the grace period, which is 30 s where none is stated.
TEST_F(NodeUtilizationTest, PodsThatEndCountUntilTheyAreLongGone) {
  FitPod pod = Requesting(2'000, 0);
  pod.traits.deleted_s = kUtilizationTime - 60;
  EXPECT_EQ(Of({pod})->value, 0.5);
  pod.traits.deleted_s = kUtilizationTime - 61;
  EXPECT_EQ(Of({pod})->value, 0);
  pod.traits.grace_s = 31;
  EXPECT_EQ(Of({pod})->value, 0.5);
  FitPod finished = Requesting(2'000, 0);
  finished.traits.phase = PodPhase::kSucceeded;
  EXPECT_EQ(Of({finished})->value, 0);
}

TEST_F(NodeUtilizationTest, ExpendablePodsDoNotCountAndPlaceholdersDo) {
  FitPod expendable = Requesting(2'000, 8);
  expendable.traits.priority = -11;
  FitPod placeholder = expendable;
  placeholder.traits.placeholder = true;
  EXPECT_EQ(Of({expendable, Requesting(1'000, 1)}), (Utilization{0.25, "cpu", 0.25, 0.0625}));
  EXPECT_EQ(Of({placeholder}), (Utilization{0.5, "cpu", 0.5, 0.5}));
}

TEST_F(NodeUtilizationTest, GpusOfEveryMakerCount) {
  node_.labels = {{"cloud.google.com/gke-accelerator", "mi300x"}};
  node_.allocatable.emplace_back("amd.com/gpu", 8);
  FitPod pod = Requesting(4'000, 16);
  pod.requests.emplace_back("amd.com/gpu", 6);
  EXPECT_EQ(Of({pod}), (Utilization{.value = 0.75, .resource = "amd.com/gpu"}));
}

TEST_F(NodeUtilizationTest, OnANodeWithAGpuLabelOnlyGpusCount) {
  node_.labels = {{"k8s.amazonaws.com/accelerator", ""}};
  FitPod pod = Requesting(4'000, 16);
  EXPECT_EQ(Of({pod}), (Utilization{.value = 0, .resource = kGpuResource})) << "its GPUs are not there yet";
  node_.allocatable.emplace_back(kGpuResource, 8);
  pod.requests.emplace_back(kGpuResource, 2);
  EXPECT_EQ(Of({pod}), (Utilization{.value = 0.25, .resource = kGpuResource}));
  pod.traits.daemon_by_annotation = true;
  options_.ignore_daemonsets = true;
  EXPECT_EQ(Of({pod})->value, 0.25) << "no pod is ignored there";
  options_.gpu_labels = {"other"};
  EXPECT_EQ(Of({pod})->resource, "cpu");
}

TEST_F(NodeUtilizationTest, OfDevicePoolsTheFullestCounts) {
  pools_ = {{"b", 4, 2}, {"a", 8, 4}, {"c", 4, 1}};
  EXPECT_EQ(Of({Requesting(4'000, 16)}), (Utilization{.value = 0.5, .resource = "a"}))
      << "by name of equal ones";
  pools_.push_back({"d", 4, 3});
  EXPECT_EQ(Of({})->resource, "d");
  pools_[2].complete = false;
  EXPECT_EQ(Of({}), std::nullopt);
  pools_[2] = {"c", 0, 0};
  EXPECT_EQ(Of({}), std::nullopt);
}

}  // namespace
}  // namespace loadline
