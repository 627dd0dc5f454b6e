#include "plugin/convert/rank.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// Bounds of settings, so that no product of them overflows.
constexpr double kMaxFactor = 1e9;

absl::StatusOr<RankPolicy> DecodePreset(v1::RankPolicy::Preset preset) {
  switch (preset) {
    case v1::RankPolicy::CLUSTER_AUTOSCALER:
      return ClusterAutoscalerRanking();
    case v1::RankPolicy::PROPOSAL:
      return ProposalRanking();
    case v1::RankPolicy::PRESET_UNSPECIFIED:
      return absl::InvalidArgumentError("preset: required");
    default:
      return NoSuchValue("preset", static_cast<int>(preset));
  }
}

// The values of both enums are in the same order.
static_assert(static_cast<int>(RankStrategy::kPrice) == v1::RankPolicy::PRICE - 1);
static_assert(static_cast<int>(RankStrategy::kPriority) == v1::RankPolicy::PRIORITY - 1);
static_assert(static_cast<int>(RankStrategy::kJoint) == v1::RankPolicy::JOINT - 1);

absl::Status DecodeStrategies(const v1::RankPolicy& message, RankPolicy* policy) {
  if (message.strategies().empty()) return absl::OkStatus();
  policy->strategies.clear();
  for (int i = 0; i < message.strategies_size(); ++i) {
    const std::string field = absl::StrCat("strategies[", i, "]");
    const v1::RankPolicy::Strategy value = message.strategies(i);
    if (value < v1::RankPolicy::PRICE || value > v1::RankPolicy::JOINT) {
      return NoSuchValue(field, static_cast<int>(value));
    }
    const auto strategy = static_cast<RankStrategy>(value - 1);
    const auto& before = policy->strategies;
    if (std::find(before.begin(), before.end(), strategy) != before.end()) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": occurs twice"));
    }
    policy->strategies.push_back(strategy);
  }
  return absl::OkStatus();
}

absl::Status DecodePreferred(const v1::RankPolicy& message, RankPolicy* policy) {
  static_assert(static_cast<int>(PreferredTable::kLearned) == v1::RankPolicy::LEARNED - 1);
  static_assert(static_cast<int>(UnfitnessResources::kCpuAndMemory) == v1::RankPolicy::CPU_AND_MEMORY - 1);
  const v1::RankPolicy::PreferredTable table = message.preferred_table();
  if (table < 0 || table > v1::RankPolicy::LEARNED) return NoSuchValue("preferred_table", table);
  if (table != 0) policy->preferred_table = static_cast<PreferredTable>(table - 1);
  const v1::RankPolicy::UnfitnessResources resources = message.unfitness_resources();
  if (resources < 0 || resources > v1::RankPolicy::CPU_AND_MEMORY) {
    return NoSuchValue("unfitness_resources", resources);
  }
  if (resources != 0) policy->unfitness_resources = static_cast<UnfitnessResources>(resources - 1);
  if (!message.has_preferred_node()) return absl::OkStatus();
  const v1::PreferredNode& node = message.preferred_node();
  Fields fields;
  fields.Range("preferred_node.milli_cpu", node.milli_cpu(), 1, kMaxAmount);
  fields.Range("preferred_node.memory_bytes", node.memory_bytes(), 0, kMaxAmount);
  return fields.status();
}

absl::Status DecodeFactors(const v1::RankPolicy& message, RankPolicy* policy) {
  absl::Status status;
  if (message.has_suppression_divisor()) {
    policy->suppression_divisor = message.suppression_divisor();
    status.Update(
        CheckNumber("suppression_divisor", policy->suppression_divisor, 1 / kMaxFactor, kMaxFactor));
  }
  if (message.has_gpu_unfitness()) {
    policy->gpu_unfitness = message.gpu_unfitness();
    const double lowest = policy->gpu_unfitness == 0 ? 0 : 1;
    status.Update(CheckNumber("gpu_unfitness", policy->gpu_unfitness, lowest, kMaxFactor));
  }
  if (message.has_creation_factor()) {
    policy->creation_factor = message.creation_factor();
    status.Update(CheckNumber("creation_factor", policy->creation_factor, 1, kMaxFactor));
  }
  policy->gpu_unfitness_if_unneeded = message.gpu_unfitness_if_unneeded();
  policy->count_preferred_nodes = message.count_preferred_nodes();
  return status;
}

