#include "core/size/group_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/cluster/startup_taints.h"
#include "test/core/size/pass_time.h"

namespace loadline {
namespace {

// A cluster of random nodes in pools, with random pods, that also keeps what a count by hand needs.
class RandomPools {
 public:
  explicit RandomPools(uint64_t seed) : random_(seed) {
    for (int i = 0; i < kShapes; ++i) shapes_.push_back(MakeShape(i));
    const int nodes = Pick(0, 12);
    for (int i = 0; i < nodes; ++i) AddNode(i);
  }

  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  static constexpr int kShapes = 24;
  struct Node {
    Slot slot;
    std::string name;
    std::string pool;
    NodeClass node_class;
    std::vector<int> pods;  // shapes
  };
  ClusterState cluster;
  std::vector<Node> nodes;
  const std::vector<PodShape>& shapes() const { return shapes_; }

  // By hand, of a group of one label.
  static bool Wants(const PodShape& shape, const SizedGroup& group) {
    const PodTraits& traits = TraitsOf(shape);
    if (traits.owner.has_value() && traits.owner->kind == "DaemonSet") return false;
    const Labels none;
    const Labels& selector = shape.rules == nullptr ? none : shape.rules->node_selector;
    if (group.pods.catch_all) return selector.empty() && !traits.states_affinity;
    const std::string* const value = selector.Find("pool");
    if (value != nullptr && *value == *group.pods.labels.Find("pool")) return true;
    if (shape.rules == nullptr || !shape.rules->node_affinity.has_value()) return false;
    return shape.rules->node_affinity->terms[0].labels[0].values[0] == *group.pods.labels.Find("pool");
  }

 private:
  PodShape MakeShape(int number) {
    PodResources resources;
    ResourceList& requests = resources.containers.emplace_back().requests;
    if (Pick(0, 4) > 0) requests[kCpu] = Quantity::FromMilli(Pick(0, 2000));
    if (Pick(0, 4) > 0) requests[kMemory] = Quantity::FromUnits(Pick(0, 1 << 20));
    PodRules rules;
    if (Pick(0, 1) == 0) rules.node_selector = Labels({{"pool", "p" + std::to_string(Pick(0, 2))}});
    if (Pick(0, 3) == 0) {
      NodeSelectorTerm term;
      term.labels.push_back({"pool", SelectorOperator::kIn, {"p" + std::to_string(Pick(0, 2))}});
      rules.node_affinity = NodeSelector{{term}};
    }
    PodTraits traits;
    traits.states_affinity = rules.node_affinity.has_value() || Pick(0, 5) == 0;
    if (Pick(0, 2) == 0) traits.owner = PodOwner{"DaemonSet", "apps/v1", "d" + std::to_string(number), ""};
    if (Pick(0, 2) == 0) traits.container_requests = CpuMemory{Pick(0, 2000), Pick(0, 1 << 20)};
    return MakePodShape("ns" + std::to_string(number), Pick(0, 6) == 0, resources, names_, PodRole::kExisting,
                        std::move(rules), std::move(traits));
  }

  void AddNode(int number) {
    Node node{Slot{number * 2},
              "n" + std::to_string(100 - number),
              "p" + std::to_string(Pick(0, 2)),
              static_cast<NodeClass>(Pick(0, 3)),
              {}};
    std::vector<Taint> taints;
    if (node.node_class == NodeClass::kTainted) taints.push_back({kRemovalTaint, "1600000000", "NoSchedule"});
    if (node.node_class == NodeClass::kForceTainted) taints.push_back({kForceRemovalTaint, "", "NoExecute"});
    ResourceAmounts allocatable;
    allocatable[kCpu] = 4000;
    allocatable[kMemory] = 1 << 24;
    std::vector<PodContent> pods;
    for (int i = Pick(0, 6); i > 0; --i) {
      const int shape = Pick(0, kShapes - 1);
      node.pods.push_back(shape);
      pods.push_back({cluster.pod_shapes().Acquire(shapes_[static_cast<size_t>(shape)]), 0, "p", "", 0});
    }
    cluster.SetNode(node.slot, node.name,
                    MakeNodeShape(allocatable, names_, Labels({{"pool", node.pool}}), taints,
                                  node.node_class == NodeClass::kCordoned),
                    pods);
    nodes.push_back(std::move(node));
  }

