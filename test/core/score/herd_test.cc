// A burst of pods spreads as well as the same pods one by one: those that were only just placed count by the
// profile of their workload at once.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/score/limit_score.h"
#include "gtest/gtest.h"
#include "test/testing/cluster_builder.h"
#include "test/testing/units.h"
#include "test/testing/usage.h"

namespace loadline {
namespace {

constexpr size_t kHerdNodes = 60;
constexpr size_t kHerdPods = 500;
constexpr int64_t kHerdCpu = 16'000;
constexpr int64_t kHerdMemory = 64 * kGi;

// When the engine hears of a pod that was placed, and of its profile.
enum class Reported {
  kAtOnce,    // the pod is assumed, and counts with the next one
  kOneByOne,  // likewise, and all profiles are measured and sent anew before the next one
  kTooLate,   // not before all have been placed
};

class Burst {
 public:
  explicit Burst(uint64_t seed) : random_(seed) {
    for (size_t node = 0; node < kHerdNodes; ++node) {
      builder_.Node("node-" + std::to_string(node), {{"cpu", kHerdCpu}, {"memory", kHerdMemory}});
    }
    for (int i = 0; i < 20; ++i) AddWorkload("Deployment/" + std::to_string(i));
    pods_on_.resize(kHerdNodes);
  }

  // Returns the 99th percentile over the nodes of their expected peak over allocatable, by nearest rank.
  double Place(Reported reported) {
    LimitColumns columns(StrictPolicy({{"cpu", 1}, {"memory", 1}}));
    Measure();
    columns.CatchUp(builder_.cluster(), expected_);
    for (size_t i = 0; i < kHerdPods; ++i) {
      if (reported == Reported::kOneByOne) Measure();
      if (reported != Reported::kTooLate) columns.CatchUp(builder_.cluster(), expected_);
      Bind(random_() % workloads_.size(), columns);
    }
    std::vector<double> peaks;
    for (size_t node = 0; node < kHerdNodes; ++node) peaks.push_back(PeakOf(node));
    std::sort(peaks.begin(), peaks.end());
    return peaks[(kHerdNodes * 99 + 99) / 100 - 1];
  }

 private:
  struct BurstWorkload {
    std::string name;
    PodShape shape;
    WorkloadUsage usage;
  };

  // Busy for some hours of the day, and nearly idle else.
  void AddWorkload(const std::string& name) {
    const int64_t cpu = 500 + static_cast<int64_t>(random_() % 3'500);
    const int64_t memory = kGi + static_cast<int64_t>(random_() % (8 * kGi));
    HourlyAmounts cpu_day = AllDay(cpu / 20);
    HourlyAmounts memory_day = AllDay(memory / 5);
    const size_t begin = random_() % kHoursOfDay;
    for (size_t hour = 0; hour < 6; ++hour) {
      cpu_day[(begin + hour) % kHoursOfDay] = cpu * 3 / 4;
      memory_day[(begin + hour) % kHoursOfDay] = memory / 2;
    }
    const TestPod pod{.limits = {{"cpu", cpu}, {"memory", memory}},
                      .requests = {{"cpu", cpu / 10}, {"memory", memory / 10}}};
    workloads_.push_back({name, OfWorkload(builder_.Shape(pod), name), UseOfDay(cpu_day, memory_day)});
  }

  void Measure() {
    for (const BurstWorkload& workload : workloads_) {
      SetUsage(workload.name, workload.usage, &builder_.cluster().objects());
    }
    ExpectedUseOptions options;
    options.on = true;
    expected_ = std::make_shared<const ExpectedUse>(options, builder_.cluster().objects(), kProfileTimeS);
  }

  // Puts the pod on the node of the highest score, the first of several, of those with room for its requests.
  void Bind(size_t workload, const LimitColumns& columns) {
    const PodShape& shape = workloads_[workload].shape;
    std::vector<Slot> feasible;
    for (size_t node = 0; node < kHerdNodes; ++node) {
      int64_t cpu = shape.requests.Get(kCpu);
      for (const size_t there : pods_on_[node]) cpu += workloads_[there].shape.requests.Get(kCpu);
      if (cpu <= kHerdCpu) feasible.push_back(Slot{static_cast<int32_t>(node)});
    }
    std::vector<int32_t> scores;
    ScoreNodes(columns, builder_.cluster(), shape, feasible, &scores);
    const auto best = std::max_element(scores.begin(), scores.end());
    const Slot slot = feasible[static_cast<size_t>(best - scores.begin())];
    pods_on_[IndexOf(slot)].push_back(workload);
    ClusterState& cluster = builder_.cluster();
    std::vector<PodContent> contents;
    for (const size_t there : pods_on_[IndexOf(slot)]) {
      const PodShape& of = workloads_[there].shape;
      contents.push_back({cluster.pod_shapes().Acquire(of), 0, "", "", of.fingerprint});
    }
    cluster.SetNode(slot, std::string(cluster.name(slot)), cluster.node_shape(slot), contents);
  }

  // The most of any resource in any hour, counted from the profiles.
  double PeakOf(size_t node) const {
    double peak = 0;
    for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
      int64_t cpu = 0;
      int64_t memory = 0;
      for (const size_t there : pods_on_[node]) {
        cpu += workloads_[there].usage.cpu_milli[hour];
        memory += workloads_[there].usage.memory_bytes[hour];
      }
      peak = std::max({peak, static_cast<double>(cpu) / kHerdCpu, static_cast<double>(memory) / kHerdMemory});
    }
    return peak;
  }

  std::mt19937_64 random_;
  ClusterBuilder builder_;
  std::vector<BurstWorkload> workloads_;
  std::vector<std::vector<size_t>> pods_on_;  // workloads, by node
  std::shared_ptr<const ExpectedUse> expected_;
};

double PeakAfter(uint64_t seed, Reported reported) { return Burst(seed).Place(reported); }

TEST(HerdTest, ABurstSpreadsAsTheSamePodsOneByOne) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const double one_by_one = PeakAfter(seed, Reported::kOneByOne);
    const double burst = PeakAfter(seed, Reported::kAtOnce);
    RecordProperty("one_by_one_" + std::to_string(seed), std::to_string(one_by_one));
    RecordProperty("burst_" + std::to_string(seed), std::to_string(burst));
    EXPECT_LE(burst, 1.05 * one_by_one) << "seed " << seed;
    // The measure sees a herd where there is one.
    EXPECT_GT(PeakAfter(seed, Reported::kTooLate), 1.5 * one_by_one) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loadline