absl::Status DecodePodsPrices(const v1::RankPolicy& message, RankPolicy* policy) {
  if (absl::Status status = DecodeRates(message.pod_rates(), &policy->pod_rates); !status.ok()) {
    return Annotate(status, "pod_rates");
  }
  policy->damper = message.preset() == v1::RankPolicy::PROPOSAL ? ProposalDamper(policy->pod_rates)
                                                                : ClusterAutoscalerDamper(policy->pod_rates);
  if (!message.has_damper_usd_per_hour()) return absl::OkStatus();
  policy->damper = message.damper_usd_per_hour();
  return CheckNumber("damper_usd_per_hour", policy->damper, 0, kMaxPrice);
}

absl::Status DecodeRuns(const v1::ExpansionOption& message, int pods, ExpansionOption* option) {
  option->pods.reserve(static_cast<size_t>(message.pods_size()));
  for (int i = 0; i < message.pods_size(); ++i) {
    const v1::PodRun& run = message.pods(i);
    if (run.pod() < 0 || run.pod() >= pods) {
      return absl::InvalidArgumentError(
          absl::StrCat("pods[", i, "]: pod: ", run.pod(), " is none of the ", pods, " pods of the request"));
    }
    if (absl::Status status = CheckNotNegative("count", run.count()); !status.ok()) {
      return Annotate(status, absl::StrCat("pods[", i, "]"));
    }
    option->pods.push_back({static_cast<size_t>(run.pod()), run.count()});
  }
  return absl::OkStatus();
}

absl::StatusOr<OfferedOption> DecodeOption(const v1::ExpansionOption& message, int pods,
                                           ResourceReader* resources) {
  OfferedOption offered;
  ExpansionOption& option = offered.option;
  if (absl::Status status = CheckNotNegative("node_count", message.node_count()); !status.ok()) return status;
  option.node_group = message.node_group();
  option.node_count = message.node_count();
  option.to_be_created = message.to_be_created();
  if (message.has_priority()) option.priority = message.priority();
  if (!message.template_node().empty()) {
    absl::StatusOr<DecodedTemplate> decoded = DecodeTemplate(message.template_node(), resources);
    if (!decoded.ok()) return Annotate(decoded.status(), "template_node", " ");
    option.node = std::move(decoded->node);
    option.has_gpu = decoded->has_gpu;
    offered.offer = std::move(decoded->offer);
  }
  option.node.has_template = !message.template_node().empty();
  ReadStated(message, &option.node);
  if (absl::Status status = DecodeRuns(message, pods, &option); !status.ok()) return status;
  return offered;
}

}  // namespace

absl::StatusOr<RankPolicy> DecodeRankPolicy(const v1::RankPolicy& message) {
  absl::StatusOr<RankPolicy> policy = DecodePreset(message.preset());
  if (!policy.ok()) return policy;
  absl::Status status = DecodeStrategies(message, &*policy);
  status.Update(DecodePodsPrices(message, &*policy));
  status.Update(DecodeFactors(message, &*policy));
  status.Update(DecodePreferred(message, &*policy));
  if (!status.ok()) return status;
  return policy;
}

v1::RankPolicy EncodeRankPolicy(const RankPolicy& policy, const v1::RankPolicy& asked) {
  v1::RankPolicy message;
  message.set_preset(asked.preset());
  for (const RankStrategy strategy : policy.strategies) {
    message.add_strategies(static_cast<v1::RankPolicy::Strategy>(static_cast<int>(strategy) + 1));
  }
  message.set_damper_usd_per_hour(policy.damper);
  *message.mutable_pod_rates() = EncodeRates(policy.pod_rates);
  message.set_suppression_divisor(policy.suppression_divisor);
  message.set_gpu_unfitness(policy.gpu_unfitness);
  message.set_gpu_unfitness_if_unneeded(policy.gpu_unfitness_if_unneeded);
  message.set_creation_factor(policy.creation_factor);
  message.set_count_preferred_nodes(policy.count_preferred_nodes);
  message.set_preferred_table(
      static_cast<v1::RankPolicy::PreferredTable>(static_cast<int>(policy.preferred_table) + 1));
  if (asked.has_preferred_node()) *message.mutable_preferred_node() = asked.preferred_node();
  message.set_unfitness_resources(
      static_cast<v1::RankPolicy::UnfitnessResources>(static_cast<int>(policy.unfitness_resources) + 1));
  return message;
}

