// limit_score.jsonl: ScoreRaw, Normalize, ScoreNodes, ExplainNodes and ParseQuantity.
#include <algorithm>
#include <string>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"
#include "core/base/quantity.h"
#include "test/vectors/fleet.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

const MissingLimitRule kNothing = {.rule = MissingLimit::kZero};

// Returns whether value / one is within 2^-20 of the fraction: |value * d - n * one| * 2^20 <= one * d.
bool IsNear(int64_t value, int64_t one, const Fraction& fraction) {
  const absl::int128 difference =
      absl::int128(value) * fraction.denominator - absl::int128(fraction.numerator) * one;
  const absl::int128 distance = difference < 0 ? -difference : difference;
  return distance * (int64_t{1} << 20) <= absl::int128(one) * fraction.denominator;
}

void ExactRawScores(const RawScores& raw, Answers* answers) {
  const Json* const wanted = answers->Wanted("raw_sum_exact");
  if (wanted == nullptr) return;
  bool agrees = wanted->size() == raw.values.size();
  Json got = Json::array();
  for (size_t i = 0; i < raw.values.size(); ++i) {
    agrees = agrees && IsNear(raw.values[i], raw.one, ParseFraction(wanted->at(i)));
    got.push_back(static_cast<double>(raw.values[i]) / static_cast<double>(raw.one));
  }
  answers->Agrees("raw_sum_exact", agrees, got);
}

// An exact normalized score: ours is the integer below, where less than 2^-16 below an integer counts as it.
void ExactScores(const std::vector<int32_t>& scores, Answers* answers) {
  const Json* const wanted = answers->Wanted("norm_exact");
  if (wanted == nullptr) return;
  if (wanted->is_null()) return answers->Scores("norm_exact", scores);
  bool agrees = wanted->size() == scores.size();
  for (size_t i = 0; agrees && i < scores.size(); ++i) {
    const Fraction exact = ParseFraction(wanted->at(i));
    const absl::int128 above = absl::int128(exact.numerator) - absl::int128(scores[i]) * exact.denominator;
    agrees = above < exact.denominator && -above * (1 << 16) < exact.denominator;
  }
  answers->Agrees("norm_exact", agrees, scores);
}

Json SkippedResources(const LimitPolicy& policy, const std::vector<NodeExplanation>& nodes) {
  Json skipped = Json::array();
  for (const NodeExplanation& node : nodes) {
    Json names = Json::array();
    for (size_t r = 0; r < node.resources.size(); ++r) {
      if (node.resources[r].allocatable == 0) names.push_back(policy.resources[r].name);
    }
    skipped.push_back(names);
  }
  return skipped;
}

// All that rows may want of nodes that are scored for `incoming`.
void AnswerScores(const std::vector<ResourceWeight>& weights, const MissingLimitRule& missing, Fleet* fleet,
                  const PodResources& incoming, Answers* answers) {
  const LimitPolicy sum = WholeNumbers(weights, missing);
  answers->Equal("raw_sum_int", fleet->Raw(sum, incoming).values);
  answers->Scores("norm_int", fleet->Scores(sum, incoming));

  LimitPolicy mean = sum;
  mean.aggregate = Aggregate::kWeightedMean;
  mean.absent_resource = AbsentResource::kExclude;
  answers->Equal("raw_mean_int", fleet->Raw(mean, incoming).values);
  answers->Scores("norm_of_mean_int", fleet->Scores(mean, incoming));

  const LimitPolicy exact = FixedPoint(weights, missing);
  ExactRawScores(fleet->Raw(exact, incoming), answers);
  const std::vector<int32_t> scores = fleet->Scores(exact, incoming);
  answers->Scores("norm_floor", scores);
  ExactScores(scores, answers);

  const std::vector<NodeExplanation> explained = fleet->Explain(exact, incoming);
  answers->Equal("skipped", SkippedResources(exact, explained));
  answers->Equal("limits", LimitsAfterPlacing(exact, explained));
}

// The limits of a row include the incoming pod: all of them go on the node, and the incoming pod has none.
void LimitScore(const Json& in, Answers* answers) {
  Fleet fleet;
  for (const Json& node : in.at("nodes")) {
    fleet.AddNode(node.at("allocatable"), {fleet.PodWithLimits(node.at("limits"))});
  }
  AnswerScores(Weights(in.at("weights")), kNothing, &fleet, PodResources{}, answers);
}

