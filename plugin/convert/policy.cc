#include "plugin/convert/policy.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check_range.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "core/cluster/labels.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/text.h"
#include "plugin/convert/usage.h"

namespace loadline {
namespace {

constexpr int32_t kNoLimitRatio = -1;

// Two ways to write each value of an enum.
template <typename Message, typename Core>
struct EnumRow {
  Message message;
  Core core;
};

constexpr EnumRow<v1::ScorePolicy::Arithmetic, Arithmetic> kArithmetics[] = {
    {v1::ScorePolicy::FIXED_POINT, Arithmetic::kFixedPoint},
    {v1::ScorePolicy::TRUNCATING, Arithmetic::kTruncating}};
constexpr EnumRow<v1::ScorePolicy::PodLimits, PodLimits> kPodLimits[] = {
    {v1::ScorePolicy::EFFECTIVE, PodLimits::kEffective}, {v1::ScorePolicy::PROPOSAL, PodLimits::kProposal}};
constexpr EnumRow<v1::ScorePolicy::Aggregate, Aggregate> kAggregates[] = {
    {v1::ScorePolicy::WEIGHTED_MEAN, Aggregate::kWeightedMean},
    {v1::ScorePolicy::WEIGHTED_SUM, Aggregate::kWeightedSum},
    {v1::ScorePolicy::WORST, Aggregate::kWorst}};
constexpr EnumRow<v1::ScorePolicy::AbsentResource, AbsentResource> kAbsentResources[] = {
    {v1::ScorePolicy::EXCLUDE, AbsentResource::kExclude},
    {v1::ScorePolicy::ADD_NOTHING, AbsentResource::kAddNothing}};
constexpr EnumRow<v1::ScorePolicy::MissingLimitScope, MissingLimitScope> kScopes[] = {
    {v1::ScorePolicy::ALL_PODS, MissingLimitScope::kAllPods},
    {v1::ScorePolicy::INCOMING_POD, MissingLimitScope::kIncomingPod}};
constexpr EnumRow<v1::ScorePolicy::Normalization, Normalization> kNormalizations[] = {
    {v1::ScorePolicy::MIN_MAX, Normalization::kMinMax},
    {v1::ScorePolicy::ABSOLUTE, Normalization::kAbsolute}};
constexpr EnumRow<v1::MissingLimitRule::Rule, MissingLimit> kRules[] = {
    {v1::MissingLimitRule::ZERO, MissingLimit::kZero},
    {v1::MissingLimitRule::REQUEST, MissingLimit::kRequest},
    {v1::MissingLimitRule::ALLOCATABLE, MissingLimit::kAllocatable},
    {v1::MissingLimitRule::FIXED, MissingLimit::kFixed}};

// Sets *core to the meaning of `value`; leaves it as it is for UNSPECIFIED, which is 0 in every enum.
template <typename Message, typename Core, size_t kSize>
absl::Status DecodeOption(absl::string_view field, Message value, const EnumRow<Message, Core> (&rows)[kSize],
                          Core* core) {
  if (value == Message{}) return absl::OkStatus();
  for (const auto& row : rows) {
    if (row.message != value) continue;
    *core = row.core;
    return absl::OkStatus();
  }
  return NoSuchValue(field, static_cast<int>(value));
}

template <typename Message, typename Core, size_t kSize>
Message EncodeOption(Core value, const EnumRow<Message, Core> (&rows)[kSize]) {
  for (const auto& row : rows) {
    if (row.core == value) return row.message;
  }
  return Message{};  // reached only by a cast from outside the enum
}

// The default score: what counts where a policy names no resources. Documents and recorded outputs say it
// too.
std::vector<ResourceWeight> DefaultResources() { return {{"cpu", 1}, {"memory", 1}}; }

absl::StatusOr<std::vector<ResourceWeight>> DecodeWeights(const v1::ScorePolicy& message) {
  std::vector<ResourceWeight> resources;
  for (int i = 0; i < message.resources_size(); ++i) {
    const v1::ResourceWeight& resource = message.resources(i);
    if (absl::Status status = CheckScoredResource(resource.resource()); !status.ok()) {
      return Annotate(status, absl::StrCat("resources[", i, "]"));
    }
    resources.push_back({resource.resource(), resource.weight()});
  }
  return resources.empty() ? DefaultResources() : resources;
}

absl::StatusOr<LimitPolicy> DecodePreset(const v1::ScorePolicy& message,
                                         const std::vector<ResourceWeight>& resources) {
  switch (message.preset()) {
    case v1::ScorePolicy::STRICT:
      return StrictPolicy(resources);
    case v1::ScorePolicy::KEP217:
      return Kep217Policy(resources);
    case v1::ScorePolicy::PRESET_UNSPECIFIED:
      return absl::InvalidArgumentError("preset: required");
    default:
      return NoSuchValue("preset", static_cast<int>(message.preset()));
  }
}

absl::Status DecodeOptions(const v1::ScorePolicy& message, LimitPolicy* policy) {
  absl::Status status = DecodeOption("arithmetic", message.arithmetic(), kArithmetics, &policy->arithmetic);
  if (status.ok()) status = DecodeOption("pod_limits", message.pod_limits(), kPodLimits, &policy->pod_limits);
  if (status.ok()) status = DecodeOption("aggregate", message.aggregate(), kAggregates, &policy->aggregate);
  if (status.ok()) {
    status = DecodeOption("absent_resource", message.absent_resource(), kAbsentResources,
                          &policy->absent_resource);
  }
  if (status.ok()) {
    status = DecodeOption("missing_limit_scope", message.missing_limit_scope(), kScopes,
                          &policy->missing_limit_scope);
  }
  if (status.ok()) {
    status = DecodeOption("normalization", message.normalization(), kNormalizations, &policy->normalization);
  }
  return status;
}

absl::Status DecodeRatio(int32_t ratio, LimitPolicy* policy) {
  if (ratio == 0) return absl::OkStatus();
  if (ratio != kNoLimitRatio && (ratio < 1 || ratio > kMaxLimitRatio)) {
    return absl::InvalidArgumentError(absl::StrCat("max_limit_ratio: ", ratio, " is not in [1, ",
                                                   kMaxLimitRatio, "] and not ", kNoLimitRatio,
                                                   " for no bound"));
  }
  policy->max_limit_ratio = ratio == kNoLimitRatio ? 0 : ratio;
  return absl::OkStatus();
}

absl::Status DecodeFixed(const v1::MissingLimitRule& message, MissingLimitRule* rule) {
  if (rule->rule != MissingLimit::kFixed) {
    if (message.fixed().empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("fixed: ", Quoted(message.fixed()), " is allowed with the rule FIXED only"));
  }
  if (message.fixed().empty()) return absl::InvalidArgumentError("fixed: required by the rule FIXED");
  const absl::StatusOr<ParsedQuantity> parsed = ParseAmount(message.fixed());
  if (!parsed.ok()) return Annotate(parsed.status(), "fixed");
  const ResourceId id = message.resource() == "cpu" ? kCpu : kMemory;  // cpu alone has another unit
  rule->fixed = ToAmount(id, parsed->value);
  return absl::OkStatus();
}

absl::StatusOr<MissingLimitRule*> FindRule(const v1::MissingLimitRule& message, LimitPolicy* policy) {
  const auto resource = std::find_if(policy->resources.begin(), policy->resources.end(),
                                     [&](const auto& r) { return r.name == message.resource(); });
  if (resource == policy->resources.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("resource: ", Quoted(message.resource()), " is not one of the policy's resources"));
  }
  switch (message.pods()) {
    case v1::MissingLimitRule::BEST_EFFORT:
      return &resource->best_effort;
    case v1::MissingLimitRule::OTHERS:
      return &resource->others;
    case v1::MissingLimitRule::PODS_UNSPECIFIED:
      return absl::InvalidArgumentError("pods: required");
    default:
      return NoSuchValue("pods", static_cast<int>(message.pods()));
  }
}

absl::Status DecodeMissingLimit(const v1::MissingLimitRule& message, std::set<MissingLimitRule*>* seen,
                                LimitPolicy* policy) {
  const absl::StatusOr<MissingLimitRule*> rule = FindRule(message, policy);
  if (!rule.ok()) return rule.status();
  if (!seen->insert(*rule).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is a rule before for the same pods and resource ", Quoted(message.resource())));
  }
  if (message.rule() == v1::MissingLimitRule::RULE_UNSPECIFIED) {
    return absl::InvalidArgumentError("rule: required");
  }
  if (absl::Status status = DecodeOption("rule", message.rule(), kRules, &(*rule)->rule); !status.ok()) {
    return status;
  }
  return DecodeFixed(message, *rule);
}

std::string EncodeFixed(const ScoredResource& resource, int64_t fixed) {
  return absl::StrCat(fixed, resource.name == "cpu" ? "m" : "");
}

}  // namespace

