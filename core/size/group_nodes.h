// The nodes of a group: which go first, which come back first, which may be deleted, and how healthy they
// are.
#ifndef LOADLINE_CORE_SIZE_GROUP_NODES_H_
#define LOADLINE_CORE_SIZE_GROUP_NODES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/size/utilization.h"

namespace loadline {

// The class of a node in its group; the first that applies.
enum class NodeClass {
  kCordoned,      // spec.unschedulable: no part of the group's capacity, and left alone
  kForceTainted,  // to be deleted as soon as it is empty
  kTainted,       // to be deleted after its grace period
  kUntainted,     // the capacity of the group
};

// One node of a group. Times in milliseconds since 1970.
struct GroupNode {
  std::string name;
  NodeClass node_class = NodeClass::kUntainted;
  CpuMemory allocatable;
  // Requests of the DaemonSet and static pods there.
  CpuMemory daemons;
  int64_t created_ms = 0;
  bool ready = true;
  // It carries an annotation that forbids its deletion.
  bool deletion_forbidden = false;
  // When it was tainted, from the taint; nullopt: the taint does not say.
  std::optional<int64_t> tainted_ms;
  // Nothing runs there that counts against deletion.
  bool empty = false;
};

// The times for which tainted nodes are kept, in milliseconds.
struct GracePeriods {
  int64_t soft_ms = 0;
  int64_t hard_ms = 0;
};

// Returns whether a tainted node may be deleted: tainted longer than the soft period and empty, or longer
// than the hard one; exactly as long is not longer.
bool MayBeDeleted(const GroupNode& node, const GracePeriods& grace, int64_t now_ms);

// Positions in `nodes`. At most `count` of `from`, in the order of creation; ties by name.
std::vector<size_t> OldestFirst(std::span<const GroupNode> nodes, std::vector<size_t> from, int64_t count);
std::vector<size_t> NewestFirst(std::span<const GroupNode> nodes, std::vector<size_t> from, int64_t count);

// When a group counts as healthy.
struct HealthOptions {
  int64_t grace_ms = 0;  // younger nodes play no part; 0: health plays none
  int32_t newest_percent = 0;
  int32_t max_unhealthy_percent = 0;
};

// Returns whether a node is old enough for its readiness to count.
bool HealthCounts(const GroupNode& node, const HealthOptions& options, int64_t now_ms);

// The newest ceil(percent / 100 * n) of `from`, newest first.
std::vector<size_t> NewestSample(std::span<const GroupNode> nodes, std::vector<size_t> from, int32_t percent);

// Returns whether at most max_unhealthy_percent of the sample, rounded down, are not ready; also without a
// sample.
bool IsHealthy(std::span<const GroupNode> nodes, const HealthOptions& options, int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_GROUP_NODES_H_
