// Questions of a scheduling cycle, bytes to bytes. Whether the numbers are right, score_oracle_test.cc asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Changes = ChangesBuilder;

std::vector<int32_t> ScoresOf(const absl::StatusOr<v1::ScoreResponse>& response) {
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok()) return {};
  return {response->scores().begin(), response->scores().end()};
}

// The rounding of a raw score in fixed point.
constexpr double kRounding = 1.0 / (1 << 20);

const v1::ScorePolicy kStrict = Preset(v1::ScorePolicy::STRICT);

v1::ScorePolicy CpuOnly(v1::ScorePolicy::Preset preset) {
  v1::ScorePolicy policy = Preset(preset);
  policy.add_resources()->set_resource("cpu");
  policy.mutable_resources(0)->set_weight(1);
  return policy;
}

// The example of KEP 217: two nodes of 8 CPU with limits of 10 and 5, and a pod with a limit of 4.
class KepExampleTest : public ::testing::Test {
 protected:
  KepExampleTest() {
    EXPECT_TRUE(engine_
                    .Sync(Changes::FullList(1, 1)
                              .Shape(1, MakePod({{"cpu", "6"}}, {{"cpu", "2"}}))
                              .Shape(2, MakePod({{"cpu", "4"}}, {{"cpu", "2"}}))
                              .Shape(3, MakePod({{"cpu", "3"}}, {{"cpu", "3"}}))
                              .Shape(4, MakePod({{"cpu", "2"}}, {{"cpu", "2"}}))
                              .Node(1, MakeNode("node1", {{"cpu", "8"}}), {{1, "pod1", ""}, {2, "pod2", ""}})
                              .Node(2, MakeNode("node2", {{"cpu", "8"}}), {{3, "pod3", ""}, {4, "pod4", ""}}))
                    .ok());
  }

  v1::ScoreRequest Ask(const v1::ScorePolicy& policy, const std::vector<int32_t>& slots = {}) const {
    return ScoreOf(Changes::At(1, 1).changes(), pod5_, policy, slots);
  }
  std::string ErrorOf(const v1::ScoreRequest& request, absl::StatusCode code) {
    const absl::Status status = engine_.Score(request).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(engine_.Explain(ExplainOf(request)).status(), status);
    return std::string(status.message());
  }

  TypedEngine engine_;
  const k8s::v1::Pod pod5_ = MakePod({{"cpu", "4"}}, {{"cpu", "1"}});
};

TEST_F(KepExampleTest, PrefersNode2) {
  for (const auto preset : {v1::ScorePolicy::STRICT, v1::ScorePolicy::KEP217}) {
    EXPECT_THAT(ScoresOf(engine_.Score(Ask(CpuOnly(preset)))), ElementsAre(0, 100));
  }
}

