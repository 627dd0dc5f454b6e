// Chooses the node that suits the cluster that is to grow.
#ifndef LOADLINE_CORE_EXPAND_PREFERRED_CHOICE_H_
#define LOADLINE_CORE_EXPAND_PREFERRED_CHOICE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "core/cluster/cluster_state.h"
#include "core/expand/rank_options.h"
#include "core/price/preferred.h"

namespace loadline {

// Returns what the pods of a cluster request. Cost: O(nodes + pods).
PodDemand RunningDemand(const ClusterState& cluster);

// The facts about a cluster that is to grow.
struct GrowingCluster {
  std::optional<int64_t> nodes;
  PodDemand running;  // read with PreferredTable::kLearned only
};

// The node of the policy's table for such a cluster and the pods of the options, of each shape as many as the
// option with the most has; nullopt: the size of the cluster is not known.
std::optional<NodeCapacity> ChoosePreferredNode(PreferredTable table, const GrowingCluster& cluster,
                                                std::span<const PodRequests> pods,
                                                std::span<const ExpansionOption> options);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_PREFERRED_CHOICE_H_
