// The protocol that keeps a view equal to what its client sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Changes = ChangesBuilder;

const k8s::v1::Pod kSmall = MakePod({{"cpu", "1"}});
const k8s::v1::Pod kLarge = MakePod({{"cpu", "2"}});

k8s::v1::Node NodeOf(const std::string& name) { return MakeNode(name, {{"cpu", "8"}}); }

class ProtocolTest : public ::testing::Test {
 protected:
  void MustSync(const Changes& changes) {
    const absl::StatusOr<v1::SyncResponse> response = engine_.Sync(changes);
    ASSERT_TRUE(response.ok()) << response.status();
  }
  // The state must be what it was before.
  void MustRefuse(const Changes& changes, absl::StatusCode code, const std::string& text) {
    const std::string before = engine_.DescribeAll(true).SerializeAsString();
    const absl::StatusOr<v1::SyncResponse> response = engine_.Sync(changes);
    EXPECT_EQ(response.status().code(), code) << response.status();
    EXPECT_THAT(std::string(response.status().message()), HasSubstr(text));
    EXPECT_EQ(engine_.DescribeAll(true).SerializeAsString(), before);
  }
  std::vector<int64_t> State() {
    const v1::ViewState view = engine_.DescribeAll().views(0);
    return {view.epoch(), view.revision(), view.nodes(), view.pods()};
  }
  // Two nodes with three pods.
  void Start() {
    MustSync(Changes::FullList(7, 10)
                 .Shape(0, kSmall)
                 .Shape(1, kLarge)
                 .Node(0, NodeOf("a"), {{0, "p", "u"}, {1, "q", "v"}})
                 .Node(1, NodeOf("b"), {{0, "r", "w"}}));
  }

  TypedEngine engine_;
};

TEST_F(ProtocolTest, AFullListCreatesAView) {
  const absl::StatusOr<v1::SyncResponse> response = engine_.Sync(
      Changes::FullList(7, 10).Shape(0, MakePod({{"cpu", "8Ei"}})).Node(0, NodeOf("a"), {{0, "p", "u"}}));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->epoch(), 7);
  EXPECT_EQ(response->revision(), 10);
  EXPECT_EQ(response->clamped_amounts(), 1);
  EXPECT_THAT(State(), ElementsAre(7, 10, 1, 1));
  EXPECT_EQ(engine_.DescribeAll().views(0).clamped_amounts(), 1);
}

TEST_F(ProtocolTest, ARepeatChangesNothing) {
  Start();
  const Changes delta = Changes::Delta(7, 10, 11).Shape(2, MakePod({{"cpu", "8Ei"}})).Remove(1);
  MustSync(delta);
  const std::string after = engine_.DescribeAll(true).SerializeAsString();
  MustSync(delta);
  EXPECT_EQ(engine_.DescribeAll(true).SerializeAsString(), after);
  // An older full list of the same state does so too, whatever is in it: it was applied before.
  MustSync(Changes::FullList(7, 11).Node(5, NodeOf("other")));
  EXPECT_EQ(engine_.DescribeAll(true).SerializeAsString(), after);
}

TEST_F(ProtocolTest, ALargerBatchOnAnOlderBaseIsApplied) {
  Start();
  MustSync(Changes::Delta(7, 10, 11).Remove(1));
  MustSync(Changes::Delta(7, 10, 12).Remove(1).Node(2, NodeOf("c")));
  EXPECT_THAT(State(), ElementsAre(7, 12, 2, 2));
}

TEST_F(ProtocolTest, AnEmptyStepMovesTheRevision) {
  Start();
  MustSync(Changes::Delta(7, 10, 15));
  EXPECT_THAT(State(), ElementsAre(7, 15, 2, 3));
}