// A raw score does not depend on the other candidates: -75 and -12.5, by the letter -75 and -12; absolute
// scores are 100 / (1 + 14/8) and 100 / (1 + 9/8), of a third node without cpu there is none.
TEST_F(KepExampleTest, AnswersRawScores) {
  ASSERT_TRUE(engine_.Sync(Changes::Delta(1, 1, 2).Node(3, MakeNode("node3", {{"memory", "8"}}), {})).ok());
  const auto raw_scores = [this](const v1::ScorePolicy& policy, const std::vector<int32_t>& slots) {
    v1::ScoreRequest request = Ask(policy, slots);
    *request.mutable_changes() = Changes::At(1, 2).changes();
    request.set_raw(true);
    absl::StatusOr<v1::ScoreResponse> response = engine_.Score(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::ScoreResponse();
  };
  constexpr int64_t kOne = int64_t{1} << 32;
  constexpr int64_t kNone = INT64_MIN;
  // A share is up to 2 units too low, see ShareOf().
  const auto about = [](int64_t raw) { return ::testing::AllOf(::testing::Ge(raw), ::testing::Le(raw + 2)); };
  const v1::ScorePolicy strict = CpuOnly(v1::ScorePolicy::STRICT);
  EXPECT_THAT(raw_scores(strict, {1, 2}).raw_scores(), ElementsAre(about(-75 * kOne), about(-25 * kOne / 2)));
  EXPECT_THAT(raw_scores(strict, {2}).raw_scores(), ElementsAre(about(-25 * kOne / 2)));
  const v1::ScoreResponse all = raw_scores(strict, {});
  EXPECT_THAT(all.raw_scores(), ElementsAre(about(-75 * kOne), about(-25 * kOne / 2), kNone));
  EXPECT_THAT(all.slots(), ElementsAre(1, 2, 3));
  EXPECT_THAT(all.scores(), IsEmpty());
  EXPECT_EQ(all.scale().kind(), v1::RawScale::MIN_MAX_FIXED_POINT);
  EXPECT_EQ(all.scale().equal_below(), 1 << 12);

  const v1::ScoreResponse letter = raw_scores(CpuOnly(v1::ScorePolicy::KEP217), {1, 2});
  EXPECT_THAT(letter.raw_scores(), ElementsAre(-75, -12));
  EXPECT_EQ(letter.scale().kind(), v1::RawScale::MIN_MAX_TRUNCATING);
  EXPECT_EQ(letter.scale().equal_below(), 1);

  v1::ScorePolicy absolute = strict;
  absolute.set_normalization(v1::ScorePolicy::ABSOLUTE);
  const v1::ScoreResponse scores = raw_scores(absolute, {2, 1, 3});
  EXPECT_THAT(scores.raw_scores(), ElementsAre(47, 36, 0));
  EXPECT_EQ(scores.scale().kind(), v1::RawScale::SCORES);
}

// Limits of 14/8 and 9/8 after placing the pod: raw scores of -75 and -12.5, by the letter -12.
TEST_F(KepExampleTest, ExplainsWhy) {
  const absl::StatusOr<v1::ExplainResponse> strict =
      engine_.Explain(ExplainOf(Ask(CpuOnly(v1::ScorePolicy::STRICT))));
  ASSERT_TRUE(strict.ok()) << strict.status();
  EXPECT_EQ(strict->policy().max_limit_ratio(), 1);
  EXPECT_FALSE(strict->best_effort());
  ASSERT_EQ(strict->pod_limits_size(), 1);
  EXPECT_EQ(strict->pod_limits(0).resource(), "cpu");
  EXPECT_EQ(strict->pod_limits(0).amount(), 4000);
  EXPECT_EQ(strict->pod_requests(0).amount(), 1000);
  ASSERT_EQ(strict->nodes_size(), 2);
  const v1::NodeExplanation& node1 = strict->nodes(0);
  EXPECT_EQ(node1.slot(), 1);
  EXPECT_EQ(node1.node(), "node1");
  EXPECT_EQ(node1.outcome(), v1::NodeExplanation::SCORED);
  EXPECT_EQ(node1.score(), 0);
  EXPECT_NEAR(node1.raw_score(), -75, kRounding);
  EXPECT_EQ(node1.resources(0).allocatable(), 8000);
  EXPECT_EQ(node1.resources(0).node_limits(), 10000);
  EXPECT_EQ(node1.resources(0).pod_limit(), 4000);
  EXPECT_DOUBLE_EQ(node1.resources(0).ratio(), 1.75);
  EXPECT_EQ(node1.resources(0).pod_rule(), v1::MissingLimitRule::RULE_UNSPECIFIED);
  EXPECT_NEAR(strict->nodes(1).raw_score(), -12.5, kRounding);
  EXPECT_EQ(strict->nodes(1).score(), 100);

  const absl::StatusOr<v1::ExplainResponse> letter =
      engine_.Explain(ExplainOf(Ask(CpuOnly(v1::ScorePolicy::KEP217))));
  ASSERT_TRUE(letter.ok()) << letter.status();
  EXPECT_DOUBLE_EQ(letter->nodes(1).raw_score(), -12);
  EXPECT_EQ(letter->policy().max_limit_ratio(), -1);
}

TEST_F(KepExampleTest, ScoresComeInTheOrderOfTheSlots) {
  const absl::StatusOr<v1::ScoreResponse> all = engine_.Score(Ask(CpuOnly(v1::ScorePolicy::STRICT)));
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(std::vector<int32_t>(all->slots().begin(), all->slots().end()), ElementsAre(1, 2));
  const absl::StatusOr<v1::ScoreResponse> asked =
      engine_.Score(Ask(CpuOnly(v1::ScorePolicy::STRICT), {2, 1}));
  EXPECT_THAT(ScoresOf(asked), ElementsAre(100, 0));
  EXPECT_EQ(asked->slots_size(), 0);
  EXPECT_THAT(ScoresOf(engine_.Score(Ask(CpuOnly(v1::ScorePolicy::STRICT), {2}))), ElementsAre(0));
}

TEST_F(KepExampleTest, ExplainsTheCandidatesAskedForInTheirOrder) {
  const v1::ScoreRequest score = Ask(CpuOnly(v1::ScorePolicy::STRICT), {2, 1});
  EXPECT_EQ(engine_.Explain(ExplainOf(score))->nodes(0).slot(), 2);
  const absl::StatusOr<v1::ExplainResponse> one = engine_.Explain(ExplainOf(score, {1}));
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->nodes_size(), 1);
  EXPECT_EQ(one->nodes(0).slot(), 1);
  EXPECT_EQ(one->nodes(0).score(), 0);
  const absl::Status status = engine_.Explain(ExplainOf(Ask(kStrict, {2}), {1})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), "explain_slots[0]: slot 1 is not a candidate");
}

