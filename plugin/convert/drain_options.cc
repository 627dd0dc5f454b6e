#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin/convert/drain.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/fit.h"
#include "plugin/convert/growth_limits.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/stated_group.h"
#include "plugin/convert/text.h"
#include "plugin/convert/time_windows.h"

namespace loadline {
namespace {

absl::StatusOr<RemovalReason> DecodeReason(int reason) {
  switch (reason) {
    case v1::NodeBudget::EMPTY:
      return RemovalReason::kEmpty;
    case v1::NodeBudget::UNDERUTILIZED:
      return RemovalReason::kUnderutilized;
    case v1::NodeBudget::REPLACED:
      return RemovalReason::kReplaced;
  }
  return NoSuchValue("reasons", reason);
}

absl::StatusOr<NodeBudget> DecodeNodeBudget(const v1::NodeBudget& message) {
  constexpr int kMostGroups = 1000;
  NodeBudget budget;
  Fields fields;
  fields.Keep(CheckSize("node_groups", message.node_groups_size(), kMostGroups));
  for (const std::string& group : message.node_groups()) {
    if (const absl::Status status = CheckGroupId(group); !status.ok()) {
      fields.Keep(Annotate(status, "node_groups"));
    }
  }
  budget.groups.assign(message.node_groups().begin(), message.node_groups().end());
  budget.together = message.together();
  for (const int reason : message.reasons()) {
    const absl::StatusOr<RemovalReason> decoded = DecodeReason(reason);
    if (!decoded.ok()) return decoded.status();
    budget.reasons.push_back(*decoded);
  }
  fields.Range("nodes", message.nodes(), 0, INT32_MAX);
  fields.Range("percent", message.percent(), 0, 100);
  budget.percent = message.has_percent();
  budget.nodes = budget.percent ? message.percent() : message.nodes();
  if (!fields.status().ok()) return fields.status();
  if (!message.has_windows()) return budget;
  absl::StatusOr<TimeWindows> windows = DecodeTimeWindows(message.windows(), /*most=*/64);
  if (!windows.ok()) return Annotate(windows.status(), "windows", ".");
  budget.windows = *std::move(windows);
  return budget;
}

absl::Status DecodeNodeBudgets(const v1::DrainOptions& message, std::vector<NodeBudget>* budgets) {
  constexpr int kMostBudgets = 1000;
  if (absl::Status status = CheckSize("node_budgets", message.node_budgets_size(), kMostBudgets);
      !status.ok()) {
    return status;
  }
  for (int i = 0; i < message.node_budgets_size(); ++i) {
    absl::StatusOr<NodeBudget> budget = DecodeNodeBudget(message.node_budgets(i));
    if (!budget.ok()) return Annotate(budget.status(), absl::StrCat("node_budgets[", i, "]"), ".");
    budgets->push_back(*std::move(budget));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecodedDrainOptions> DecodeDrainOptions(const v1::DrainOptions& message,
                                                       const v1::FitOptions& fit) {
  DecodedDrainOptions decoded;
  DrainOptions& options = decoded.options;
  Fields fields;
  const auto flag = [](bool has, bool value, bool* to) {
    if (has) *to = value;
  };
  const auto count = [&](absl::string_view field, bool has, int64_t value, int64_t most, int64_t* to) {
    if (!has) return;
    fields.Range(field, value, 0, most);
    *to = value;
  };
  const auto share = [&](absl::string_view field, bool has, double value, double* to) {
    if (!has) return;
    fields.Share(field, value);
    *to = value;
  };
#define FIELD(name) #name, message.has_##name(), message.name()
#define FLAG(name) message.has_##name(), message.name()
  flag(FLAG(skip_nodes_with_system_pods), &options.rules.skip_nodes_with_system_pods);
  flag(FLAG(skip_nodes_with_local_storage), &options.rules.skip_nodes_with_local_storage);
  flag(FLAG(skip_nodes_with_custom_controller_pods), &options.rules.skip_nodes_with_custom_controller_pods);
  count(FIELD(min_replica_count), INT32_MAX, &options.rules.min_replica_count);
  count(FIELD(blocking_system_pod_disruption_timeout_s), INT32_MAX, &options.rules.system_pod_timeout_s);
  EligibilityOptions& eligibility = options.eligibility;
  share(FIELD(scale_down_utilization_threshold), &eligibility.utilization_threshold);
  share(FIELD(scale_down_gpu_utilization_threshold), &eligibility.gpu_utilization_threshold);
  flag(FLAG(ignore_daemonsets_utilization), &eligibility.utilization.ignore_daemonsets);
  flag(FLAG(ignore_mirror_pods_utilization), &eligibility.utilization.ignore_mirror_pods);
  flag(FLAG(scale_down_unready_enabled), &eligibility.scale_down_unready_enabled);
  if (message.gpu_labels_size() > 0) {
    eligibility.utilization.gpu_labels =
        GpuLabelKeys(std::vector<std::string>(message.gpu_labels().begin(), message.gpu_labels().end()));
  }
  DeletionOptions& deletion = options.deletion;
  count(FIELD(scale_down_unneeded_time_s), INT32_MAX, &deletion.timers.unneeded_time_s);
  count(FIELD(scale_down_unready_time_s), INT32_MAX, &deletion.timers.unready_time_s);
  count(FIELD(node_deletion_candidate_ttl_s), INT32_MAX, &deletion.timers.candidate_ttl_s);
  count(FIELD(max_scale_down_parallelism), INT32_MAX, &deletion.max_scale_down_parallelism);
  count(FIELD(max_drain_parallelism), INT32_MAX, &deletion.max_drain_parallelism);
  deletion.exclusive = message.exclusive();
  fields.Keep(DecodeNodeBudgets(message, &deletion.budgets));
  fields.Range("min_cores_total", message.min_cores_total(), 0, INT32_MAX);
  fields.Range("min_memory_total", message.min_memory_total(), 0, kMaxAmount);
  fields.Range("min_nodes_total", message.min_nodes_total(), 0, INT32_MAX);
  if (fields.status().ok()) {
    options.minimum = {{message.min_cores_total() * 1000, message.min_memory_total()},
                       message.min_nodes_total()};
  }
  absl::StatusOr<GpuCounts> gpus = DecodeGpuCounts("min_gpus_total", message.min_gpus_total());
  fields.Keep(gpus.status());
  if (gpus.ok()) options.minimum.gpus = *std::move(gpus);
  count(FIELD(recent_eviction_s), INT32_MAX, &options.recent_eviction_s);
  count(FIELD(min_evaluated_nodes), INT32_MAX, &options.min_evaluated_nodes);
  count(FIELD(ok_total_unready_count), INT32_MAX, &decoded.brakes.ok_total_unready_count);
  count(FIELD(max_total_unready_percentage), 100, &decoded.brakes.max_total_unready_percentage);
  count(FIELD(most_vanished_percent), 100, &options.most_vanished_percent);
  count(FIELD(max_view_age_s), INT32_MAX, &decoded.brakes.max_view_age_s);
#undef FIELD
#undef FLAG
  options.improve = !message.plain_greedy();
  for (const int kind : message.may_be_incomplete()) {
    const absl::StatusOr<ObjectKind> decoded_kind = DecodeObjectKind(static_cast<v1::ObjectKind>(kind));
    if (!decoded_kind.ok()) return Annotate(decoded_kind.status(), "may_be_incomplete");
    std::erase(decoded.brakes.needed, *decoded_kind);
  }
  if (!fields.status().ok()) return fields.status();
  absl::StatusOr<FitOptions> fit_options = DecodeFitOptions(fit);
  if (!fit_options.ok()) return Annotate(fit_options.status(), "fit");
  options.fit = *std::move(fit_options);
  return decoded;
}

}  // namespace loadline
