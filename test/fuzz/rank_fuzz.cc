// Any bytes as a sequence of RankOptionsRequests: an answer has each option once, no score that is not a
// number, terms that make up the score, and is the same the second time; and the engine works on.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "loadline/v1/scale_up.pb.h"
#include "test/fuzz/fuzz_engine.h"

namespace loadline {
namespace {

void CheckOption(const v1::RankedOption& ranked, std::vector<bool>* seen) {
  const int32_t option = ranked.option();
  Require(option >= 0 && static_cast<size_t>(option) < seen->size(), "an option is one of the request");
  Require(!(*seen)[static_cast<size_t>(option)], "each option comes once");
  (*seen)[static_cast<size_t>(option)] = true;
  Require(ranked.outcome() != v1::RankedOption::OUTCOME_UNSPECIFIED, "each option has an outcome");
  double price = 0;
  for (const v1::NodePrice::Part& part : ranked.node_price().parts()) price += part.usd_per_hour();
  Require(price == ranked.node_price().usd_per_hour(), "parts add up to the price");
  Require(price >= 0 && std::isfinite(price), "a price is a number, and not negative");
  if (ranked.outcome() != v1::RankedOption::SCORED) return;
  Require(ranked.score() >= 0, "a score is not negative, and not NaN");
  Require(ranked.score() == ranked.suppressed_unfitness() * ranked.cost_ratio() * ranked.creation_factor(),
          "the terms multiply up to the score");
}

void CheckRanking(const v1::RankOptionsRequest& request, const v1::RankOptionsResponse& response) {
  std::vector<bool> seen(static_cast<size_t>(request.options_size()));
  Require(response.options_size() == request.options_size(), "every option is ranked");
  for (const v1::RankedOption& ranked : response.options()) CheckOption(ranked, &seen);
}

}  // namespace
}  // namespace loadline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr char kRankOptions[] = "/loadline.v1.Autoscaler/RankOptions";
  loadline::FuzzEngine engine;
  for (const absl::string_view bytes : loadline::Requests(data, size)) {
    const absl::StatusOr<std::string> answer = engine.Call(kRankOptions, bytes);
    loadline::NoteAnswer(answer.ok());
    if (!answer.ok()) continue;
    loadline::v1::RankOptionsRequest request;
    loadline::v1::RankOptionsResponse response;
    loadline::Require(request.ParseFromString(std::string(bytes)), "what was answered is a request");
    loadline::Require(response.ParseFromString(*answer), "an answer parses");
    loadline::CheckRanking(request, response);
    const absl::StatusOr<std::string> again = engine.Call(kRankOptions, bytes);
    loadline::Require(again.ok() && *again == *answer, "the same question has the same answer");
  }
  engine.CheckAlive();
  return 0;
}
