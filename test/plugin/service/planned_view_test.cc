// The cluster of a plan, which others read and change meanwhile.
#include "plugin/service/planned_view.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/resource_names.h"
#include "core/cluster/shapes.h"
#include "loadline/v1/drain.pb.h"
#include "plugin/service/handlers.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"
#include "test/plugin/messages.h"
#include "test/plugin/moving_cluster.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

constexpr int64_t kSoonNs = 5'000'000'000;

class PlannedViewTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(AnswerSync(FirstState().Sync(), Deadline(), &views_).ok()); }

  std::unique_ptr<PlannedView> Plan(int64_t revision) {
    auto planned = views_.Plan(ChangesBuilder::At(1, revision).changes(), Deadline());
    EXPECT_TRUE(planned.ok()) << planned.status();
    return *std::move(planned);
  }
  // Fails if it would have to wait for the plan, which does not end before it.
  absl::Status Sync(int64_t revision, const Deadline& deadline = Deadline::After(kSoonNs)) {
    return AnswerSync(StateOf(revision).Sync(), deadline, &views_).status();
  }
  absl::StatusOr<v1::ScoreResponse> Score(int64_t revision, const Deadline& deadline) {
    return AnswerScore(ScoreOf(ChangesBuilder::At(1, revision).changes(), MakePod({}), CpuPolicy(1)),
                       deadline, &views_);
  }
  void ExpectScores(int64_t revision, const Deadline& deadline = Deadline::After(kSoonNs)) {
    const absl::StatusOr<v1::ScoreResponse> response = Score(revision, deadline);
    ASSERT_TRUE(response.ok()) << response.status();
    ExpectScoresOf(revision, *response);
  }
  // Node "a" with so little CPU that its pods fill it the most.
  static std::vector<ShownNode> SmallA(const View& view) {
    ResourceAmounts allocatable;
    allocatable[kCpu] = 1;
    return {{Slot{0}, MakeNodeShape(std::move(allocatable), view.cluster().resource_names())}};
  }

  Views views_{EngineLimits()};
};

TEST_F(PlannedViewTest, NobodyHasAClusterThatIsBeingDecoded) {
  const std::unique_ptr<PlannedView> plan = Plan(1);
  EXPECT_TRUE(absl::IsAborted(Score(1, Deadline().WithoutWaiting()).status()));
  EXPECT_TRUE(absl::IsAborted(Sync(2, Deadline().WithoutWaiting())));
}

TEST_F(PlannedViewTest, OthersReadAndChangeTheClusterOfAPlan) {
  std::unique_ptr<PlannedView> plan = Plan(1);
  const View* const first = &plan->view();
  plan->Lend();
  ExpectScores(1);
  EXPECT_EQ(plan->shared().Current().get(), first) << "nobody has changed it";
  ASSERT_TRUE(Sync(2).ok());
  ASSERT_TRUE(Sync(3).ok());
  EXPECT_EQ(Sync(2).code(), absl::StatusCode::kFailedPrecondition);
  ExpectScores(3);
  EXPECT_EQ(plan->view().revision().revision, 1) << "the plan keeps its cluster";
  EXPECT_EQ(plan->view().cluster().pod_count(Slot{0}), 1);
  plan->view().CheckConsistent();
  views_.All().at(0).second->Current()->CheckConsistent();
  plan.reset();
  ExpectScores(3);
  views_.CheckConsistent();
}

TEST_F(PlannedViewTest, WhatIsKeptOfAClusterThatEndsIsDropped) {
  std::unique_ptr<PlannedView> plan = Plan(1);
  plan->Lend();
  {
    UndoUnlessKept undo(&plan->shared(), &plan->view());
    EXPECT_EQ(undo.snapshot()->pods(NodeIndex{0}).size(), 1u);
    ASSERT_TRUE(Sync(2).ok());
    undo.Keep();
  }
  const std::shared_ptr<SharedView> shared = views_.All().at(0).second;
  shared->drain.cluster = 1;
  plan.reset();
  EXPECT_FALSE(shared->drain.cluster.has_value()) << "the drain planner starts over";
  plan = Plan(2);
  plan->Lend();
  UndoUnlessKept undo(&plan->shared(), &plan->view());
  EXPECT_EQ(undo.snapshot()->pods(NodeIndex{0}).size(), 2u);
  undo.Keep();
}

