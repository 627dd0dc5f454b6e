// Score policies: message to core type, and back.
#include "plugin/convert/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/base/amount.h"
#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using ::testing::StartsWith;
using Message = v1::ScorePolicy;
using Rule = v1::MissingLimitRule;

void AddWeight(const std::string& resource, int32_t weight, Message* message) {
  v1::ResourceWeight* const entry = message->add_resources();
  entry->set_resource(resource);
  entry->set_weight(weight);
}

void AddRule(Rule::Pods pods, const std::string& resource, Rule::Rule rule, const std::string& fixed,
             Message* message) {
  v1::MissingLimitRule* const entry = message->add_missing_limits();
  entry->set_pods(pods);
  entry->set_resource(resource);
  entry->set_rule(rule);
  entry->set_fixed(fixed);
}

LimitPolicy MustDecode(const Message& message) {
  const absl::StatusOr<LimitPolicy> policy = DecodePolicy(message);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.ok() ? *policy : LimitPolicy();
}

TEST(DecodePolicyTest, PresetsSettleAllThatIsLeftOut) {
  EXPECT_EQ(MustDecode(Preset(Message::STRICT)), StrictPolicy({{"cpu", 1}, {"memory", 1}}));
  EXPECT_EQ(MustDecode(Preset(Message::KEP217)), Kep217Policy({{"cpu", 1}, {"memory", 1}}));
}

TEST(DecodePolicyTest, EachOptionOverridesThePreset) {
  Message message = Preset(Message::STRICT);
  AddWeight("example.com/gpu", 100, &message);
  AddWeight("cpu", 3, &message);
  message.set_arithmetic(Message::TRUNCATING);
  message.set_pod_limits(Message::PROPOSAL);
  message.set_max_limit_ratio(1000);
  message.set_aggregate(Message::WORST);
  message.set_absent_resource(Message::ADD_NOTHING);
  message.set_missing_limit_scope(Message::INCOMING_POD);
  message.set_normalization(Message::ABSOLUTE);
  message.set_blockers_together(50);
  AddRule(Rule::OTHERS, "cpu", Rule::FIXED, "0.5", &message);
  AddRule(Rule::BEST_EFFORT, "example.com/gpu", Rule::FIXED, "2k", &message);
  AddRule(Rule::BEST_EFFORT, "cpu", Rule::ZERO, "", &message);

  LimitPolicy policy = StrictPolicy({{"example.com/gpu", 100}, {"cpu", 3}});
  policy.arithmetic = Arithmetic::kTruncating;
  policy.pod_limits = PodLimits::kProposal;
  policy.max_limit_ratio = 1000;
  policy.aggregate = Aggregate::kWorst;
  policy.absent_resource = AbsentResource::kAddNothing;
  policy.missing_limit_scope = MissingLimitScope::kIncomingPod;
  policy.normalization = Normalization::kAbsolute;
  policy.blockers_together = 50;
  policy.resources[1].others = {MissingLimit::kFixed, 500};
  policy.resources[0].best_effort = {MissingLimit::kFixed, 2000};
  policy.resources[1].best_effort = {MissingLimit::kZero, 0};
  EXPECT_EQ(MustDecode(message), policy);
}

TEST(DecodePolicyTest, MinusOneLiftsTheBound) {
  Message message = Preset(Message::STRICT);
  message.set_max_limit_ratio(-1);
  EXPECT_EQ(MustDecode(message).max_limit_ratio, 0);
}

TEST(DecodePolicyTest, AHugeFixedAmountIsClamped) {
  Message message = Preset(Message::STRICT);
  AddRule(Rule::OTHERS, "memory", Rule::FIXED, "1e30", &message);
  EXPECT_EQ(MustDecode(message).resources[1].others.fixed, kMaxAmount);
}

TEST(CheckScoredResourceTest, KnowsWhatAContainerCanLimit) {
  for (const std::string name : {"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu",
                                 "kubernetes.io/batch-cpu", "a/b", "a.b-c.d/X_y.z-0"}) {
    EXPECT_TRUE(CheckScoredResource(name).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("CPU"), std::string("gpu"), std::string("pods"), std::string("hugepages-"),
        std::string("/gpu"), std::string("a/"), std::string("a/b/c"), std::string("A.com/gpu"),
        std::string("a..b/c"), std::string("-a/b"), std::string("a/-b"), std::string("a/b\0", 4),
        std::string("a/") + std::string(64, 'x'), std::string(254, 'a') + "/b"}) {
    EXPECT_FALSE(CheckScoredResource(name).ok()) << name;
  }
}

struct BadPolicy {
  std::string name;
  std::function<void(Message*)> change;
  std::string error;
};

class BadPolicyTest : public ::testing::TestWithParam<BadPolicy> {};

