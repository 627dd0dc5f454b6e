// Scores against a slow and independent calculation in fractions, on random small clusters.
//
// Amounts are drawn small, so that fractions of them stay exact in 128 bits, and then each resource is scaled
// by a factor: that changes no ratio, and so no exact score, but gives the engine amounts of any size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "test/plugin/messages.h"
#include "test/plugin/random_cluster.h"
#include "test/plugin/score_messages.h"
#include "test/testing/drawn_cases.h"

namespace loadline {
namespace {

using Int = __int128;

Int Gcd(Int a, Int b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a < 0 ? -a : a;
}

// A fraction in lowest terms; the denominator is positive.
struct Fraction {
  Fraction(Int n, Int d = 1) : numerator(n), denominator(d) {  // NOLINT(google-explicit-constructor)
    if (denominator < 0) numerator = -numerator, denominator = -denominator;
    const Int divisor = Gcd(numerator, denominator);
    if (divisor > 1) numerator /= divisor, denominator /= divisor;
  }
  Int numerator;
  Int denominator;
};

Fraction operator+(Fraction a, Fraction b) {
  return {a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator};
}
Fraction operator-(Fraction a, Fraction b) { return a + Fraction(-b.numerator, b.denominator); }
Fraction operator*(Fraction a, Fraction b) {
  return {a.numerator * b.numerator, a.denominator * b.denominator};
}
Fraction operator/(Fraction a, Fraction b) {
  return {a.numerator * b.denominator, a.denominator * b.numerator};
}
bool operator<(Fraction a, Fraction b) { return a.numerator * b.denominator < b.numerator * a.denominator; }
long double Value(Fraction a) {
  return static_cast<long double>(a.numerator) / static_cast<long double>(a.denominator);
}
Int TruncatedQuotient(Int a, Int b) { return a / b; }  // C++ truncates towards 0, as Go does

// A pod by what counts: amounts before scaling, per resource of the cluster; absent: none stated.
struct OraclePod {
  std::vector<std::optional<int64_t>> limits;
  std::vector<std::optional<int64_t>> requests;
};

struct OracleNode {
  std::vector<std::optional<int64_t>> allocatable;
  std::vector<OraclePod> pods;
};

// cpu and memory come first.
const std::vector<std::string> kNames = {"cpu", "memory", "a.com/x"};

struct Case {
  std::vector<int64_t> scale;  // per resource
  std::vector<OracleNode> nodes;
  OraclePod incoming;
  v1::ScorePolicy policy;
  std::vector<size_t> resources;  // of the policy, in its order: positions in kNames
};

// --- The rules, as the proto file states them.
// -----------------------------------------------------------------

using Policy = v1::ScorePolicy;
using Rule = v1::MissingLimitRule;

struct Rules {
  bool truncating, worst, sum, add_nothing, incoming_only, absolute;
  int64_t ratio;  // 0: no bound
};

Rules RulesOf(const Policy& policy) {
  const bool kep = policy.preset() == Policy::KEP217;
  Rules rules{};
  rules.truncating = policy.arithmetic() == 0 ? kep : policy.arithmetic() == Policy::TRUNCATING;
  rules.sum = policy.aggregate() == 0 ? kep : policy.aggregate() == Policy::WEIGHTED_SUM;
  rules.worst = policy.aggregate() == Policy::WORST;
  rules.add_nothing = policy.absent_resource() == 0 ? kep : policy.absent_resource() == Policy::ADD_NOTHING;
  rules.incoming_only =
      policy.missing_limit_scope() == 0 ? kep : policy.missing_limit_scope() == Policy::INCOMING_POD;
  rules.absolute = policy.normalization() == Policy::ABSOLUTE;
  rules.ratio = policy.max_limit_ratio() == 0 ? (kep ? 0 : 1) : std::max(0, policy.max_limit_ratio());
  return rules;
}

bool IsBestEffort(const OraclePod& pod) {
  for (const size_t r : {size_t{0}, size_t{1}}) {
    if (pod.limits[r].value_or(0) > 0 || pod.requests[r].value_or(0) > 0) return false;
  }
  return true;
}

Rule::Rule RuleFor(const Case& c, const OraclePod& pod, size_t r, int64_t* fixed) {
  const Rule::Pods pods = IsBestEffort(pod) ? Rule::BEST_EFFORT : Rule::OTHERS;
  for (const v1::MissingLimitRule& rule : c.policy.missing_limits()) {
    if (rule.pods() != pods || rule.resource() != kNames[r]) continue;
    // Fixed amounts are drawn before scaling as well, and written in the cluster's units.
    if (rule.rule() == Rule::FIXED) *fixed = std::stoll(rule.fixed()) / c.scale[r];
    return rule.rule();
  }
  if (c.policy.preset() == Policy::KEP217) return pods == Rule::BEST_EFFORT ? Rule::ALLOCATABLE : Rule::ZERO;
  if (r == 1 || (r == 0 && pods == Rule::BEST_EFFORT)) return Rule::ALLOCATABLE;
  return Rule::REQUEST;
}

// Returns what a pod counts as on a node that offers `allocatable`.
Int Counted(const Case& c, const Rules& rules, const OraclePod& pod, bool incoming, size_t r,
            Int allocatable) {
  Int amount = pod.limits[r].value_or(0);
  if (amount == 0 && (incoming || !rules.incoming_only)) {
    int64_t fixed = 0;
    switch (RuleFor(c, pod, r, &fixed)) {
      case Rule::REQUEST:
        amount = pod.requests[r].value_or(0);
        break;
      case Rule::ALLOCATABLE:
        amount = allocatable;
        break;
      case Rule::FIXED:
        amount = fixed;
        break;
      default:
        break;
    }
  }
  return rules.ratio == 0 ? amount : std::min(amount, allocatable * rules.ratio);
}

// The raw score of one node, or nothing when it has none.
std::optional<Fraction> RawScore(const Case& c, const Rules& rules, const OracleNode& node) {
  std::vector<std::pair<Fraction, Int>> terms;  // raw score and weight of each resource counted
  Int all_weights = 0;
  for (size_t i = 0; i < c.resources.size(); ++i) {
    const size_t r = c.resources[i];
    const Int weight = c.policy.resources_size() == 0 ? 1 : c.policy.resources(static_cast<int>(i)).weight();
    all_weights += weight;
    const Int allocatable = node.allocatable[r].value_or(0);
    if (allocatable == 0) {
      if (!rules.add_nothing && c.incoming.limits[r].value_or(0) > 0) return std::nullopt;
      continue;
    }
    Int limits = Counted(c, rules, c.incoming, true, r, allocatable);
    for (const OraclePod& pod : node.pods) limits += Counted(c, rules, pod, false, r, allocatable);
    // Whole numbers are those of the scaled amounts, and the factor cancels.
    const Fraction raw = rules.truncating
                             ? Fraction(TruncatedQuotient((allocatable - limits) * 100, allocatable))
                             : Fraction((allocatable - limits) * 100, allocatable);
    terms.emplace_back(raw, weight);
  }
  if (terms.empty()) return std::nullopt;
  if (rules.worst) {
    Fraction worst = terms[0].first;
    for (const auto& [raw, weight] : terms) worst = std::min(worst, raw);
    return worst;
  }
  Fraction sum = 0;
  Int counted = 0;
  for (const auto& [raw, weight] : terms) sum = sum + raw * weight, counted += weight;
  if (rules.sum) return sum;
  const Int weights = rules.add_nothing ? all_weights : counted;
  if (rules.truncating) return Fraction(TruncatedQuotient(sum.numerator, weights));
  return sum / weights;
}

// The scores that are right: one, or two where the exact value is within `slack` of where the rounding
// changes.
struct Expected {
  int32_t lowest, highest;
};

Expected Floor(Fraction exact, long double slack) {
  // Less than 2^-16 below an integer counts as that integer.
  const long double value = Value(exact);
  const auto rounded = [](long double x) { return static_cast<int32_t>(std::floor(x + 1.0L / 65536)); };
  return {std::max(0, rounded(value - slack)), std::min(100, rounded(value + slack))};
}

Expected ExactInteger(Int value) { return {static_cast<int32_t>(value), static_cast<int32_t>(value)}; }

// 32 fractional bits, each resource at most 4 units off.
constexpr long double kRawSlack = 4.0L / (1LL << 32);

Expected Absolute(const Case& c, const Rules& rules, Fraction raw) {
  Int weights = 0;
  for (int i = 0; i < static_cast<int>(c.resources.size()); ++i) {
    weights += c.policy.resources_size() == 0 ? 1 : c.policy.resources(i).weight();
  }
  const Fraction mean = rules.sum ? raw / weights : raw;
  return Floor(Fraction(10'000) / (Fraction(200) - mean), 1e-7L);
}

Expected MinMax(const Rules& rules, Fraction raw, Fraction lowest, Fraction highest, Int all_weights) {
  const Fraction width = highest - lowest;
  if (rules.truncating) {
    if (width.numerator == 0) return {0, 0};
    return ExactInteger(TruncatedQuotient((raw - lowest).numerator * 100, width.numerator));
  }
  // The sum of n resources is off by n times as much; what is left of it in the quotient grows as the width
  // falls.
  const long double off = kRawSlack * static_cast<long double>(rules.sum ? all_weights : 1);
  const long double tie = 1.0L / (1 << 20);
  if (Value(width) + off < tie) return {0, 0};
  Expected expected = Floor(Fraction(100) * (raw - lowest) / width, 300 * off / Value(width) + 1e-9L);
  if (Value(width) - off < tie) expected.lowest = 0;
  return expected;
}

std::vector<Expected> ExpectedScores(const Case& c) {
  const Rules rules = RulesOf(c.policy);
  std::vector<std::optional<Fraction>> raw;
  std::optional<Fraction> lowest;
  std::optional<Fraction> highest;
  for (const OracleNode& node : c.nodes) {
    raw.push_back(RawScore(c, rules, node));
    if (!raw.back().has_value()) continue;
    if (!lowest.has_value() || *raw.back() < *lowest) lowest = raw.back();
    if (!highest.has_value() || *highest < *raw.back()) highest = raw.back();
  }
  Int all_weights = 0;
  for (int i = 0; i < c.policy.resources_size(); ++i) all_weights += c.policy.resources(i).weight();
  std::vector<Expected> scores;
  for (const std::optional<Fraction>& value : raw) {
    if (!value.has_value()) {
      scores.push_back({0, 0});
    } else if (rules.absolute) {
      scores.push_back(Absolute(c, rules, *value));
    } else {
      scores.push_back(MinMax(rules, *value, *lowest, *highest, std::max<Int>(all_weights, 2)));
    }
  }
  return scores;
}

// --- Random cases.
// ----------------------------------------------------------------------------------------------

std::optional<int64_t> MaybeAmount(Random& random, int64_t highest) {
  if (OneIn(random, 4)) return std::nullopt;
  if (OneIn(random, 12)) return 0;
  return static_cast<int64_t>(1 + Below(random, static_cast<size_t>(highest)));
}

OraclePod RandomPod(Random& random) {
  OraclePod pod;
  const bool best_effort = OneIn(random, 4);
  for (size_t r = 0; r < kNames.size(); ++r) {
    pod.limits.push_back(best_effort && r < 2 ? std::nullopt
                                              : MaybeAmount(random, OneIn(random, 6) ? 900 : 60));
    pod.requests.push_back(best_effort && r < 2 ? std::nullopt : MaybeAmount(random, 40));
  }
  return pod;
}

// Few values for what a node offers: equal nodes, and with them equal scores, are common in real clusters.
int64_t RandomAllocatable(Random& random) {
  return OneIn(random, 3) ? 64 : static_cast<int64_t>(1 + Below(random, 200));
}

OracleNode RandomNode(Random& random) {
  OracleNode node;
  for (size_t r = 0; r < kNames.size(); ++r) {
    const bool absent = OneIn(random, r < 2 ? 20 : 2);
    const std::optional<int64_t> zero = OneIn(random, 2) ? std::optional<int64_t>(0) : std::nullopt;
    node.allocatable.push_back(absent ? zero : RandomAllocatable(random));
  }
  for (size_t pods = Below(random, 5); pods > 0; --pods) node.pods.push_back(RandomPod(random));
  return node;
}

Policy RandomPolicy(Random& random, const std::vector<int64_t>& scale, std::vector<size_t>* resources) {
  Policy policy = Preset(OneIn(random, 2) ? Policy::STRICT : Policy::KEP217);
  *resources = {0, 1};
  if (OneIn(random, 2)) {
    *resources = OneIn(random, 2) ? std::vector<size_t>{2, 0} : std::vector<size_t>{Below(random, 3)};
    for (const size_t r : *resources) {
      v1::ResourceWeight* const weight = policy.add_resources();
      weight->set_resource(kNames[r]);
      weight->set_weight(static_cast<int32_t>(1 + Below(random, OneIn(random, 3) ? 100 : 3)));
    }
  }
  if (OneIn(random, 2)) return policy;  // the preset as it is
  policy.set_arithmetic(static_cast<Policy::Arithmetic>(Below(random, 3)));
  policy.set_pod_limits(static_cast<Policy::PodLimits>(Below(random, 3)));
  policy.set_aggregate(static_cast<Policy::Aggregate>(Below(random, Policy::Aggregate_ARRAYSIZE)));
  policy.set_absent_resource(static_cast<Policy::AbsentResource>(Below(random, 3)));
  policy.set_missing_limit_scope(static_cast<Policy::MissingLimitScope>(Below(random, 3)));
  policy.set_normalization(static_cast<Policy::Normalization>(Below(random, 3)));
  policy.set_max_limit_ratio(std::vector<int32_t>{0, -1, 1, 3, 1000}[Below(random, 5)]);
  for (const size_t r : *resources) {
    for (const Rule::Pods pods : {Rule::BEST_EFFORT, Rule::OTHERS}) {
      if (OneIn(random, 2)) continue;
      v1::MissingLimitRule* const rule = policy.add_missing_limits();
      rule->set_pods(pods);
      rule->set_resource(kNames[r]);
      rule->set_rule(static_cast<Rule::Rule>(1 + Below(random, 4)));
      const int64_t fixed = static_cast<int64_t>(Below(random, 60)) * scale[r];
      if (rule->rule() == Rule::FIXED) rule->set_fixed(std::to_string(fixed) + (r == 0 ? "m" : ""));
    }
  }
  return policy;
}

Case RandomCase(Random& random) {
  Case c;
  for (size_t r = 0; r < kNames.size(); ++r) c.scale.push_back(int64_t{1} << Below(random, 45));
  if (OneIn(random, 2)) c.scale = {100, int64_t{1} << 20, 1};
  for (size_t nodes = 1 + Below(random, 5); nodes > 0; --nodes) c.nodes.push_back(RandomNode(random));
  c.incoming = RandomPod(random);
  c.policy = RandomPolicy(random, c.scale, &c.resources);
  return c;
}

Quantities Scaled(const Case& c, const std::vector<std::optional<int64_t>>& amounts) {
  Quantities quantities;
  for (size_t r = 0; r < amounts.size(); ++r) {
    if (!amounts[r].has_value()) continue;
    quantities.emplace_back(kNames[r], std::to_string(*amounts[r] * c.scale[r]) + (r == 0 ? "m" : ""));
  }
  return quantities;
}

v1::ScoreRequest RequestFor(const Case& c, int64_t epoch) {
  ChangesBuilder changes = ChangesBuilder::FullList(epoch, 1);
  int32_t shapes = 0;
  for (size_t i = 0; i < c.nodes.size(); ++i) {
    std::vector<PodOnNode> pods;
    for (const OraclePod& pod : c.nodes[i].pods) {
      pods.push_back({shapes, "p" + std::to_string(shapes), ""});
      changes.Shape(shapes++, MakePod(Scaled(c, pod.limits), Scaled(c, pod.requests)));
    }
    changes.Node(static_cast<int32_t>(i),
                 MakeNode("n" + std::to_string(i), Scaled(c, c.nodes[i].allocatable)), pods);
  }
  return ScoreOf(changes.changes(), MakePod(Scaled(c, c.incoming.limits), Scaled(c, c.incoming.requests)),
                 c.policy);
}

const int kCases = DrawnCases(40'000, 1'000'000);

TEST(ScoreOracleTest, EqualsTheCalculationInFractions) {
  Random random(217);
  TypedEngine engine;
  int64_t scores = 0;
  int64_t ambiguous = 0;
  for (int64_t i = 1; i <= kCases; ++i) {
    const Case c = RandomCase(random);
    const v1::ScoreRequest request = RequestFor(c, i);
    const absl::StatusOr<v1::ScoreResponse> response = engine.Score(request);
    ASSERT_TRUE(response.ok()) << response.status();
    const std::vector<Expected> expected = ExpectedScores(c);
    ASSERT_EQ(response->scores_size(), static_cast<int>(expected.size()));
    for (int n = 0; n < response->scores_size(); ++n) {
      const Expected& range = expected[static_cast<size_t>(n)];
      ASSERT_GE(response->scores(n), range.lowest) << "case " << i << " node " << n;
      ASSERT_LE(response->scores(n), range.highest) << "case " << i << " node " << n;
      ++scores;
      if (range.lowest < range.highest) ++ambiguous;
    }
  }
  // The bounds must not be what makes this pass.
  EXPECT_LT(ambiguous * 1000, scores) << ambiguous << " of " << scores;
  RecordProperty("scores", std::to_string(scores));
}

// A limit beyond what the node has moves nothing more than one of all that it has.
TEST(ScoreOracleTest, AnAbsurdLimitCountsAsTheAllocatable) {
  Random random(62);
  TypedEngine engine;
  int64_t epoch = 0;
  for (int i = 0; i < kCases / 20; ++i) {
    Case c = RandomCase(random);
    c.policy = Preset(Policy::STRICT);
    c.resources = {0, 1};
    OraclePod& pod = c.nodes[0].pods.emplace_back(RandomPod(random));
    const size_t r = Below(random, 2);
    pod.limits[r] = c.nodes[0].allocatable[r].value_or(0);
    if (pod.limits[r] == 0) continue;  // a limit of 0 is none
    v1::ScoreRequest fair = RequestFor(c, ++epoch);
    const absl::StatusOr<v1::ScoreResponse> expected = engine.Score(fair);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const int last_shape = static_cast<int>(c.nodes[0].pods.size()) - 1;
    for (const char* const absurd : {"9e18", "8Ei", "1e30"}) {
      v1::ScoreRequest request = fair;
      request.mutable_changes()->set_epoch(++epoch);
      k8s::v1::Pod poisoned = MakePod(Scaled(c, pod.limits), Scaled(c, pod.requests));
      for (k8s::v1::QuantityEntry& entry :
           *poisoned.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits()) {
        if (entry.key() == kNames[r]) entry.mutable_value()->set_string(absurd);
      }
      request.mutable_changes()->mutable_pod_shapes(last_shape)->set_pod(poisoned.SerializeAsString());
      ASSERT_EQ(engine.Score(request)->SerializeAsString(), expected->SerializeAsString())
          << i << " " << absurd;
    }
  }
  EXPECT_GT(epoch, kCases / 20);
}

}  // namespace
}  // namespace loadline
