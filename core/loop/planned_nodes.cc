#include "core/loop/planned_nodes.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/snapshot.h"
#include "core/drain/eligibility.h"

namespace loadline {
namespace {

constexpr absl::string_view kUnschedulableTaint = "node.kubernetes.io/unschedulable";
// Those that autoscalers put on nodes that are to go.
constexpr const char* kPassingTaints[] = {kToBeDeletedTaint, kDeletionCandidateTaint,
                                          "atlassian.com/escalator"};

void DropTaint(absl::string_view key, std::vector<Taint>* taints) {
  std::erase_if(*taints, [&](const Taint& taint) { return taint.key == key; });
}

}  // namespace

bool IsStartupTaint(absl::string_view key) {
  return absl::StartsWith(key, "startup-taint.cluster-autoscaler.kubernetes.io/") ||
         absl::StartsWith(key, "ignore-taint.cluster-autoscaler.kubernetes.io/") ||
         key == "node.cloudprovider.kubernetes.io/uninitialized";
}

NodeShape WithoutPlace(const NodeShape& node, const ResourceNames& names) {
  return MakeNodeShape(node.allocatable, names, node.labels, node.taints, /*unschedulable=*/true);
}

NodeShape WithoutMark(const NodeShape& node, const NodeMark& mark, const ResourceNames& names) {
  std::vector<Taint> taints = node.taints;
  bool unschedulable = node.unschedulable;
  DropTaint(kToBeDeletedTaint, &taints);
  if (mark.cordoned) {
    unschedulable = false;
    DropTaint(kUnschedulableTaint, &taints);  // the node controller would take it off later
  }
  DropTaint(kDeletionCandidateTaint, &taints);
  taints.push_back({std::string(kDeletionCandidateTaint), absl::StrCat(mark.since_s), "PreferNoSchedule"});
  return MakeNodeShape(node.allocatable, names, node.labels, std::move(taints), unschedulable);
}

NodeShape LikeNew(const NodeShape& node, const ResourceNames& names) {
  std::vector<Taint> taints = node.taints;
  std::erase_if(taints, [](const Taint& taint) {
    return absl::StartsWith(taint.key, "node.kubernetes.io/") || IsStartupTaint(taint.key) ||
           std::find(std::begin(kPassingTaints), std::end(kPassingTaints), taint.key) !=
               std::end(kPassingTaints);
  });
  return MakeNodeShape(node.allocatable, names, node.labels, std::move(taints));
}

std::optional<NodeExample> BestExample(const ClusterState& cluster, std::span<const Slot> nodes,
                                       std::span<const Slot> lacking) {
  // The smallest is the best.
  std::optional<std::tuple<bool, bool, absl::string_view, Slot>> best;
  for (const Slot slot : nodes) {
    const bool lacks = std::binary_search(lacking.begin(), lacking.end(), slot);
    const bool unusable = !cluster.traits(slot).ready || cluster.node_shape(slot).unschedulable;
    const std::tuple<bool, bool, absl::string_view, Slot> of{lacks, unusable, cluster.name(slot), slot};
    if (!best.has_value() || of < *best) best = of;
  }
  if (!best.has_value()) return std::nullopt;
  return NodeExample{std::get<3>(*best), !std::get<0>(*best) && !std::get<1>(*best)};
}

}  // namespace loadline