TEST_P(BadPolicyTest, IsRefusedWithTheField) {
  Message message = Preset(Message::STRICT);
  GetParam().change(&message);
  const absl::StatusOr<LimitPolicy> policy = DecodePolicy(message);
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(policy.status().message()), StartsWith(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadPolicyTest,
    ::testing::ValuesIn(std::vector<BadPolicy>{
        {"NoPreset", [](Message* m) { m->clear_preset(); }, "preset: required"},
        {"UnknownPreset", [](Message* m) { m->set_preset(static_cast<Message::Preset>(3)); },
         "preset: there is no value 3"},
        {"UnknownArithmetic", [](Message* m) { m->set_arithmetic(static_cast<Message::Arithmetic>(-1)); },
         "arithmetic: there is no value -1"},
        {"UnknownPodLimits", [](Message* m) { m->set_pod_limits(static_cast<Message::PodLimits>(9)); },
         "pod_limits: there is no value 9"},
        {"UnknownAggregate", [](Message* m) { m->set_aggregate(static_cast<Message::Aggregate>(99)); },
         "aggregate: there is no value 99"},
        {"UnknownAbsentResource",
         [](Message* m) { m->set_absent_resource(static_cast<Message::AbsentResource>(3)); },
         "absent_resource: there is no value 3"},
        {"UnknownScope",
         [](Message* m) { m->set_missing_limit_scope(static_cast<Message::MissingLimitScope>(3)); },
         "missing_limit_scope: there is no value 3"},
        {"UnknownNormalization",
         [](Message* m) { m->set_normalization(static_cast<Message::Normalization>(3)); },
         "normalization: there is no value 3"},
        {"WeightZero", [](Message* m) { AddWeight("cpu", 0, m); },
         R"(resources: weight 0 of "cpu" is not in [1, 100])"},
        {"WeightTooLarge", [](Message* m) { AddWeight("cpu", 101, m); },
         R"(resources: weight 101 of "cpu" is not in [1, 100])"},
        {"WeightNegative", [](Message* m) { AddWeight("cpu", -1, m); },
         R"(resources: weight -1 of "cpu" is not in [1, 100])"},
        {"ResourceTwice",
         [](Message* m) { AddWeight("cpu", 1, m), AddWeight("memory", 1, m), AddWeight("cpu", 2, m); },
         R"(resources: "cpu" is named twice)"},
        {"ResourceUnknown", [](Message* m) { AddWeight("cpu", 1, m), AddWeight("gp\x1bu", 1, m); },
         R"(resources[1]: unknown resource "gp\x1bu": must be cpu, memory,)"},
        {"TooManyResources",
         [](Message* m) {
           for (char c = 'a'; c <= 'q'; ++c) AddWeight(std::string("x/") + c, 1, m);
         },
         "resources: 17 given, 1 to 16 are allowed"},
        {"RatioTooLarge", [](Message* m) { m->set_max_limit_ratio(1001); },
         "max_limit_ratio: 1001 is not in [1, 1000]"},
        {"RatioNegative", [](Message* m) { m->set_max_limit_ratio(-2); },
         "max_limit_ratio: -2 is not in [1, 1000]"},
        {"PointsTooMany", [](Message* m) { m->set_blockers_together(51); },
         "blockers_together: 51 is not in [0, 50]"},
        {"PointsNegative", [](Message* m) { m->set_blockers_together(-1); },
         "blockers_together: -1 is not in [0, 50]"},
        {"RuleOfNoPods", [](Message* m) { AddRule(Rule::PODS_UNSPECIFIED, "cpu", Rule::ZERO, "", m); },
         "missing_limits[0]: pods: required"},
        {"RuleOfUnknownPods",
         [](Message* m) { AddRule(static_cast<Rule::Pods>(3), "cpu", Rule::ZERO, "", m); },
         "missing_limits[0]: pods: there is no value 3"},
        {"RuleOfAnotherResource",
         [](Message* m) { AddRule(Rule::OTHERS, "ephemeral-storage", Rule::ZERO, "", m); },
         R"(missing_limits[0]: resource: "ephemeral-storage" is not one of the policy's resources)"},
        {"NoRule", [](Message* m) { AddRule(Rule::OTHERS, "cpu", Rule::RULE_UNSPECIFIED, "", m); },
         "missing_limits[0]: rule: required"},
        {"UnknownRule", [](Message* m) { AddRule(Rule::OTHERS, "cpu", static_cast<Rule::Rule>(5), "", m); },
         "missing_limits[0]: rule: there is no value 5"},
        {"RuleTwice",
         [](Message* m) {
           AddRule(Rule::OTHERS, "cpu", Rule::ZERO, "", m);
           AddRule(Rule::BEST_EFFORT, "cpu", Rule::ZERO, "", m);
           AddRule(Rule::OTHERS, "cpu", Rule::ZERO, "", m);
         },
         R"(missing_limits[2]: there is a rule before for the same pods and resource "cpu")"},
        {"FixedWithoutAmount", [](Message* m) { AddRule(Rule::OTHERS, "cpu", Rule::FIXED, "", m); },
         "missing_limits[0]: fixed: required by the rule FIXED"},
        {"AmountWithoutFixed", [](Message* m) { AddRule(Rule::OTHERS, "cpu", Rule::REQUEST, "1", m); },
         R"(missing_limits[0]: fixed: "1" is allowed with the rule FIXED only)"},
        {"FixedMalformed", [](Message* m) { AddRule(Rule::OTHERS, "cpu", Rule::FIXED, "1 Gi", m); },
         R"(missing_limits[0]: fixed: "1 Gi" is not a quantity)"},
        {"FixedNegative", [](Message* m) { AddRule(Rule::OTHERS, "cpu", Rule::FIXED, "-1", m); },
         R"(missing_limits[0]: fixed: "-1" is negative)"},
    }),
    [](const auto& info) { return info.param.name; });

template <typename T>
T Pick(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

MissingLimitRule RandomRule(std::mt19937_64& random) {
  const MissingLimit rule = Pick(random, {MissingLimit::kZero, MissingLimit::kRequest,
                                          MissingLimit::kAllocatable, MissingLimit::kFixed});
  const int64_t fixed = static_cast<int64_t>(random() >> (2 + random() % 62));
  return {rule, rule == MissingLimit::kFixed ? fixed : 0};
}

LimitPolicy RandomPolicy(std::mt19937_64& random) {
  LimitPolicy policy;
  for (const std::string name : {"cpu", "memory", "example.com/gpu", "hugepages-2Mi"}) {
    if (random() % 2 == 0 && !policy.resources.empty()) continue;
    policy.resources.push_back(
        {name, static_cast<int32_t>(1 + random() % 100), RandomRule(random), RandomRule(random)});
  }
  policy.arithmetic = Pick(random, {Arithmetic::kFixedPoint, Arithmetic::kTruncating});
  policy.pod_limits = Pick(random, {PodLimits::kEffective, PodLimits::kProposal});
  policy.max_limit_ratio = static_cast<int32_t>(random() % 1001);
  policy.aggregate = Pick(random, {Aggregate::kWeightedMean, Aggregate::kWeightedSum, Aggregate::kWorst});
  policy.absent_resource = Pick(random, {AbsentResource::kExclude, AbsentResource::kAddNothing});
  policy.missing_limit_scope = Pick(random, {MissingLimitScope::kAllPods, MissingLimitScope::kIncomingPod});
  policy.normalization = Pick(random, {Normalization::kMinMax, Normalization::kAbsolute});
  policy.blockers_together = static_cast<int32_t>(random() % (kMostBlockersTogether + 1));
  return policy;
}

// The policy in an answer of Explain is complete: whatever the preset, it means the same again.
TEST(EncodePolicyTest, DecodesToItself) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    const LimitPolicy policy = RandomPolicy(random);
    for (const Message::Preset preset : {Message::STRICT, Message::KEP217}) {
      const Message message = EncodePolicy(policy, preset);
      EXPECT_EQ(message.preset(), preset);
      ASSERT_EQ(MustDecode(message), policy) << i;
    }
  }
}

