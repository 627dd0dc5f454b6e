// Tells which node groups are so alike that they grow evenly.
#ifndef LOADLINE_CORE_EXPAND_SIMILAR_GROUPS_H_
#define LOADLINE_CORE_EXPAND_SIMILAR_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster/shapes.h"
#include "core/price/price_model.h"

namespace loadline {

// --balancing-label, --balancing-ignore-label, --max-allocatable-difference-ratio and
// --memory-difference-ratio, with Cluster Autoscaler's defaults.
struct SimilarityRules {
  // Not empty: groups whose nodes carry all of these labels with the same values are similar, whatever else
  // differs.
  std::vector<std::string> labels;
  // Labels that may differ, beside those that say where a node is and of which pool: see IsPlaceLabel().
  std::vector<std::string> ignored_labels;
  // By how much allocatable amounts, and the capacity of memory, may differ: shares of the larger one, [0,
  // 1].
  double most_allocatable_difference = 0.05;
  double most_memory_difference = 0.015;
};

// A new node of a group.
struct ComparedNode {
  const NodeShape& shape;
  const PricedNode& priced;  // its capacity
};

// Returns whether two groups are similar: the same capacity of CPU and GPUs, nearly that of memory, nearly
// the same allocatable amounts of the same resources, and the same labels but for those that may differ.
// Symmetric; not transitive. Cost: O(labels + resources). Source:
// processors/nodegroupset/compare_nodegroups.go and label_nodegroups.go of Cluster Autoscaler, which also
// compares what DaemonSets leave free: here a plan looks whether the pods fit on the other group's nodes.
bool AreSimilar(const ComparedNode& a, const ComparedNode& b, const SimilarityRules& rules);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_SIMILAR_GROUPS_H_
