// The report to one loop about the cloud and about removals under way: as it is, without its meaning.
#ifndef LOADLINE_CORE_OBSERVE_LOOP_OBSERVATION_H_
#define LOADLINE_CORE_OBSERVE_LOOP_OBSERVATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/node_group.h"
#include "core/cluster/startup_taints.h"
#include "core/observe/fleet.h"

namespace loadline {

// A machine as the cloud lists it. One without an id, and one whose id was listed before, is none: the cloud
// has not begun to make it, or listed it twice.
struct CloudMachine {
  std::string id;
  MachineState state = MachineState::kUnknown;
  std::optional<MachineFault> fault;
  std::optional<Slot> node;  // of its provider id; nullopt: there is none
};

// A node group, as the provider reports it.
struct CloudGroup {
  std::string name;
  int64_t min_nodes = 0;
  int64_t max_nodes = 0;
  int64_t target = 0;   // nodes that the cloud is to hold
  bool atomic = false;  // it has all of its nodes or none
  // The part of it that the cloud does not state, so that it is left as it is. Empty: it states all.
  std::string problem;
  std::optional<int64_t> provision_ms;
  std::optional<int64_t> startup_ms;
  std::vector<uint64_t> template_devices;  // see FleetGroup
  std::vector<CloudMachine> machines;
};

// The notes on a node whose removal this program has begun.
struct NodeMark {
  Slot slot{-1};
  int64_t since_s = 0;  // since when it was not needed
  bool cordoned = false;
  int64_t deleting_s = 0;  // when the cloud was first asked to delete it; 0: not yet
  bool acknowledged = false;
};

// A removal that this process continues.
struct RemovalUnderWay {
  std::optional<Slot> slot;  // nullopt: the node is gone
  std::string group;
};

// The state of the cloud and of removals, as a client reports it.
struct LoopObservation {
  StrongVector<GroupIndex, CloudGroup> groups;
  std::vector<NodeMark> marks;  // each slot once
  std::vector<RemovalUnderWay> under_way;
  bool first = false;  // see FleetObservation
};

// How an action of an earlier answer ended.
struct ActionOutcome {
  enum class Result {
    kDone,
    kChanged,  // somebody else has changed the target: nobody's fault
    kFailed,   // nothing was done
    kUnknown,  // nobody knows
  };
  int64_t id = 0;
  Result result = Result::kDone;
  std::string error;
};

// The outcomes since the last loop.
struct LoopOutcomes {
  std::vector<ActionOutcome> actions;
  std::vector<RemovalOutcome> removals;
  std::vector<std::string> acknowledged;  // UIDs of nodes that the cloud has said it deletes
  bool tainting_failed = false;
  std::vector<std::string> soft_taints_tried;  // UIDs of nodes, written or not
};

// The options for all groups.
struct ObserveOptions {
  FleetOptions fleet;
  StartupTaints startup_taints;
  // Actions are carried out; else they are only reported.
  bool acts = true;
  bool grows = true;            // growth, and what becomes of machines, is decided here
  bool swaps = false;           // nodes that are not begun may be taken back for a cheaper mix
  int64_t max_new_nodes = 0;    // in one loop; 0: any number
  int64_t max_nodes_total = 0;  // of the cluster; 0: any number
  int64_t max_soft_taints = 0;  // that change in one loop; 0: none
};

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_LOOP_OBSERVATION_H_
