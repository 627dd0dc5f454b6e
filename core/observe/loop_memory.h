// The memory of one loop for the next one, also of another process.
#ifndef LOADLINE_CORE_OBSERVE_LOOP_MEMORY_H_
#define LOADLINE_CORE_OBSERVE_LOOP_MEMORY_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "core/base/cpu_memory.h"
#include "core/cluster/cluster_state.h"
#include "core/observe/fleet_state.h"
#include "core/size/size_group.h"
#include "core/slack/slack_plan.h"

namespace loadline {

// An action that was asked for and of which nobody has heard how it ended.
struct OpenAction {
  enum class Kind { kGrow, kDeleteMachines, kSwap };
  int64_t id = 0;
  Kind kind = Kind::kGrow;
  std::string group;
  int64_t at_ms = 0;
  // For kGrow and kSwap: the target before, the number of nodes, and whether pods wait for some of them.
  int64_t from = 0;
  int64_t nodes = 0;
  bool for_pods = false;
  std::optional<int64_t> provision_ms;
  std::vector<uint64_t> machines;  // of kDeleteMachines: see FleetKey()
  friend bool operator==(const OpenAction&, const OpenAction&) = default;
};

// Old nodes that are replaced by new ones, or go into room that is there: a move of core/consolidate that is
// carried out. Nodes and pods are known by the keys of their UIDs, or of their names where they have none.
struct MoveUnderWay {
  enum class Phase {
    kOrdered,     // new nodes are on their way
    kDraining,    // they are ready, and the old ones go
    kGivingBack,  // it has ended, and new nodes that are empty go
  };
  struct Order {
    std::string group;
    int64_t nodes = 0;
    friend bool operator==(const Order&, const Order&) = default;
  };
  struct Place {
    uint64_t pod = 0;
    int64_t target = 0;  // position in `came`; behind its end in `onto`
    friend bool operator==(const Place&, const Place&) = default;
  };
  Phase phase = Phase::kOrdered;
  int64_t at_ms = 0;  // since when it is in this phase
  // The time at which `orders` were asked for; 0: not known, and no node counts as theirs. In kDraining, if
  // it is later than at_ms: the time at which a pod of `places` last left its old node.
  int64_t step_ms = 0;
  std::vector<Order> orders;   // by group in the order of the question
  std::vector<uint64_t> came;  // in the order of `orders`; 0: not yet
  std::vector<uint64_t> onto;  // other nodes that take pods
  std::vector<uint64_t> remove;
  std::vector<Place> places;  // sorted by pod; in kDraining without those that have left
  friend bool operator==(const MoveUnderWay&, const MoveUnderWay&) = default;
};

// An old node of moves that were given up, one after the other. It is forgotten if no move removes it for
// kMostGivenUpMs after it could be tried again: others may go first, and a move may take hours to fail.
struct GivenUpMoves {
  int64_t count = 0;  // >= 1
  int64_t last_ms = 0;
  friend bool operator==(const GivenUpMoves&, const GivenUpMoves&) = default;
};
// A load that does not change, see load_rest.h.
struct RestingLoad {
  CpuMemory load;  // the sum of the requests of the cluster's pods at since_ms
  int64_t since_ms = 0;
  std::optional<int64_t> away_since_ms;  // the start of a deviation that is still short
  friend bool operator==(const RestingLoad&, const RestingLoad&) = default;
};
// A node is left alone for at most so long after moves were given up. Chosen as kMostVainMs is.
inline constexpr int64_t kMostGivenUpMs = int64_t{24} * 3600 * 1000;

// A group, and pods that are alike for filters; for its growth for slack both other numbers are 0. The
// namespace is a part of it, not only of `pods`: fingerprints are no defence against somebody who constructs
// collisions, and nobody may do so across namespaces.
struct PurchaseKey {
  uint64_t group = 0;           // FleetKey() of its name
  uint64_t namespace_name = 0;  // likewise
  uint64_t pods = 0;            // FilterFingerprint()
  friend auto operator<=>(const PurchaseKey&, const PurchaseKey&) = default;
};
// The growth of a group for such pods.
struct Purchase {
  // When it was asked for, as long as no node that has come since was judged; the first time counts.
  std::optional<int64_t> asked_ms;
  // How often nodes did not take the pods, and until when the group does not grow for them.
  int64_t failures = 0;
  int64_t until_ms = 0;
  // Fingerprints: of the model of the group when it was asked for, and when a node refused the pods; and of
  // this node, its key and its shape without passing taints.
  uint64_t model_asked = 0;
  uint64_t model_judged = 0;
  uint64_t node = 0;
  uint64_t node_shape = 0;
  friend bool operator==(const Purchase&, const Purchase&) = default;
};
// Beyond that many, namespaces keep equal shares of them, each its newest ones. Chosen so that they take less
// than a tenth of kMostLoopMemoryBytes.
inline constexpr size_t kMostPurchases = 1'000;
// The time after which a requested node counts as one that never registered.
inline constexpr int64_t kPurchaseAgeMs = int64_t{2} * 3600 * 1000;
// A group does not grow for pods in vain for at most so long. Chosen so that a machine a day shows that
// nothing has changed.
inline constexpr int64_t kMostVainMs = int64_t{24} * 3600 * 1000;

// The most moves in progress, and the most nodes and pods of all of them; a move beyond these is not carried
// out. Chosen, like the bounds below, so that all of the memory stays below kMostLoopMemoryBytes.
inline constexpr size_t kMostMoves = 100;
inline constexpr size_t kMostNodesOfMoves = 10'000;  // came, onto and remove of all moves
inline constexpr size_t kMostPodsOfMoves = 10'000;
// The most nodes that were added by moves, or took their pods, and are left alone for some time.
inline constexpr size_t kMostRestingNodes = 5'000;

// The most nodes that are to become empty first.
inline constexpr size_t kMostNodesToEmpty = 100;

inline constexpr size_t kMostOpenActions = 1'000;
// The most nodes whose acknowledged deletion or abandoned removal is remembered, and the most whose timer is.
inline constexpr size_t kMostDeletions = 2'000;
inline constexpr size_t kMostTimers = 20'000;
// The most groups of which it is remembered that they took no nodes back.
inline constexpr size_t kMostSwapRefusals = 1'000;
// The most nodes of which it is remembered that a change of their soft taint failed.
inline constexpr size_t kMostSoftTaintsTried = 5'000;
// The most bytes that sizes and slack may take in the memory, each. If sizes need more, the last groups by
// name are left out; if slack needs more, all of it is. Chosen: together a sixth of kMostLoopMemoryBytes.
inline constexpr size_t kMostSizeBytes = size_t{96} << 10;
inline constexpr size_t kMostSizedGroups = 1'000;
inline constexpr size_t kMostSlackBytes = size_t{64} << 10;

// The memory of the autoscaler from one loop to the next, also of another process.
struct LoopMemory {
  FleetState fleet;
  int64_t next_action = 1;
  std::vector<OpenAction> open;  // by id
  // When groups last grew for pods; and since when growth has waited for further pods in each plan.
  std::optional<int64_t> grown_for_pods_ms;
  std::optional<int64_t> batch_since_ms;
  // By the keys of the UIDs of nodes: those that the cloud has said it deletes; since when nodes wait whose
  // removal an earlier process began; and since when others are not needed, in seconds.
  absl::btree_set<uint64_t> acknowledged;
  absl::btree_map<uint64_t, int64_t> abandoned_since_ms;
  absl::btree_map<uint64_t, int64_t> unneeded_since_s;
  // By FleetKey() of the group: when it refused to take back nodes for a cheaper mix.
  absl::btree_map<uint64_t, int64_t> swap_refused_ms;
  // Replacement: moves that are carried out, and since when nodes rest, by key.
  std::vector<MoveUnderWay> moves;
  absl::btree_map<uint64_t, int64_t> resting_since_ms;
  absl::btree_map<uint64_t, GivenUpMoves> given_up;  // by key of an old node
  // The time that new nodes of the last move took from their order until they were ready, and the time from
  // then on until its old nodes were gone.
  std::optional<int64_t> nodes_took_ms;
  std::optional<int64_t> drains_took_ms;
  // With the decision to replace nodes: for how long the load has stood still.
  std::optional<RestingLoad> load;
  // By key of a node that is to be empty when workloads shrink: its number, from 1 on, the lowest first.
  absl::btree_map<uint64_t, int64_t> downscale_order;
  // By name of a group that is sized by how full it is.
  absl::btree_map<std::string, GroupState> sizes;
  // Room that is kept free; nullopt: none is.
  std::optional<KeptSlack> slack;
  // By key of a node whose soft taint is still to change: when a loop last heard that this was tried.
  absl::btree_map<uint64_t, int64_t> soft_taint_tried_ms;
  absl::btree_map<PurchaseKey, Purchase> purchases;
  friend bool operator==(const LoopMemory&, const LoopMemory&) = default;
};

// The time for which a group is not asked again to take nodes back for a cheaper mix after it has refused.
// Chosen: a cloud that refuses once mostly always does.
inline constexpr int64_t kSwapRefusedForMs = int64_t{3600} * 1000;

// Returns the key by which a node is remembered: the hash of its UID, or of its name if it has no UID. A node
// without a UID cannot be distinguished from a later node of the same name.
uint64_t KeyOfNode(const ClusterState& cluster, Slot slot);

// Forgets what counts no more. Lets no time lie in the future: a clock was set back, or somebody made the
// memory up. What FleetState has is left to ForgetFuture().
void ForgetFutureTimes(int64_t now_ms, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_LOOP_MEMORY_H_