  std::mt19937_64 random_;
  ResourceNames names_;
  std::vector<PodShape> shapes_;
};

std::vector<SizedGroup> Groups(SizeMode mode) {
  std::vector<SizedGroup> groups;
  for (const std::string pool : {"p0", "p1", "p2"}) {
    SizedGroup& group = groups.emplace_back();
    group.name = pool;
    group.pods.labels = Labels({{"pool", pool}});
    group.pods.catch_all = pool == "p2";
    group.options.mode = mode;
  }
  return groups;
}

CpuMemory RequestsOf(const PodShape& shape, SizeMode mode) {
  const CpuMemory effective{shape.requests.Get(kCpu), shape.requests.Get(kMemory)};
  return mode == SizeMode::kCompat ? TraitsOf(shape).container_requests.value_or(effective) : effective;
}

void CheckGroup(const RandomPools& pools, const std::vector<WaitingPods>& waiting, const SizedGroup& group,
                const GatheredGroup& gathered) {
  const SizeMode mode = group.options.mode;
  CpuMemory requests;
  int64_t pods = 0, pending = 0, nodes = 0, too_large = 0;
  std::vector<CpuMemory> empty;  // what the nodes of the group offer beside their DaemonSet pods
  for (const RandomPools::Node& node : pools.nodes) {
    CpuMemory daemons;
    int64_t members = 0, others = 0;
    for (const int number : node.pods) {
      const PodShape& shape = pools.shapes()[static_cast<size_t>(number)];
      if (shape.finished) continue;
      const bool of_daemon_set = TraitsOf(shape).owner.has_value();
      if (of_daemon_set) daemons = Plus(daemons, RequestsOf(shape, SizeMode::kDefault));
      others += of_daemon_set ? 0 : 1;
      if (!RandomPools::Wants(shape, group)) continue;
      requests = Plus(requests, RequestsOf(shape, mode));
      ++members;
    }
    pods += members;
    if (node.pool != *group.pods.labels.Find("pool")) continue;
    ++nodes;
    empty.push_back(
        {std::max<int64_t>(0, 4000 - daemons.cpu), std::max<int64_t>(0, (1 << 24) - daemons.memory)});
    const auto found = std::find_if(gathered.facts.nodes.begin(), gathered.facts.nodes.end(),
                                    [&](const GroupNode& candidate) { return candidate.name == node.name; });
    ASSERT_NE(found, gathered.facts.nodes.end());
    EXPECT_EQ(gathered.slots[static_cast<size_t>(found - gathered.facts.nodes.begin())], node.slot);
    EXPECT_EQ(found->node_class, node.node_class);
    EXPECT_EQ(found->daemons, daemons);
    EXPECT_EQ(found->empty, (mode == SizeMode::kCompat ? members : others) == 0);
    EXPECT_EQ(found->tainted_ms.has_value(), node.node_class == NodeClass::kTainted);
  }
  for (const WaitingPods& entry : waiting) {
    if (entry.waiting == Waiting::kToStart || !RandomPools::Wants(entry.shape, group)) continue;
    if (entry.shape.finished || (entry.waiting == Waiting::kForGate && mode == SizeMode::kDefault)) continue;
    const CpuMemory pod = RequestsOf(entry.shape, mode);
    if (mode == SizeMode::kDefault && nodes > 0 &&
        std::none_of(empty.begin(), empty.end(), [&](const CpuMemory& node) {
          return pod.cpu <= node.cpu && pod.memory <= node.memory;
        })) {
      too_large += entry.count;
      continue;
    }
    requests = Plus(requests, Times(pod, entry.count));
    pending += entry.count;
  }
  EXPECT_EQ(gathered.pods_too_large, too_large);
  EXPECT_EQ(gathered.facts.requests, requests);
  EXPECT_EQ(gathered.facts.pods, pods + pending);
  EXPECT_EQ(gathered.facts.pending_pods, pending);
  EXPECT_EQ(static_cast<int64_t>(gathered.facts.nodes.size()), nodes);
  for (size_t i = 1; i < gathered.facts.nodes.size(); ++i) {
    EXPECT_LT(gathered.facts.nodes[i - 1].name, gathered.facts.nodes[i].name);
  }
}

TEST(GroupFactsTest, AreWhatACountByHandGives) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomPools pools(seed);
    std::vector<WaitingPods> waiting;
    for (int i = pools.Pick(0, 4); i > 0; --i) {
      waiting.push_back({pools.shapes()[static_cast<size_t>(pools.Pick(0, RandomPools::kShapes - 1))],
                         pools.Pick(0, 5), static_cast<Waiting>(pools.Pick(0, 2))});
    }
    for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
      const std::vector<SizedGroup> groups = Groups(mode);
      const auto gathered = GatherFacts(pools.cluster, groups, waiting, kPassTime);
      ASSERT_TRUE(gathered.ok()) << gathered.status();
      ASSERT_EQ(gathered->size(), groups.size());
      for (size_t i = 0; i < groups.size(); ++i) CheckGroup(pools, waiting, groups[i], (*gathered)[i]);
    }
  }
}