TEST_F(KepExampleTest, AnswersAtTheRevisionAskedForOrNotAtAll) {
  const auto code = absl::StatusCode::kFailedPrecondition;
  v1::ScoreRequest request = Ask(kStrict);
  request.mutable_changes()->set_base_revision(2);
  request.mutable_changes()->set_revision(2);
  EXPECT_THAT(ErrorOf(request, code), HasSubstr("which is at epoch 1 revision 1"));
  request.mutable_changes()->set_epoch(2);
  EXPECT_THAT(ErrorOf(request, code), HasSubstr("is of another epoch than the view"));
  request = Ask(kStrict);
  request.mutable_changes()->set_view("other");
  EXPECT_THAT(ErrorOf(request, code), HasSubstr("view \"other\" is not known"));
}

TEST_F(KepExampleTest, AppliesTheChangesThatComeWithTheQuestion) {
  const Changes changes = Changes::Delta(1, 1, 2).Node(2, MakeNode("node2", {{"cpu", "8"}}),
                                                       {{1, "pod1", ""}, {2, "pod2", ""}, {4, "pod4", ""}});
  for (int i = 0; i < 2; ++i) {  // the second time they are there already
    EXPECT_THAT(ScoresOf(engine_.Score(ScoreOf(changes.changes(), pod5_, kStrict))), ElementsAre(100, 0));
  }
  EXPECT_EQ(engine_.DescribeAll().views(0).revision(), 2);
}

TEST_F(KepExampleTest, AnswersUnderAnyPolicyAfterManyChanges) {
  std::vector<v1::ScorePolicy> policies;
  for (int32_t weight = 1; weight <= 12; ++weight) {  // more than are kept
    policies.push_back(CpuOnly(weight % 2 == 0 ? v1::ScorePolicy::STRICT : v1::ScorePolicy::KEP217));
    policies.back().mutable_resources(0)->set_weight(weight);
  }
  for (int64_t revision = 2; revision < 100; ++revision) {
    const bool on_node1 = revision % 2 == 0;
    Changes changes = Changes::Delta(1, revision - 1, revision)
                          .Node(1, MakeNode("node1", {{"cpu", "8"}}), {{on_node1 ? 1 : 3, "p", ""}})
                          .Node(2, MakeNode("node2", {{"cpu", "8"}}), {{on_node1 ? 3 : 1, "p", ""}});
    const size_t i = static_cast<size_t>(revision) * 7 % policies.size();
    ASSERT_THAT(ScoresOf(engine_.Score(ScoreOf(changes.changes(), pod5_, policies[i]))),
                ElementsAre(on_node1 ? 0 : 100, on_node1 ? 100 : 0))
        << revision;
  }
}

