#include "plugin/convert/removal.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/removal/step_removal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loadline/v1/removal.pb.h"

namespace loadline {
namespace {

v1::StepRemovalRequest PlainStep() {
  v1::StepRemovalRequest request;
  request.mutable_rules()->set_poll_milliseconds(5'000);
  request.set_now_ms(1'000);
  return request;
}

struct RemovalRefusal {
  std::string field;  // the error begins with it
  std::function<void(v1::StepRemovalRequest*)> edit;
};

class RemovalRefusedTest : public ::testing::TestWithParam<RemovalRefusal> {};

TEST_P(RemovalRefusedTest, NamesTheField) {
  v1::StepRemovalRequest request = PlainStep();
  ASSERT_TRUE(DecodeRemovalQuestion(request).ok());
  GetParam().edit(&request);
  const absl::StatusOr<RemovalQuestion> question = DecodeRemovalQuestion(request);
  EXPECT_THAT(std::string(question.status().message()), ::testing::StartsWith(GetParam().field));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RemovalRefusedTest,
    ::testing::ValuesIn(std::vector<RemovalRefusal>{
        {"rules.poll_milliseconds", [](auto* q) { q->mutable_rules()->set_poll_milliseconds(0); }},
        {"rules.max_grace_seconds", [](auto* q) { q->mutable_rules()->set_max_grace_seconds(-1); }},
        {"rules.batch_interval_milliseconds",
         [](auto* q) { q->mutable_rules()->set_batch_interval_milliseconds(INT64_MAX); }},
        {"rules.priority_groups",
         [](auto* q) {
           q->mutable_rules()->add_priority_groups()->set_priority(5);
           q->mutable_rules()->add_priority_groups()->set_priority(5);
         }},
        {"now_ms", [](auto* q) { q->set_now_ms(-1); }},
        {"state.stage",
         [](auto* q) { q->mutable_state()->set_stage(static_cast<v1::RemovalState::Stage>(9)); }},
        {"state.accepted_ms", [](auto* q) { q->mutable_state()->set_accepted_ms(-2); }},
        {"state.pods.group", [](auto* q) { q->mutable_state()->add_pods()->set_group(1); }},
        {"state.pods.until_ms", [](auto* q) { q->mutable_state()->add_pods()->set_until_ms(INT64_MAX); }},
        {"state.pods: must be sorted",
         [](auto* q) {
           q->mutable_rules()->add_priority_groups()->set_priority(1);
           q->mutable_rules()->add_priority_groups()->set_priority(2);
           q->mutable_state()->add_pods()->set_group(1);
           q->mutable_state()->add_pods();
         }},
        {"state.pods",
         [](auto* q) {
           for (int i = 0; i <= kMaxRemovalPods; ++i) q->mutable_state()->add_pods();
         }},
        {"node.standing", [](auto* q) { q->mutable_node()->set_standing(static_cast<v1::NodeStanding>(6)); }},
        {"pods.pods.planned",
         [](auto* q) {
           q->mutable_pods()->add_pods()->set_planned(static_cast<v1::RemovalPod::Planned>(5));
         }},
        {"evictions.cause",
         [](auto* q) { q->add_evictions()->set_cause(static_cast<v1::EvictionAnswer::Cause>(-1)); }},
        {"evictions.retry_after_seconds", [](auto* q) { q->add_evictions()->set_retry_after_seconds(-1); }},
        {"node.standing", [](auto* q) { q->mutable_node(); }},
        {"pods.pods.planned", [](auto* q) { q->mutable_pods()->add_pods(); }},
        {"asked.result", [](auto* q) { q->mutable_asked(); }},
        {"marked.standing",
         [](auto* q) { q->mutable_marked()->set_standing(static_cast<v1::NodeStanding>(9)); }},
        {"asked.result",
         [](auto* q) { q->mutable_asked()->set_result(static_cast<v1::AskOutcome::Result>(4)); }},
        {"siblings.not_ready", [](auto* q) { q->mutable_siblings()->set_not_ready(-1); }},
        {"siblings.gathered_since_ms", [](auto* q) { q->mutable_siblings()->set_gathered_since_ms(-1); }},
    }));

// A grace period of a pod is not the client's mistake.
TEST(RemovalTest, AnyGracePeriodIsTaken) {
  for (const auto& [stated, taken] : {std::pair{INT64_MIN, int64_t{0}}, {INT64_MAX, kMaxRemovalPatience}}) {
    v1::StepRemovalRequest request = PlainStep();
    v1::RemovalPod* const pod = request.mutable_pods()->add_pods();
    pod->set_planned(v1::RemovalPod::MOVES);
    pod->set_grace_seconds(stated);
    const absl::StatusOr<RemovalQuestion> question = DecodeRemovalQuestion(request);
    ASSERT_TRUE(question.ok()) << question.status();
    EXPECT_EQ(question->seen.pods->pods[0].grace_s, taken);
  }
}

// The state in an answer is the one from which the next step starts.
TEST(RemovalTest, StateGoesThereAndBack) {
  Removal removal{.stage = RemovalStage::kDraining, .empty = false, .since_ms = 3, .accepted_ms = 0};
  removal.pods = {
      {.uid = "u", .name = "ns/p", .grace_s = 7, .best_effort = true, .attempts = 2, .until_ms = 9},
      {.uid = "v", .name = "ns/q", .accepted = true, .despite_budget = true, .next_ms = 8}};
  removal.looked_ms = 250;
  v1::StepRemovalRequest request = PlainStep();
  *request.mutable_state() = EncodeRemovalStep({}, removal).state();
  const absl::StatusOr<RemovalQuestion> question = DecodeRemovalQuestion(request);
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_EQ(EncodeRemovalStep({}, question->removal).SerializeAsString(),
            EncodeRemovalStep({}, removal).SerializeAsString());
  EXPECT_EQ(question->removal.stage, RemovalStage::kDraining);
  EXPECT_EQ(question->removal.accepted_ms, 0);
  EXPECT_EQ(question->removal.pods[0].until_ms, 9);
  EXPECT_TRUE(question->removal.pods[1].despite_budget);
}

}  // namespace
}  // namespace loadline