TEST_F(PlannedViewTest, OthersSeeTheNodesThatAPlanShowsAsTheyAre) {
  std::unique_ptr<PlannedView> plan = Plan(1);
  plan->Show(SmallA(plan->view()));
  plan->Lend();
  ExpectScores(1);
  ASSERT_TRUE(Sync(2).ok());
  EXPECT_EQ(plan->view().cluster().columns(kCpu)->allocatable.at(0), 1);
  plan.reset();
  ExpectScores(2);
  views_.CheckConsistent();
}

TEST_F(PlannedViewTest, WhoMayNotWaitMakesNoCopy) {
  std::unique_ptr<PlannedView> plan = Plan(1);
  plan->Show(SmallA(plan->view()));
  plan->Lend();
  EXPECT_TRUE(absl::IsAborted(Score(1, Deadline().WithoutWaiting()).status()));
  EXPECT_TRUE(absl::IsAborted(Sync(2, Deadline().WithoutWaiting())));
  ExpectScores(1);
  ExpectScores(1, Deadline().WithoutWaiting());  // there is a copy now
}

TEST_F(PlannedViewTest, ACallThatIsRefusedLeavesNoTurnBehind) {
  v1::Changes changes = ChangesBuilder::FullList(1, 1)
                            .View("other")
                            .Node(0, MakeNode("a", {}))
                            .Node(0, MakeNode("b", {}))
                            .changes();
  EXPECT_TRUE(absl::IsInvalidArgument(views_.Plan(changes, Deadline()).status()));  // its view is gone
  changes.set_view("test");
  changes.set_epoch(2);
  EXPECT_FALSE(views_.Plan(changes, Deadline()).ok());
  EXPECT_TRUE(views_.Plan(ChangesBuilder::At(1, 1).changes(), Deadline().WithoutWaiting()).ok());
  std::unique_ptr<PlannedView> plan = Plan(1);
  plan->Lend();
  EXPECT_TRUE(views_.Drop("test").ok());
  EXPECT_EQ(plan->view().revision().revision, 1) << "a plan goes on with a view that is dropped";
}

TEST_F(PlannedViewTest, ShownNodesAreAsTheyWereAfterThePlan) {
  std::unique_ptr<PlannedView> plan = Plan(1);
  const View* const first = &plan->view();
  plan->Show(SmallA(plan->view()));
  plan->Lend();
  plan.reset();
  ExpectScores(1);
  EXPECT_EQ(views_.All().at(0).second->Current().get(), first) << "nobody needed a copy";
  plan = Plan(1);
  plan->Show(SmallA(plan->view()));
  plan.reset();  // it ended early
  ExpectScores(1);
  views_.CheckConsistent();
}

TEST_F(PlannedViewTest, PlansOfOneViewComeOneAfterTheOther) {
  std::unique_ptr<PlannedView> plan = Plan(1);
  plan->Lend();
  const v1::Changes at = ChangesBuilder::At(1, 1).changes();
  EXPECT_TRUE(absl::IsAborted(views_.Plan(at, Deadline().WithoutWaiting()).status()));
  plan.reset();
  EXPECT_TRUE(views_.Plan(at, Deadline().WithoutWaiting()).ok());
}

TEST_F(PlannedViewTest, AFullListInPartsGoesOnBesideAPlan) {
  std::unique_ptr<PlannedView> plan = Plan(1);
  plan->Lend();
  const auto part = [&](int32_t index, bool last) {
    return AnswerSync(ChangesBuilder::Chunk(2, 1, index, last)
                          .Node(index, MakeNode(std::to_string(index), {{"cpu", "8"}}))
                          .Sync(),
                      Deadline::After(kSoonNs), &views_)
        .status();
  };
  ASSERT_TRUE(part(0, false).ok());
  plan.reset();
  plan = Plan(1);
  plan->Lend();
  ASSERT_TRUE(part(1, true).ok());
  EXPECT_EQ(plan->view().revision().epoch, 1);
  EXPECT_EQ(plan->view().cluster().name(Slot{1}), "b");
  plan.reset();
  EXPECT_EQ(views_.All().at(0).second->Current()->cluster().name(Slot{1}), "1");
  views_.CheckConsistent();
}

