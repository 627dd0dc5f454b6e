#include "plugin/convert/load_line.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cluster/labels.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/policy.h"
#include "plugin/convert/text.h"
#include "plugin/convert/usage.h"

namespace loadline {
namespace {

std::optional<ResourceId> LineResourceOf(absl::string_view name) {
  for (const ResourceId id : {kCpu, kMemory, kEphemeralStorage}) {
    if (name == LineResourceName(id)) return id;
  }
  return std::nullopt;
}

absl::Status NoLine(absl::string_view field, absl::string_view text) {
  return Refused(
      absl::StrCat(field, ": ", Quoted(text), " is no decimal of at most 3 places in [0.1, 1000]"));
}

absl::Status ReadResource(const v1::LineResource& message, LoadLine* line) {
  const std::optional<ResourceId> id = LineResourceOf(message.resource());
  if (!id.has_value()) {
    return Refused(absl::StrCat("resource: ", Quoted(message.resource()),
                                " has no load line: must be cpu, memory or ephemeral-storage"));
  }
  const auto is_same = [&](const LimitSumsSpec::Resource& entry) { return entry.id == *id; };
  if (std::any_of(line->sums.resources.begin(), line->sums.resources.end(), is_same)) {
    return Refused(absl::StrCat("resource: ", Quoted(message.resource()), " is named twice"));
  }
  const std::string& limits = message.max_limits_over_allocatable();
  const std::string& expected = message.max_expected_over_allocatable();
  if (!limits.empty() || expected.empty()) {
    const std::optional<int64_t> at_most = ParseLine(limits);
    if (!at_most.has_value()) return NoLine("max_limits_over_allocatable", limits);
    line->sums.resources.push_back({*id, {}});
    line->lines.push_back(*at_most);
  }
  if (expected.empty()) return absl::OkStatus();
  const std::optional<int64_t> at_most = ParseLine(expected);
  if (!at_most.has_value()) return NoLine("max_expected_over_allocatable", expected);
  if (*id == kEphemeralStorage) {
    return Refused("max_expected_over_allocatable: only cpu and memory have an expected use");
  }
  if (!line->expected_use.on) {
    return Refused("max_expected_over_allocatable: requires an expected_use that is ON");
  }
  AddExpectedLine(*id, {}, *at_most, line);
  return absl::OkStatus();
}

// The policy that the line counts by, with all resources of the line.
absl::StatusOr<LimitPolicy> ReadCounting(const v1::LoadLine& message) {
  v1::ScorePolicy counting = message.counting();
  if (!message.has_counting()) counting.set_preset(v1::ScorePolicy::STRICT);
  if (counting.resources().empty()) {
    for (const char* const name : {"cpu", "memory"}) {
      v1::ResourceWeight* const resource = counting.add_resources();
      resource->set_resource(name);
      resource->set_weight(1);
    }
  }
  for (const v1::LineResource& wanted : message.resources()) {
    const auto is_wanted = [&](const v1::ResourceWeight& entry) {
      return entry.resource() == wanted.resource();
    };
    if (std::any_of(counting.resources().begin(), counting.resources().end(), is_wanted)) continue;
    v1::ResourceWeight* const resource = counting.add_resources();
    resource->set_resource(wanted.resource());
    resource->set_weight(1);
  }
  absl::StatusOr<LimitPolicy> policy = DecodePolicy(counting);
  if (!policy.ok()) return policy;
  if (policy->pod_limits != PodLimits::kEffective ||
      policy->missing_limit_scope != MissingLimitScope::kAllPods) {
    return Refused(
        "a load line counts the effective limits of all pods alike: neither the preset KEP217 nor "
        "pod_limits PROPOSAL nor missing_limit_scope INCOMING_POD is allowed with it");
  }
  return policy;
}

absl::Status ReadNames(const v1::LoadLine& message, LoadLine* line) {
  const std::string& prefix = message.node_label_prefix();
  if (!prefix.empty() && !IsLabelKey(absl::StrCat(prefix, "/cpu"))) {
    return Refused(absl::StrCat("node_label_prefix: ", Quoted(prefix), " is no prefix of a label"));
  }
  line->node_label_prefix = prefix;
  absl::Status status =
      CheckEntries(message.exempt_namespaces_size(), "exempt_namespaces", kMaxExemptNamespaces);
  if (!status.ok()) return status;
  for (int i = 0; i < message.exempt_namespaces_size(); ++i) {
    const std::string& name = message.exempt_namespaces(i);
    status = name.empty() ? Refused("a name is empty") : CheckName(name);
    if (!status.ok()) return Annotate(status, absl::StrCat("exempt_namespaces[", i, "]"));
    line->exempt_namespaces.insert(name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecodedLoadLine> DecodeLoadLine(const v1::LoadLine& message) {
  DecodedLoadLine decoded;
  LoadLine& line = decoded.line;
  absl::StatusOr<ExpectedUseOptions> expected = DecodeExpectedUse(message.expected_use());
  if (!expected.ok()) return Annotate(expected.status(), "expected_use");
  line.expected_use = *expected;
  for (int i = 0; i < message.resources_size(); ++i) {
    if (absl::Status status = ReadResource(message.resources(i), &line); !status.ok()) {
      return Annotate(status, absl::StrCat("resources[", i, "]"));
    }
  }
  absl::StatusOr<LimitPolicy> policy = ReadCounting(message);
  if (!policy.ok()) return Annotate(policy.status(), "counting");
  line.sums.max_limit_ratio = policy->max_limit_ratio;
  for (LimitSumsSpec::Resource& resource : line.sums.resources) {
    for (const ScoredResource& scored : policy->resources) {
      if (scored.name == LineResourceName(resource.id)) resource.rules = {scored.best_effort, scored.others};
    }
  }
  if (absl::Status status = ReadNames(message, &line); !status.ok()) return status;
  policy->expected_use = line.expected_use;
  decoded.columns = *std::move(policy);
  return decoded;
}

}  // namespace loadline
