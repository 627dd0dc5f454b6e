#include "plugin/convert/scale_up_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/fit.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

using Runs = google::protobuf::RepeatedPtrField<v1::PodRun>;

bool SamePods(const v1::PlannedNodes& a, const v1::PlannedNodes& b) {
  return a.group() == b.group() && std::equal(a.pods().begin(), a.pods().end(), b.pods().begin(),
                                              b.pods().end(), [](const v1::PodRun& x, const v1::PodRun& y) {
                                                return x.pod() == y.pod() && x.count() == y.count();
                                              });
}

// Pods that decisions do not tell apart may have come in several entries: nodes that are planned alike come
// as one as long as the entries suffice for more than one. Cost: O(entries), whatever the number of nodes.
void EncodeNodes(const PlannedNodes& nodes, GroupIndex group, PodEntries* entries,
                 v1::PlanScaleUpResponse* response) {
  for (int64_t left = nodes.nodes; left > 0;) {
    int64_t alike = left;
    for (const PodCount& entry : nodes.pods) {
      alike = std::min(alike, entries->NextOf(entry.pods) / std::max<int64_t>(1, entry.count));
    }
    alike = std::max<int64_t>(1, alike);
    v1::PlannedNodes message;
    message.set_group(static_cast<int32_t>(group));
    for (const PodCount& entry : nodes.pods) {
      entries->Take(entry.pods, entry.count, message.mutable_pods());
      Runs of_others;  // of the same entries
      entries->Take(entry.pods, entry.count * (alike - 1), &of_others);
    }
    left -= alike;
    const int last = response->nodes_size() - 1;
    if (last >= 0 && SamePods(response->nodes(last), message)) {
      response->mutable_nodes(last)->set_nodes(ToInt32(response->nodes(last).nodes() + alike));
    } else {
      message.set_nodes(ToInt32(alike));
      *response->add_nodes() = std::move(message);
    }
  }
}

}  // namespace

absl::StatusOr<EstimateMode> DecodeMode(v1::EstimateScaleUpRequest::Mode mode) {
  switch (mode) {
    case v1::EstimateScaleUpRequest::MODE_UNSPECIFIED:
    case v1::EstimateScaleUpRequest::EXACT:
      return EstimateMode::kExact;
    case v1::EstimateScaleUpRequest::CLUSTER_AUTOSCALER:
      return EstimateMode::kClusterAutoscaler;
    default:
      return Refused(absl::StrCat("mode: ", static_cast<int>(mode), " is not known"));
  }
}

v1::GroupEstimate EncodeEstimate(const std::string& name, const NodeEstimate& estimate, PodEntries entries) {
  v1::GroupEstimate message;
  message.set_node_group(name);
  message.set_node_count(ToInt32(estimate.nodes));
  for (size_t pods = 0; pods < estimate.placed.size(); ++pods) {
    entries.Take(static_cast<int32_t>(pods), estimate.placed[pods], message.mutable_pods());
  }
  switch (estimate.end) {
    case EstimateEnd::kComplete:
      message.set_end(v1::GroupEstimate::COMPLETE);
      break;
    case EstimateEnd::kNodeLimit:
      message.set_end(v1::GroupEstimate::NODE_LIMIT);
      break;
    case EstimateEnd::kBudget:
      message.set_end(v1::GroupEstimate::CUT_SHORT);
      break;
  }
  return message;
}

// Chosen: a dozen reasons and a name.
constexpr size_t kMostRefusalBytes = 1024;

void EncodeRefusals(const std::vector<PodRefusal>& refusals, const PodEntries& entries,
                    v1::GroupEstimate* message) {
  using Reason = std::tuple<FilterName, std::string>;
  std::map<Reason, int> known;  // where they are in the message
  for (const PodRefusal& refusal : refusals) {
    const Verdict& verdict = refusal.verdict;
    const auto [at, fresh] = known.try_emplace({verdict.filter, TextOf(refusal)}, message->refusals_size());
    if (fresh) {
      v1::GroupRefusal* const added = message->add_refusals();
      *added->mutable_why() = EncodeVerdict(verdict);
      added->set_daemons_in_the_way(refusal.daemons_in_the_way);
      added->set_text(Printable(TextOf(refusal), kMostRefusalBytes));
    }
    for (const int32_t entry : entries.EntriesOf(refusal.pods)) {
      message->mutable_refusals(at->second)->add_pods(entry);
    }
  }
}

void EncodeExisting(const std::vector<ExistingUse>& uses, const Snapshot& snapshot, PodEntries* entries,
                    google::protobuf::RepeatedPtrField<v1::ExistingPlacement>* message) {
  for (const ExistingUse& use : uses) {
    Runs runs;
    entries->Take(use.pods.pods, use.pods.count, &runs);
    for (v1::PodRun& run : runs) {
      v1::ExistingPlacement* const placement = message->Add();
      placement->set_slot(static_cast<int32_t>(snapshot.slot(use.node)));
      placement->set_node(snapshot.name(use.node));
      *placement->mutable_pods() = std::move(run);
    }
  }
}

void EncodePlan(const ScaleUpPlan& plan, const NodeGroups& groups,
                const StrongVector<GrowableIndex, GroupIndex>& positions, PodEntries* entries,
                v1::PlanScaleUpResponse* response) {
  const auto group_at = [&](GrowableIndex planned) -> const NodeGroup& { return groups[positions[planned]]; };
  StrongVector<GrowableIndex, int64_t> growth(positions.size(), 0);
  for (const PlannedNodes& nodes : plan.nodes) {
    growth[nodes.group] += nodes.nodes;
    EncodeNodes(nodes, positions[nodes.group], entries, response);
  }
  for (const GrowableIndex group : growth.indices()) {
    if (growth[group] == 0) continue;
    v1::GroupGrowth* const message = response->add_groups();
    message->set_node_group(group_at(group).name);
    message->set_node_count(ToInt32(growth[group]));
    message->set_usd_per_hour(UsdOf(group_at(group)) * static_cast<double>(growth[group]));
  }
  for (size_t pods = 0; pods < plan.unplaced.size(); ++pods) {
    entries->Take(static_cast<int32_t>(pods), plan.unplaced[pods], response->mutable_unplaced());
  }
  response->set_usd_per_hour(plan.cost);
  if (plan.cost_alone.has_value()) response->set_usd_per_hour_for_these_alone(*plan.cost_alone);
  response->set_type_penalty(plan.type_penalty);
  response->set_lower_bound_usd_per_hour(plan.lower_bound);
  if (plan.lower_bound > 0) response->set_gap((plan.cost - plan.lower_bound) / plan.lower_bound);
  response->set_cut_short(plan.cut_short);
  response->set_cut_short_by(std::string(Name(plan.cut_short_by)));
  if (!plan.best_single.group.has_value()) return;
  v1::SingleGrowth* const single = response->mutable_best_single();
  single->set_node_group(group_at(*plan.best_single.group).name);
  single->set_node_count(ToInt32(plan.best_single.nodes));
  single->set_pods(plan.best_single.pods);
  single->set_usd_per_hour(plan.best_single.cost);
}

}  // namespace loadline
