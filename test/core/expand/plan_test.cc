#include "core/expand/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/fit/pod_fit.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

struct Group {
  std::string name;
  int64_t milli_cpu = 1000;
  int64_t memory = 1000;
  double usd = 1;
  int64_t max = 100;
  int64_t current = 0;
  std::string zone = "a";
  std::string pool;
};

FitPod Sized(int64_t milli_cpu, int64_t memory = 0) {
  return {.requests = {{"cpu", milli_cpu}, {"memory", memory}}};
}

FitPod OfApp(int64_t milli_cpu, const std::string& app) {
  FitPod pod = Sized(milli_cpu);
  pod.labels = {{"app", app}};
  return pod;
}

class Question {
 public:
  void Pods(const FitPod& pod, int64_t count) { pods_.push_back({cluster.Incoming(pod), count}); }
  void Add(const Group& group) {
    FitNode node{.name = group.name,
                 .allocatable = {{"cpu", group.milli_cpu}, {"memory", group.memory}, {"pods", 110}},
                 .labels = {{kZone, group.zone}, {"pool", group.pool}}};
    groups.push_back({{group.name, cluster.Shape(node)}, group.usd, {group.max, group.current}});
  }

  ScaleUpPlan Ask(WorkBudget budget = WorkBudget()) {
    std::vector<PendingPods> pods = pods_;
    for (PendingPods& entry : pods) entry.pod.names = cluster.names();
    Snapshot snapshot(cluster.state());
    const FitOptions fit;
    ScaleUpPlan plan = PlanScaleUp(&snapshot, &fit, std::move(pods), {}, groups, options, &budget);
    EXPECT_EQ(snapshot.node_end(), static_cast<int32_t>(cluster.state().node_count()));
    EXPECT_EQ(snapshot.depth(), 0U);
    return plan;
  }

  const std::vector<PendingPods>& pods() const { return pods_; }

  FitCluster cluster;
  std::vector<PlanGroup> groups;
  PlanOptions options;

 private:
  std::vector<PendingPods> pods_;
};

std::map<std::string, int64_t> NodesOf(const ScaleUpPlan& plan, const Question& question) {
  std::map<std::string, int64_t> nodes;
  for (const PlannedNodes& entry : plan.nodes) {
    nodes[question.groups[static_cast<size_t>(entry.group)].node.name] += entry.nodes;
  }
  return nodes;
}

// Goes through a plan pod by pod with nothing but PodFit, in any order that works: the pods of the plan are
// those of the question, and each fits where it is put. `stuck`: pods that no order placed.
struct Check {
  bool adds_up = true;
  int64_t stuck = 0;
};
Check CheckPlan(Question* question, const ScaleUpPlan& plan) {
  Check check;
  Snapshot snapshot(question->cluster.state());
  const FitOptions options;
  std::vector<std::unique_ptr<PodFit>> fits;
  std::vector<int64_t> counts;
  for (const PendingPods& entry : question->pods()) {
    IncomingPod pod = entry.pod;
    pod.names = question->cluster.names();
    fits.push_back(std::make_unique<PodFit>(&snapshot, std::move(pod), &options));
    counts.push_back(entry.count);
  }
  std::vector<std::pair<NodeIndex, size_t>> wanted;
  for (const ExistingUse& use : plan.existing) {
    for (int64_t i = 0; i < use.pods.count; ++i) wanted.emplace_back(use.node, use.pods.pods);
  }
  const auto place = [&] {
    for (bool progress = true; progress && !wanted.empty();) {
      std::vector<std::pair<NodeIndex, size_t>> later;
      for (const auto& [node, pods] : wanted) {
        fits[pods]->Refresh();
        if (fits[pods]->Fits(node)) {
          snapshot.PlacePod(node, fits[pods]->shape());
        } else {
          later.emplace_back(node, pods);
        }
      }
      progress = later.size() < wanted.size();
      wanted = std::move(later);
    }
  };
  for (const auto& [node, pods] : wanted) --counts[pods];
  place();  // these need not wait for new nodes
  const size_t waiting_for_nodes = wanted.size();
  int number = 0;
  for (const PlannedNodes& entry : plan.nodes) {
    const NodeTemplate& node = question->groups[static_cast<size_t>(entry.group)].node;
    for (int64_t i = 0; i < entry.nodes; ++i) {
      const std::string name = node.name + "-" + std::to_string(++number);
      const NodeIndex index = snapshot.AddNode({name, node.shape, name});
      for (const PodCount& pods : entry.pods) {
        for (int64_t k = 0; k < pods.count; ++k) wanted.emplace_back(index, pods.pods);
      }
    }
  }
  for (size_t i = waiting_for_nodes; i < wanted.size(); ++i) --counts[wanted[i].second];
  for (size_t i = 0; i < counts.size(); ++i) check.adds_up = check.adds_up && counts[i] == plan.unplaced[i];
  place();
  check.stuck = static_cast<int64_t>(wanted.size());
  return check;
}

