// The input and the result of a look at the fleet: the machines of all node groups, and their states.
#ifndef LOADLINE_CORE_OBSERVE_FLEET_H_
#define LOADLINE_CORE_OBSERVE_FLEET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/observe/back_off.h"

namespace loadline {

// Times are in milliseconds since 1970, periods in milliseconds.
struct FleetOptions {
  // The times that a machine may take to register a node, and a node to be ready with all its devices, where
  // the group says nothing else.
  int64_t provision_ms = 0;
  int64_t startup_ms = 0;
  BackOffOptions back_off;
  // The time for which the cloud may list a machine as before, after it was asked to delete it.
  int64_t deletion_patience_ms = 0;
  // Machines without a node that may be deleted after one look, of all groups.
  int64_t max_deletions = 0;
  // No group grows while more nodes than this, and more than this part of all, are not ready.
  int64_t ok_unready_nodes = 0;
  int64_t max_unready_percent = 0;
  // The times in which no node is removed: after a group has grown, after a node was removed, and after
  // tainting has failed.
  int64_t after_add_ms = 0;
  int64_t after_delete_ms = 0;
  int64_t after_failure_ms = 0;
  // The first two keep only the nodes of the group that has grown or lost a node.
  bool delays_by_group = false;
};

// The reason for which a machine cannot be created.
struct MachineFault {
  std::string code;
  std::string message;
  bool out_of_resources = false;
  friend bool operator==(const MachineFault&, const MachineFault&) = default;
};

// A node that has registered.
struct FleetNode {
  int64_t created_ms = 0;  // 0: not known
  // It is ready, and has no startup taint.
  bool ready = false;
  // The cloud was asked to delete it.
  bool leaving = false;
  // Fingerprints of the names of its extended resources of which it offers some, in order.
  std::vector<uint64_t> devices;
  // It is young and offers no device, and a label says that it has GPUs.
  bool awaits_gpus = false;
};

// The state of a machine, as the cloud reports it.
enum class MachineState {
  kUnknown,  // not all clouds tell
  kRunning,
  kCreating,
  kDeleting,
};

// A machine that the cloud lists and that counts: one that is listed again, or whose node another machine
// has, is left out. See SeeFleet() in core/loop.
struct FleetMachine {
  std::string id;  // the provider id of its node; unique
  MachineState state = MachineState::kUnknown;
  std::optional<MachineFault> fault;
  std::optional<FleetNode> node;
};

// The part of a CloudGroup by which its machines are judged. It knows no slots and no cluster.
struct FleetGroup {
  std::string name;
  int64_t min_nodes = 0;
  int64_t target = 0;  // nodes that the cloud is to hold
  // Its options are known. If not, it is left as it is: nothing of it is deleted.
  bool readable = true;
  // Removals of ours are under way in it, which may have lowered its target already.
  bool shrinks = false;
  std::optional<int64_t> provision_ms;
  std::optional<int64_t> startup_ms;
  // The devices that the cloud states for new nodes, as in FleetNode.devices. Empty: it states none.
  std::vector<uint64_t> template_devices;
  std::vector<FleetMachine> machines;
};

// The present state of all groups and nodes.
struct FleetObservation {
  std::vector<FleetGroup> groups;      // names are unique
  std::vector<FleetNode> other_nodes;  // of no machine that is listed
  // The first one of this client. Its cloud provider may call machines by other ids than before.
  bool first = false;
};

// How a request for nodes ended.
struct IncreaseOutcome {
  enum class Result {
    kGranted,
    kRefused,  // somebody else changed the target meanwhile: nobody's fault
    kFailed,
  };
  std::string group;
  Result result = Result::kGranted;
  int64_t from = 0;   // the target before
  int64_t nodes = 0;  // how many more were asked for
  std::optional<int64_t> provision_ms;
  std::string error;             // of kFailed
  std::optional<int64_t> at_ms;  // when it was asked for; nullopt: just now
};

// A node that we have removed, with its machine.
struct RemovalOutcome {
  std::string group;
  std::string machine;
};

// Nodes that the cloud had not begun to make and that we have taken back, since others come in their place.
struct TakenBackOutcome {
  std::string group;
  int64_t nodes = 0;
};

// How the actions since the last look ended.
struct FleetOutcomes {
  std::vector<IncreaseOutcome> increases;
  // Machines without a node that the cloud deletes, or may delete: it did not say that it does not.
  std::vector<std::string> given_up;
  std::vector<RemovalOutcome> removals;
  bool tainting_failed = false;
  std::vector<TakenBackOutcome> taken_back;
};

// The result of a look for one group. Positions are those of its machines.
struct FleetGroupView {
  std::string name;
  std::vector<int32_t> started;      // with a node that pods may go to, or that has had its time
  std::vector<int32_t> not_started;  // with a node that has registered a short time ago and is not ready yet
  std::vector<int32_t> lacking;      // with a node without all devices of the group
  // Nodes on their way: those of `not_started` that do not leave, and machines without a node, or without a
  // machine yet, which have not had their time.
  int64_t starting = 0;
  int64_t coming = 0;
  std::vector<int32_t> failed;  // cannot be created
  std::vector<int32_t> late;    // did not register in time, and never had a node
  int64_t lost = 0;             // had a node, which has been gone for longer than that
  int64_t not_begun = 0;        // nodes that the cloud has not begun to make in time
  int64_t unbegun = 0;          // of `coming`, those that it has not begun to make and has time for
  int64_t live = 0;             // machines that are not being deleted
  // Machines of `failed` and `late` to delete now, and by how many nodes to lower the target.
  std::vector<int32_t> delete_failed;
  std::vector<int32_t> delete_late;
  int64_t take_back = 0;
  std::optional<BackOff> back_off;  // while it lasts
  std::string held;                 // the same in words
  // No node of it is removed until then; nullopt: no delay keeps them.
  std::optional<int64_t> cools_down_until_ms;
};

// A group that has failed to grow, and backs off.
struct FleetFailure {
  std::string group;
  BackOff back_off;
};

// Machines of a group of which was found out in this look that they cannot be created.
struct FailedCreations {
  std::string group;
  BackOffReason reason = BackOffReason::kCreationFailed;
  int64_t machines = 0;
};

// The answer: the state of the groups, and which of them failed.
struct FleetView {
  // The views of all groups of the observation, in its order; without an observation those of the groups of
  // the outcomes, by name, with their back-off only.
  std::vector<FleetGroupView> groups;
  std::vector<int32_t> other_not_started;  // positions in other_nodes
  std::string unhealthy;                   // why no group may grow; empty: they may
  bool cools_down = false;                 // no node of any group is removed for now
  bool backs_off = false;                  // some group does, whether it is listed or not
  std::vector<FleetFailure> failures;      // in the order in which they were noticed
  std::vector<FailedCreations> failed_creations;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_FLEET_H_