absl::StatusOr<RankedPods> DecodeRankedPods(const v1::RankOptionsRequest& request, const LoadLine& line,
                                            ResourceReader* resources, LeftOutList* left_out) {
  if (absl::Status status = CheckSize("pods", request.pods_size(), kMaxPricedPods); !status.ok()) {
    return status;
  }
  PodDecoder decoder(resources);
  RankedPods pods;
  pods.priced.reserve(static_cast<size_t>(request.pods_size()));
  for (int i = 0; i < request.pods_size(); ++i) {
    absl::StatusOr<PodShape> shape = decoder.DecodeAsked(request.pods(i));
    PodRequests& priced = pods.priced.emplace_back();  // options refer to pods by position
    LinePod* const lined = line.empty() ? nullptr : &pods.lined.emplace_back();
    if (!shape.ok()) {
      left_out->Add("Pod", decoder.message().metadata().namespace_(),
                    decoder.name().empty() ? absl::StrCat("pods[", i, "]") : decoder.name(),
                    shape.status().message());
      continue;
    }
    priced = PricedRequests(*shape, resources->names());
    if (lined == nullptr) continue;
    lined->shape = *std::move(shape);
    lined->exempt = line.exempt_namespaces.contains(decoder.message().metadata().namespace_());
  }
  return pods;
}

absl::StatusOr<std::vector<OfferedOption>> DecodeExpansionOptions(const v1::RankOptionsRequest& request,
                                                                  ResourceReader* resources) {
  if (absl::Status status = CheckSize("options", request.options_size(), kMaxRankedOptions); !status.ok()) {
    return status;
  }
  std::vector<OfferedOption> options;
  options.reserve(static_cast<size_t>(request.options_size()));
  for (int i = 0; i < request.options_size(); ++i) {
    absl::StatusOr<OfferedOption> option = DecodeOption(request.options(i), request.pods_size(), resources);
    if (!option.ok()) return Annotate(option.status(), absl::StrCat("options[", i, "]"));
    options.push_back(*std::move(option));
  }
  return options;
}

v1::RankedOption EncodeRankedOption(const RankedOption& ranked, const ExpansionOption& option,
                                    double damper) {
  static_assert(static_cast<int>(RankOutcome::kHelpsNoPod) == v1::RankedOption::HELPS_NO_POD);
  v1::RankedOption message;
  message.set_option(static_cast<int32_t>(ranked.option));
  message.set_outcome(static_cast<v1::RankedOption::Outcome>(ranked.outcome));
  if (ranked.outcome == RankOutcome::kScored) message.set_score(ranked.score);
  message.set_suppressed_unfitness(ranked.suppressed_unfitness);
  const bool priced = ranked.node_price.source != PriceSource::kNone;
  if (priced && !std::isnan(ranked.cost_ratio)) message.set_cost_ratio(ranked.cost_ratio);
  message.set_creation_factor(ranked.creation_factor);
  message.set_unfitness(ranked.unfitness);
  message.set_cost_usd_per_hour(ranked.cost);
  message.set_theoretical_cost_usd_per_hour(ranked.theoretical_cost);
  message.set_damper_usd_per_hour(damper);
  message.set_committed_usd_per_hour(ranked.committed);
  *message.mutable_node_price() = EncodeNodePrice(ranked.node_price);
  message.set_pods(ranked.pods);
  message.set_nodes(static_cast<int32_t>(option.node_count));
  message.set_has_gpu(option.has_gpu);
  message.set_gpu_unneeded(ranked.gpu_unneeded);
  if (ranked.waste.has_value()) message.set_waste(*ranked.waste);
  if (ranked.joint_usd.has_value()) message.set_joint_usd_per_hour(*ranked.joint_usd);
  return message;
}

absl::StatusOr<PodDemand> DecodeRunningDemand(const v1::RunningDemand& message) {
  Fields fields;
  fields.Range("running.total_milli_cpu", message.total_milli_cpu(), 0, kMaxAmount);
  fields.Range("running.total_memory_bytes", message.total_memory_bytes(), 0, kMaxAmount);
  fields.Range("running.largest_milli_cpu", message.largest_milli_cpu(), 0, kMaxAmount);
  fields.Range("running.largest_memory_bytes", message.largest_memory_bytes(), 0, kMaxAmount);
  if (!fields.status().ok()) return fields.status();
  return PodDemand{{message.total_milli_cpu(), message.total_memory_bytes()},
                   {message.largest_milli_cpu(), message.largest_memory_bytes()}};
}

}  // namespace loadline
