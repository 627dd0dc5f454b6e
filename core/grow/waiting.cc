#include "core/grow/waiting.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "core/drain/being_deleted.h"

namespace loadline {

std::optional<NotWaiting> WhyNotWaiting(const PodTraits& traits, const PendingFacts& facts,
                                        const WaitingRules& rules) {
  if (GivesWay(traits) || traits.priority < rules.expendable_priority) return NotWaiting::kExpendable;
  // Its controller has made the pod for a node that is there.
  if (traits.owner.has_value() && traits.owner->kind == "DaemonSet") return NotWaiting::kOfDaemonSet;
  const auto& bypassed = rules.bypassed_schedulers;
  const bool tried =
      facts.unschedulable || std::find(bypassed.begin(), bypassed.end(), facts.scheduler) != bypassed.end();
  if (!tried) return NotWaiting::kNotTried;
  const bool young = facts.youngest_age_ms < facts.delay_ms.value_or(rules.scale_up_delay_ms);
  if (young && !rules.any_age) return NotWaiting::kTooYoung;
  return std::nullopt;
}

std::vector<PendingPods> PodsOfNodesBeingDeleted(const ClusterState& cluster,
                                                 std::span<const Slot> deleting) {
  std::vector<PendingPods> waiting;
  absl::btree_map<int32_t, size_t> positions;
  for (const Slot slot : deleting) {
    for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
      const PodShape& shape = cluster.pod_shapes()[pod.shape];
      if (!NeedsAnotherNode(shape, cluster.objects())) continue;
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