TEST_F(ProtocolTest, WhatDoesNotBuildOnTheStateIsRefused) {
  Start();
  const auto code = absl::StatusCode::kFailedPrecondition;
  MustRefuse(Changes::Delta(7, 11, 12).Remove(0), code, "epoch 7 revision 10");
  MustRefuse(Changes::Delta(7, 8, 9).Remove(0), code, "is older than the view");
  MustRefuse(Changes::Delta(8, 10, 11).Remove(0), code, "is of another epoch than the view");
  MustRefuse(Changes::Delta(6, 10, 11).Remove(0), code, "is of another epoch than the view");
  MustRefuse(Changes::FullList(6, 99), code, "is a full list older than the view");
  MustRefuse(Changes::FullList(7, 9), code, "is a full list older than the view");
  MustRefuse(Changes::At(7, 11), code, "view \"test\"");
  MustSync(Changes::Delta(7, 10, 11).Remove(0));
  EXPECT_THAT(State(), ElementsAre(7, 11, 1, 1));
}

TEST_F(ProtocolTest, AnUnknownViewAsksForAFullList) {
  Start();
  const auto code = absl::StatusCode::kFailedPrecondition;
  MustRefuse(Changes::Delta(7, 10, 11).View("other").Remove(0), code, "view \"other\" is not known");
  MustRefuse(Changes::At(7, 10).View("other"), code, "send a full list");
  MustRefuse(Changes::Chunk(7, 10, 1, true).View("other"), code, "send a full list");
  EXPECT_EQ(engine_.Describe(v1::DescribeRequest())->views_size(), 1);
}

TEST_F(ProtocolTest, AnotherEpochReplacesTheView) {
  Start();
  MustSync(Changes::FullList(8, 1).Node(5, NodeOf("z")));
  EXPECT_THAT(State(), ElementsAre(8, 1, 1, 0));
  MustRefuse(Changes::Delta(8, 1, 2).Node(0, NodeOf("a"), {{0, "p", ""}}), absl::StatusCode::kInvalidArgument,
             R"(node "a" (slot 0): pod 0 "p" refers to pod shape 0, which was never sent)");
}

TEST_F(ProtocolTest, ChunksAreStagedAndTakeEffectTogether) {
  Start();
  const std::string before = engine_.DescribeAll(true).SerializeAsString();
  const absl::StatusOr<v1::SyncResponse> first =
      engine_.Sync(Changes::Chunk(7, 20, 0, false).Shape(0, kLarge).Node(0, NodeOf("x"), {{0, "p", "u"}}));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->revision(), 10);
  EXPECT_EQ(engine_.DescribeAll(true).SerializeAsString(), before);
  MustSync(Changes::Chunk(7, 20, 0, false).Shape(0, kLarge).Node(0, NodeOf("x"), {{0, "p", "u"}}));
  MustSync(Changes::Chunk(7, 20, 1, false).Node(1, NodeOf("y"), {{0, "q", "v"}}));
  MustSync(Changes::Chunk(7, 20, 1, false).Node(1, NodeOf("y"), {{0, "q", "v"}}));
  EXPECT_EQ(engine_.DescribeAll(true).SerializeAsString(), before);
  MustSync(Changes::Chunk(7, 20, 2, true).Node(2, NodeOf("z")));
  EXPECT_THAT(State(), ElementsAre(7, 20, 3, 2));

  TypedEngine whole;
  ASSERT_TRUE(whole
                  .Sync(Changes::FullList(7, 20)
                            .Shape(0, kLarge)
                            .Node(2, NodeOf("z"))
                            .Node(1, NodeOf("y"), {{0, "q", "v"}})
                            .Node(0, NodeOf("x"), {{0, "p", "u"}}))
                  .ok());
  EXPECT_EQ(engine_.DescribeAll(true).SerializeAsString(), whole.DescribeAll(true).SerializeAsString());
}

TEST_F(ProtocolTest, TheViewWorksWhileAFullListIsStaged) {
  Start();
  MustSync(Changes::Chunk(7, 20, 0, false).Node(0, NodeOf("x")));
  MustSync(Changes::Delta(7, 10, 11).Remove(0));
  EXPECT_THAT(State(), ElementsAre(7, 11, 1, 1));
  MustSync(Changes::Chunk(7, 20, 1, true));
  EXPECT_THAT(State(), ElementsAre(7, 20, 1, 0));
}

