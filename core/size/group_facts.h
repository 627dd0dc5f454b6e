// The facts that a pass of SizeGroup() needs of each node group, gathered from a cluster in one walk.
#ifndef LOADLINE_CORE_SIZE_GROUP_FACTS_H_
#define LOADLINE_CORE_SIZE_GROUP_FACTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/cluster_state.h"
#include "core/size/membership.h"
#include "core/size/size_group.h"

namespace loadline {

// Taints of Escalator. The value of the first is when it was put on, in seconds since 1970.
inline constexpr char kForceRemovalTaint[] = "atlassian.com/escalator-force";

// A node group, and how it is sized. Nodes that carry all of pods.labels are its own.
struct SizedGroup {
  std::string name;
  GroupSelector pods;  // with labels, other than the hostname, also where it takes all that is left
  SizeOptions options;
  std::optional<int64_t> cloud_target;
  // The shape of a new node, and what DaemonSet and static pods take of it: see MeasureDaemons().
  std::optional<NodeShape> new_node;
  CpuMemory new_node_daemons;
  // The offer of a node when there was one: see GroupState.
  std::optional<CpuMemory> cached_node;
};

inline bool IsCompat(const SizedGroup& group) { return group.options.mode == SizeMode::kCompat; }

// The thing that pods wait for which do not run.
enum class Waiting {
  kForNode,  // for the scheduler to find one
  kForGate,  // scheduling gates; demand in kCompat only
  kToStart,  // on a node, and counted there; in kCompat they look as if they waited for one
};

// Equal pods that wait, with their number.
struct WaitingPods {
  PodShape shape;
  int64_t count = 0;  // [0, 2^31)
  Waiting waiting = Waiting::kForNode;
};

// One group.
struct GatheredGroup {
  GroupFacts facts;
  std::vector<Slot> slots;  // of facts.nodes
  // Pods of its demand of which a container requests no cpu, or no memory.
  int64_t pods_without_requests = 0;
  // Pods on its nodes, other than of DaemonSets and static ones, that no group counts as demand.
  int64_t uncounted_pods = 0;
  // Nodes that another group has as well, and one such group.
  int64_t shared_nodes = 0;
  int32_t shares_with = -1;
  // Pods that wait for a node and request more than any node of the group offers beside its DaemonSet pods,
  // which the group can do nothing for: they are neither demand nor pending. And the position of the first.
  int64_t pods_too_large = 0;
  int32_t too_large = -1;
  // With scale_on_starve in kDefault: positions of the others that wait for a node.
  std::vector<int32_t> may_starve;
  // Work ended before it was known whether one of them starves.
  bool starving_unknown = false;
};

// The most memberships of nodes in groups, and of pod shapes in groups. Chosen: 4,000 nodes in each of 1,000
// groups.
inline constexpr int64_t kMostMemberships = 4'000'000;

// Gathers the facts of all groups, but for who starves in kDefault: see FindStarving(). kDefault counts
// effective requests; kCompat counts as Escalator does: PodTraits::container_requests, and as room what no
// pod of the group holds. Placeholders of slack are no demand and keep no node: a group must not grow for its
// own slack. A node that does not say when it was created is as young as can be.
//
// Result: one per group, in their order.
//
// Errors: kResourceExhausted, more than kMostMemberships.
//
// Cost: O(pods + nodes log nodes + memberships); whether a pod is of a group is asked once per shape.
absl::StatusOr<std::vector<GatheredGroup>> GatherFacts(const ClusterState& cluster,
                                                       std::span<const SizedGroup> groups,
                                                       std::span<const WaitingPods> waiting, int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_GROUP_FACTS_H_