void MissingLimits(const Json& in, Answers* answers) {
  const Json& missing_limit = in.at("missing_limit");
  const MissingLimitRule missing =
      missing_limit == "allocatable"
          ? MissingLimitRule{.rule = MissingLimit::kAllocatable}
          : MissingLimitRule{.rule = MissingLimit::kFixed, .fixed = missing_limit.get<int64_t>()};
  Fleet fleet;
  for (const Json& node : in.at("nodes")) {
    std::vector<PodResources> pods(node.at("unlimited_pods").get<size_t>(),
                                   fleet.PodWithLimits(Json::object()));
    // A pod that limits nothing would be one without a limit.
    const Json& limited = node.at("limited_sum");
    const bool any = std::any_of(limited.begin(), limited.end(), [](const Json& sum) { return sum != 0; });
    if (any) pods.push_back(fleet.PodWithLimits(limited));
    fleet.AddNode(node.at("allocatable"), pods);
  }
  const Json& limit = in.at("pod_limit");
  const PodResources incoming = fleet.PodWithLimits(limit.is_null() ? Json::object() : Json{{"cpu", limit}});
  AnswerScores(Weights(in.at("weights")), missing, &fleet, incoming, answers);
}

void NormaliseRaw(const Json& in, Answers* answers) {
  RawScores raw;
  raw.values = in.at("raw").get<std::vector<int64_t>>();
  std::vector<int32_t> scores;
  Normalize(Kep217Policy({{"cpu", 1}}), raw, &scores);
  answers->Scores("norm_int", scores);
}

void Combined(const Json& in, Answers* answers) {
  Fleet fleet;
  for (const Json& limits : in.at("limits_after_mcpu")) {
    fleet.AddNode({{"cpu", in.at("allocatable_mcpu")}}, {fleet.PodWithLimits({{"cpu", limits}})});
  }
  answers->Scores("limit_norm_int", fleet.Scores(WholeNumbers({{"cpu", 1}}, kNothing), PodResources{}));
}

// A limit as text; one that is larger than an amount can be may also saturate there.
void OverflowOfText(const Json& in, Answers* answers) {
  const absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(in.at("quantity").get<std::string>());
  const std::string got =
      parsed.ok() ? std::to_string(Units(parsed->value)) : std::string(parsed.status().message());
  const Json* const wanted = answers->Wanted("want_value");
  const Json* const or_saturated = answers->Wanted("or_saturated");
  const bool saturated = parsed.ok() && parsed->clamped && Units(parsed->value) == kMaxAmount;
  const bool exact = wanted != nullptr && *wanted == got;
  const bool agrees = exact || (saturated && or_saturated != nullptr && or_saturated->get<bool>());
  answers->Agrees("want_value", agrees, got);
  answers->Agrees("or_saturated", agrees, saturated);
}

// A node whose sum of limits is beyond 64 bits, beside nodes that are not overcommitted.
void OverflowOfSum(const Json& in, Answers* answers) {
  Fleet fleet;
  const Json allocatable = {{"memory", in.at("allocatable_bytes")}};
  std::vector<PodResources> pods;
  for (const Json& limit : in.at("limits")) {
    const absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(limit.get<std::string>());
    if (!parsed.ok()) return;  // leaves the wanted keys without an answer
    PodResources& pod = pods.emplace_back(fleet.PodWithLimits(Json::object()));
    pod.containers[0].limits[kMemory] = parsed->value;
  }
  fleet.AddNode(allocatable, pods);
  fleet.AddNode(allocatable, {});
  fleet.AddNode(allocatable, {fleet.PodWithLimits(allocatable)});

  answers->Equal("raw_int", fleet.Raw(WholeNumbers({{"memory", 1}}, kNothing), PodResources{}).values[0]);
  // Both presets tell it apart from a node that is exactly full.
  bool worst = true;
  for (const LimitPolicy& policy : {StrictPolicy({{"memory", 1}}), Kep217Policy({{"memory", 1}})}) {
    const std::vector<int64_t> raw = fleet.Raw(policy, PodResources{}).values;
    worst = worst && raw[0] < std::min(raw[1], raw[2]);
  }
  answers->Equal("rank", worst ? "worst" : "not worst");
}

void Overflow(const Json& in, Answers* answers) {
  in.contains("quantity") ? OverflowOfText(in, answers) : OverflowOfSum(in, answers);
}

}  // namespace

void AddLimitScoreHandlers(Handlers* handlers) {
  handlers->insert({{"limit_score", LimitScore},
                    {"missing_limit", MissingLimits},
                    {"normalise", NormaliseRaw},
                    {"combined", Combined},
                    {"overflow", Overflow}});
}

}  // namespace loadline::vectors