TEST_F(ProtocolTest, ChunksOutOfOrderAreRefused) {
  Start();
  const auto code = absl::StatusCode::kFailedPrecondition;
  MustRefuse(Changes::Chunk(7, 20, 1, true), code, "which has not been started");
  MustSync(Changes::Chunk(7, 20, 0, false).Node(0, NodeOf("x")));
  MustRefuse(Changes::Chunk(7, 20, 2, true), code, "arrived where chunk 1 was due");
  MustRefuse(Changes::Chunk(7, 21, 1, true), code, "which has not been started");
  MustRefuse(Changes::Chunk(7, 20, 1, true).Node(9, NodeOf("x")), absl::StatusCode::kInvalidArgument,
             "slot 0 has a node of the same name");
  // Chunk 0 starts over.
  MustSync(Changes::Chunk(7, 21, 0, false).Node(5, NodeOf("y")));
  MustRefuse(Changes::Chunk(7, 20, 1, true), code, "which has not been started");
  MustSync(Changes::Chunk(7, 21, 1, true));
  EXPECT_THAT(State(), ElementsAre(7, 21, 1, 0));
}

TEST_F(ProtocolTest, AViewWithNothingButAStagedListAnswersNothing) {
  MustSync(Changes::Chunk(7, 20, 0, false).Node(0, NodeOf("x")));
  EXPECT_THAT(State(), ElementsAre(0, 0, 0, 0));
  MustRefuse(Changes::At(7, 20), absl::StatusCode::kFailedPrecondition, "send a full list");
  MustRefuse(Changes::Delta(7, 0, 21), absl::StatusCode::kFailedPrecondition, "send a full list");
}

TEST_F(ProtocolTest, NodesMayChangePlaces) {
  Start();
  MustSync(Changes::Delta(7, 10, 11)
               .Node(0, NodeOf("b"), {{0, "r", "w"}})
               .Node(1, NodeOf("a"), {{0, "p", "u"}, {1, "q", "v"}}));
  TypedEngine other;
  ASSERT_TRUE(other
                  .Sync(Changes::FullList(7, 11)
                            .Shape(0, kSmall)
                            .Shape(1, kLarge)
                            .Node(1, NodeOf("a"), {{0, "p", "u"}, {1, "q", "v"}})
                            .Node(0, NodeOf("b"), {{0, "r", "w"}}))
                  .ok());
  EXPECT_EQ(engine_.DescribeAll(true).SerializeAsString(), other.DescribeAll(true).SerializeAsString());
}

TEST_F(ProtocolTest, ANameIsFreeWithinTheBatchThatRemovesIt) {
  Start();
  MustSync(Changes::Delta(7, 10, 11).Remove(0).Node(9, NodeOf("a")));
  EXPECT_THAT(State(), ElementsAre(7, 11, 2, 1));
}

TEST_F(ProtocolTest, AnIdIsGivenAnotherContentOnceNoPodRefersToIt) {
  Start();
  MustRefuse(Changes::Delta(7, 10, 11).Shape(0, kLarge), absl::StatusCode::kInvalidArgument,
             "pod shape 0 is given another content while 2 pods refer to it");
  // The same content again is no change.
  MustSync(Changes::Delta(7, 10, 11).Shape(0, kSmall));
  MustSync(Changes::Delta(7, 11, 12).Remove(0).Remove(1));
  MustSync(Changes::Delta(7, 12, 13).Shape(0, kLarge).Node(0, NodeOf("a"), {{0, "p", "u"}}));
  const v1::NodeState node = engine_.DescribeAll().nodes(0);
  EXPECT_EQ(node.resources(0).limits(), 2000);
}

struct BadBatch {
  std::string name;
  std::function<void(Changes*)> change;
  absl::StatusCode code;
  std::string text;
};

