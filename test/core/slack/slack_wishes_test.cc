// The pods for which copies are kept, and their number.
#include "core/slack/slack_wishes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/core/slack/slack_world.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A workload as conversion leaves it: the owner and the age are stated with its pod.
struct TestWorkload {
  ObjectKind kind = ObjectKind::kReplicaSet;
  std::string name;
  int64_t replicas = 1;
  std::optional<int32_t> copies;
  std::string owner_kind = {};
  std::string owner = {};
  int64_t created_s = 0;
  std::string template_hash = {};
};

class SlackWishesTest : public ::testing::Test {
 protected:
  SlackWishesTest() { world_.AllowCopies("default"); }

  void Add(const TestWorkload& test) {
    FitPod pod;
    pod.requests = SlackWorld::Requests({100, 100});
    pod.labels = {{"app", test.owner.empty() ? test.name : test.owner}, {"job-name", test.name}};
    if (!test.template_hash.empty()) pod.labels.push_back({"pod-template-hash", test.template_hash});
    if (!test.owner.empty())
      pod.traits.owner = PodOwner{test.owner_kind, "v1", test.owner, "uid-" + test.owner};
    pod.traits.created_s = test.created_s;
    ClusterObject object;
    object.key = {test.kind, "default", test.name};
    Workload workload;
    workload.uid = "uid-" + test.name;
    workload.target_replicas = test.replicas;
    workload.slack.copies = test.copies;
    if (test.copies.has_value()) workload.pod = world_.cluster().Shape(pod);
    object.content = workload;
    world_.cluster().state().set_resource_names(world_.cluster().names());
    world_.cluster().state().objects().Set(object);
  }

  // A pod on a node of its own.
  void AddPod(const std::string& name, const std::string& owner, int32_t copies, const FitPod& like = {}) {
    FitPod pod = like;
    pod.requests = SlackWorld::Requests({100, 100});
    pod.name = name;
    pod.traits.slack.copies = copies;
    if (!owner.empty()) pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", owner, "uid-" + owner};
    world_.cluster().Add({.name = "node-of-" + name}, {pod});
  }

  SlackWishes Wishes() {
    SlackRooms rooms;
    std::vector<size_t> changed;
    rooms.CatchUp(world_.cluster().state(), {.label_keys = DefaultClassLabels()}, {}, &changed);
    return CollectWishes(world_.cluster().state(), rooms);
  }
  // How many copies there are in all.
  int64_t Copies() {
    int64_t copies = 0;
    for (const MirroredPod& pod : Wishes().pods) copies += pod.copies;
    return copies;
  }

  SlackWorld world_;
};

// Ten ReplicaSets that a Rollout scaled down, and the one that it runs now.
TEST_F(SlackWishesTest, OldReplicaSetsOfAnyOwnerDoNotCount) {
  for (int i = 0; i < 10; ++i) {
    Add({.name = "old-" + std::to_string(i),
         .replicas = 0,
         .copies = 2,
         .owner_kind = "Rollout",
         .owner = "web",
         .created_s = i});
  }
  Add({.name = "canary-before",
       .replicas = 3,
       .copies = 2,
       .owner_kind = "Rollout",
       .owner = "web",
       .created_s = 50});
  Add({.name = "now", .replicas = 3, .copies = 2, .owner_kind = "Rollout", .owner = "web", .created_s = 60});
  const SlackWishes wishes = Wishes();
  ASSERT_THAT(wishes.pods, SizeIs(1));
  EXPECT_EQ(wishes.pods[0].copies, 2);
  EXPECT_THAT(wishes.pods[0].sources, ElementsAre("ReplicaSet default/now"));
  Add({.name = "alone", .replicas = 0, .copies = 5});
  EXPECT_EQ(Copies(), 2) << "one without an owner that has no pods";
}