TEST(EncodePolicyTest, LeavesNothingUnspecified) {
  const Message message = EncodePolicy(Kep217Policy({{"cpu", 2}}), Message::KEP217);
  EXPECT_EQ(message.arithmetic(), Message::TRUNCATING);
  EXPECT_EQ(message.pod_limits(), Message::PROPOSAL);
  EXPECT_EQ(message.max_limit_ratio(), -1);
  EXPECT_EQ(message.aggregate(), Message::WEIGHTED_SUM);
  EXPECT_EQ(message.absent_resource(), Message::ADD_NOTHING);
  EXPECT_EQ(message.missing_limit_scope(), Message::INCOMING_POD);
  EXPECT_EQ(message.normalization(), Message::MIN_MAX);
  ASSERT_EQ(message.resources_size(), 1);
  EXPECT_EQ(message.resources(0).weight(), 2);
  ASSERT_EQ(message.missing_limits_size(), 2);
  EXPECT_EQ(message.missing_limits(0).pods(), Rule::BEST_EFFORT);
  EXPECT_EQ(message.missing_limits(0).rule(), Rule::ALLOCATABLE);
  EXPECT_EQ(message.missing_limits(1).pods(), Rule::OTHERS);
  EXPECT_EQ(message.missing_limits(1).rule(), Rule::ZERO);
}

}  // namespace
}  // namespace loadline
