#include "plugin/convert/loop.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin/convert/describe.h"
#include "plugin/convert/drain.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/growth_limits.h"
#include "plugin/convert/rank.h"
#include "plugin/convert/scale_up_plan.h"
#include "plugin/convert/size.h"
#include "plugin/convert/slack.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

using Runs = google::protobuf::RepeatedPtrField<v1::PodRun>;

// Behind the pods of the request come those of nodes that are being deleted.
void EncodeDrained(const LoopPlan& plan, size_t asked, int entry_count, PodEntries* entries,
                   v1::PlanLoopResponse* response) {
  for (size_t i = asked; i < plan.waiting.size(); ++i) {
    const PendingPods& pods = plan.waiting[i];
    entries->Add(i, entry_count + response->drained_size(), pods.count);
    v1::DrainedPods* const drained = response->add_drained();
    drained->set_namespace_(pods.pod.shape.namespace_name);
    if (const std::optional<PodOwner>& owner = TraitsOf(pods.pod.shape).owner; owner.has_value()) {
      drained->set_owner_kind(owner->kind);
      drained->set_owner_name(owner->name);
    }
    drained->set_count(pods.count);
  }
}

void EncodeExpected(const LoopPlan& plan, const LoopProblem& problem, const Snapshot& snapshot,
                    PodEntries* entries, v1::PlanLoopResponse* response) {
  for (const ExpectedPlace& place : plan.expected) {
    if (!place.group.has_value()) {
      EncodeExisting({{place.node, {place.pods, place.count}}}, snapshot, entries,
                     response->mutable_existing());
      continue;
    }
    Runs runs;
    entries->Take(place.pods, place.count, &runs);
    for (v1::PodRun& run : runs) {
      v1::UpcomingPlacement* const upcoming = response->add_upcoming();
      upcoming->set_node_group(problem.groups[*place.group].name);
      *upcoming->mutable_pods() = std::move(run);
    }
  }
}

void EncodeGrowth(const LoopPlan& plan, const LoopProblem& problem, PodEntries* entries,
                  v1::PlanLoopResponse* response) {
  EncodePlan(plan.scale_up, problem.groups, plan.grown, entries, response->mutable_scale_up());
  for (const LoopGrowth& growth : plan.growth) {
    const NodeGroup& group = problem.groups[growth.group];
    v1::LoopGrowth* const message = response->add_growth();
    message->set_node_group(group.name);
    message->set_nodes_for_pods(growth.for_pods);
    message->set_nodes_for_slack(growth.for_slack);
    message->set_usd_per_hour(UsdOf(group) * static_cast<double>(growth.nodes()));
    message->set_nodes_for_utilization(growth.for_utilization);
    message->set_nodes_for_minimum(growth.for_minimum);
    message->set_nodes_for_replacement(growth.for_replacement);
  }
  for (const TakeBack& back : plan.take_back) {
    const NodeGroup& group = problem.groups[back.group];
    v1::TakeBack* const message = response->add_take_back();
    message->set_node_group(group.name);
    message->set_nodes(back.nodes);
    message->set_usd_per_hour(UsdOf(group) * static_cast<double>(back.nodes));
  }
  for (const NodeDeletionCost& node : plan.deletion_costs) {
    v1::NodeDeletionCost* const message = response->add_deletion_costs();
    message->set_slot(static_cast<int32_t>(node.slot));
    message->set_cost(node.cost);
  }
}

void EncodeRanking(const LoopPlan& plan, const LoopProblem& problem, const v1::RankPolicy& asked,
                   v1::RankOptionsResponse* response) {
  const RankPolicy& policy = problem.ranking->policy;
  for (const RankedOption& ranked : plan.ranked) {
    const GroupIndex group = plan.grown[IndexAt<GrowableIndex>(ranked.option)];
    ExpansionOption option;
    option.has_gpu = problem.groups[group].has_gpu;
    *response->add_options() = EncodeRankedOption(ranked, option, policy.damper);
    response->mutable_options()->rbegin()->set_option(static_cast<int32_t>(group));
  }
  *response->mutable_policy() = EncodeRankPolicy(policy, asked);
  if (plan.preferred_node.has_value()) {
    response->mutable_preferred_node()->set_milli_cpu(plan.preferred_node->milli_cpu);
    response->mutable_preferred_node()->set_memory_bytes(plan.preferred_node->memory_bytes);
  }
  response->set_cluster_nodes(static_cast<int32_t>(problem.drain.cluster->node_count()));
}

