// One tenant, who makes pods come and go as he likes, does not hold the removals of all.
#include "core/drain/vanished_pods.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/drain/planner.h"
#include "test/core/drain/drain_cluster.h"

namespace loadline {
namespace {

// Pods of one namespace.
struct PodsOf {
  std::string namespace_name;
  std::string owner_kind;  // empty: none
  int64_t before = 0;
  int64_t now = 0;
};

// All on one node, each with an owner of its own.
FitCluster ClusterOf(const std::vector<PodsOf>& tenants, int64_t PodsOf::*count) {
  FitCluster cluster;
  std::vector<FitPod> pods;
  for (const PodsOf& tenant : tenants) {
    for (int64_t i = 0; i < tenant.*count; ++i) {
      FitPod pod = ReplicaPod("p", 1, 0, tenant.owner_kind + "-owner-" + std::to_string(i));
      pod.traits.owner->kind = tenant.owner_kind;
      pod.traits.owner->api_version.clear();
      if (tenant.owner_kind.empty()) pod.traits.owner.reset();
      pod.namespace_name = tenant.namespace_name;
      pods.push_back(std::move(pod));
    }
  }
  cluster.Add({.name = "a", .allocatable = {{"pods", 110}}}, pods);
  return cluster;
}

VanishedCounts Vanished(const std::vector<PodsOf>& tenants) {
  FitCluster before = ClusterOf(tenants, &PodsOf::before);
  FitCluster after = ClusterOf(tenants, &PodsOf::now);
  const std::vector<OwnerPods> now = CountPods(after.state());
  return VanishedPods(CountPods(before.state()), now, now, after.state().objects());
}

constexpr int64_t kMostPercent = 20;

TEST(TooManyVanishedTest, OneTenantDoesNotHoldAll) {
  struct Row {
    std::vector<PodsOf> tenants;
    bool too_many;
  };
  const std::vector<Row> rows = {
      {{{"evil", "Foo", 60, 0}, {"shop", "ReplicaSet", 200, 200}}, false},
      {{{"evil", "ReplicaSet", 60, 0}, {"shop", "ReplicaSet", 200, 200}}, false},
      {{{"evil", "", 900, 0}, {"shop", "ReplicaSet", 10, 10}}, false},
      {{{"evil", "", 900, 0}, {"shop", "ReplicaSet", 10, 8}}, false},  // 2 of 10 are not more than 20 %
      // Builds of several teams come and go: nobody says how many pods they want.
      {{{"ci-1", "", 60, 0}, {"ci-2", "Foo", 60, 0}, {"ci-3", "", 60, 0}, {"shop", "ReplicaSet", 200, 200}},
       false},
      // The view lost what all have.
      {{{"evil", "ReplicaSet", 60, 0}, {"shop", "ReplicaSet", 200, 150}}, true},
      {{{"default", "ReplicaSet", 900, 0}, {"kube-system", "ReplicaSet", 10, 7}}, true},
      // There is nobody else to compare with.
      {{{"default", "", 900, 0}}, true},
      {{{"default", "", 900, 700}, {"kube-system", "ReplicaSet", 9, 9}}, true},
      {{{"default", "", 900, 800}, {"kube-system", "ReplicaSet", 9, 9}}, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(TooManyVanished(Vanished(row.tenants), kMostPercent), row.too_many)
        << row.tenants[0].namespace_name << " " << row.tenants[0].owner_kind << " " << row.tenants[0].before;
  }
}

TEST(VanishedCountsTest, CountsByNamespaceAndByWhetherTheKindIsKnown) {
  const VanishedCounts counts =
      Vanished({{"a", "Foo", 30, 10}, {"a", "ReplicaSet", 10, 9}, {"b", "", 10, 5}, {"c", "Job", 7, 7}});
  EXPECT_EQ(counts.all, (VanishedCount{57, 26}));
  EXPECT_EQ(counts.unknown_kind, (VanishedCount{40, 25}));
  EXPECT_EQ(counts.one_namespace, (VanishedCount{40, 21}));
  EXPECT_EQ(counts.namespace_hash, HashOfNamespace("a"));
}

// Two namespaces lost pods; the text names the one that lost more.
TEST(VanishedCountsTest, TheBrakeNamesTheNamespace) {
  DrainCluster cluster;
  DrainNode node = {{.name = "a", .allocatable = {{"cpu", 1'000}, {"memory", 1'000}, {"pods", 110}}}};
  for (int i = 0; i < 40; ++i) {
    node.pods.push_back(ReplicaPod("p-" + std::to_string(i), 1));
    node.pods.back().namespace_name = i < 15 ? "shop" : "evil";
  }
  cluster.nodes = {node};
  DrainOptions options;
  WorkBudget budget;
  DrainModel before(cluster);
  DrainPlanner planner;
  planner.Plan(before.problem(), options, &budget);
  cluster.nodes[0].pods.resize(20);
  DrainModel after(cluster);
  DrainPlanner next;
  next.SetState(planner.state());
  EXPECT_EQ(next.Plan(after.problem(), options, &budget).brake, DrainBrake::kNone) << "the others lost none";
  cluster.nodes[0].pods.erase(cluster.nodes[0].pods.begin(), cluster.nodes[0].pods.begin() + 4);
  DrainModel later(cluster);
  next.SetState(planner.state());
  const DrainPlan& plan = next.Plan(later.problem(), options, &budget);
  EXPECT_EQ(plan.brake, DrainBrake::kPodsVanished);
  EXPECT_EQ(plan.brake_text,
            "24 of the 40 pods of the last loop are gone, and nothing says why; 20 were in namespace evil");
}

}  // namespace
}  // namespace loadline