// Without an owner reference the name says it: that of the Deployment, and the hash of the template.
TEST_F(SlackWishesTest, ADeploymentSpeaksForTheReplicaSetsThatItsNameIsIn) {
  Add({.kind = ObjectKind::kDeployment, .name = "web", .copies = 2});
  Add({.name = "web-abc", .copies = 40, .template_hash = "abc"});
  EXPECT_EQ(Copies(), 2);
  Add({.name = "api-abc", .copies = 300, .template_hash = "abc"});
  EXPECT_EQ(Copies(), 302) << "there is no Deployment of that name";
  Add({.name = "web-def", .copies = 5'000, .template_hash = "abc"});
  EXPECT_EQ(Copies(), 5'302) << "the name ends in something else";
  Add({.name = "web-ghi", .copies = 60'000});
  EXPECT_EQ(Copies(), 65'302) << "it has no hash";
}

TEST_F(SlackWishesTest, JobsOfACronJobCountOnce) {
  Add({.kind = ObjectKind::kJob,
       .name = "night-1",
       .copies = 3,
       .owner_kind = "CronJob",
       .owner = "night",
       .created_s = 100});
  const std::string key = Wishes().pods.at(0).key;
  Add({.kind = ObjectKind::kJob,
       .name = "night-2",
       .copies = 3,
       .owner_kind = "CronJob",
       .owner = "night",
       .created_s = 200});
  const SlackWishes wishes = Wishes();
  ASSERT_THAT(wishes.pods, SizeIs(1));
  EXPECT_EQ(wishes.pods[0].copies, 3);
  EXPECT_EQ(wishes.pods[0].key, key) << "the next run is the same to slack";
  // Jobs of another owner count each by itself.
  Add({.kind = ObjectKind::kJob, .name = "step-1", .copies = 1, .owner_kind = "Workflow", .owner = "flow"});
  Add({.kind = ObjectKind::kJob, .name = "step-2", .copies = 1, .owner_kind = "Workflow", .owner = "flow"});
  EXPECT_EQ(Copies(), 5);
}

// Copies are kept for a pod that only says that a DaemonSet owns it, as for any other.
TEST_F(SlackWishesTest, PodsThatForgeADaemonSetMayAskForCopies) {
  FitPod pod;
  pod.requests = SlackWorld::Requests({100, 100});
  pod.name = "forged";
  pod.traits.slack.copies = 2;
  pod.traits.owner = PodOwner{"DaemonSet", "apps/v1", "agent", "forged"};
  world_.cluster().Add({.name = "node"}, {pod});
  EXPECT_EQ(Copies(), 0) << "nobody knows the DaemonSets";
  world_.cluster().state().objects().SetComplete(ObjectKind::kDaemonSet);
  EXPECT_EQ(Copies(), 2);
}

// The annotation counts on pods: of an owner that says nothing as of one that is not known.
TEST_F(SlackWishesTest, PodsCountWhereTheirWorkloadSaysNothing) {
  Add({.name = "web", .replicas = 2});
  AddPod("web-a", "web", 2);
  AddPod("web-b", "web", 3);
  AddPod("lone", "", 1);
  EXPECT_EQ(Copies(), 3 + 1);
  Add({.name = "web", .replicas = 2, .copies = 1});
  EXPECT_EQ(Copies(), 1 + 1) << "the workload speaks for its pods";
}

TEST_F(SlackWishesTest, OnlyNamespacesThatAnAdministratorLabelledHaveCopies) {
  Add({.name = "web", .copies = 2});
  AddPod("lone", "", 1);
  world_.AllowCopies("default", false);
  SlackWishes wishes = Wishes();
  EXPECT_THAT(wishes.pods, IsEmpty());
  ASSERT_THAT(wishes.errors, SizeIs(2));
  EXPECT_EQ(wishes.errors[0].source, "Pod default/lone");
  EXPECT_EQ(wishes.errors[1].text,
            "no copies: namespace default does not carry the label loadline.dev/slack-copies=allowed");
  world_.cluster().state().objects().Remove({ObjectKind::kNamespace, "", "default"});
  EXPECT_THAT(Wishes().pods, IsEmpty()) << "a namespace that is not known";
}

// An administrator may forbid them by another value of the label.
TEST_F(SlackWishesTest, CapacityBuffersNeedNoLabel) {
  Add({.kind = ObjectKind::kDeployment, .name = "capacitybuffer:fixed", .replicas = 0, .copies = 3});
  Add({.kind = ObjectKind::kDeployment, .name = "web", .replicas = 0, .copies = 5});
  Add({.name = "capacitybuffer:set", .copies = 7});
  EXPECT_EQ(Copies(), 3 + 5 + 7);
  world_.AllowCopies("default", false);
  EXPECT_EQ(Copies(), 3) << "a namespace without the label";
  ClusterObject object;
  object.key = {ObjectKind::kNamespace, "", "default"};
  object.content = Namespace{MakeLabels({{kCopiesLabel, "forbidden"}})};
  world_.cluster().state().objects().Set(object);
  EXPECT_EQ(Copies(), 0) << "a namespace with another value of it";
  world_.cluster().state().objects().Remove({ObjectKind::kNamespace, "", "default"});
  EXPECT_EQ(Copies(), 0) << "a namespace that is not known";
}

TEST_F(SlackWishesTest, CopiesTakeNoPortsOfTheNode) {
  FitPod pod;
  pod.rules.host_ports = {{443, "TCP", "0.0.0.0"}};
  AddPod("edge", "", 1, pod);
  ASSERT_THAT(Wishes().pods, SizeIs(1));
  EXPECT_EQ(Wishes().pods[0].shape.rules, nullptr);
}

// The known labels of a pod depend on what selectors ask for; its copies stay what they are.
TEST_F(SlackWishesTest, CopiesStayWhenASelectorAsksForAnotherLabel) {
  FitPod pod;
  AddPod("lone", "", 1, pod);
  const std::string key = Wishes().pods.at(0).key;
  pod.labels = {{"app", "x"}};
  pod.requests = SlackWorld::Requests({100, 100});
  pod.name = "lone";
  pod.traits.slack.copies = 1;
  world_.cluster().Put(Slot{0}, {.name = "node-of-lone"}, {pod});
  EXPECT_EQ(Wishes().pods.at(0).key, key);
}

// Names are as long as those of Kubernetes, and the report is bounded.
TEST_F(SlackWishesTest, WhatTenantsWriteIsCut) {
  FitPod pod;
  pod.requests = SlackWorld::Requests({100, 100});
  pod.name = "p";
  pod.traits.slack.copies = 1;
  pod.traits.owner = PodOwner{std::string(1'000'000, 'k'), "v1", std::string(1'000'000, 'n') + "\xff", "uid"};
  world_.cluster().Add({.name = "node"}, {pod});
  const SlackWishes wishes = Wishes();
  ASSERT_THAT(wishes.pods, SizeIs(1));
  ASSERT_THAT(wishes.pods[0].sources, SizeIs(1));
  EXPECT_EQ(wishes.pods[0].sources[0].size(), 2 * (253 + 3) + std::string(" default/").size());
  for (int i = 0; i < 2'000; ++i) Add({.name = "w" + std::to_string(i), .copies = 1});
  EXPECT_THAT(Wishes().pods, SizeIs(kMostMirrored));
  EXPECT_THAT(Wishes().errors, SizeIs(kMostWishErrors));
  EXPECT_EQ(Wishes().errors_total, 1'001);
}

}  // namespace
}  // namespace loadline