absl::Status CheckScoredResource(absl::string_view name) {
  if (name == "cpu" || name == "memory" || name == "ephemeral-storage") return absl::OkStatus();
  const bool can_be_limited = absl::StartsWith(name, "hugepages-") || absl::StrContains(name, '/');
  if (can_be_limited && IsLabelKey(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown resource ", Quoted(name),
      ": must be cpu, memory, ephemeral-storage, hugepages-<size> or an extended resource such as "
      "nvidia.com/gpu"));
}

absl::StatusOr<LimitPolicy> DecodePolicy(const v1::ScorePolicy& message) {
  const absl::StatusOr<std::vector<ResourceWeight>> resources = DecodeWeights(message);
  if (!resources.ok()) return resources.status();
  absl::StatusOr<LimitPolicy> policy = DecodePreset(message, *resources);
  if (!policy.ok()) return policy;
  absl::Status status = CheckLimitPolicy(*policy);  // before the rules: they name resources
  if (status.ok()) status = DecodeOptions(message, &*policy);
  if (status.ok()) status = DecodeRatio(message.max_limit_ratio(), &*policy);
  if (!status.ok()) return status;
  absl::StatusOr<ExpectedUseOptions> expected = DecodeExpectedUse(message.expected_use());
  if (!expected.ok()) return Annotate(expected.status(), "expected_use");
  policy->expected_use = *expected;
  status = CheckRange("blockers_together", message.blockers_together(), 0, kMostBlockersTogether);
  if (!status.ok()) return status;
  policy->blockers_together = message.blockers_together();
  std::set<MissingLimitRule*> seen;
  for (int i = 0; i < message.missing_limits_size(); ++i) {
    status = DecodeMissingLimit(message.missing_limits(i), &seen, &*policy);
    if (!status.ok()) return Annotate(status, absl::StrCat("missing_limits[", i, "]"));
  }
  return policy;
}