TEST(PlanTest, AMixOfGroups) {
  Question question;
  question.Pods(Sized(1000), 10);
  question.Add({.name = "large", .milli_cpu = 8000, .usd = 8});
  question.Add({.name = "small", .milli_cpu = 2000, .usd = 2.5});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"large", 1}, {"small", 1}}));
  EXPECT_DOUBLE_EQ(plan.cost, 10.5);
  EXPECT_DOUBLE_EQ(plan.best_single.cost, 12.5);
  EXPECT_EQ(plan.best_single.nodes, 5);
  EXPECT_LE(plan.lower_bound, plan.cost);
  EXPECT_GE(plan.lower_bound, 9.9);
  EXPECT_THAT(plan.unplaced, ElementsAre(0));
  EXPECT_FALSE(plan.cut_short);
}

TEST(PlanTest, FurtherTypesCostAPenalty) {
  Question question;
  question.Pods(Sized(1000), 10);
  question.Add({.name = "large", .milli_cpu = 8000, .usd = 8});
  question.Add({.name = "small", .milli_cpu = 2000, .usd = 2.5});
  question.options.usd_per_further_type = 1.9;
  EXPECT_DOUBLE_EQ(question.Ask().type_penalty, 1.9);
  question.options.usd_per_further_type = 2.1;
  const ScaleUpPlan plan = question.Ask();
  EXPECT_DOUBLE_EQ(plan.cost, 12.5);
  EXPECT_DOUBLE_EQ(plan.type_penalty, 0);
}

TEST(PlanTest, GroupsThatAreAlikeGrowEvenly) {
  Question question;
  question.Pods(Sized(1000), 7);
  question.Add({.name = "c", .zone = "c"});
  question.Add({.name = "a", .current = 2, .zone = "a"});
  question.Add({.name = "b", .max = 1, .zone = "b"});
  EXPECT_EQ(NodesOf(question.Ask(), question),
            (std::map<std::string, int64_t>{{"a", 2}, {"b", 1}, {"c", 4}}));
}

TEST(PlanTest, LimitsOfGroupsAndOfAll) {
  Question question;
  question.Pods(Sized(1000), 7);
  question.Add({.name = "cheap", .usd = 1, .max = 5, .current = 3});
  question.Add({.name = "dear", .usd = 2});
  ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"cheap", 2}, {"dear", 5}}));
  question.options.max_new_nodes = 4;
  plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(3));
  EXPECT_DOUBLE_EQ(plan.cost, 2 * 1 + 2 * 2);
}

TEST(PlanTest, ExistingRoomComesFirst) {
  Question question;
  question.cluster.Add({.name = "old", .allocatable = {{"cpu", 2000}, {"memory", 10}, {"pods", 10}}});
  question.Pods(Sized(1000), 3);
  question.Add({.name = "new"});
  const ScaleUpPlan plan = question.Ask();
  ASSERT_EQ(plan.existing.size(), 1U);
  EXPECT_EQ(plan.existing[0].pods, (PodCount{0, 2}));
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"new", 1}}));
}

TEST(PlanTest, PodsThatFitNowhereAreLeftOver) {
  Question question;
  question.Pods(Sized(5000), 3);
  question.Add({.name = "new"});
  ScaleUpPlan plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(3));
  EXPECT_EQ(plan.best_single.group, -1);
  EXPECT_TRUE(plan.nodes.empty());
  question.groups.clear();
  plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(3));
}

TEST(PlanTest, EachPoolTakesItsOwn) {
  Question question;
  for (const std::string pool : {"red", "blue"}) {
    FitPod pod = Sized(500);
    pod.rules.node_selector = Labels(std::vector<Label>{{"pool", pool}});
    question.Pods(pod, 3);
    question.Add({.name = pool, .pool = pool});
  }
  const ScaleUpPlan plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(0, 0));
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"blue", 2}, {"red", 2}}));
  EXPECT_EQ(plan.best_single.pods, 3);
}