std::vector<SizedGroup> SizedGroups(const LoopProblem& problem) {
  std::vector<SizedGroup> groups;
  for (const LoopSizing& sizing : problem.sized) groups.push_back(sizing.of);
  return groups;
}

// An entry that does not tell came long ago.
PodAges AgesOfEntries(const v1::PlanLoopRequest& request, const std::vector<int32_t>& entries) {
  PodAges ages{0, kLongAgoMs};
  for (const int32_t i : entries) {
    const v1::PendingPods& entry = request.pods(i);
    const PodAges of = entry.has_first_age_milliseconds()
                           ? PodAges{entry.first_age_milliseconds(), entry.last_age_milliseconds()}
                           : PodAges();
    ages.first_ms = std::max(ages.first_ms, of.first_ms);
    ages.last_ms = std::min(ages.last_ms, of.last_ms);
  }
  return ages;
}

absl::Status CheckSized(const v1::SizedGroup& message, const NodeGroup& group) {
  const v1::SizeOptions& options = message.options();
  if (!message.template_node().empty() || message.has_cloud_target() || options.has_cloud_min() ||
      options.has_cloud_max()) {
    return Refused("states the template, or target or bounds at the cloud, which `groups` state");
  }
  if (group.atomic) return Refused("node_group: has all of its nodes or none, and is not sized");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::PlanDrainRequest> DrainPart(const v1::PlanLoopRequest& request) {
  v1::PlanDrainRequest drain;
  drain.set_now_s(request.now_s());
  drain.set_seen_s(request.seen_s());
  for (int i = 0; i < request.groups_size(); ++i) {
    const v1::LoopGroup& group = request.groups(i);
    const v1::DrainGroup& scale_down = group.scale_down();
    if (!scale_down.node_group().empty() || scale_down.has_target() || scale_down.has_max_nodes() ||
        scale_down.has_node_usd_per_hour()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "groups[", i, "]: scale_down: states the name, target, maximum or price, which `growth` states"));
    }
    v1::DrainGroup* const message = drain.add_groups();
    *message = scale_down;
    message->set_node_group(group.growth().node_group());
    message->set_target(group.growth().current_nodes());
    message->set_max_nodes(group.growth().max_nodes());
  }
  *drain.mutable_pools() = request.pools();
  *drain.mutable_options() = request.drain();
  *drain.mutable_fit() = request.fit();
  if (request.state().has_drain()) *drain.mutable_state() = request.state().drain();
  if (request.has_progress()) *drain.mutable_progress() = request.progress();
  return drain;
}

v1::ScaleUpProblem GrowthPart(const v1::PlanLoopRequest& request) {
  v1::ScaleUpProblem growth;
  for (const v1::LoopGroup& group : request.groups()) {
    v1::ScalableGroup* const message = growth.add_groups();
    *message = group.growth();
    // With the cloud's machines the loop finds out itself which nodes count.
    message->clear_node_slots();
    if (!request.has_fleet()) *message->mutable_node_slots() = group.scale_down().slots();
  }
  *growth.mutable_daemon_pods() = request.daemon_pods();
  *growth.mutable_fit() = request.fit();
  *growth.mutable_startup_taints() = request.startup_taints();
  growth.set_max_new_nodes(request.max_new_nodes());
  growth.set_max_nodes_total(request.max_nodes_total());
  growth.set_max_work(request.max_work());
  growth.set_max_milliseconds(request.max_milliseconds());
  growth.set_now_seconds(std::max<int64_t>(0, request.now_s()));  // its range is checked as that of drains
  return growth;
}

