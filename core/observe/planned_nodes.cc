#include "core/observe/planned_nodes.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/startup_taints.h"

namespace loadline {
namespace {

constexpr absl::string_view kUnschedulableTaint = "node.kubernetes.io/unschedulable";

void DropTaint(absl::string_view key, std::vector<Taint>* taints) {
  std::erase_if(*taints, [&](const Taint& taint) { return taint.key == key; });
}

}  // namespace

NodeShape WithoutPlace(const NodeShape& node) { return Retainted(node, node.taints, /*unschedulable=*/true); }

NodeShape WithoutMark(const NodeShape& node, const NodeMark& mark) {
  std::vector<Taint> taints = node.taints;
  bool unschedulable = node.unschedulable;
  DropTaint(kToBeDeletedTaint, &taints);
  if (mark.cordoned) {
    unschedulable = false;
    DropTaint(kUnschedulableTaint, &taints);  // the node controller would take it off later
  }
  DropTaint(kDeletionCandidateTaint, &taints);
  taints.push_back({std::string(kDeletionCandidateTaint), absl::StrCat(mark.since_s), "PreferNoSchedule"});
  return Retainted(node, std::move(taints), unschedulable);
}

}  // namespace loadline
