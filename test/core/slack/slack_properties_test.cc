// The properties of slack on every cluster, each on 10,000 random ones and counted from what the cluster was
// made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/slack/slack_planner.h"
#include "test/core/slack/slack_world.h"

namespace loadline {
namespace {

constexpr int kClusters = 10'000;

bool Loose(const ClassSlack& slack) {
  return slack.status == SlackStatus::kLimited || slack.status == SlackStatus::kUnplaceable;
}

// Placeholders by the node that they are on.
std::map<std::string, std::vector<Placeholder>> ByNode(const SlackState& state) {
  std::map<std::string, std::vector<Placeholder>> by_node;
  for (const Placeholder& placeholder : state.placeholders) {
    if (!placeholder.node.empty()) by_node[placeholder.node].push_back(placeholder);
  }
  return by_node;
}

// No node that takes placeholders holds more than it has, but where real pods alone do: there is none then.
void ExpectNoneTooMany(const SlackWorld& world, const SlackState& state) {
  auto by_node = ByNode(state);
  for (const auto& [slot, node] : world.nodes) {
    const auto found = by_node.find(node.name);
    if (found == by_node.end()) continue;
    EXPECT_FALSE(node.cordoned) << node.name;
    const WorldKind& kind = world.kinds[node.kind];
    CpuMemory sum = Plus(node.Requested(), kind.daemon);
    for (const Placeholder& placeholder : found->second) sum = Plus(sum, placeholder.size);
    EXPECT_TRUE(Within(sum, kind.allocatable)) << node.name;
    const size_t pods = node.pods.size() + found->second.size() + (kind.daemon == CpuMemory{} ? 0 : 1);
    EXPECT_LE(pods, static_cast<size_t>(kind.slots)) << node.name;
    by_node.erase(found);
  }
  EXPECT_TRUE(by_node.empty()) << "placeholders on nodes that are not there";
}

std::string Text(const SlackPlan& plan) {
  std::string text;
  const auto add = [&](const PlaceholderGroup& group, int64_t a, int64_t b) {
    text += group.owner + "/" + std::to_string(static_cast<int>(group.kind)) + "/" +
            std::to_string(group.size.cpu) + "/" + std::to_string(group.size.memory) + ": " +
            std::to_string(a) + " " + std::to_string(b) + "\n";
  };
  for (const ClassSlack& slack : plan.classes) {
    text += slack.key.name + " " + std::to_string(slack.count) + " " + std::to_string(slack.placed) + " " +
            std::to_string(slack.extra.cpu) + " " + std::to_string(slack.sum.memory) + " " +
            std::to_string(static_cast<int>(slack.status)) + slack.reason + "\n";
  }
  for (const ShapeSlack& shape : plan.shapes) add(shape.group, shape.count, shape.placed);
  for (const SlackDemand& demand : plan.demands) {
    text += demand.class_name + " " + std::to_string(demand.nodes) + "\n";
    for (const AskedPlaceholders& asked : demand.placeholders) add(asked.group, asked.count, 0);
  }
  return text;
}

// extra <= sum <= max(extra, mirrored) + (n - 1), per class and dimension, and each placeholder fits an empty
// node of its class.
TEST(SlackPropertiesTest, KeepsWhatIsWantedAndLittleMore) {
  int classes = 0, loose = 0, with_some = 0;
  for (int seed = 0; seed < kClusters; ++seed) {
    Dice dice(static_cast<uint64_t>(seed));
    const auto world = RandomWorld(&dice);
    const SlackOptions options = RandomOptions(&dice);
    SlackPlanner planner;
    const SlackPlan plan = PlanSlackOnce(&planner, world->Question(options));
    planner.CheckConsistent();
    const SlackState state = planner.State();
    std::map<std::string, CpuMemory> mirrored;  // by class
    std::map<std::string, std::string> class_of;
    std::vector<CpuMemory> basis(world->kinds.size());
    for (const auto& [slot, node] : world->nodes) {
      const WorldKind& kind = world->kinds[node.kind];
      const CpuMemory requested = Smaller(node.Requested(), kind.allocatable);
      basis[node.kind] = Plus(basis[node.kind], options.basis == SlackBasis::kRequested ? requested
                                                : node.cordoned                         ? CpuMemory{}
                                                                                        : kind.Empty());
    }
    for (const ClassSlack& slack : plan.classes) {
      ++classes;
      loose += Loose(slack) ? 1 : 0;
      const size_t kind = world->KindOf(slack);
      ASSERT_LT(kind, world->kinds.size());
      for (const auto& [slot, node] : world->nodes) {
        if (node.kind == kind) class_of[node.name] = slack.key.name;
      }
      EXPECT_EQ(slack.basis, basis[kind]) << seed;
      // ceil(rate * basis); rates are twentieths.
      const int64_t twentieths = options.rate / (kWholeRate / 20);
      const CpuMemory extra = {(basis[kind].cpu * twentieths + 19) / 20,
                               (basis[kind].memory * twentieths + 19) / 20};
      EXPECT_EQ(slack.extra, extra) << seed;
    }
    // Copies count where they are, or where they are asked for.
    for (const Placeholder& placeholder : state.placeholders) {
      if (placeholder.kind != PlaceholderKind::kMirrored || placeholder.node.empty()) continue;
      CpuMemory& sum = mirrored[class_of.at(placeholder.node)];
      sum = Plus(sum, placeholder.size);
    }
    for (const SlackDemand& demand : plan.demands) {
      for (const AskedPlaceholders& asked : demand.placeholders) {
        if (asked.group.kind != PlaceholderKind::kMirrored) continue;
        CpuMemory& sum = mirrored[demand.class_name];
        sum = Plus(sum, Times(asked.group.size, asked.count));
      }
    }
    for (const ClassSlack& slack : plan.classes) {
      CpuMemory reserved = mirrored[slack.key.name], sum = reserved;
      int64_t standard = 0;
      for (const Placeholder& placeholder : state.placeholders) {
        if (placeholder.owner != slack.key.name) continue;
        EXPECT_TRUE(Within(placeholder.size, world->kinds[world->KindOf(slack)].Empty()));
        sum = Plus(sum, placeholder.size);
        if (placeholder.kind == PlaceholderKind::kReserved) reserved = Plus(reserved, placeholder.size);
        standard += placeholder.kind == PlaceholderKind::kStandard ? 1 : 0;
      }
      if (Loose(slack)) continue;
      with_some += sum == CpuMemory{} ? 0 : 1;
      const int64_t spare = std::max<int64_t>(0, standard - 1);
      EXPECT_TRUE(Within(slack.extra, sum)) << seed << " " << slack.key.name;
      EXPECT_TRUE(Within(sum, Plus(Larger(slack.extra, reserved), {spare, spare}))) << seed;
      EXPECT_EQ(slack.sum, sum) << seed;
    }
    ExpectNoneTooMany(*world, state);
    if (HasFailure()) return;
  }
  EXPECT_LE(loose * 100, classes);
  EXPECT_GT(with_some, kClusters);
}

// E2: the same question again changes nothing, also for a planner that only has the state.
TEST(SlackPropertiesTest, TheSameQuestionAgainChangesNothing) {
  for (int seed = 0; seed < kClusters; ++seed) {
    Dice dice(static_cast<uint64_t>(seed));
    const auto world = RandomWorld(&dice);
    const SlackQuestion question = world->Question(RandomOptions(&dice));
    SlackPlanner planner, other;
    const SlackPlan first = PlanSlackOnce(&planner, question);
    const SlackState state = planner.State();
    const SlackPlan second = PlanSlackOnce(&planner, question);
    EXPECT_EQ(planner.State(), state) << seed;
    EXPECT_EQ(second.added + second.removed + second.pushed_out + second.placed, 0) << seed;
    EXPECT_EQ(Text(second), Text(first)) << seed;
    other.Restore(state);
    EXPECT_EQ(Text(PlanSlackOnce(&other, question)), Text(first)) << seed;
    EXPECT_EQ(other.State(), state) << seed;
    if (HasFailure()) return;
  }
}

// Nodes come and go, pods come and go, nodes are cordoned.
void Change(Dice* dice, SlackWorld* world) {
  for (int64_t i = dice->Pick(1, 3); i > 0; --i) {
    const int64_t what = dice->Pick(0, 3);
    if (what == 0 || world->nodes.empty()) {
      const size_t kind = static_cast<size_t>(dice->Pick(0, static_cast<int64_t>(world->kinds.size()) - 1));
      const int32_t slot = world->AddNode(kind);
      FillNode(dice, world->kinds[kind], &world->nodes[slot]);
      world->Sync(slot);
      continue;
    }
    auto at = world->nodes.begin();
    std::advance(at, dice->Pick(0, static_cast<int64_t>(world->nodes.size()) - 1));
    const int32_t slot = at->first;
    if (what == 1) {
      world->nodes.erase(at);
    } else if (what == 2) {
      at->second.cordoned = !at->second.cordoned;
    } else {
      at->second.pods.clear();
      FillNode(dice, world->kinds[at->second.kind], &at->second);
    }
    world->Sync(slot);
  }
}

// F5: what is kept up to date is what is worked out anew, over several changes; real pods always win (E1).
TEST(SlackPropertiesTest, CatchingUpIsAsGoodAsStartingOver) {
  for (int seed = 0; seed < kClusters; ++seed) {
    Dice dice(static_cast<uint64_t>(seed));
    const auto world = RandomWorld(&dice);
    const SlackOptions options = RandomOptions(&dice);
    SlackPlanner planner;
    PlanSlackOnce(&planner, world->Question(options));
    for (int64_t step = 1; step <= 3; ++step) {
      const SlackState before = planner.State();
      Change(&dice, world.get());
      const SlackQuestion question = world->Question(options, 1000 + 400 * step);
      SlackPlanner fresh;
      fresh.Restore(before);
      const SlackPlan expected = PlanSlackOnce(&fresh, question);
      EXPECT_EQ(Text(PlanSlackOnce(&planner, question)), Text(expected)) << seed;
      EXPECT_EQ(planner.State(), fresh.State()) << seed;
      planner.CheckConsistent();
      ExpectNoneTooMany(*world, planner.State());
      for (const ClassSlack& slack : expected.classes) {
        if (!Loose(slack)) {
          EXPECT_TRUE(Within(slack.extra, slack.sum)) << seed;
        }
      }
    }
    if (HasFailure()) return;
  }
}

// One node that joins moves no placeholder that has a node; one that leaves moves those on it.
TEST(SlackPropertiesTest, OneNodeMovesItsOwnPlaceholders) {
  int moved = 0;
  for (int seed = 0; seed < kClusters; ++seed) {
    Dice dice(static_cast<uint64_t>(seed));
    const auto world = RandomWorld(&dice);
    const SlackOptions options = RandomOptions(&dice);
    SlackPlanner planner;
    PlanSlackOnce(&planner, world->Question(options));
    const SlackState before = planner.State();
    std::string gone;
    if (dice.OneIn(2)) {
      world->AddNode(static_cast<size_t>(dice.Pick(0, static_cast<int64_t>(world->kinds.size()) - 1)));
    } else {
      auto at = world->nodes.begin();
      std::advance(at, dice.Pick(0, static_cast<int64_t>(world->nodes.size()) - 1));
      gone = at->second.name;
      const int32_t slot = at->first;
      world->nodes.erase(at);
      world->Sync(slot);
    }
    PlanSlackOnce(&planner, world->Question(options));
    std::map<int64_t, Placeholder> after;
    for (const Placeholder& placeholder : planner.State().placeholders) after[placeholder.id] = placeholder;
    for (const Placeholder& placeholder : before.placeholders) {
      const auto found = after.find(placeholder.id);
      if (found == after.end() || placeholder.node.empty() || found->second.node == placeholder.node)
        continue;
      EXPECT_EQ(placeholder.node, gone) << seed;
      ++moved;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(moved, 500);
}

// Step B: a pod that waits, and has room beside real pods, gets it from placeholders.
TEST(SlackPropertiesTest, PodsThatWaitComeFirst) {
  int tight = 0;
  for (int seed = 0; seed < kClusters; ++seed) {
    Dice dice(static_cast<uint64_t>(seed));
    const auto world = RandomWorld(&dice);
    const SlackOptions options = RandomOptions(&dice);
    SlackPlanner planner;
    PlanSlackOnce(&planner, world->Question(options));
    const CpuMemory size = {dice.Pick(1, 40) * 100, dice.Pick(1, 40) * 400};
    SlackQuestion question = world->Question(options);
    FitPod pod;
    pod.requests = SlackWorld::Requests(size);
    question.waiting.push_back({world->cluster().Incoming(pod), 1});
    PlanSlackOnce(&planner, question);
    const auto by_node = ByNode(planner.State());
    bool room = false, kept = false;
    for (const auto& [slot, node] : world->nodes) {
      const WorldKind& kind = world->kinds[node.kind];
      CpuMemory sum = Plus(Plus(node.Requested(), kind.daemon), size);
      size_t pods = node.pods.size() + (kind.daemon == CpuMemory{} ? 0 : 1) + 1;
      if (node.cordoned || !Within(sum, kind.allocatable) || pods > static_cast<size_t>(kind.slots)) continue;
      room = true;
      const auto found = by_node.find(node.name);
      for (const Placeholder& placeholder :
           found == by_node.end() ? std::vector<Placeholder>() : found->second) {
        sum = Plus(sum, placeholder.size);
        ++pods;
      }
      kept |= Within(sum, kind.allocatable) && pods <= static_cast<size_t>(kind.slots);
    }
    EXPECT_EQ(room, kept) << seed;
    tight += room && !by_node.empty() ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(tight, kClusters / 2);
}

// R5, E2, E3: an autoscaler that adds what is asked for rests in the end, with all slack in place; nothing is
// asked of a class when a smaller one of the same zone takes all of it; and without slack nothing is left.
TEST(SlackPropertiesTest, DemandAndSupplyComeToRest) {
  int grew = 0;
  for (int seed = 0; seed < kClusters; ++seed) {
    Dice dice(static_cast<uint64_t>(seed));
    const auto world = RandomWorld(&dice);
    SlackOptions options = RandomOptions(&dice);
    SlackPlanner planner;
    int loops = 0;
    for (;; ++loops) {
      const SlackPlan plan = PlanSlackOnce(&planner, world->Question(options));
      if (plan.demands.empty()) {
        for (const ClassSlack& slack : plan.classes) {
          EXPECT_TRUE(slack.placed == slack.count || Loose(slack)) << seed;
        }
        break;
      }
      ASSERT_LT(loops, 40) << seed << " " << Text(plan);
      std::map<std::string, size_t> kind_of;
      for (const ClassSlack& slack : plan.classes) kind_of[slack.key.name] = world->KindOf(slack);
      for (const SlackDemand& demand : plan.demands) {
        const WorldKind& asked = world->kinds[kind_of.at(demand.class_name)];
        for (const auto& [name, kind] : kind_of) {
          const WorldKind& other = world->kinds[kind];
          if (other.zone != asked.zone || !Within(other.Empty(), asked.Empty()) ||
              other.Empty() == asked.Empty()) {
            continue;
          }
          EXPECT_FALSE(std::all_of(
              demand.placeholders.begin(), demand.placeholders.end(),
              [&](const AskedPlaceholders& one) { return Within(one.group.size, other.Empty()); }))
              << seed << " " << name << " would do for " << demand.class_name;
        }
        for (int64_t i = 0; i < demand.nodes; ++i) world->AddNode(kind_of.at(demand.class_name));
      }
    }
    grew += loops > 0 ? 1 : 0;
    const SlackState rest = planner.State();
    PlanSlackOnce(&planner, world->Question(options, 1'000'000));
    PlanSlackOnce(&planner, world->Question(options, 2'000'000));
    const SlackState later = planner.State();
    PlanSlackOnce(&planner, world->Question(options, 3'000'000));
    EXPECT_EQ(planner.State().placeholders, later.placeholders) << seed;
    options.rate = 0;
    options.reserve = ReserveMode::kNone;
    PlanSlackOnce(&planner, world->Question(options, 4'000'000));
    PlanSlackOnce(&planner, world->Question(options, 5'000'000));
    for (const Placeholder& placeholder : planner.State().placeholders) {
      EXPECT_EQ(placeholder.kind, PlaceholderKind::kMirrored) << seed;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(grew, 1000);
}

}  // namespace
}  // namespace loadline
