#include "core/loop/waiting.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "core/drain/being_deleted.h"

namespace loadline {

bool IsExpendable(const PodTraits& traits) {
  return traits.placeholder || traits.priority < kExpendablePriority;
}

std::optional<NotWaiting> WhyNotWaiting(const PodTraits& traits, const PendingFacts& facts,
                                        const WaitingRules& rules) {
  if (IsExpendable(traits) || traits.priority < rules.expendable_priority) return NotWaiting::kExpendable;
  // Its controller has made the pod for a node that is there.
  if (traits.owner.has_value() && traits.owner->kind == "DaemonSet") return NotWaiting::kOfDaemonSet;
  const auto& bypassed = rules.bypassed_schedulers;
  const bool tried =
      facts.unschedulable || std::find(bypassed.begin(), bypassed.end(), facts.scheduler) != bypassed.end();
  if (!tried) return NotWaiting::kNotTried;
  if (facts.youngest_age_ms < facts.delay_ms.value_or(rules.scale_up_delay_ms)) return NotWaiting::kTooYoung;
  return std::nullopt;
}

void RemoveExpendablePods(Snapshot* snapshot) {
  if (!snapshot->HasShapesBelow(kExpendablePriority)) return;
  std::vector<char> expendable;
  bool any = false;
  for (int32_t shape = 0; shape < snapshot->pod_shape_end(); ++shape) {
    expendable.push_back(IsExpendable(TraitsOf(snapshot->pod_shape(shape))) ? 1 : 0);
    any = any || expendable.back() != 0;
  }
  if (!any) return;
  for (int32_t i = 0; i < snapshot->node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot->Contains(node)) continue;
    // From the end: the last pod takes the place of a removed one.
    for (size_t position = snapshot->pods(node).size(); position-- > 0;) {
      if (expendable[static_cast<size_t>(snapshot->pods(node)[position].shape)] != 0) {
        snapshot->RemovePod(node, position);
      }
    }
  }
}

std::vector<PendingPods> PodsOfNodesBeingDeleted(const ClusterState& cluster,
                                                 std::span<const DeletingNode> deleting, int64_t now_s) {
  std::vector<PendingPods> waiting;
  absl::btree_map<int32_t, size_t> positions;
  for (const Slot slot : NodesBeingDeleted(cluster, deleting, now_s)) {
    for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
      const PodShape& shape = cluster.pod_shapes()[pod.shape];
      const PodTraits& traits = TraitsOf(shape);
      if (shape.finished || traits.deleted_s.has_value() || traits.mirror || traits.static_pod ||
          OfKnownDaemonSet(shape, cluster.objects()) || IsExpendable(traits)) {
        continue;
      }
      const auto [at, added] = positions.try_emplace(pod.shape, waiting.size());
      if (added) {
        PendingPods& entry = waiting.emplace_back();
        entry.pod.shape = shape;
        entry.pod.names = cluster.resource_names();
        entry.count = 0;
      }
      ++waiting[at->second].count;
    }
  }
  return waiting;
}

}  // namespace loadline