// 2,001 nodes in 2,000 groups each are more than is kept.
TEST(GroupFactsTest, TooManyMembershipsAreRefused) {
  const Labels labels(std::vector<Label>{{"pool", "x"}});
  std::vector<SizedGroup> groups(2000);
  for (SizedGroup& group : groups) group.pods.labels = labels;
  ClusterState cluster;
  const auto add = [&](int i) {
    cluster.SetNode(Slot{i}, "n" + std::to_string(i), MakeNodeShape({}, ResourceNames(), labels), {});
  };
  for (int i = 0; i < 2000; ++i) add(i);
  EXPECT_TRUE(GatherFacts(cluster, groups, {}, kPassTime).ok());
  add(2000);
  EXPECT_EQ(GatherFacts(cluster, groups, {}, kPassTime).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// A group of nodes of 1000m in which pods ask for pool=x.
class PoolFactsTest : public ::testing::Test {
 protected:
  PoolFactsTest() : groups_(1) {
    groups_[0].name = "pool";
    groups_[0].pods.labels = Labels(std::vector<Label>{{"pool", "x"}});
    groups_[0].options.scale_on_starve = true;
  }

  NodeShape PoolNode(int64_t cpu) {
    ResourceAmounts allocatable;
    allocatable[kCpu] = cpu;
    allocatable[kMemory] = 1000;
    return MakeNodeShape(allocatable, names_, Labels(std::vector<Label>{{"pool", "x"}}));
  }

  PodShape Member(int64_t cpu, const std::string& resource = "", PodTraits traits = {}) {
    PodResources resources;
    ResourceList& requests = resources.containers.emplace_back().requests;
    requests[kCpu] = Quantity::FromMilli(cpu);
    requests[kMemory] = Quantity::FromUnits(1);
    if (!resource.empty()) requests[names_.Intern(resource)] = Quantity::FromUnits(1);
    return MakeMember(resources, std::move(traits));
  }

  PodShape MakeMember(const PodResources& resources, PodTraits traits = {}) {
    PodRules rules;
    rules.node_selector = Labels(std::vector<Label>{{"pool", "x"}});
    return MakePodShape("", false, resources, names_, PodRole::kExisting, std::move(rules),
                        std::move(traits));
  }

  void AddPoolNode(int64_t cpu, const std::vector<PodShape>& pods) {
    std::vector<PodContent> contents;
    for (const PodShape& pod : pods) contents.push_back({cluster_.pod_shapes().Acquire(pod), 0, "p", "", 0});
    cluster_.set_resource_names(names_);
    const Slot slot{cluster_.slot_end()};
    cluster_.SetNode(slot, "n" + std::to_string(cluster_.slot_end()), PoolNode(cpu), contents);
  }

  GatheredGroup GatherPool(const std::vector<WaitingPods>& waiting) {
    const auto gathered = GatherFacts(cluster_, groups_, waiting, kPassTime);
    EXPECT_TRUE(gathered.ok()) << gathered.status();
    return gathered->at(0);
  }

  ResourceNames names_;
  ClusterState cluster_;
  std::vector<SizedGroup> groups_;
};

// A group that grows for its own placeholders needs more of them, and grows for ever.
TEST_F(PoolFactsTest, PlaceholdersOfSlackAreNoDemandAndKeepNoNode) {
  PodTraits traits;
  traits.placeholder = true;
  const PodShape placeholder = Member(300, "", traits);
  AddPoolNode(1000, {placeholder, placeholder});
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    groups_[0].options.mode = mode;
    const GatheredGroup gathered = GatherPool({{placeholder, 5}});
    EXPECT_EQ(gathered.facts.requests, CpuMemory());
    EXPECT_EQ(gathered.facts.pods, 0);
    EXPECT_EQ(gathered.facts.pending_pods, 0);
    EXPECT_EQ(gathered.uncounted_pods, 0);
    EXPECT_TRUE(gathered.facts.nodes[0].empty);
    EXPECT_THAT(gathered.may_starve, ::testing::IsEmpty());
  }
}

TEST_F(PoolFactsTest, PodsThatNoNodeCanTakeAreNoDemand) {
  PodTraits daemon;
  daemon.owner = PodOwner{"DaemonSet", "apps/v1", "d", "u"};
  AddPoolNode(1000, {Member(100, "", daemon), Member(200)});
  AddPoolNode(800, {});
  const std::vector<WaitingPods> waiting = {
      {Member(900), 2}, {Member(901), 3}, {Member(10, "example.com/gpu"), 4}, {Member(5000), 0}};
  GatheredGroup gathered = GatherPool(waiting);
  EXPECT_EQ(gathered.facts.requests, (CpuMemory{2000, 3}));  // 200m there, and twice 900m
  EXPECT_EQ(gathered.facts.pods, 3);
  EXPECT_EQ(gathered.facts.pending_pods, 2);
  EXPECT_EQ(gathered.pods_too_large, 7);
  EXPECT_EQ(gathered.too_large, 1);
  EXPECT_THAT(gathered.may_starve, ::testing::ElementsAre(0));
  // A template that is larger, and has the resource.
  groups_[0].new_node = PoolNode(1200);
  groups_[0].new_node->allocatable[names_.Intern("example.com/gpu")] = 1;
  groups_[0].new_node_daemons = {299, 0};
  gathered = GatherPool(waiting);
  EXPECT_EQ(gathered.pods_too_large, 0);
  groups_[0].new_node_daemons = {300, 0};
  EXPECT_EQ(GatherPool(waiting).pods_too_large, 3);
  // Escalator counts them all.
  groups_[0].options.mode = SizeMode::kCompat;
  gathered = GatherPool(waiting);
  EXPECT_EQ(gathered.pods_too_large, 0);
  EXPECT_EQ(gathered.facts.pending_pods, 9);
}

TEST_F(PoolFactsTest, TheNodeThatWasThereLastTellsWhatIsTooLarge) {
  const std::vector<WaitingPods> waiting = {{Member(1001), 1}};
  EXPECT_EQ(GatherPool(waiting).pods_too_large, 0) << "nothing is known of its nodes";
  groups_[0].cached_node = {1000, 1000};
  EXPECT_EQ(GatherPool(waiting).pods_too_large, 1);
  groups_[0].cached_node = {1001, 1000};
  EXPECT_EQ(GatherPool(waiting).pods_too_large, 0);
}

TEST_F(PoolFactsTest, AContainerWithoutRequestsBesideOneThatHasThemIsToldOf) {
  PodResources resources;
  for (int i = 0; i < 2; ++i) {
    ResourceList& requests = resources.containers.emplace_back().requests;
    requests[kCpu] = Quantity::FromMilli(100);
    requests[kMemory] = Quantity::FromUnits(10);
  }
  AddPoolNode(1000, {MakeMember(resources)});
  EXPECT_EQ(GatherPool({}).pods_without_requests, 0);
  PodResources partly = resources;
  partly.containers[1].requests.clear();
  PodResources no_memory = resources;
  no_memory.containers[1].requests[kMemory] = Quantity();
  AddPoolNode(1000, {MakeMember(partly), MakeMember(no_memory)});
  EXPECT_EQ(GatherPool({}).pods_without_requests, 2);
  // The pod level states them for all.
  partly.pod_level.emplace().requests = resources.containers[0].requests;
  AddPoolNode(1000, {MakeMember(partly)});
  EXPECT_EQ(GatherPool({}).pods_without_requests, 2);
}

}  // namespace
}  // namespace loadline
