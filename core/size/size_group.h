// One pass over a node group: does it grow, shrink or stay, and which nodes does that touch.
#ifndef LOADLINE_CORE_SIZE_SIZE_GROUP_H_
#define LOADLINE_CORE_SIZE_SIZE_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/size/group_nodes.h"
#include "core/size/utilization.h"

namespace loadline {

// The arithmetic and the rules of a pass.
enum class SizeMode {
  // Escalator's laws in exact arithmetic, without its cycles; see SizeGroup().
  kDefault,
  // Escalator as shipped.
  kCompat,
};

// How a group is sized; Escalator's options. Percentages of capacity, periods in milliseconds.
struct SizeOptions {
  SizeMode mode = SizeMode::kDefault;
  // Bounds on untainted nodes, and those of the cloud's own group on all.
  int64_t min_nodes = 0;
  int64_t max_nodes = 0;
  int64_t cloud_min = 0;
  int64_t cloud_max = 0;
  // Above scale_up the group grows; below taint_upper `slow_rate` nodes are tainted, below taint_lower
  // `fast_rate`. taint_lower < taint_upper < scale_up.
  int32_t scale_up_percent = 0;
  int32_t taint_upper_percent = 0;
  int32_t taint_lower_percent = 0;
  int64_t slow_rate = 0;
  int64_t fast_rate = 0;
  GracePeriods grace;
  // The cool-down of the group after the cloud has accepted a growth.
  int64_t cool_down_ms = 0;
  // Grow by a node when a pending pod fits on none.
  bool scale_on_starve = false;
  // At the minimum, replace nodes older than this. 0: off.
  int64_t max_node_age_ms = 0;
  HealthOptions health;
  // Take the requests of DaemonSet pods off the capacity. Not in kCompat.
  bool subtract_daemons = true;
};

// The facts about a group in this pass.
struct GroupFacts {
  // The sum of what the pods request that count as demand, and their number: pods of the group, bound or
  // pending.
  CpuMemory requests;
  int64_t pods = 0;
  int64_t pending_pods = 0;
  // A pending pod fits on no untainted node, but would on a new one.
  bool starved = false;
  // In name order.
  std::vector<GroupNode> nodes;
  // Nodes that the cloud's group is to have; nullopt: as many as there are.
  std::optional<int64_t> cloud_target;
  // The offer of the group's template; nullopt: not known. Not used in kCompat.
  std::optional<CpuMemory> new_node;
};

// The state that one pass leaves for the next.
struct GroupState {
  // The offer of a node of the group, known from when there was one.
  std::optional<CpuMemory> cached_node;
  // When the cloud took nodes that it was asked for, and how many it was asked for last.
  std::optional<int64_t> locked_ms;
  int64_t requested = 0;
  // How many nodes there are to be then, until they are there, for kMostWaitForNodesMs at most. Counts while
  // the cloud's own target is unknown.
  std::optional<int64_t> expected;
  // When nodes were asked of the cloud, and its target before. The next pass that knows the target tells
  // whether it took them: only then the group is left alone. Without a target they count as taken at once.
  struct Asked {
    int64_t ms = 0;
    int64_t target = 0;
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  std::optional<Asked> asked;
  friend bool operator==(const GroupState&, const GroupState&) = default;
};

// How long nodes that were asked for may take: as long as Cluster Autoscaler waits by default, or as long as
// the group is left alone.
inline constexpr int64_t kMostWaitForNodesMs = 15 * 60 * 1000;

// The action of a pass.
enum class SizeAction { kNothing, kScaleUp, kRemoveSlowly, kRemoveFast };

// Why.
enum class SizeReason {
  kWithinThresholds,
  kAboveScaleUp,
  kFromZero,
  kStarved,
  kNodeTooOld,
  kBelowMinimum,
  kBelowTaintUpper,
  kBelowTaintLower,
  kAboveMaximum,  // more untainted nodes than allowed
  // Nothing is done although a threshold is crossed:
  kAtMaximum,      // it may not grow
  kAtMinimum,      // it may not shrink
  kWouldGrowBack,  // without a node it would be above scale_up
  kWaiting,        // the nodes that it lacks are on their way
  kLocked,         // it was scaled up a short time ago
  kUnhealthy,      // too many nodes are not ready
  kPodsPending,    // starving is watched, and pods wait for a node that the group may have
  kEmpty,          // neither nodes nor pods
  // Errors of Escalator, which end the pass:
  kNoCapacity,        // nodes offer nothing in one dimension
  kFewerThanMinimum,  // kCompat: fewer nodes of any class than the minimum, for which it gives up
  kNodeTooSmall,      // a new node would have none of what is lacking
};

absl::string_view Name(SizeAction action);
absl::string_view Name(SizeReason reason);

// The decision of a pass. Nodes are positions in GroupFacts::nodes.
struct SizeDecision {
  SizeAction action = SizeAction::kNothing;
  SizeReason reason = SizeReason::kWithinThresholds;
  // Untainted nodes to win (positive) or to taint (negative). kCompat: what Escalator returns, which is more
  // than what is done where a bound holds.
  int64_t delta = 0;
  // The number of nodes if there were no maximum and no nodes on their way.
  int64_t wanted = 0;

  // Demand, and the capacity of the untainted nodes.
  CpuMemory requests;
  CpuMemory capacity;
  int64_t untainted = 0;
  Usage usage;
  // After `delta`; nullopt: what a new node offers is not known.
  std::optional<Usage> usage_after;
  // DaemonSet pods take more of the untainted nodes than scale_up leaves for them.
  bool daemons_crowd = false;
  // Untainted nodes do not all offer the same.
  bool mixed_nodes = false;

  // Each at most once over all lists but taint_unhealthy, of which some may be in `untaint` again.
  std::vector<size_t> taint_unhealthy;
  std::vector<size_t> untaint;
  std::vector<size_t> taint;
  std::vector<size_t> remove;
  // Nodes to ask of the cloud.
  int64_t ask_cloud = 0;
  GroupState next;
};

// Decides one pass.
//
// kCompat does what Escalator 043bb1b does, pass by pass; ties between nodes, which it leaves to chance, end
// at the name, and the cached node is the first by name. kDefault differs so:
//   - arithmetic is exact, and growth is counted in nodes like the newest one; if there are no nodes, like
//     the last one that there was, else like the group's template
//   - a node is not tainted if its capacity would have to be bought again: utilisation stays at or below
//     scale_up
//   - nodes on their way count, and growth, also by untainting, ends at max_nodes
//   - below the minimum it grows to the minimum; pods that request nothing get a first node
//   - nodes that are empty but for DaemonSet and static pods are empty; a batch of deletions that would take
//     the cloud's group below its minimum is cut and not refused
//
// Options and facts may hold 0 where a file may not. Cost: O(nodes log nodes). Pure: any thread.
SizeDecision SizeGroup(const SizeOptions& options, const GroupFacts& facts, const GroupState& state,
                       int64_t now_ms);

// --- steps of a pass, each by itself -----------------------------------------------------------------------

// Nodes to ask of the cloud: at most what it has room for, [0, wanted].
int64_t CloudIncrease(int64_t wanted, int64_t cloud_target, int64_t cloud_max);

// Nodes to taint: `wanted` less what minimum and cloud forbid; nullopt: there are fewer than the minimum.
std::optional<int64_t> TaintCount(int64_t untainted, int64_t wanted, int64_t min_nodes, int64_t cloud_min,
                                  int64_t cloud_target);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_SIZE_GROUP_H_