TEST_F(KepExampleTest, TakesACompleteFullList) {
  Changes changes = Changes::FullList(2, 1).Node(4, MakeNode("x", {{"cpu", "8"}}));
  EXPECT_THAT(ScoresOf(engine_.Score(ScoreOf(changes.changes(), pod5_, kStrict))), ElementsAre(0));
  changes = Changes::Chunk(3, 1, 0, false);
  EXPECT_EQ(ErrorOf(ScoreOf(changes.changes(), pod5_, kStrict), absl::StatusCode::kInvalidArgument),
            "changes: the full list of a question must be complete");
  changes = Changes::Chunk(3, 1, 1, true);
  EXPECT_EQ(ErrorOf(ScoreOf(changes.changes(), pod5_, kStrict), absl::StatusCode::kInvalidArgument),
            "changes: the full list of a question must be complete");
}

TEST_F(KepExampleTest, TheStatusOfTheIncomingPodIsNotRead) {
  k8s::v1::Pod pod = pod5_;
  pod.mutable_status()->set_phase("Failed");
  pod.mutable_status()->add_container_statuses()->set_name("app");
  AddEntries({{"cpu", "malformed"}},
             pod.mutable_status()->mutable_container_statuses(0)->mutable_allocated_resources());
  const absl::StatusOr<v1::ExplainResponse> response =
      engine_.Explain(ExplainOf(ScoreOf(Changes::At(1, 1).changes(), pod, kStrict)));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->pod_limits(0).amount(), 4000);
}

TEST_F(KepExampleTest, BadQuestionsNameTheField) {
  const auto code = absl::StatusCode::kInvalidArgument;
  v1::ScoreRequest request = Ask(kStrict);
  request.clear_changes();
  EXPECT_EQ(ErrorOf(request, code), "changes: required");
  request = Ask(kStrict);
  request.clear_policy();
  EXPECT_EQ(ErrorOf(request, code), "policy: required");
  request = Ask(v1::ScorePolicy());
  EXPECT_EQ(ErrorOf(request, code), "policy: preset: required");
  EXPECT_EQ(ErrorOf(Ask(kStrict, {1, 2, 1}), code), "slots[2]: slot 1 is named twice");
  EXPECT_EQ(ErrorOf(Ask(kStrict, {0}), code), "slots[0]: slot 0 holds no node");
  EXPECT_EQ(ErrorOf(Ask(kStrict, {3}), code), "slots[0]: slot 3 is not in [0, 3)");
  request = ScoreOf(Changes::At(1, 1).changes(), MakePod({{"cpu", "x"}}), kStrict);
  EXPECT_THAT(
      ErrorOf(request, code),
      HasSubstr(
          R"(pod (namespace "default"): spec.containers[0] "app": resources.limits["cpu"]: "x" is not)"));
  // A pod of which only the namespace was filled in; and as JSON, of which not even that.
  for (const char* const empty : {"\x0a\x03\x1a\x01\x61", "{}", "{\"kind\":\"Pod\"}"}) {
    request.set_pod(empty);
    EXPECT_THAT(ErrorOf(request, code), HasSubstr("): spec.containers: required"));
  }
  request.set_pod("\xff");
  EXPECT_THAT(ErrorOf(request, code), HasSubstr("pod is not a k8s.io.api.core.v1.Pod"));
  request = Ask(kStrict);
  request.mutable_changes()->set_revision(0);
  EXPECT_THAT(ErrorOf(request, code), HasSubstr("changes: revision: 0 is not in"));
}

// Sync is idempotent, so a client that sends the same changes again after such a refusal loses nothing.
TEST_F(KepExampleTest, ChangesStayAppliedWhenTheQuestionIsRefused) {
  const Changes changes = Changes::Delta(1, 1, 2).Remove(1);
  EXPECT_EQ(engine_.Score(ScoreOf(changes.changes(), pod5_, kStrict, {1})).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine_.DescribeAll().views(0).revision(), 2);
  EXPECT_THAT(ScoresOf(engine_.Score(ScoreOf(changes.changes(), pod5_, kStrict))), ElementsAre(0));
}

