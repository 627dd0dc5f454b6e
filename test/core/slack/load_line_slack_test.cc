// Slack under a load line: no node is above it with its pods and all placeholders, by a count of our own.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "test/core/slack/slack_world.h"
#include "test/testing/naive_line.h"

namespace loadline {
namespace {

FitPod LimitedPod(Dice* dice, const std::string& name) {
  FitPod pod{.requests = {{"cpu", dice->Pick(1, 6) * 100}, {"memory", dice->Pick(1, 12)}}, .name = name};
  pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", "web", "web"};
  if (!dice->OneIn(8)) pod.limits.push_back({"cpu", dice->Pick(6, 40) * 100});
  if (!dice->OneIn(12)) pod.limits.push_back({"memory", dice->Pick(12, 60)});
  return pod;
}

TEST(LoadLineSlackTest, NoPlaceholderLiftsANodeAboveTheLine) {
  int64_t standard = 0;
  int64_t copies = 0;
  int64_t bound_by_line = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Dice dice(seed);
    SlackWorld world;
    const int64_t cpu_line = dice.OneIn(3) ? 0 : dice.Pick(900, 3'000);
    const int64_t memory_line = cpu_line > 0 && dice.OneIn(4) ? 0 : dice.Pick(900, 2'500);
    world.fit().load_line = StrictLine(cpu_line, memory_line);
    std::map<int32_t, std::pair<FitNode, std::vector<FitPod>>> nodes;
    for (int32_t slot = 0; slot < 6; ++slot) {
      nodes[slot].first = {.name = "node-" + std::to_string(slot),
                           .allocatable = {{"cpu", 4'000}, {"memory", 100}, {"pods", 110}}};
    }
    const FitPod copied = LimitedPod(&dice, "");
    world.Mirror("web", copied, static_cast<int32_t>(dice.Pick(1, 8)));
    const PodShape copy = world.cluster().Shape(copied);
    SlackOptions options;
    options.rate = kWholeRate / 2;
    options.granularity = dice.Pick(2, 8);
    SlackPlanner planner;
    for (int loop = 0; loop < 4; ++loop) {
      for (auto& [slot, node] : nodes) {
        if (loop > 0 && !dice.OneIn(3)) continue;
        node.second.clear();
        for (int64_t i = dice.Pick(0, 4); i > 0; --i) {
          node.second.push_back(LimitedPod(&dice, "p" + std::to_string(slot) + "-" + std::to_string(i)));
        }
        world.cluster().Put(Slot{slot}, node.first, node.second);
      }
      PlanSlackOnce(&planner, world.Question(options, 1'000 + loop * 30));
      planner.CheckConsistent();
      std::map<std::string, std::vector<Placeholder>> on;
      for (const Placeholder& placeholder : planner.State().placeholders) {
        if (!placeholder.node.empty()) on[placeholder.node].push_back(placeholder);
      }
      for (const auto& [slot, node] : nodes) {
        if (on[node.first.name].empty()) continue;
        const NodeShape shape = world.cluster().Shape(node.first);
        for (const auto& [resource, line] : {std::pair{kCpu, cpu_line}, std::pair{kMemory, memory_line}}) {
          if (line == 0) continue;
          const int64_t allocatable = shape.allocatable.Get(resource);
          int64_t sum = 0;
          int64_t added = 0;
          for (const FitPod& pod : node.second) {
            sum += NaiveCounted(world.cluster().Shape(pod), resource, allocatable);
          }
          for (const Placeholder& placeholder : on[node.first.name]) {
            const bool mirrored = placeholder.kind == PlaceholderKind::kMirrored;
            (mirrored ? copies : standard) += 1;
            added += mirrored           ? NaiveCounted(copy, resource, allocatable)
                     : resource == kCpu ? placeholder.size.cpu
                                        : placeholder.size.memory;
          }
          if (added == 0) continue;  // a node above the line takes what does not add to it
          sum += added;
          ASSERT_LE(sum * 1'000, line * allocatable)
              << "seed " << seed << " loop " << loop << " node " << node.first.name;
          bound_by_line += sum * 1'000 > line * allocatable * 8 / 10 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(standard, 1'000);
  EXPECT_GT(copies, 1'000);
  EXPECT_GT(bound_by_line, 300);
}

}  // namespace
}  // namespace loadline