class BadBatchTest : public ProtocolTest, public ::testing::WithParamInterface<BadBatch> {};

// Each beside changes that would be fine: all of a batch is applied, or nothing.
TEST_P(BadBatchTest, IsRefusedAsAWhole) {
  Start();
  Changes changes =
      Changes::Delta(7, 10, 11).Remove(1).Shape(2, kLarge).Node(3, NodeOf("good"), {{2, "p", ""}});
  GetParam().change(&changes);
  MustRefuse(changes, GetParam().code, GetParam().text);
  MustSync(Changes::Delta(7, 10, 11).Remove(1).Shape(2, kLarge).Node(3, NodeOf("good"), {{2, "p", ""}}));
  EXPECT_THAT(State(), ElementsAre(7, 11, 2, 3));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadBatchTest,
    ::testing::ValuesIn(std::vector<BadBatch>{
        {"SlotTwice", [](Changes* c) { c->Node(3, NodeOf("twin")); }, absl::StatusCode::kInvalidArgument,
         R"(view "test": node "twin" (slot 3): the slot is sent twice in one batch)"},
        {"NameTwiceInTheBatch", [](Changes* c) { c->Node(4, NodeOf("good")); },
         absl::StatusCode::kInvalidArgument, R"(node "good" (slot 4): slot 3 has a node of the same name)"},
        {"NameTwiceInTheView", [](Changes* c) { c->Node(4, NodeOf("a")); },
         absl::StatusCode::kInvalidArgument, R"(node "a" (slot 4): slot 0 has a node of the same name)"},
        {"SlotNegative", [](Changes* c) { c->Node(-1, NodeOf("x")); }, absl::StatusCode::kInvalidArgument,
         R"(node "x" (slot -1): slot -1 is negative)"},
        {"SlotTooLarge", [](Changes* c) { c->Node(131072, NodeOf("x")); },
         absl::StatusCode::kResourceExhausted, "slot 131072 is beyond the limit of 131072 nodes"},
        {"RemovedSlotNegative", [](Changes* c) { c->Remove(-7); }, absl::StatusCode::kInvalidArgument,
         "slot -7 is negative"},
        {"RemovedSlotTooLarge", [](Changes* c) { c->Remove(INT32_MAX); },
         absl::StatusCode::kResourceExhausted, "slot 2147483647 is beyond the limit of 131072 nodes"},
        {"ShapeUnknown",
         [](Changes* c) {
           c->Node(4, NodeOf("x"), {{2, "p", ""}, {3, "q\x1b", ""}});
         },
         absl::StatusCode::kInvalidArgument, "refers to pod shape 3, which was never sent"},
        {"ShapeNeverSent",
         [](Changes* c) {
           c->Node(4, NodeOf("x"), {{2, "p", ""}, {3, "q", ""}});
         },
         absl::StatusCode::kInvalidArgument,
         R"(node "x" (slot 4): pod 1 "q" refers to pod shape 3, which was never sent)"},
        {"ShapeIdNegative", [](Changes* c) { c->Shape(-1, kSmall); }, absl::StatusCode::kInvalidArgument,
         "pod shape id -1 is negative"},
        {"ShapeIdTooLarge", [](Changes* c) { c->Shape(2'000'000, kSmall); },
         absl::StatusCode::kResourceExhausted,
         "pod shape id 2000000 is beyond the limit of 2000000 pod shapes"},
        {"ShapeTwice", [](Changes* c) { c->Shape(2, kLarge); }, absl::StatusCode::kInvalidArgument,
         "pod shape 2 is sent twice in one batch"},
        {"PodOfANegativeShape",
         [](Changes* c) {
           c->Node(4, NodeOf("x"), {{-1, "p", ""}});
         },
         absl::StatusCode::kInvalidArgument, "pod 0 \"p\" refers to pod shape -1, which was never sent"},
        {"NodeWithoutName", [](Changes* c) { c->Node(4, k8s::v1::Node()); },
         absl::StatusCode::kInvalidArgument, "node in slot 4 has an empty metadata.name"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(ViewLimitsTest, AreNamedWithTheirValue) {
  EngineLimits limits;
  limits.views = 2;
  limits.view.nodes = 4;
  limits.view.pods = 3;
  limits.view.pod_shapes = 2;
  limits.view.resources = 4;
  TypedEngine engine(limits);
  const auto refused = [&](const Changes& changes) {
    const absl::Status status = engine.Sync(changes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    return std::string(status.message());
  };
  ASSERT_TRUE(engine.Sync(Changes::FullList(1, 1).Shape(0, kSmall)).ok());
  ASSERT_TRUE(engine.Sync(Changes::FullList(1, 1).View("second")).ok());
  EXPECT_EQ(refused(Changes::FullList(1, 1).View("third")),
            "view \"third\" would be one more than the limit of 2 views");
  EXPECT_THAT(refused(Changes::Delta(1, 1, 2).Node(4, NodeOf("x"))), HasSubstr("the limit of 4 nodes"));
  EXPECT_THAT(refused(Changes::Delta(1, 1, 2)
                          .Node(0, NodeOf("x"), {{0, "a", ""}, {0, "b", ""}})
                          .Node(1, NodeOf("y"), {{0, "c", ""}, {0, "d", ""}})),
              HasSubstr("the view would hold 4 pods, the limit is 3"));
  EXPECT_THAT(refused(Changes::Delta(1, 1, 2).Shape(2, kSmall)), HasSubstr("the limit of 2 pod shapes"));
  // A node that offers more counts with the resources that have a name.
  const absl::StatusOr<v1::SyncResponse> synced =
      engine.Sync(Changes::Delta(1, 1, 2).Node(3, MakeNode("x", {{"a/a", "1"}, {"a/b", "1"}})));
  ASSERT_TRUE(synced.ok()) << synced.status();
  ASSERT_EQ(synced->left_out_size(), 1);
  EXPECT_EQ(synced->left_out(0).reason(),
            "(\"x\"): status.allocatable[\"a/b\"]: is one resource name too many");
  ASSERT_TRUE(engine.Drop("second").ok());
  ASSERT_TRUE(engine.Sync(Changes::FullList(1, 1).View("third")).ok());
}

TEST(ViewLimitsTest, TheViewThatWasNotNamedForTheLongestTimeGivesWay) {
  EngineLimits limits;
  limits.views = 3;
  limits.silent_view = std::chrono::milliseconds(0);
  TypedEngine engine(limits);
  for (const char* const name : {"a", "b", "c"}) {
    ASSERT_TRUE(engine.Sync(Changes::FullList(1, 1).View(name)).ok());
  }
  ASSERT_TRUE(engine.Sync(Changes::At(1, 1).View("a")).ok());
  ASSERT_TRUE(engine.Describe(v1::DescribeRequest()).ok());  // names no view
  {
    const absl::StatusOr<LockedView> used = engine.views().Lock("b", Deadline());
    ASSERT_TRUE(used.ok());
    ASSERT_TRUE(engine.Sync(Changes::At(1, 1).View("a")).ok());
    ASSERT_TRUE(engine.Sync(Changes::FullList(1, 1).View("d")).ok());
  }
  const absl::StatusOr<v1::DescribeResponse> left = engine.Describe(v1::DescribeRequest());
  ASSERT_EQ(left->views_size(), 3);
  EXPECT_EQ(left->views(0).name() + left->views(1).name() + left->views(2).name(), "abd");
  EXPECT_EQ(engine.Sync(Changes::Delta(1, 1, 2).View("c")).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Some 410 KiB beside an ordinary pod.
k8s::v1::Pod PodWithLongRules() {
  k8s::v1::Pod pod = MakePod({});
  for (int i = 0; i < 355; ++i) {
    pod.mutable_spec()->add_tolerations()->set_key(std::to_string(i) + std::string(1000, 'x'));
  }
  return pod;
}

// By hand: of 1 MiB for each view all have 3 MiB, seven such pods take 2.8 MiB, and eight take 3.2 MiB.
TEST(ViewLimitsTest, AllViewsTogetherHaveABound) {
  EngineLimits limits;
  limits.view.bytes = int64_t{1} << 20;
  const auto fill = [](TypedEngine* engine, const std::string& name) {
    const Changes list =
        Changes::FullList(1, 1).Shape(0, PodWithLongRules()).Node(0, NodeOf("a"), {{0, "p", "u"}});
    return engine->Sync(Changes(list).View(name)).status();
  };
  TypedEngine of_all(limits);
  limits.silent_view = std::chrono::milliseconds(0);
  TypedEngine of_silent(limits);
  for (TypedEngine* engine : {&of_all, &of_silent}) {
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(fill(engine, "view-" + std::to_string(i)).ok()) << i;
  }
  const absl::Status refused = fill(&of_all, "view-7");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("times max_view_bytes, 3145728"));
  EXPECT_TRUE(of_all.Sync(Changes::FullList(1, 1).View("small").Node(0, NodeOf("a"))).ok());
  EXPECT_EQ(of_all.Describe(v1::DescribeRequest())->views_size(), 8);

  EXPECT_TRUE(fill(&of_silent, "view-7").ok());
  EXPECT_EQ(of_silent.Describe(v1::DescribeRequest())->views_size(), 7);
  EXPECT_EQ(of_silent.Describe(v1::DescribeRequest())->views(0).name(), "view-1");
}

// A call that may not wait does nothing where it would have to.
TEST(WaitingTest, IsLeftToThoseThatMay) {
  TypedEngine engine;
  ASSERT_TRUE(engine.Sync(Changes::FullList(1, 1).Shape(0, kSmall).Node(0, NodeOf("a"))).ok());
  const std::string score = ScoreOf(Changes::Delta(1, 1, 2).Node(1, NodeOf("b")).changes(), MakePod({}),
                                    Preset(v1::ScorePolicy::STRICT))
                                .SerializeAsString();
  {
    const absl::StatusOr<LockedView> used = engine.views().Lock("test", Deadline());
    ASSERT_TRUE(used.ok());
    EXPECT_EQ(engine.CallBytes(kScoreMethod, score, Deadline().WithoutWaiting()).status().code(),
              absl::StatusCode::kAborted);
    EXPECT_EQ(used->view().revision().revision, 1);
  }
  EXPECT_TRUE(engine.CallBytes(kScoreMethod, score, Deadline().WithoutWaiting()).ok());
  EXPECT_EQ(engine.DescribeAll().views(0).revision(), 2);
}

TEST(ViewCreationTest, ARefusedFirstBatchLeavesNoView) {
  TypedEngine engine;
  const Changes bad = Changes::FullList(1, 1).Node(0, NodeOf("a")).Node(1, NodeOf("a"));
  EXPECT_EQ(engine.Sync(bad).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine.Describe(v1::DescribeRequest())->views_size(), 0);
  EXPECT_TRUE(engine.Sync(Changes::FullList(1, 1).Node(0, NodeOf("a"))).ok());
}

TEST(DropTest, ForgetsTheView) {
  TypedEngine engine;
  ASSERT_TRUE(engine.Sync(Changes::FullList(5, 1).Node(0, NodeOf("a"))).ok());
  EXPECT_TRUE(engine.Drop("test").ok());
  EXPECT_EQ(engine.Drop("test").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(engine.Drop("test").status().message()), "view \"test\" is not known");
  EXPECT_EQ(engine.Drop("T").status().code(), absl::StatusCode::kInvalidArgument);
  // Its epochs are forgotten as well.
  EXPECT_TRUE(engine.Sync(Changes::FullList(1, 1)).ok());
}

}  // namespace
}  // namespace loadline
