// Growth for slack over several loops: nodes that come for it and do not help.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "core/grow/vain_growth.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Groups whose template has a label by which pods select; the nodes of the first one come without it. One pod
// fills the only node with the label, and its slack, a tenth, wants another one.
class JudgeSlackTest : public LoopTest {
 protected:
  JudgeSlackTest() {
    problem_.decisions.slack = true;
    AddLabeled("g", 1);
    FitPod pod = Replica("p", 1000);
    pod.rules.node_selector = Labels(std::vector<Label>{{"role", "special"}});
    nodes_ = {{NodeOf("n", 1000), {pod}}};
    nodes_[0].node.labels = templates_[GroupIndex{0}].labels;
    Look(0);
  }

  void AddLabeled(const std::string& name, double usd) {
    AddGroup(name, 1000, usd, /*target=*/name == "g" ? 1 : 0);
    templates_[IndexAt<GroupIndex>(templates_.size() - 1)].labels = {{"role", "special"}};
  }

  // One loop, in so many minutes.
  LoopPlan Look(int64_t minute) {
    problem_.drain.now_s = kLoopNow + minute * 60;
    prepare_ = [this](Snapshot* snapshot, WorkBudget* budget) {
      vain_ = TextsOf(
          HoldVainGrowth(kBackOff, problem_.drain.now_s * 1000, snapshot, budget, &problem_, &memory_),
          problem_, problem_.drain.now_s * 1000);
    };
    note_ = [this](const LoopPlan& plan) {
      NoteGrowth(kBackOff, problem_, plan, problem_.drain.now_s * 1000, &memory_);
    };
    LoopPlan plan = Plan();
    for (const LoopGrowth& growth : plan.growth) problem_.groups[growth.group].target += growth.nodes();
    return plan;
  }

  void Come(int64_t minute, std::vector<Label> labels = {}) {
    TestNode& node = nodes_.emplace_back(TestNode{NodeOf(absl::StrCat("new-", nodes_.size()), 1000), {}});
    node.node.labels = std::move(labels);
    node.node.traits.created_s = kLoopNow + minute * 60;
    node.node.traits.uid = node.node.name;
  }

  static constexpr BackOffOptions kBackOff{.initial_ms = 5 * 60 * 1000};
  LoopMemory memory_;
  std::vector<std::string> vain_;
};

TEST_F(JudgeSlackTest, AGroupDoesNotGrowAgainForSlackThatItsNewNodesDoNotTake) {
  EXPECT_EQ(problem_.groups[GroupIndex{0}].target, 2);
  EXPECT_THAT(Look(1).growth, IsEmpty()) << "the node is on its way";
  Come(2);
  EXPECT_THAT(Look(3).growth, IsEmpty()) << "it came, and holds nothing";
  EXPECT_THAT(Look(4).growth, IsEmpty());
  EXPECT_THAT(vain_, ElementsAre("node group g: node new-1 came for slack and stayed empty: it does not grow "
                                 "for slack for 4 min unless the node or what new nodes will be changes"));
  EXPECT_THAT(Look(8).growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1})) << "after five minutes, once";
  Come(9);
  EXPECT_THAT(Look(10).growth, IsEmpty());
  EXPECT_THAT(Look(19).growth, IsEmpty()) << "the period has doubled";
  EXPECT_THAT(Look(20).growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1}));
}

TEST_F(JudgeSlackTest, AnotherGroupGrowsInItsPlace) {
  Come(2);
  AddLabeled("h", 2);
  EXPECT_THAT(Look(3).growth, IsEmpty()) << "slack had asked for a node of g";
  EXPECT_THAT(Look(4).growth, ElementsAre(LoopGrowth{GroupIndex{1}, 0, 1}));
}

TEST_F(JudgeSlackTest, ItGrowsAgainWhenTheNodeOrTheTemplateChanges) {
  Come(2);
  Look(3);
  templates_[GroupIndex{0}].labels = {{"role", "special"}, {"new", "label"}};
  nodes_[0].node.labels = templates_[GroupIndex{0}].labels;
  EXPECT_THAT(Look(4).growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1}));
  EXPECT_THAT(vain_, IsEmpty());
}

TEST_F(JudgeSlackTest, ANodeThatHoldsSlackHasHelpedAndIsForgotten) {
  Come(2, {{"role", "special"}});
  EXPECT_THAT(Look(3).growth, IsEmpty());
  EXPECT_THAT(memory_.purchases, IsEmpty());
}

TEST_F(JudgeSlackTest, OthersThatTookTheRoomAreNoFaultOfTheNode) {
  Come(2);
  nodes_[1].pods = {Replica("q", 1000)};
  EXPECT_THAT(Look(3).growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1}));
}

// The node takes slack only once it has started.
TEST_F(JudgeSlackTest, ANodeThatIsNotReadyIsNotJudged) {
  Come(2);
  nodes_[1].node.traits.ready = false;
  Look(3);
  EXPECT_THAT(vain_, IsEmpty());
  EXPECT_EQ(memory_.purchases.size(), 1u);
  EXPECT_EQ(memory_.purchases.begin()->second.failures, 0);
}

}  // namespace
}  // namespace loadline
