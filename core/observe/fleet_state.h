// The memory of the fleet between two looks, also for the next process.
#ifndef LOADLINE_CORE_OBSERVE_FLEET_STATE_H_
#define LOADLINE_CORE_OBSERVE_FLEET_STATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "core/observe/back_off.h"

namespace loadline {

// A request: so many nodes beyond a target, to be there until then.
struct OpenRequest {
  int64_t from = 0;
  int64_t nodes = 0;
  int64_t until_ms = 0;
  friend bool operator==(const OpenRequest&, const OpenRequest&) = default;
};

// The memory about one group.
struct GroupMemory {
  std::optional<int64_t> target;          // as it was last seen
  std::optional<int64_t> short_since_ms;  // since when the group has fewer machines than its target
  std::optional<OpenRequest> request;
  std::optional<BackOff> back_off;
  // When it last grew, and a node of it last went; only where delays hold by group.
  std::optional<int64_t> grown_ms;
  std::optional<int64_t> deleted_ms;
  // Fingerprints of the devices that its nodes come to offer, in order.
  std::vector<uint64_t> devices;
  friend bool operator==(const GroupMemory&, const GroupMemory&) = default;
};

// The memory about one machine.
struct MachineMemory {
  // It has had a node: if that is gone, the machine is not late. Pods may run there, and all nodes may be
  // gone at once, such as from a store that was restored.
  bool had_node = false;
  // It ran without a node when the first look was taken, of which nothing was remembered: it may have a node
  // by another provider id than the cloud tells.
  bool inherited = false;
  bool faulty = false;                      // its fault has been counted
  std::optional<int64_t> missing_since_ms;  // since when it has no node
  std::optional<int64_t> given_up_ms;       // when the cloud was asked to delete it, without a node
  friend bool operator==(const MachineMemory&, const MachineMemory&) = default;
};

// By fingerprints of names and provider ids: however long these are, the state has its bound.
struct FleetState {
  bool looked = false;  // at least once
  // When a group last grew, whoever let it; a node last went; and tainting last failed.
  std::optional<int64_t> grown_ms;
  std::optional<int64_t> deleted_ms;
  std::optional<int64_t> taint_failed_ms;
  absl::btree_map<uint64_t, GroupMemory> groups;
  absl::btree_map<uint64_t, MachineMemory> machines;
  friend bool operator==(const FleetState&, const FleetState&) = default;
};

// The most groups of which something is remembered. Chosen: twice as many as one question may have.
inline constexpr size_t kMostStateGroups = 2'000;

// The key of a group's name, a machine's id and a device's name.
uint64_t FleetKey(absl::string_view name);

// Lets no time of a state lie in the future: a clock was set back, or somebody made the state up.
void ForgetFuture(int64_t now_ms, const BackOffOptions& options, FleetState* state);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_FLEET_STATE_H_