absl::StatusOr<LoopDecisions> DecodeDecisions(const v1::PlanLoopRequest& request) {
  LoopDecisions decisions;
  if (request.decisions_size() == 0) return decisions;
  decisions = {false, false, false, false, false};
  for (int i = 0; i < request.decisions_size(); ++i) {
    switch (request.decisions(i)) {
      case v1::PlanLoopRequest::SCALE_UP:
        decisions.scale_up = true;
        break;
      case v1::PlanLoopRequest::SLACK:
        decisions.slack = true;
        break;
      case v1::PlanLoopRequest::SCALE_DOWN:
        decisions.scale_down = true;
        break;
      case v1::PlanLoopRequest::REPLACE:
        decisions.replace = true;
        break;
      case v1::PlanLoopRequest::DOWNSCALE_ORDER:
        decisions.downscale_order = true;
        break;
      default:
        return absl::InvalidArgumentError(absl::StrCat(
            "decisions[", i, "]: ", static_cast<int>(request.decisions(i)), " is not a decision"));
    }
  }
  if (decisions.replace && !(decisions.scale_up && decisions.scale_down && request.has_fleet())) {
    return absl::InvalidArgumentError("decisions: REPLACE needs SCALE_UP, SCALE_DOWN and fleet");
  }
  if (decisions.downscale_order && !(decisions.scale_down && request.has_fleet())) {
    return absl::InvalidArgumentError("decisions: DOWNSCALE_ORDER needs SCALE_DOWN and fleet");
  }
  return decisions;
}

absl::StatusOr<GrowthBatch> DecodeBatch(const v1::PlanLoopRequest& request, const PodEntries& entries,
                                        size_t pods) {
  Fields fields;
  fields.Range("batch_idle_milliseconds", request.batch_idle_milliseconds(), 0, INT32_MAX);
  fields.Range("batch_max_milliseconds", request.batch_max_milliseconds(), 0, INT32_MAX);
  fields.Range("since_growth_milliseconds", request.since_growth_milliseconds(), 0, INT64_MAX);
  if (!fields.status().ok()) return fields.status();
  GrowthBatch batch;
  batch.idle_ms = request.batch_idle_milliseconds();
  batch.max_ms = request.batch_max_milliseconds();
  if (request.has_since_growth_milliseconds()) batch.since_growth_ms = request.since_growth_milliseconds();
  for (int i = 0; i < request.pods_size(); ++i) {
    const v1::PendingPods& entry = request.pods(i);
    Fields ages;
    ages.Range("first_age_milliseconds", entry.first_age_milliseconds(), 0, INT64_MAX);
    ages.Range("last_age_milliseconds", entry.last_age_milliseconds(), 0, entry.first_age_milliseconds());
    if (!ages.status().ok()) return Annotate(ages.status(), absl::StrCat("pods[", i, "]"));
  }
  batch.ages.resize(pods);
  for (size_t i = 0; i < pods; ++i) batch.ages[i] = AgesOfEntries(request, entries.EntriesOf(i));
  return batch;
}

absl::StatusOr<std::optional<LoopRanking>> DecodeRanking(const v1::PlanLoopRequest& request,
                                                         const PriceModel& prices) {
  if (!request.has_ranking()) return std::nullopt;
  const absl::StatusOr<RankPolicy> policy = DecodeRankPolicy(request.ranking());
  if (!policy.ok()) return Annotate(policy.status(), "ranking");
  LoopRanking ranking{*policy, prices, std::nullopt, nullptr};
  if (request.ranking().has_preferred_node()) {
    const v1::PreferredNode& node = request.ranking().preferred_node();
    ranking.preferred_node = NodeCapacity{node.milli_cpu(), node.memory_bytes()};
  }
  return ranking;
}

NodeGroups LoopGroups(const v1::PlanLoopRequest& request, const DecodedProblem& growth,
                      const DrainProblem& drain, const PriceModel& prices) {
  NodeGroups groups;
  for (const GroupIndex index : growth.groups.indices()) {
    const NodeGroup& decoded = growth.groups[index];
    const v1::LoopGroup& message = request.groups(static_cast<int>(index));
    NodeGroup& group = groups.emplace_back(drain.groups[index]);
    group.max_nodes = decoded.max_nodes;
    group.blocked_reason = message.held();
    group.not_begun = message.not_begun();
    if (!decoded.model.has_value()) continue;
    group.model = decoded.model;
    group.priced = decoded.priced;
    group.has_gpu = decoded.has_gpu;
    if (message.has_priority()) group.priority = message.priority();
    group.price = PriceNode(prices, decoded.priced);
    if (group.price.source == PriceSource::kNone) continue;
    group.usd_per_hour = group.node_price = group.price.price;
  }
  return groups;
}

