// Any bytes as a sequence of ScoreRequests: an answer has one score from 0 to 100 per candidate, is the same
// the second time and in the explanation, and the engine works on.
#include <cstddef>
#include <cstdint>
#include <string>

#include "loadline/v1/score.pb.h"
#include "test/fuzz/fuzz_engine.h"

namespace loadline {
namespace {

void CheckScores(const v1::ScoreRequest& request, const v1::ScoreResponse& response) {
  Require(request.slots().empty() ? response.scores_size() == response.slots_size()
                                  : response.scores_size() == request.slots_size(),
          "there is one score per candidate");
  for (const int32_t score : response.scores())
    Require(score >= 0 && score <= 100, "a score is from 0 to 100");
}

void CheckExplanation(const v1::ScoreRequest& request, const v1::ScoreResponse& scores, FuzzEngine* engine) {
  v1::ExplainRequest question;
  *question.mutable_changes() = request.changes();
  question.set_pod(request.pod());
  *question.mutable_slots() = request.slots();
  *question.mutable_policy() = request.policy();
  const absl::StatusOr<std::string> answer =
      engine->Call("/loadline.v1.SchedulerExtender/Explain", question.SerializeAsString());
  v1::ExplainResponse explanation;
  Require(answer.ok() && explanation.ParseFromString(*answer), "what can be scored can be explained");
  Require(explanation.nodes_size() == scores.scores_size(), "every candidate is explained");
  for (int i = 0; i < explanation.nodes_size(); ++i) {
    Require(explanation.nodes(i).score() == scores.scores(i), "the explanation has the same score");
    Require(explanation.nodes(i).resources_size() == explanation.policy().resources_size(),
            "every resource is explained");
  }
}

}  // namespace
}  // namespace loadline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr char kScore[] = "/loadline.v1.SchedulerExtender/Score";
  loadline::FuzzEngine engine;
  for (const absl::string_view bytes : loadline::Requests(data, size)) {
    const absl::StatusOr<std::string> answer = engine.Call(kScore, bytes);
    loadline::NoteAnswer(answer.ok());
    if (!answer.ok()) continue;
    loadline::v1::ScoreRequest request;
    loadline::v1::ScoreResponse response;
    loadline::Require(request.ParseFromString(std::string(bytes)), "what was answered is a request");
    loadline::Require(response.ParseFromString(*answer), "an answer parses");
    loadline::CheckScores(request, response);
    const absl::StatusOr<std::string> again = engine.Call(kScore, bytes);
    loadline::Require(again.ok() && *again == *answer, "the same question has the same answer");
    loadline::CheckExplanation(request, response, &engine);
  }
  engine.CheckSums();
  engine.CheckAlive();
  return 0;
}
