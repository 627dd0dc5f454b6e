// The effects of a policy of slack: classes, groups, devices, copies and work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/slack/slack_planner.h"
#include "test/core/slack/slack_world.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Nodes of 4000, each full but for 400: half of what is requested fits nowhere.
class SlackPolicyTest : public ::testing::Test {
 protected:
  SlackPolicyTest() { options_.rate = kWholeRate / 2; }

  FitNode Node(const std::string& name, int64_t milli_cpu = 4000) const {
    return {.name = name,
            .allocatable = {{"cpu", milli_cpu}, {"memory", 16'000}, {"pods", 110}},
            .labels = {{"topology.kubernetes.io/zone", "a"}}};
  }
  void AddFull(const FitNode& node, std::vector<Label> selector = {}) {
    FitPod pod;
    pod.requests = {{"cpu", 3600}};
    pod.rules.node_selector = MakeLabels(std::move(selector));
    world_.cluster().Add(node, {pod});
  }
  void AddGroup(const std::string& name, const FitNode& node, std::optional<double> usd = {},
                int64_t may_add = 10) {
    SlackGroup group;
    group.of = &node_groups_.emplace_back(
        NodeGroup{.name = name, .model = NodeModel{world_.cluster().Shape(node)}, .usd_per_hour = usd});
    group.empty = {CpuMemoryOf(group.of->model->shape.allocatable), 110};
    group.may_add = may_add;
    group.nodes = 1;
    groups_.push_back(std::move(group));
  }
  SlackPlan Plan() {
    world_.cluster().state().set_resource_names(world_.cluster().names());
    SlackQuestion question = world_.Question(options_, now_s_);
    if (!groups_.empty()) question.groups = groups_;
    return PlanSlackOnce(&planner_, question);
  }
  std::vector<std::string> Grown(const SlackPlan& plan) const {
    std::vector<std::string> grown;
    for (const SlackDemand& demand : plan.demands) {
      for (const NewNodesOfGroup& nodes : demand.groups) {
        grown.push_back(groups_[nodes.group].of->name + " " + std::to_string(nodes.nodes));
      }
    }
    return grown;
  }

  SlackWorld world_;
  SlackOptions options_;
  SlackPlanner planner_;
  std::deque<NodeGroup> node_groups_;  // stay where they are
  SlackGroupList groups_;
  int64_t now_s_ = 1000;
};

// 1800m in parts of at most 800m: three of 600m.
TEST_F(SlackPolicyTest, AGroupMayBeLeftOutOrHeldToANumberOfNodes) {
  AddFull(Node("a"));
  AddGroup("g", Node("template"));
  EXPECT_THAT(Grown(Plan()), ElementsAre("g 1"));
  options_.group_rules = {{.group = "g", .max_nodes = 1}};
  SlackPlan plan = Plan();
  EXPECT_THAT(plan.demands, IsEmpty());
  EXPECT_EQ(plan.classes[0].reason, "no node may come for 3 placeholders");
  options_.group_rules = {{.group = "g", .off = true}};
  planner_ = SlackPlanner();
  plan = Plan();
  EXPECT_EQ(plan.classes[0].count, 0);
  EXPECT_EQ(plan.classes[0].reason, "slack is switched off for the node groups of this class");
}

TEST_F(SlackPolicyTest, AClassMayBeLeftOutOrHaveALimitOfItsOwn) {
  AddFull(Node("a"));
  options_.class_rules = {{.labels = MakeLabels({{"topology.kubernetes.io/zone", "b"}}), .off = true},
                          {.max_extra = CpuMemory{300, 300}}};
  EXPECT_EQ(Plan().classes[0].extra, (CpuMemory{300, 0}));
  options_.class_rules[0].labels = MakeLabels({{"topology.kubernetes.io/zone", "a"}});
  planner_ = SlackPlanner();
  const SlackPlan plan = Plan();
  EXPECT_EQ(plan.classes[0].count, 0);
  EXPECT_EQ(plan.classes[0].reason, "slack is switched off for this class");
  EXPECT_THAT(plan.demands, IsEmpty());
}

// A node of GPUs is not bought for cpu and memory, but where the policy says so or all nodes have such.
TEST_F(SlackPolicyTest, NodesWithDevicesComeOnlyForWhoNeedsThem) {
  const auto with = [&](const std::string& resource) {
    FitNode node = Node("a");
    node.allocatable.push_back({resource, 8});
    return node;
  };
  AddFull(with("nvidia.com/gpu"));
  AddGroup("gpus", with("nvidia.com/gpu"), 30);
  SlackPlan plan = Plan();
  EXPECT_THAT(plan.demands, IsEmpty());
  EXPECT_EQ(plan.classes[0].status, SlackStatus::kLimited);
  EXPECT_THAT(plan.classes[0].reason, HasSubstr("have nvidia.com/gpu, of which it needs none"));
  options_.buy_extended_resources = true;
  EXPECT_THAT(Grown(Plan()), ElementsAre("gpus 1"));
  options_.buy_extended_resources = false;
  options_.common_resources = {"nvidia.com/"};
  EXPECT_THAT(Grown(Plan()), ElementsAre("gpus 1"));
  // A copy of a pod that needs one brings such a node; a copy of another does not.
  options_ = SlackOptions();
  options_.rate = 0;
  FitPod pod;
  pod.requests = {{"cpu", 1000}};
  world_.Mirror("plain", pod, 1);
  EXPECT_THAT(Plan().demands, IsEmpty());
  pod.requests.push_back({"nvidia.com/gpu", 1});
  world_.Mirror("plain", pod, 1);
  EXPECT_THAT(Grown(Plan()), ElementsAre("gpus 1"));
}

// 3800m are wanted, in three parts of at most 1600m. The pod could not run on a plain node, however cheap, so
// its slack is of no use there; that of a pod without a device is.
TEST_F(SlackPolicyTest, NodesWithoutTheDevicesOfItsPodsTakeNoPlaceholder) {
  FitNode gpus = Node("a", 8000);
  gpus.allocatable.push_back({"nvidia.com/gpu", 2});
  FitPod pod;
  pod.requests = {{"cpu", 7600}, {"nvidia.com/gpu", 2}};
  world_.cluster().Put(Slot{0}, gpus, {pod});
  AddGroup("plain", Node("plain"), 0.2);
  AddGroup("gpus", gpus, 3);
  SlackPlan plan = Plan();
  EXPECT_THAT(plan.demands, IsEmpty());
  const auto of_gpus = std::find_if(plan.classes.begin(), plan.classes.end(),
                                    [](const ClassSlack& slack) { return slack.count > 0; });
  ASSERT_NE(of_gpus, plan.classes.end());
  EXPECT_EQ(of_gpus->count, 3);
  EXPECT_EQ(of_gpus->status, SlackStatus::kLimited);
  options_.buy_extended_resources = true;
  EXPECT_THAT(Grown(Plan()), ElementsAre("gpus 1"));
  options_.buy_extended_resources = false;
  pod.requests.pop_back();
  world_.cluster().Put(Slot{0}, gpus, {pod});
  EXPECT_THAT(Grown(Plan()), ElementsAre("plain 1"));
}

// 2 cores at 1.00 USD are smaller, 4 at 0.20 USD cost less.
TEST_F(SlackPolicyTest, PriceComesBeforeSize) {
  AddFull(Node("a"));
  AddGroup("small", Node("template", 4000), 1.0);
  AddGroup("large", Node("template", 8000), 0.2);
  groups_.back().may_add = 1;
  EXPECT_THAT(Grown(Plan()), ElementsAre("large 1"));
  node_groups_[1].usd_per_hour = 5.0;
  planner_ = SlackPlanner();
  EXPECT_THAT(Grown(Plan()), ElementsAre("small 1"));
}

// One pod that selects nodes by their type is created and deleted: what is kept stays, by number and by name.
TEST_F(SlackPolicyTest, APodThatSelectsATypeChangesNoPlaceholder) {
  FitNode node = Node("a");
  node.labels.push_back({"node.kubernetes.io/instance-type", "m5"});
  AddFull(node);
  node.name = "b";
  world_.cluster().Add(node, {});
  Plan();
  const SlackState before = planner_.State();
  ASSERT_THAT(before.placeholders, SizeIs(3));
  FitPod typed;
  typed.requests = {{"cpu", 0}};
  typed.rules.node_selector = MakeLabels({{"node.kubernetes.io/instance-type", "m5"}});
  for (const bool there : {true, false, true}) {
    world_.cluster().Put(Slot{1}, node, there ? std::vector<FitPod>{typed} : std::vector<FitPod>{});
    const SlackPlan plan = Plan();
    EXPECT_EQ(plan.added + plan.removed + plan.pushed_out, 0);
    EXPECT_EQ(planner_.State().placeholders, before.placeholders);
    EXPECT_EQ(plan.classes[0].rules.node_selector.size(), 2u) << "the type is needed from the first pod on";
  }
}

// 3000m wait for a node: their slack is asked for with it.
TEST_F(SlackPolicyTest, PodsThatWaitWantSlackAsThoseThatRun) {
  AddFull(Node("a"));
  AddGroup("g", Node("template"));
  SlackQuestion question = world_.Question(options_);
  question.groups = groups_;
  FitPod pod;
  pod.requests = {{"cpu", 3000}};
  question.waiting.push_back({world_.cluster().Incoming(pod), 1});
  EXPECT_EQ(PlanSlackOnce(&planner_, question).classes[0].basis.cpu, 6600);
  question.waiting[0].group = SlackGroupIndex{0};
  EXPECT_EQ(PlanSlackOnce(&planner_, question).classes[0].basis.cpu, 6600);
}

TEST_F(SlackPolicyTest, CopiesOfANamespaceAreBounded) {
  options_.rate = 0;
  for (int i = 0; i < 3; ++i) world_.cluster().Add(Node("node-" + std::to_string(i)));
  FitPod pod;
  pod.requests = {{"cpu", 1000}};
  world_.Mirror("web", pod, 9);
  options_.max_copies_room_per_namespace = {4500, 1000};
  SlackPlan plan = Plan();
  ASSERT_THAT(plan.mirrored, SizeIs(1));
  EXPECT_EQ(plan.mirrored[0].count, 4);
  EXPECT_EQ(plan.mirrored[0].status, SlackStatus::kLimited);
  EXPECT_EQ(plan.mirrored[0].reason, "copies of namespace default request at most 4500m cpu");
  options_.max_copies_per_namespace = 3;
  plan = Plan();
  EXPECT_EQ(plan.mirrored[0].count, 3);
  EXPECT_EQ(plan.mirrored[0].reason, "at most 3 copies of namespace default");
  options_.max_copies = 2;
  EXPECT_EQ(Plan().mirrored[0].reason, "at most 2 copies in all");
}

// A plan that is cut short says so, asks for nothing that it did not work out, and the next one continues.
TEST_F(SlackPolicyTest, APlanEndsWithItsBudget) {
  options_.rate = 0;
  for (int i = 0; i < 3; ++i) world_.cluster().Add(Node("node-" + std::to_string(i)));
  FitPod pod;
  pod.requests = {{"cpu", 100}};
  world_.Mirror("web", pod, 50);
  world_.cluster().state().set_resource_names(world_.cluster().names());
  WorkBudget little(200);
  const SlackQuestion question = world_.Question(options_);
  const SlackPlan plan = planner_.Plan(question, &little);
  EXPECT_EQ(plan.cut_short, BudgetEnd::kOutOfWork);
  // Some units are for the order of the nodes, and each copy takes 12: to search, to look, to be placed.
  EXPECT_EQ(plan.mirrored[0].placed, 16);
  EXPECT_THAT(plan.mirrored[0].reason, HasSubstr("out of work"));
  EXPECT_THAT(plan.demands, IsEmpty());
  EXPECT_EQ(PlanSlackOnce(&planner_, question).mirrored[0].placed, 50);
}

// Copies that a plan had no work to look at keep their place.
TEST_F(SlackPolicyTest, APlanThatEndsTakesNoCopyAway) {
  options_.rate = 0;
  for (int i = 0; i < 3; ++i) world_.cluster().Add(Node("node-" + std::to_string(i)));
  FitPod pod;
  pod.requests = {{"cpu", 100}};
  world_.Mirror("web", pod, 50);
  world_.cluster().state().set_resource_names(world_.cluster().names());
  const SlackQuestion question = world_.Question(options_);
  ASSERT_EQ(PlanSlackOnce(&planner_, question).mirrored[0].placed, 50);
  const SlackState before = planner_.State();
  WorkBudget no_work(0);
  WorkBudget no_memory(1'000'000, nullptr, 52 * kPlaceholderBytes);
  for (WorkBudget* const budget : {&no_work, &no_memory}) {
    const SlackPlan plan = planner_.Plan(question, budget);
    EXPECT_EQ(plan.mirrored[0].placed, 50);
    EXPECT_EQ(plan.cut_short, budget->end());
    EXPECT_TRUE(budget->ended());
    EXPECT_EQ(planner_.State(), before);
  }
}

// 50 copies take 1 KiB each: where there is less, none come.
TEST_F(SlackPolicyTest, PlaceholdersTakeMemory) {
  options_.rate = 0;
  world_.cluster().Add(Node("node"));
  FitPod pod;
  pod.requests = {{"cpu", 10}};
  world_.Mirror("web", pod, 50);
  world_.cluster().state().set_resource_names(world_.cluster().names());
  WorkBudget little(1'000'000, nullptr, 50 * kPlaceholderBytes - 1);
  const SlackPlan plan = planner_.Plan(world_.Question(options_), &little);
  EXPECT_EQ(plan.cut_short, BudgetEnd::kOutOfMemory);
  EXPECT_EQ(plan.added, 0);
  EXPECT_EQ(PlanSlackOnce(&planner_, world_.Question(options_)).added, 50);
}

// A pod that names a DaemonSet which there is not counts as a pod, and takes nothing off what nodes offer:
// else half of nothing would be kept, and a new node would seem to be full.
TEST_F(SlackPolicyTest, PodsThatForgeADaemonSetWantSlackAsOthers) {
  FitPod forged;
  forged.requests = {{"cpu", 2000}};
  forged.traits.owner = PodOwner{"DaemonSet", "apps/v1", "agent", "forged"};
  world_.cluster().Add(Node("node"), {forged});
  SlackPlan plan = Plan();
  EXPECT_EQ(plan.classes[0].extra.cpu, 0);
  EXPECT_EQ(plan.classes[0].empty.room.cpu, 2000) << "nobody knows the DaemonSets";
  ClusterObject agent;
  agent.key = {ObjectKind::kDaemonSet, "default", "agent"};
  agent.content = Workload{.uid = "agent"};
  world_.cluster().state().objects().Set(agent);
  world_.cluster().state().objects().SetComplete(ObjectKind::kDaemonSet);
  plan = Plan();
  EXPECT_EQ(plan.classes[0].extra.cpu, 1000);
  EXPECT_EQ(plan.classes[0].empty.room.cpu, 4000);
  agent.content = Workload{.uid = "forged"};
  world_.cluster().state().objects().Set(agent);
  plan = Plan();
  EXPECT_EQ(plan.classes[0].extra.cpu, 0) << "now it exists";
}

// The answer of MayBeOn() is that of the scheduler about the rules that the objects carry.
TEST_F(SlackPolicyTest, RulesOfPlaceholdersSayWhereTheyMayBe) {
  const LabelKeys keys = {"disk", "node.kubernetes.io/instance-type", "zone"};
  for (const LabelKeys& selected :
       {LabelKeys{"disk"}, LabelKeys{"disk", "node.kubernetes.io/instance-type"}}) {
    Dice dice(7);
    std::vector<FitNode> nodes;
    for (int i = 0; i < 40; ++i) {
      FitNode& node = nodes.emplace_back(FitNode{.name = "n"});
      if (dice.OneIn(2)) node.labels.push_back({"disk", dice.OneIn(2) ? "ssd" : "hdd"});
      if (dice.OneIn(2)) node.labels.push_back({"zone", "a"});
      node.labels.push_back({"node.kubernetes.io/instance-type", dice.OneIn(2) ? "s" : "m"});
      for (const char* const key : {"x", "y"}) {
        if (dice.OneIn(3)) node.taints.push_back({key, dice.OneIn(2) ? "1" : "2", "NoSchedule"});
      }
    }
    LabelKeys needed = keys;
    if (selected.size() == 1) needed = {"disk", "zone"};
    int may = 0;
    for (const FitNode& of : nodes) {
      const SlackClassKey placeholder =
          ClassOf(world_.cluster().Shape(of), {keys, selected, {}}, ResourceNames());
      FitPod pod;
      pod.rules = PlaceholderRules(placeholder, AbsentLabels(placeholder, needed));
      for (const FitNode& on : nodes) {
        FitCluster cluster;
        cluster.Add(on);
        Snapshot snapshot(cluster.state());
        const FitOptions fit;
        const bool fits = PodFit(&snapshot, cluster.Incoming(pod), &fit).Fits(NodeIndex{0});
        EXPECT_EQ(MayBeOn(placeholder, ClassOf(cluster.Shape(on), {keys, selected, {}}, ResourceNames())),
                  fits);
        may += fits ? 1 : 0;
      }
    }
    EXPECT_GT(may, 100);
  }
}

}  // namespace
}  // namespace loadline