absl::Status DecodeSized(const v1::PlanLoopRequest& request, const v1::SizeState& kept, const LabelKeys& keys,
                         const std::string& slack_namespace, LoopProblem* problem, LeftOutList* left_out) {
  if (request.sized_size() == 0) return absl::OkStatus();
  v1::MeasureUtilizationRequest part;
  part.set_now_milliseconds(request.now_s() * 1000);
  *part.mutable_groups() = request.sized();
  *part.mutable_pods() = request.size_pods();
  if (request.state().has_size()) *part.mutable_state() = request.state().size();
  absl::StatusOr<DecodedSizing> decoded =
      DecodeSizing(part, kept, problem->names, keys, slack_namespace, {"sized", "state.size", "size_pods"});
  if (!decoded.ok()) return decoded.status();
  problem->names = decoded->names;
  problem->size_pods = std::move(decoded->waiting);
  left_out->Add(decoded->left_out);
  for (int i = 0; i < request.sized_size(); ++i) {
    LoopSizing& sizing = problem->sized.emplace_back();
    sizing.of = std::move(decoded->groups[static_cast<size_t>(i)]);
    sizing.state = decoded->states[static_cast<size_t>(i)];
    sizing.dry_run = request.sized(i).dry_run();
    const std::string at = absl::StrCat("sized[", i, "]");
    const auto found = std::find_if(problem->groups.begin(), problem->groups.end(),
                                    [&](const NodeGroup& group) { return group.name == sizing.of.name; });
    if (found == problem->groups.end()) {
      return Annotate(Refused(absl::StrCat("node_group: ", Quoted(sizing.of.name), " is none of `groups`")),
                      at);
    }
    if (absl::Status status = CheckSized(request.sized(i), *found); !status.ok()) return Annotate(status, at);
    sizing.group = IndexAt<GroupIndex>(static_cast<size_t>(found - problem->groups.begin()));
    found->sized = true;
  }
  return absl::OkStatus();
}

v1::SizeState EncodeSizes(const LoopPlan& plan, const LoopProblem& problem) {
  v1::SizeState state;
  for (size_t i = 0; i < problem.sized.size(); ++i) {
    *state.add_groups() = EncodeState(problem.sized[i].of.name, plan.sizes[i].next);
  }
  return state;
}

v1::PlanLoopResponse EncodeLoopPlan(const LoopPlan& plan, const LoopProblem& problem,
                                    const Snapshot& snapshot, const v1::PlanLoopRequest& request,
                                    PodEntries entries) {
  v1::PlanLoopResponse response;
  EncodeDrained(plan, problem.pending.size(), request.pods_size(), &entries, &response);
  EncodeExpected(plan, problem, snapshot, &entries, &response);
  EncodeGrowth(plan, problem, &entries, &response);
  if (request.has_ranking()) EncodeRanking(plan, problem, request.ranking(), response.mutable_ranking());
  if (problem.decisions.slack) *response.mutable_slack() = EncodeSlackPlan(plan.slack);
  response.set_batch_wait_milliseconds(plan.batch_wait_ms.value_or(0));
  for (const GroupAtMaximum& at : plan.at_maximum) {
    v1::GroupAtMaximum* const message = response.add_at_maximum();
    message->set_node_group(problem.groups[at.group].name);
    for (const std::string& resource : at.resources) message->add_resources(resource);
  }
  const std::vector<SizedGroup> sized = SizedGroups(problem);
  for (size_t i = 0; i < sized.size(); ++i) {
    *response.mutable_size()->add_groups() = EncodeSize(sized, i, problem.sized[i].gathered, plan.sizes[i]);
  }
  if (plan.scale_down_problem != nullptr) {
    *response.mutable_scale_down() =
        EncodeDrainPlan(plan.scale_down, *plan.scale_down_problem, problem.scale_down, request.compact());
  } else if (problem.decisions.slack) {
    *response.mutable_slack()->mutable_other_nodes() =
        EncodeOtherNodes(*problem.drain.cluster, problem.drain.group_of);
  }
  if (plan.no_scale_down != NoScaleDown::kConsidered) {
    response.set_no_scale_down(std::string(Name(plan.no_scale_down)));
  }
  return response;
}

}  // namespace loadline