TEST(PlanTest, OnePerHostTakesCheapNodes) {
  Question question;
  FitPod pod = OfApp(100, "db");
  pod.rules.anti_affinity = {Term(Select("app", "db"), kHostnameLabel)};
  question.Pods(pod, 5);
  question.Add({.name = "large", .milli_cpu = 8000, .usd = 4});
  question.Add({.name = "small", .milli_cpu = 1000, .usd = 1});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"small", 5}}));
  EXPECT_EQ(CheckPlan(&question, plan).stuck, 0);
}

// No group alone can take them: the zones have to grow together.
TEST(PlanTest, SpreadingOverZonesNeedsAllOfThem) {
  Question question;
  FitPod pod = OfApp(500, "web");
  pod.rules.has_spread = true;
  pod.rules.spread = {
      {.max_skew = 1, .topology_key = kZone, .selector = Select("app", "web"), .min_domains = 3}};
  question.Pods(pod, 12);
  for (const std::string zone : {"a", "b", "c"}) question.Add({.name = "group-" + zone, .zone = zone});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(0));
  EXPECT_EQ(NodesOf(plan, question),
            (std::map<std::string, int64_t>{{"group-a", 2}, {"group-b", 2}, {"group-c", 2}}));
  EXPECT_EQ(plan.best_single.pods, 1);
  const Check check = CheckPlan(&question, plan);
  EXPECT_TRUE(check.adds_up);
  EXPECT_EQ(check.stuck, 0);
}

TEST(PlanTest, WithoutWorkTheAnswerSaysSo) {
  Question question;
  for (int64_t i = 1; i < 20; ++i) question.Pods(Sized(100 + i), 20);
  question.Add({.name = "new"});
  EXPECT_TRUE(question.Ask(WorkBudget(0)).cut_short);
}

// Nodes that are equal are one entry, however many there are.
TEST(PlanTest, AHundredMillionNodesAreOneEntry) {
  Question question;
  question.Pods(Sized(1000), 100'000'000);
  question.Add({.name = "a", .max = 2'000'000'000});
  question.Add({.name = "b", .max = 2'000'000'000});
  const ScaleUpPlan plan = question.Ask(WorkBudget(1'000'000, nullptr, int64_t{1} << 20));
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"a", 50'000'000}, {"b", 50'000'000}}));
  EXPECT_EQ(plan.nodes.size(), 2U);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kNotEnded);
}

