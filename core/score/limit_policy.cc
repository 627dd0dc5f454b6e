#include "core/score/limit_policy.h"

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "core/base/check_range.h"

namespace loadline {
namespace {

absl::Status CheckRule(const ScoredResource& resource, const MissingLimitRule& rule) {
  if (rule.fixed >= 0 && rule.fixed <= kMaxAmount) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("missing limit of resource \"",
                                                 absl::CHexEscape(resource.name), "\": fixed amount ",
                                                 rule.fixed, " is not in [0, 2^62]"));
}

}  // namespace

LimitPolicy StrictPolicy(const std::vector<ResourceWeight>& resources) {
  LimitPolicy policy;
  for (const auto& [name, weight] : resources) {
    const bool cpu_or_memory = name == "cpu" || name == "memory";
    policy.resources.push_back(
        {.name = name,
         .weight = weight,
         .best_effort = {cpu_or_memory ? MissingLimit::kAllocatable : MissingLimit::kRequest},
         .others = {name == "memory" ? MissingLimit::kAllocatable : MissingLimit::kRequest}});
  }
  return policy;
}

LimitPolicy Kep217Policy(const std::vector<ResourceWeight>& resources) {
  LimitPolicy policy;
  for (const auto& [name, weight] : resources) {
    policy.resources.push_back({.name = name,
                                .weight = weight,
                                .best_effort = {MissingLimit::kAllocatable},
                                .others = {MissingLimit::kZero}});
  }
  policy.arithmetic = Arithmetic::kTruncating;
  policy.pod_limits = PodLimits::kProposal;
  policy.max_limit_ratio = 0;
  policy.aggregate = Aggregate::kWeightedSum;
  policy.absent_resource = AbsentResource::kAddNothing;
  policy.missing_limit_scope = MissingLimitScope::kIncomingPod;
  return policy;
}

absl::Status CheckLimitPolicy(const LimitPolicy& policy) {
  if (policy.resources.empty() || policy.resources.size() > kMaxScoredResources) {
    return absl::InvalidArgumentError(absl::StrCat("resources: ", policy.resources.size(), " given, 1 to ",
                                                   kMaxScoredResources, " are allowed"));
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const ScoredResource& resource : policy.resources) {
    const std::string name = absl::CHexEscape(resource.name);
    if (resource.name.empty()) return absl::InvalidArgumentError("resources: a name is empty");
    if (!names.insert(resource.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("resources: \"", name, "\" is named twice"));
    }
    if (resource.weight < 1 || resource.weight > kMaxResourceWeight) {
      return absl::InvalidArgumentError(absl::StrCat("resources: weight ", resource.weight, " of \"", name,
                                                     "\" is not in [1, ", kMaxResourceWeight, "]"));
    }
    if (absl::Status status = CheckRule(resource, resource.best_effort); !status.ok()) return status;
    if (absl::Status status = CheckRule(resource, resource.others); !status.ok()) return status;
  }
  if (policy.max_limit_ratio < 0 || policy.max_limit_ratio > kMaxLimitRatio) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_limit_ratio ", policy.max_limit_ratio, " is not in [0, ", kMaxLimitRatio, "]"));
  }
  return CheckRange("blockers_together", policy.blockers_together, 0, kMostBlockersTogether);
}

}  // namespace loadline