v1::MissingLimitRule::Rule EncodeRule(MissingLimit rule) { return EncodeOption(rule, kRules); }

v1::ScorePolicy EncodePolicy(const LimitPolicy& policy, v1::ScorePolicy::Preset preset) {
  v1::ScorePolicy message;
  message.set_preset(preset);
  message.set_arithmetic(EncodeOption(policy.arithmetic, kArithmetics));
  message.set_pod_limits(EncodeOption(policy.pod_limits, kPodLimits));
  message.set_max_limit_ratio(policy.max_limit_ratio == 0 ? kNoLimitRatio : policy.max_limit_ratio);
  message.set_aggregate(EncodeOption(policy.aggregate, kAggregates));
  message.set_absent_resource(EncodeOption(policy.absent_resource, kAbsentResources));
  message.set_missing_limit_scope(EncodeOption(policy.missing_limit_scope, kScopes));
  message.set_normalization(EncodeOption(policy.normalization, kNormalizations));
  if (policy.expected_use.on) *message.mutable_expected_use() = EncodeExpectedUse(policy.expected_use);
  message.set_blockers_together(policy.blockers_together);
  for (const ScoredResource& resource : policy.resources) {
    v1::ResourceWeight* const weight = message.add_resources();
    weight->set_resource(resource.name);
    weight->set_weight(resource.weight);
    const std::pair<v1::MissingLimitRule::Pods, const MissingLimitRule*> rules[] = {
        {v1::MissingLimitRule::BEST_EFFORT, &resource.best_effort},
        {v1::MissingLimitRule::OTHERS, &resource.others}};
    for (const auto& [pods, rule] : rules) {
      v1::MissingLimitRule* const out = message.add_missing_limits();
      out->set_pods(pods);
      out->set_resource(resource.name);
      out->set_rule(EncodeRule(rule->rule));
      if (rule->rule == MissingLimit::kFixed) out->set_fixed(EncodeFixed(resource, rule->fixed));
    }
  }
  return message;
}

}  // namespace loadline
