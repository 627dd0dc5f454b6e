// What the loop under test makes of the machines of all groups: it asks LookAtFleet(), as the autoscaler
// does.
#ifndef LOADLINE_CORE_SIM_FLEET_LOOK_H_
#define LOADLINE_CORE_SIM_FLEET_LOOK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/fleet/fleet.h"
#include "core/fleet/fleet_state.h"
#include "core/sim/cloud.h"
#include "core/sim/observed_cluster.h"
#include "core/sim/world.h"

namespace loadline {

// Tells what cloud and cluster show and how actions ended, and keeps the state in between. Times are in
// milliseconds since 1970, by the clock of the loop.
class FleetLook {
 public:
  // All outlive it.
  FleetLook(const World* world, const Cloud* cloud, const ObservedCluster* seen);

  // Has the cloud list its machines. False: nothing has changed, or it does not answer. Cost: O(machines)
  // where something has.
  bool ListMachines();
  // It has answered the last time.
  bool listed() const { return listed_now_; }

  // `leaving`: nodes that the cloud was asked to delete; `shrinking`: groups of which nodes go. Both by
  // number. Cost: that of LookAtFleet().
  const FleetView& Look(const std::vector<bool>& leaving, const std::vector<bool>& shrinking, int64_t now_ms);
  // The machine at a position of a group of the view, and its node; -1: none.
  int32_t MachineAt(int32_t group, int32_t position) const {
    return machines_[static_cast<size_t>(group)][static_cast<size_t>(position)];
  }
  int32_t NodeAt(int32_t group, int32_t position) const {
    return world_.machine(MachineAt(group, position)).node;
  }
  // A node of no machine that is listed.
  int32_t OtherNodeAt(int32_t position) const { return other_nodes_[static_cast<size_t>(position)]; }
  // What the cloud listed.
  bool Lists(int32_t machine) const;
  int64_t target(int32_t group) const { return told_.groups[static_cast<size_t>(group)].target; }

  void NoteIncrease(int32_t group, int64_t nodes, CloudAnswer answer);
  // `certain`: the cloud has said that it deletes it.
  void NoteGivenUp(int32_t machine, bool certain);
  void NoteRemoval(int32_t machine);
  void NoteTaintingFailed() { outcomes_.tainting_failed = true; }
  // Tells how actions ended, where there were any; what the last look told of back-offs holds from now on.
  void Settle(int64_t now_ms);
  bool cools_down() const { return view_.cools_down; }

  // The last look, or what was told since, has changed what is remembered.
  bool changed() const { return changed_; }
  // When a look may tell something else although nothing changes; nullopt: never.
  std::optional<int64_t> NextTimeMs(int64_t now_ms) const;

  // What a new process goes on from: bytes of Bytes(), or nothing.
  std::string Bytes() const;
  void Restart(absl::string_view bytes);

 private:
  void FillNodes(const std::vector<bool>& leaving, const std::vector<bool>& shrinking);
  FleetNode NodeOf(int32_t node, const std::vector<bool>& leaving) const;

  const World& world_;
  const Cloud& cloud_;
  const ObservedCluster& seen_;
  FleetOptions options_;
  FleetState state_;
  FleetObservation told_;
  std::vector<std::vector<int32_t>> machines_;  // by group, as told
  std::vector<int32_t> other_nodes_;
  std::vector<bool> listed_;  // by machine
  FleetOutcomes outcomes_;
  FleetView view_;
  int64_t version_ = -1;
  bool changed_ = true;
  bool listed_now_ = true;
  RandomStream list_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_FLEET_LOOK_H_
