#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_kind.h"
#include "core/drain/being_deleted.h"
#include "core/grow/empty_room.h"
#include "core/grow/waiting.h"
#include "core/observe/derived_groups.h"
#include "core/observe/see_fleet.h"
#include "loadline/v1/slack.pb.h"
#include "plugin/convert/describe.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/slack.h"
#include "plugin/convert/slots.h"
#include "plugin/convert/text.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/question_limits.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// Returns the groups of nodes that the question names.
GroupsOfNodes NamedGroups(const v1::PlanSlackRequest& request, const ClusterState& cluster) {
  GroupsOfNodes group_of;
  for (int i = 0; i < request.groups_size(); ++i) {
    for (const int32_t slot : request.groups(i).node_slots()) {
      if (slot >= 0 && cluster.Occupied(Slot{slot}) && MayBeInGroup(cluster, Slot{slot}))
        group_of.Set(Slot{slot}, GroupIndex{i});
    }
  }
  return group_of;
}

// Counts on the nodes that start, and on machines without a node, as growth does.
void CountOnUpcomingNodes(const v1::PlanSlackRequest& request, const DecodedProblem& problem,
                          SlackQuestion* question) {
  const bool known = question->groups.has_value();
  DrainProblem nodes;
  nodes.cluster = question->cluster;
  nodes.now_s = question->now_s;
  nodes.group_of = known ? NamedGroups(request, *nodes.cluster)
                         : DeriveGroups(*nodes.cluster, problem.startup_taints, nodes.now_s).group_of;
  FindNodesThatStart(problem.startup_taints, known ? NodeGroupSpan(problem.groups) : NodeGroupSpan(),
                     problem.names, &nodes);
  std::erase_if(nodes.not_started, [&](Slot slot) { return absl::c_linear_search(question->leaving, slot); });
  if (!known) {
    question->starting = std::move(nodes.not_started);
    return;
  }
  StrongVector<GroupIndex, int64_t> there(problem.groups.size(), 0), starting(problem.groups.size(), 0);
  for (const auto [slot, group] : nodes.group_of) ++there[group];
  for (const Slot slot : nodes.not_started) ++starting[*nodes.group_of[slot]];
  for (SlackGroup& group : *question->groups) {
    const GroupIndex index =
        IndexAt<GroupIndex>(static_cast<size_t>(group.of - &problem.groups[GroupIndex{0}]));
    const int64_t without_node = std::max<int64_t>(0, group.of->target - there[index]);
    AddComing(group.empty, starting[index] + without_node, &group.coming);
  }
}

}  // namespace

absl::StatusOr<v1::PlanSlackResponse> AnswerPlanSlack(const v1::PlanSlackRequest& request,
                                                      const Deadline& deadline, Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: missing");
  if (absl::Status status = CheckBudget(request); !status.ok()) return status;
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::OfView(request.changes(), deadline, views);
  if (!cluster.ok()) return cluster.status();
  SharedView& shared = cluster->shared();
  View& view = cluster->view();
  absl::StatusOr<DecodedSlack> decoded =
      DecodeSlack(request, view.cluster().resource_names(), shared.OptionsOfQuestion(view));
  if (!decoded.ok()) return decoded.status();
  if (absl::Status status = DeriveModels(request.groups(), view.cluster(), &decoded->problem); !status.ok()) {
    return status;
  }
  if (view.cluster().node_count() == 0 && !decoded->groups_known) {
    return absl::FailedPreconditionError("the cluster has no nodes, and no node groups are named");
  }
  SelectLabelKeys(&view, &decoded->problem);
  Complete(view.label_keys(), &decoded->problem);
  cluster->Lend();

  const absl::StatusOr<std::vector<Slot>> grouped =
      DecodeDescribed(request.grouped_slots(), view.cluster().slot_end());
  if (!grouped.ok()) return Annotate(grouped.status(), "grouped_slots");
  GroupsOfNodes group_of;
  for (const Slot slot : *grouped) {
    if (MayBeInGroup(view.cluster(), slot)) group_of.Set(slot, GroupIndex{0});
  }

  SlackQuestion question;
  question.cluster = &view.cluster();
  question.named_machines = NamedAsMachines(view.cluster(), group_of);
  question.options = std::move(decoded->options);
  if (decoded->groups_known) question.groups = SlackGroups(&decoded->problem);
  question.daemons = decoded->problem.daemons;
  for (PendingPods& pods : decoded->problem.pods) {
    question.waiting.push_back({std::move(pods.pod), pods.count});
  }
  question.leaving = NodesBeingDeleted(view.cluster(), {}, request.now_seconds());
  for (PendingPods& pods : PodsOfNodesBeingDeleted(view.cluster(), question.leaving)) {
    pods.pod.names = decoded->problem.names;
    question.waiting.push_back(
        {std::move(pods.pod), pods.count, std::nullopt, std::nullopt, /*still_run=*/true});
  }
  question.now_s = request.now_seconds();
  CountOnUpcomingNodes(request, decoded->problem, &question);
  shared.UseProfiles(view, &decoded->problem.fit);
  question.fit = &decoded->problem.fit;
  question.names = decoded->problem.names;
  question.literal = request.literal();
  UndoUnlessKept undo(&shared, &view);
  question.snapshot = [&undo] { return undo.snapshot(); };
  SlackPlanner* const planner = undo.slack();
  if (decoded->state.has_value()) planner->Restore(*decoded->state);
  WorkBudget budget = BudgetOf(request, kSlackWork, shared.limits.question_bytes, deadline);
  v1::PlanSlackResponse response = EncodeSlackPlan(planner->Plan(question, &budget));
  response.set_clamped_amounts(decoded->problem.clamped_amounts);
  *response.mutable_other_nodes() = EncodeOtherNodes(view.cluster(), group_of);
  decoded->problem.left_out.Add(shared.LeftOut(view));
  TellLeftOut(decoded->problem.left_out, &response);
  if (request.want_state()) *response.mutable_state() = EncodeSlackState(planner->State());
  absl::StatusOr<v1::PlanSlackResponse> sized =
      Sized(std::move(response), "leave the state with the view, or allow fewer placeholders");
  if (sized.ok()) undo.Keep();
  return sized;
}

}  // namespace loadline
