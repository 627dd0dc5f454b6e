#include "core/consolidate/place_as_found.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"

namespace loadline {
namespace {

// Returns the nodes that may take a pod: the one that was found for it, or all others that have room because
// equal nodes are not swapped.
std::vector<NodeIndex> TargetsOf(const NetMove& net, const Mover& mover) {
  if (!absl::c_linear_search(net.spared, mover.node)) return {mover.node};
  std::vector<NodeIndex> targets = net.stay;
  targets.insert(targets.end(), net.add.begin(), net.add.end());
  for (const NodeIndex node : net.vacated) {
    const bool known = absl::c_linear_search(targets, node) || absl::c_linear_search(net.spared, node);
    if (!known) targets.push_back(node);
  }
  return targets;
}

// Returns the node of the snapshot where a pod fits now.
std::optional<NodeIndex> FindTarget(const NetMove& net, const std::map<NodeIndex, NodeIndex>& copies,
                                    const Mover& mover, TrialCluster* trial_cluster) {
  PodFit& fit = trial_cluster->fit(mover.kind);
  fit.Refresh(trial_cluster->work());
  for (const NodeIndex target : TargetsOf(net, mover)) {
    const NodeIndex to = trial_cluster->node(target).is_new ? copies.at(target) : target;
    if (trial_cluster->snapshot().Placeable(to) && fit.Fits(to)) return to;
  }
  return std::nullopt;
}

}  // namespace

bool PlaceAsFound(const NetMove& net, const std::map<NodeIndex, NodeIndex>& copies,
                  TrialCluster* trial_cluster, StrongVector<MoverIndex, NodeIndex>* places) {
  std::vector<MoverIndex> waiting = net.movers;
  // Pods whose place was spared are last.
  std::stable_partition(waiting.begin(), waiting.end(), [&](MoverIndex number) {
    return !absl::c_linear_search(net.spared, trial_cluster->movers()[number].node);
  });
  while (!waiting.empty()) {
    std::vector<MoverIndex> later;
    for (const MoverIndex number : waiting) {
      const Mover& mover = trial_cluster->movers()[number];
      const std::optional<NodeIndex> to = FindTarget(net, copies, mover, trial_cluster);
      if (!to.has_value()) {
        later.push_back(number);
        continue;
      }
      const MoverKind& kind = trial_cluster->kinds()[mover.kind];
      trial_cluster->snapshot().PlacePod(*to, kind.shape, kind.by_name ? mover.name : "",
                                         kind.by_name ? mover.uid : "");
      (*places)[number] = *to;
    }
    if (later.size() == waiting.size()) return false;
    waiting = std::move(later);
  }
  return true;
}

}  // namespace loadline