TEST(ScoreTest, AnEmptyViewHasNoScores) {
  TypedEngine engine;
  const absl::StatusOr<v1::ScoreResponse> response =
      engine.Score(ScoreOf(Changes::FullList(1, 1).changes(), MakePod({}), kStrict));
  EXPECT_THAT(ScoresOf(response), IsEmpty());
  EXPECT_EQ(response->slots_size(), 0);
}

// A pod that no node can hold is a question like any other, also where the view has never heard of what it
// asks.
TEST(ScoreTest, APodMayLimitAResourceThatTheViewDoesNotKnow) {
  TypedEngine engine;
  v1::ScorePolicy policy = kStrict;
  for (const char* const name : {"cpu", "example.com/gpu"}) {
    v1::ResourceWeight* const weight = policy.add_resources();
    weight->set_resource(name);
    weight->set_weight(1);
  }
  const Changes changes =
      Changes::FullList(1, 1).Node(0, MakeNode("a", {{"cpu", "8"}})).Node(1, MakeNode("b", {{"cpu", "4"}}));
  const v1::ScoreRequest limited =
      ScoreOf(changes.changes(), MakePod({{"cpu", "1"}, {"example.com/gpu", "1"}}), policy);
  EXPECT_THAT(ScoresOf(engine.Score(limited)), ElementsAre(0, 0));
  const absl::StatusOr<v1::ExplainResponse> explained = engine.Explain(ExplainOf(limited));
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_EQ(explained->pod_limits_size(), 2);
  EXPECT_EQ(explained->nodes(0).outcome(), v1::NodeExplanation::LACKS_LIMITED_RESOURCE);
  EXPECT_EQ(explained->nodes(1).outcome(), v1::NodeExplanation::LACKS_LIMITED_RESOURCE);

  const v1::ScoreRequest unlimited = ScoreOf(changes.changes(), MakePod({{"cpu", "1"}}), policy);
  EXPECT_THAT(ScoresOf(engine.Score(unlimited)), ElementsAre(100, 0));
}

// 25,000 nodes with names of 200 characters take 6 MB to explain.
TEST(ExplainTest, AnAnswerThatIsTooLongIsRefused) {
  TypedEngine engine;
  constexpr int32_t kNodes = 25'000;
  constexpr int32_t kPerBatch = 5'000;
  for (int32_t begin = 0; begin < kNodes; begin += kPerBatch) {
    const int64_t step = begin / kPerBatch;
    Changes changes = begin == 0 ? Changes::FullList(1, 1) : Changes::Delta(1, step, step + 1);
    for (int32_t i = begin; i < begin + kPerBatch; ++i) {
      const std::string number = std::to_string(i);
      changes.Node(i, MakeNode(std::string(200 - number.size(), 'n') + number, {{"cpu", "4"}}));
    }
    ASSERT_TRUE(engine.Sync(changes).ok());
  }
  const v1::ScoreRequest request =
      ScoreOf(Changes::At(1, kNodes / kPerBatch).changes(), MakePod({}), kStrict);
  EXPECT_EQ(engine.Score(request)->scores_size(), kNodes);
  const absl::Status status = engine.Explain(ExplainOf(request)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "the answer for 25000 nodes outgrows 4194304 bytes; name fewer explain_slots");
  EXPECT_EQ(engine.Explain(ExplainOf(request, {7}))->nodes(0).slot(), 7);
}

