// The state of a view after a question that failed, and after one that was answered.
#include "plugin/service/undo.h"

#include <gtest/gtest.h>

#include "plugin/service/handlers.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

class UndoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto sync = ChangesBuilder::FullList(1, 1).Node(0, MakeNode("a", {})).Sync();
    ASSERT_TRUE(AnswerSync(sync, Deadline(), &views_).ok());
  }

  // A question that places a pod for a trial, and changes what slack remembers.
  static void Work(UndoUnlessKept* undo) {
    Snapshot* const snapshot = undo->snapshot();
    ASSERT_EQ(snapshot, undo->snapshot());
    snapshot->Fork();
    snapshot->PlacePod(NodeIndex{0}, snapshot->InternShape(PodShape()), "trial");
    SlackState state;
    state.next_id = 7;
    undo->slack()->Restore(state);
    undo->drain();
  }
  static size_t PodsIn(SharedView* shared) {
    return shared->snapshot.For(*shared->Current())->pods(NodeIndex{0}).size();
  }

  Views views_{EngineLimits()};
};

TEST_F(UndoTest, AQuestionThatFailsLeavesEverythingAsItWas) {
  const absl::StatusOr<LockedView> view = views_.Lock("test", Deadline());
  ASSERT_TRUE(view.ok()) << view.status();
  SharedView* const shared = view->operator->();
  SlackState before;
  before.next_id = 3;
  shared->slack.Restore(before);
  shared->drain.cluster = shared->Current()->cluster_number();
  {
    UndoUnlessKept undo(shared, shared->Current().get());
    Work(&undo);
    EXPECT_EQ(PodsIn(shared), 1u);
  }
  EXPECT_EQ(PodsIn(shared), 0u);
  EXPECT_EQ(shared->slack.State().next_id, 3);
  EXPECT_FALSE(shared->drain.cluster.has_value()) << "the planner begins again from the state that is kept";
}

TEST_F(UndoTest, AnAnswerKeepsAllButTheTrials) {
  const absl::StatusOr<LockedView> view = views_.Lock("test", Deadline());
  ASSERT_TRUE(view.ok()) << view.status();
  SharedView* const shared = view->operator->();
  {
    UndoUnlessKept undo(shared, shared->Current().get());
    Work(&undo);
    undo.Keep();
    EXPECT_EQ(undo.snapshot(), shared->snapshot.For(*shared->Current())) << "it is not built anew";
  }
  EXPECT_EQ(PodsIn(shared), 0u);
  EXPECT_EQ(shared->slack.State().next_id, 7);
}

}  // namespace
}  // namespace loadline
