#include "core/base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/cluster/scoped_fork.h"
#include "core/cluster/snapshot.h"
#include "core/drain/drain_trial.h"
#include "core/fit/pod_fit.h"
#include "core/slack/placeholder_set.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/throw_on_failed_check.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

TEST(CheckTest, AFailedCheckSaysWhereWhichAndWhy) {
  const int pods = 3;
  const std::string node = "a";
  const int line = __LINE__ + 1;
  const std::string text = FailedCheckIn([&] { LOADLINE_CHECK(pods == 4) << pods << " on node " << node; });
  EXPECT_EQ(text, absl::StrCat("check_test.cc:", line, ": pods == 4: 3 on node a"));
}

TEST(CheckTest, OfACheckThatHoldsNothingMoreIsWorkedOut) {
  int worked_out = 0;
  LOADLINE_CHECK(worked_out == 0) << ++worked_out;
  EXPECT_EQ(worked_out, 0);
}

TEST(CheckTest, APositionIsBelowItsEnd) {
  EXPECT_EQ(CheckedIndex("node", 4, 5), 4U);
  EXPECT_EQ(FailedCheckIn([] { CheckedIndex("node", 5, 5); }), "node 5 is not one of 5");
  EXPECT_EQ(FailedCheckIn([] { CheckedIndex("node", static_cast<size_t>(-1), 0); }),
            "node -1 is not one of 0");
}

TEST(CheckTest, CostlyChecksAreOnInDebugBuilds) {
  bool asked = false;
  LOADLINE_DCHECK((asked = true)) << "this is never said";
#ifdef NDEBUG
  EXPECT_FALSE(asked);
#else
  EXPECT_TRUE(asked);
#endif
}

TEST(CheckDeathTest, TestsEndAtAFailedCheck) {
  EXPECT_DEATH(LOADLINE_CHECK(false) << "a table is torn", "check failed: check_test.cc:.*a table is torn");
}

// --- what callers promise

class PromisesTest : public ::testing::Test {
 protected:
  PromisesTest() {
    cluster_.Add({.name = "a"}, {FitPod{.requests = {{"cpu", 100}}}});
    snapshot_ = std::make_unique<Snapshot>(cluster_.state());
  }

  FitCluster cluster_;
  std::unique_ptr<Snapshot> snapshot_;
};

TEST_F(PromisesTest, OfASnapshot) {
  const NodeIndex there{0};
  const NodeIndex gone = snapshot_->AddNode({"z", MakeNodeShape({}, ResourceNames()), std::nullopt, Slot{7}});
  snapshot_->RemoveNode(gone);
  EXPECT_THAT(FailedCheckIn([&] { snapshot_->PlacePod(gone, 0); }),
              HasSubstr("node 1 is not in the snapshot"));
  EXPECT_THAT(FailedCheckIn([&] { snapshot_->PlacePod(NodeIndex{-1}, 0); }), HasSubstr("node -1 is not in"));
  EXPECT_EQ(FailedCheckIn([&] { snapshot_->PlacePod(there, 9); }), "pod shape 9 is not one of 1");
  EXPECT_EQ(FailedCheckIn([&] { snapshot_->RemovePod(there, 1); }), "pod of the node 1 is not one of 1");
  EXPECT_THAT(FailedCheckIn([&] { snapshot_->RemoveNode(gone); }),
              HasSubstr("node 1 is not in the snapshot"));
  EXPECT_THAT(FailedCheckIn([&] { snapshot_->MarkLeaving(gone); }),
              HasSubstr("node 1 is not in the snapshot"));
  EXPECT_EQ(FailedCheckIn([&] { snapshot_->amounts(NodeIndex{2}); }), "node 2 is not one of 2");
  EXPECT_EQ(FailedCheckIn([&] { snapshot_->pod_shape(1); }), "shape 1 is not one of 1");
  EXPECT_THAT(FailedCheckIn([&] {
                snapshot_->AddNode({"y", {}, std::nullopt, Slot{0}});
              }),
              HasSubstr("slot 0 has a node"));
  EXPECT_THAT(FailedCheckIn([&] { snapshot_->Reload({}); }), HasSubstr("read anew"));
  snapshot_->CheckConsistent();  // what was refused changed nothing
}

TEST_F(PromisesTest, OfNamesThatComeWithAPod) {
  IncomingPod pod = cluster_.Incoming({.requests = {{"example.com/late", 1}}});
  const FitOptions options;
  const PodFit with_the_names_of_the_snapshot(snapshot_.get(), pod, &options);
  pod.names = cluster_.state().resource_names();  // which lack the name that was added
  EXPECT_THAT(FailedCheckIn([&] { PodFit(snapshot_.get(), pod, &options); }),
              HasSubstr("requests what its names lack"));
  DrainTrial trial(cluster_.state(), &options);
  EXPECT_THAT(FailedCheckIn([&] { trial.KindOf(pod); }), HasSubstr("requests what its names lack"));
  EXPECT_EQ(FailedCheckIn([&] { pod.names.name(ResourceId{-1}); }),
            absl::StrCat("resource -1 is not one of ", pod.names.size()));
}