// Deltas and questions between the chunks of a full list belong to the former state. After the swap nothing
// of what was kept for it counts.
TEST(ScoreTest, FollowsAFullListThatWasStagedMeanwhile) {
  for (int64_t deltas = 0; deltas < 10; ++deltas) {
    TypedEngine engine;
    const auto score = [&](int64_t epoch, int64_t revision) {
      return ScoresOf(engine.Score(ScoreOf(Changes::At(epoch, revision).changes(), MakePod({{"cpu", "1"}}),
                                           CpuOnly(v1::ScorePolicy::STRICT))));
    };
    const auto node = [](const char* name) { return MakeNode(name, {{"cpu", "8"}}); };
    ASSERT_TRUE(engine
                    .Sync(Changes::FullList(1, 1)
                              .Shape(0, MakePod({{"cpu", "4"}}))
                              .Node(0, node("a"), {{0, "p", ""}})
                              .Node(1, node("b")))
                    .ok());
    EXPECT_THAT(score(1, 1), ElementsAre(0, 100));
    ASSERT_TRUE(engine
                    .Sync(Changes::Chunk(2, 1, 0, false)
                              .Shape(0, MakePod({{"cpu", "4"}}))
                              .Node(0, node("a"))
                              .Node(1, node("b"), {{0, "p", ""}}))
                    .ok());
    for (int64_t i = 1; i <= deltas; ++i) {
      ASSERT_TRUE(engine.Sync(Changes::Delta(1, i, i + 1).Node(0, node("a"), {{0, "p", ""}})).ok());
    }
    EXPECT_THAT(score(1, deltas + 1), ElementsAre(0, 100));
    ASSERT_TRUE(engine.Sync(Changes::Chunk(2, 1, 1, true)).ok());
    EXPECT_THAT(score(2, 1), ElementsAre(100, 0)) << deltas;
  }
}

// Names are shown safely: escaped, cut, and no more than a few.
TEST(ExplainTest, NamesTheContainersWithoutALimit) {
  TypedEngine engine;
  ASSERT_TRUE(
      engine.Sync(Changes::FullList(1, 1).Node(0, MakeNode("a", {{"cpu", "8"}, {"memory", "16Gi"}}))).ok());
  k8s::v1::Pod pod = MakePod({{"cpu", "1"}}, {{"memory", "4Gi"}});
  auto* const sidecar = pod.mutable_spec()->add_init_containers();
  sidecar->set_name("mesh\x1b" + std::string(100, 'x'));
  sidecar->set_restart_policy("Always");
  AddEntries({{"memory", "1Gi"}}, sidecar->mutable_resources()->mutable_limits());
  for (int i = 0; i < 9; ++i) {
    pod.mutable_spec()->add_init_containers()->set_restart_policy("Always");
    pod.mutable_spec()->mutable_init_containers(i + 1)->set_name("s" + std::to_string(i));
  }
  const v1::ScoreRequest score = ScoreOf(Changes::At(1, 1).changes(), pod, kStrict);
  const absl::StatusOr<v1::ExplainResponse> strict = engine.Explain(ExplainOf(score));
  ASSERT_TRUE(strict.ok()) << strict.status();
  ASSERT_EQ(strict->unlimited_containers_size(), 2);
  const v1::UnlimitedContainers& cpu = strict->unlimited_containers(0);
  EXPECT_EQ(cpu.resource(), "cpu");
  EXPECT_EQ(cpu.total(), 10);
  EXPECT_THAT(cpu.containers(),
              ElementsAre("mesh\\x1b" + std::string(58, 'x'), "s0", "s1", "s2", "s3", "s4", "s5", "s6"));
  const v1::UnlimitedContainers& memory = strict->unlimited_containers(1);
  EXPECT_EQ(memory.resource(), "memory");
  EXPECT_EQ(memory.total(), 10);
  EXPECT_EQ(memory.containers(0), "app");
  EXPECT_EQ(strict->nodes(0).resources(1).pod_limit(), int64_t{16} << 30);
  EXPECT_EQ(strict->nodes(0).resources(1).pod_rule(), v1::MissingLimitRule::ALLOCATABLE);

  const absl::StatusOr<v1::ExplainResponse> letter =
      engine.Explain(ExplainOf(ScoreOf(Changes::At(1, 1).changes(), pod, Preset(v1::ScorePolicy::KEP217))));
  ASSERT_TRUE(letter.ok()) << letter.status();
  EXPECT_EQ(letter->unlimited_containers_size(), 0);
}

}  // namespace
}  // namespace loadline
