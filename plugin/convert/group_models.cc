// The models of groups, as the nodes of the view show them.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/platform_labels.h"
#include "core/observe/derived_groups.h"
#include "core/observe/see_fleet.h"
#include "core/price/capacity_type.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/scale_up_problem.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// Returns the nodes of a group that may be its machines; slots without a node are left out.
std::vector<Slot> MachinesOf(const v1::ScalableGroup& message, const ClusterState& cluster) {
  std::vector<Slot> nodes;
  for (const int32_t at : message.node_slots()) {
    const Slot slot{at};
    if (at >= 0 && cluster.Occupied(slot) && MayBeInGroup(cluster, slot)) nodes.push_back(slot);
  }
  return nodes;
}

// Returns the nodes of a group that lack devices; none if nobody knows their age.
std::vector<Slot> LackingOf(const ClusterState& cluster, std::span<const Slot> nodes, const NodeShape* stated,
                            const DecodedProblem& problem) {
  if (!problem.now_s.has_value()) return {};
  return NodesLackingDevices(cluster, nodes, stated, problem.names, problem.startup_taints, *problem.now_s);
}

// Nodes show what a template does not know, as in a loop: what kubelets reserve, devices that never come.
// Slots without a node are refused by those questions that ask what becomes of the nodes.
void CorrectByNodes(const v1::ScalableGroup& message, const ClusterState& cluster,
                    const DecodedProblem& problem, NodeGroup* group) {
  const std::vector<Slot> nodes = MachinesOf(message, cluster);
  if (nodes.empty() || !group->model.has_value()) return;
  const NodeShape* const stated = &group->model->shape;
  const std::vector<Slot> lacking = LackingOf(cluster, nodes, stated, problem);
  const GroupNodes of{stated, nodes, lacking};
  CompletePriced(PriceFactsOf(cluster, of, problem.startup_taints), stated->labels, message.has_spot(),
                 &group->priced);
  group->model = ModelOfNewNode(cluster, of, problem.startup_taints, problem.names);
}

void Put(absl::string_view key, absl::string_view value,
         google::protobuf::RepeatedPtrField<k8s::v1::StringEntry>* entries) {
  auto found =
      std::find_if(entries->begin(), entries->end(), [&](const auto& of) { return of.key() == key; });
  k8s::v1::StringEntry* const entry = found != entries->end() ? &*found : entries->Add();
  entry->set_key(std::string(key));
  entry->set_value(std::string(value));
}

// Returns a template that could be read with what CompletePriced() has added, as a serialized Node.
std::string EncodeCompleted(absl::string_view template_node, const PricedNode& completed) {
  k8s::v1::Node node;
  if (!ParseObject(template_node, "k8s.io.api.core.v1.Node", &node).ok()) return "";
  auto* const labels = node.mutable_metadata()->mutable_labels();
  if (completed.spot) Put(kCapacityTypeLabel, Name(CapacityType::kSpot), labels);
  if (completed.reserved) Put(kCapacityTypeLabel, Name(CapacityType::kReserved), labels);
  if (completed.windows) Put(kOperatingSystemLabel, "windows", labels);
  if (!completed.region.empty()) Put("topology.kubernetes.io/region", completed.region, labels);
  if (!completed.cloud.empty() && node.spec().provider_id().empty()) {
    node.mutable_spec()->set_provider_id(absl::StrCat(completed.cloud, "://"));
  }
  if (completed.annotated.has_value()) {
    Put(kNodePriceKey, absl::StrFormat("%.17g", *completed.annotated),
        node.mutable_metadata()->mutable_annotations());
  }
  return node.SerializeAsString();
}

}  // namespace

void DescribeByNodes(const ClusterState& cluster, const ScalableGroups& stated, std::span<const Slot> nodes,
                     std::span<const Slot> lacking, GroupIndex group, DecodedProblem* problem) {
  NodeGroup& decoded = problem->groups[group];
  const v1::ScalableGroup& message = stated.Get(static_cast<int>(group));
  const bool unreadable = !decoded.model.has_value() && !message.template_node().empty();
  if (nodes.empty() || unreadable || !decoded.blocked_reason.empty()) return;
  const GroupNodes of{nullptr, nodes, lacking};
  if (decoded.model.has_value()) {
    CompletePriced(PriceFactsOf(cluster, of, problem->startup_taints), decoded.model->shape.labels,
                   message.has_spot(), &decoded.priced);
    return;
  }
  NodeToCome made = NewNodeOf(cluster, of, problem->startup_taints);
  DecodedTemplate priced = TemplateOf(made, problem->names);
  decoded.model = std::move(made.model);
  decoded.priced = std::move(priced.node);
  decoded.has_gpu = priced.has_gpu;
  ReadStated(message, &decoded.priced);
}

std::string EncodeModelNode(const ScalableGroups& stated, const ClusterState& cluster, GroupIndex group,
                            const DecodedProblem& problem) {
  const v1::ScalableGroup& message = stated.Get(static_cast<int>(group));
  const std::vector<Slot> nodes = MachinesOf(message, cluster);
  const NodeGroup& of = problem.groups[group];
  const bool template_says_all = !of.model.has_value() || of.priced.cloud == CloudOf(of.model->shape.labels);
  if (nodes.empty() && template_says_all) return "";
  if (!message.template_node().empty()) return EncodeCompleted(message.template_node(), of.priced);
  const std::vector<Slot> lacking = LackingOf(cluster, nodes, nullptr, problem);
  return EncodeNodeToCome(NewNodeOf(cluster, {nullptr, nodes, lacking}, problem.startup_taints),
                          message.node_group(), problem.names);
}

void CompleteClouds(const ClusterState& cluster, NodeGroups* groups) {
  std::optional<std::string> cloud;
  for (NodeGroup& group : *groups) {
    if (!group.priced.cloud.empty()) continue;
    if (!cloud.has_value()) cloud = CloudOfCluster(cluster);
    group.priced.cloud = *cloud;
  }
}

absl::Status DeriveModels(const ScalableGroups& stated, const ClusterState& cluster,
                          DecodedProblem* problem) {
  for (int i = 0; i < stated.size(); ++i) {
    if (!stated[i].template_node().empty()) {
      CorrectByNodes(stated[i], cluster, *problem, &problem->groups[GroupIndex{i}]);
      continue;
    }
    for (const int32_t slot : stated[i].node_slots()) {
      if (slot < 0 || !cluster.Occupied(Slot{slot})) {
        return Refused(absl::StrCat("groups[", i, "]: node_slots: there is no node in ", slot));
      }
    }
    const std::vector<Slot> nodes = MachinesOf(stated[i], cluster);
    DescribeByNodes(cluster, stated, nodes, LackingOf(cluster, nodes, nullptr, *problem), GroupIndex{i},
                    problem);
  }
  return absl::OkStatus();
}

}  // namespace loadline
