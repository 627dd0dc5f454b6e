// The labels and taints that nodes of one group share, and that a new node of it therefore has.
#ifndef LOADLINE_CORE_CLUSTER_SHARED_MARKS_H_
#define LOADLINE_CORE_CLUSTER_SHARED_MARKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/startup_taints.h"

namespace loadline {

// Nodes of one shape.
struct Alike {
  const NodeShape* shape;
  int64_t nodes;
};
std::vector<Alike> ByShape(const ClusterState& cluster, std::span<const Slot> nodes);
int64_t CountNodes(std::span<const Alike> alike);

// Adds labels and taints that more than half of the healthy nodes share, and more than half of those that
// have started: where most are cordoned, marks on the others are still theirs alone. Labels of zones are left
// out.
void ShareMarks(std::span<const Alike> healthy, std::span<const Alike> started, const StartupTaints& names,
                NodeShape* shape);

// Drops labels whose value is the name of the node. Of the other labels of a single node nobody knows which
// are its own.
void DropLabelsOf(absl::string_view node, Labels* labels);

// Adds the labels of kubelets and clouds that `labels` leave out: the type of the machine, and its system and
// architecture, as more than half of the nodes state them, whatever the key. What `labels` state under one
// key holds for the others that more than half of the nodes have. Without a node, a machine runs Linux on
// amd64, and has each fact under all of its keys, those of the zone and the region too, as Cluster
// Autoscaler's providers have it.
void AddCloudLabels(std::span<const Alike> alike, Labels* labels);

// Adds the labels that name a zone or a region, as nodes of the zone have them in which the next node is
// expected; of a template only those that it leaves out. Sets the zones if there are several to choose from.
void AddZoneLabels(std::span<const Alike> alike, bool has_template, Labels* labels,
                   std::vector<std::string>* zones);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SHARED_MARKS_H_