TEST_F(PromisesTest, OfADrainTrial) {
  const FitOptions options;
  DrainTrial trial(cluster_.state(), &options);
  const int32_t kind = trial.KindOf(cluster_.Incoming({.requests = {{"cpu", 1}}}));
  trial.CheckConsistent();
  EXPECT_THAT(FailedCheckIn([&] { trial.TakeBack(kind, NodeIndex{0}); }), HasSubstr("no pod of shape"));
  EXPECT_EQ(FailedCheckIn([&] { trial.AddPlaceholder(NodeIndex{0}, kind + 1); }),
            absl::StrCat("kind ", kind + 1, " is not one of ", kind + 1));
}

TEST_F(PromisesTest, OfAClusterState) {
  ClusterState& state = cluster_.state();
  EXPECT_THAT(FailedCheckIn([&] { state.SetNode(Slot{1}, "a", {}, {}); }),
              HasSubstr("two nodes are named a"));
  EXPECT_THAT(FailedCheckIn([&] { state.SetNode(Slot{-1}, "b", {}, {}); }), HasSubstr("node b has slot -1"));
  EXPECT_EQ(FailedCheckIn([&] { state.name(Slot{5}); }), "slot 5 is not one of 1");
  EXPECT_THAT(FailedCheckIn([&] { state.pod_shapes().Release(3); }), HasSubstr("shape 3 is not in use"));
  ResourceNames more = state.resource_names();
  more.Intern("example.com/more");
  state.set_resource_names(more);
  EXPECT_THAT(FailedCheckIn([&] { state.set_resource_names(ResourceNames()); }), HasSubstr("are lost"));
  state.CheckConsistent();
}

TEST(PlaceholderPromisesTest, OfAPlaceholderSet) {
  PlaceholderSet set;
  const PlaceholderGroup group{PlaceholderKind::kStandard, "class", {100, 1}};
  set.SetNode(0, {.name = "a", .allocatable = {1000, 10}});
  set.Add(group, 1);
  set.Attach(1, 0);
  EXPECT_THAT(FailedCheckIn([&] { set.Attach(1, 0); }), HasSubstr("placeholder 1 is attached to node 0"));
  EXPECT_THAT(FailedCheckIn([&] { set.Add(group, 1); }), HasSubstr("there are two placeholders 1"));
  EXPECT_THAT(FailedCheckIn([&] { set.Detach(2); }), HasSubstr("there is no placeholder 2"));
  EXPECT_EQ(FailedCheckIn([&] { set.node(3); }), "node 3 is not one of 1");
  set.CheckConsistent();
}

// --- what structures keep

// A count whose predicate changes its mind is not that of the pods any more.
TEST_F(PromisesTest, ACountThatIsNotThatOfThePodsIsFound) {
  bool counts = true;
  const auto predicate =
      std::make_shared<const PodPredicate>(PodPredicate{[&counts](const PodShape&) { return counts; }});
  snapshot_->Counts({{"all", CountUse::kSpread, kHostnameLabel, predicate}});
  snapshot_->CheckConsistent();
  counts = false;
  EXPECT_THAT(FailedCheckIn([&] { snapshot_->CheckConsistent(); }), HasSubstr("pods in domain 0 of all"));
}

// A shape that is given back too often is missed by its pods.
TEST_F(PromisesTest, AShapeThatPodsMissIsFound) {
  ClusterState& state = cluster_.state();
  state.CheckConsistent();
  state.pod_shapes().Release(0);
  EXPECT_THAT(FailedCheckIn([&] { state.CheckConsistent(); }), HasSubstr("shape 0 is not in use"));
}

// A fork that is destroyed because a check failed undoes nothing, which could fail again: its owner drops the
// snapshot.
TEST_F(PromisesTest, AForkIsNotUndoneWhenACheckFails) {
  {
    const ScopedFork fork(snapshot_.get());
    snapshot_->PlacePod(NodeIndex{0}, 0);
  }
  EXPECT_EQ(snapshot_->pods(NodeIndex{0}).size(), 1U);
  const std::string text = FailedCheckIn([&] {
    const ScopedFork fork(snapshot_.get());
    snapshot_->PlacePod(NodeIndex{0}, 0);
    LOADLINE_CHECK(false) << "now";
  });
  EXPECT_THAT(text, HasSubstr("now"));
  EXPECT_EQ(snapshot_->depth(), 1U);
}

}  // namespace
}  // namespace loadline