TEST_F(PlannedViewTest, ManyCountsEndWithTheirPlan) {
  EngineLimits limits;
  limits.question_bytes = 1024;  // a quarter of which a snapshot may keep
  Views views(limits);
  ASSERT_TRUE(AnswerSync(FirstState().Sync(), Deadline(), &views).ok());
  auto plan = views.Plan(ChangesBuilder::At(1, 1).changes(), Deadline());
  ASSERT_TRUE(plan.ok()) << plan.status();
  (*plan)->Lend();
  {
    UndoUnlessKept undo(&(*plan)->shared(), &(*plan)->view());
    const auto all = std::make_shared<PodPredicate>(PodPredicate{[](const PodShape&) { return true; }});
    undo.snapshot()->Counts({CountSpec{.identity = "all", .topology_key = kHostnameLabel, .counts = all}});
    EXPECT_GT(undo.snapshot()->count_bytes(), limits.question_bytes / 4);
    undo.Keep();
  }
  plan->reset();
  EXPECT_FALSE(views.All().at(0).second->snapshot.DropLarge()) << "the plan has dropped it";
}

// One thread moves the cluster on and scores it, two plan with nodes shown otherwise.
TEST_F(PlannedViewTest, NoScoreIsOfTheNodesThatAPlanShows) {
  std::atomic<int64_t> current = 1;
  const auto plan = [&] {
    for (int64_t revision = current; revision > 0; revision = current) {
      auto planned = views_.Plan(ChangesBuilder::At(1, revision).changes(), Deadline());
      if (absl::IsFailedPrecondition(planned.status())) continue;  // the cluster has moved on
      ASSERT_TRUE(planned.ok()) << planned.status();
      (*planned)->Show(SmallA((*planned)->view()));
      (*planned)->Lend();
      UndoUnlessKept undo(&(*planned)->shared(), &(*planned)->view());
      EXPECT_EQ(undo.snapshot()->pods(NodeIndex{0}).size(), static_cast<size_t>(revision % 9));
      EXPECT_EQ((*planned)->view().cluster().columns(kCpu)->allocatable.at(0), 1);
      undo.Keep();
    }
  };
  std::thread planners[] = {std::thread(plan), std::thread(plan)};
  for (int64_t revision = 2; revision < kRounds; ++revision) {
    EXPECT_TRUE(AnswerSync(StateOf(revision).Sync(), Deadline(), &views_).ok());
    current = revision;
    ExpectScores(revision, Deadline());
  }
  current = -1;
  for (std::thread& planner : planners) planner.join();
  views_.CheckConsistent();
}

// Drains keep a cluster for the next plan, which may end with the plan.
TEST_F(PlannedViewTest, PlansOfDrainsGoOnAfterTheirClusterHasEnded) {
  std::atomic<int64_t> current = 1;
  std::atomic<int> planned = 0;
  std::thread planner([&] {
    for (int64_t revision = current; revision > 0; revision = current) {
      v1::PlanDrainRequest request;
      *request.mutable_changes() = ChangesBuilder::At(1, revision).changes();
      request.set_now_s(1'800'000'000 + revision);
      request.add_groups()->set_node_group("workers");
      for (const int32_t slot : {0, 1}) request.mutable_groups(0)->add_slots(slot);
      const auto response = AnswerPlanDrain(request, Deadline(), &views_);
      if (response.ok()) ++planned;
      EXPECT_TRUE(response.ok() || absl::IsFailedPrecondition(response.status())) << response.status();
    }
  });
  for (int64_t revision = 2; revision < kRounds || planned < 20; ++revision) {
    EXPECT_TRUE(AnswerSync(StateOf(revision).Sync(), Deadline(), &views_).ok());
    current = revision;
  }
  current = -1;
  planner.join();
  views_.CheckConsistent();
}

}  // namespace
}  // namespace loadline