// Nodes for pods that depend on others are tried out one by one: as many as there is memory for.
TEST(PlanTest, NodesThatAreTriedOutEndWithTheMemory) {
  Question question;
  FitPod pod = OfApp(100, "db");
  pod.rules.anti_affinity = {Term(Select("app", "db"), kHostnameLabel)};
  question.Pods(pod, 100'000'000);
  question.Add({.name = "a", .max = 2'000'000'000});
  const int64_t bytes = int64_t{1} << 20;
  const ScaleUpPlan plan = question.Ask(WorkBudget(1'000'000'000, nullptr, bytes));
  EXPECT_TRUE(plan.cut_short);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kOutOfMemory);
  int64_t nodes = 0;
  for (const PlannedNodes& run : plan.nodes) nodes += run.nodes;
  EXPECT_LE(nodes, bytes / 2'048);
}

// --- any cluster ------------------------------------------------------------------------------------------

FitPod RandomPod(int i) {
  const std::string app = "app-" + std::to_string(i);
  FitPod pod = OfApp(*rc::gen::inRange(0, 12) * 100, app);
  pod.requests[1].second = *rc::gen::inRange(0, 900);
  switch (*rc::gen::inRange(0, 7)) {
    case 0:
      pod.rules.anti_affinity = {Term(Select("app", app), kHostnameLabel)};
      break;
    case 1:
      pod.rules.has_spread = true;
      pod.rules.spread = {{.max_skew = *rc::gen::inRange(1, 3),
                           .topology_key = *rc::gen::element(std::string(kZone), std::string(kHostnameLabel)),
                           .selector = Select("app", app)}};
      break;
    case 2:
      pod.rules.host_ports = {{8080, "TCP", "0.0.0.0"}};
      break;
    case 3:
      pod.rules.node_selector =
          Labels(std::vector<Label>{{"pool", *rc::gen::element(std::string("x"), std::string("y"))}});
      break;
    default:
      break;
  }
  return pod;
}

Question RandomQuestion() {
  Question question;
  for (int i = 0; i < *rc::gen::inRange(0, 4); ++i) {
    question.cluster.Add({.name = "old-" + std::to_string(i),
                          .allocatable = {{"cpu", *rc::gen::inRange(0, 2000)}, {"memory", 1000}, {"pods", 5}},
                          .labels = {{kZone, i % 2 == 0 ? "a" : "b"}}});
  }
  for (int i = 0; i < *rc::gen::inRange(1, 6); ++i) question.Pods(RandomPod(i), *rc::gen::inRange(0, 12));
  for (int i = 0; i < *rc::gen::inRange(1, 5); ++i) {
    question.Add({.name = "group-" + std::to_string(i),
                  .milli_cpu = *rc::gen::inRange(5, 40) * 100,
                  .memory = *rc::gen::inRange(500, 4000),
                  .usd = *rc::gen::inRange(1, 20) * 0.25,
                  .max = *rc::gen::inRange(0, 9),
                  .zone = *rc::gen::element(std::string("a"), std::string("b"), std::string("c")),
                  .pool = *rc::gen::element(std::string("x"), std::string("y"))});
  }
  if (*rc::gen::inRange(0, 3) == 0) question.options.max_new_nodes = *rc::gen::inRange(1, 10);
  return question;
}

// Invariants C1, C2, C3.
RC_GTEST_PROP(PlanProperty, HoldsWhatItPromises, ()) {
  Question question = RandomQuestion();
  const ScaleUpPlan plan = question.Ask();
  const Check check = CheckPlan(&question, plan);
  RC_ASSERT(check.adds_up);
  RC_ASSERT(check.stuck == 0);
  double cost = 0;
  int64_t nodes = 0;
  std::vector<int64_t> growth(question.groups.size(), 0);
  for (const PlannedNodes& entry : plan.nodes) {
    RC_ASSERT(!entry.pods.empty());
    growth[static_cast<size_t>(entry.group)] += entry.nodes;
  }
  for (size_t i = 0; i < growth.size(); ++i) {
    cost += question.groups[i].usd_per_hour * static_cast<double>(growth[i]);
    nodes += growth[i];
    RC_ASSERT(growth[i] <=
              std::max<int64_t>(0, question.groups[i].size.max - question.groups[i].size.current));
  }
  RC_ASSERT(nodes <= question.options.max_new_nodes.value_or(nodes));
  RC_ASSERT(std::abs(cost - plan.cost) < 1e-9);
  RC_ASSERT(plan.lower_bound <= plan.cost);
  // Never worse than the best single option, which starts from the same room on existing nodes.
  int64_t left = 0, existing = 0, asked = 0;
  for (const int64_t count : plan.unplaced) left += count;
  for (const PendingPods& entry : question.pods()) asked += entry.count;
  Snapshot snapshot(question.cluster.state());
  const FitOptions options;
  std::vector<PendingPods> pods = question.pods();
  for (PendingPods& entry : pods) entry.pod.names = question.cluster.names();
  WorkBudget budget;
  Estimator estimator(&snapshot, &options, std::move(pods), {}, &budget);
  snapshot.Fork();
  for (const ExistingUse& use : estimator.UseExistingRoom(&budget)) existing += use.pods.count;
  const int64_t single_left = asked - existing - plan.best_single.pods;
  RC_ASSERT(left <= single_left);
  if (left == single_left) RC_ASSERT(plan.cost <= plan.best_single.cost + 1e-9);
}

RC_GTEST_PROP(PlanProperty, TheOrderOfTheQuestionDecidesNothing, ()) {
  Question question = RandomQuestion();
  const ScaleUpPlan plan = question.Ask();
  const std::map<std::string, int64_t> nodes = NodesOf(plan, question);
  std::reverse(question.groups.begin(), question.groups.end());
  const ScaleUpPlan again = question.Ask();
  RC_ASSERT(NodesOf(again, question) == nodes);
  RC_ASSERT(again.cost == plan.cost);
  RC_ASSERT(again.unplaced == plan.unplaced);
}

}  // namespace
}  // namespace loadline
