// The report of the loop's client about cloud and cluster, as they are.
#ifndef LOADLINE_CORE_SIM_LOOP_VIEW_H_
#define LOADLINE_CORE_SIM_LOOP_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/observe/loop_memory.h"
#include "core/observe/loop_observation.h"
#include "core/sim/actuation.h"
#include "core/sim/cloud.h"
#include "core/sim/observed_cluster.h"
#include "core/sim/world.h"

namespace loadline {

// Returns the options that the autoscaler has by default.
ObserveOptions ObserveOptionsOf(const SimSettings& settings);

// Lists machines, and finds their nodes among those that the loop sees.
class LoopView {
 public:
  // All outlive it.
  LoopView(const World* world, const Cloud* cloud, const ObservedCluster* seen, const Actuation* actuation);

  // Has the cloud list its machines. False: nothing has changed, or it does not answer. Cost: O(machines)
  // where something has.
  bool ListMachines();
  // It has answered the last time.
  bool listed() const { return listed_now_; }
  // A process that lists for the first time.
  void Restart();

  // Observes the machines that were listed and the nodes that are shown. Cost: O(machines + nodes).
  const LoopObservation& Observe();
  const LoopObservation& observation() const { return reported_; }
  // The loop has answered to it.
  void Answered() { reported_.first = false; }
  // The machine at a position of CloudGroup::machines.
  SimMachineIndex MachineAt(GroupIndex group, int32_t position) const {
    return machines_[group][static_cast<size_t>(position)];
  }
  static std::string MachineId(SimMachineIndex machine);

 private:
  // Takes note of whether the cloud tells of a group now. False: as before.
  bool NoteUnread(GroupIndex group);
  // Notes which nodes the cloud deletes in a group that cannot be read; the rest of its last report stays.
  void NoteDeletions(GroupIndex group);
  void List(GroupIndex group);

  const World& world_;
  const Cloud& cloud_;
  const ObservedCluster& seen_;
  const Actuation& actuation_;
  LoopObservation reported_;
  StrongVector<GroupIndex, std::vector<SimMachineIndex>> machines_;  // as reported
  int64_t version_ = -1;
  bool listed_now_ = true;
  RandomStream list_;
  // For each hour: whether the cloud stops to tell of it.
  StrongVector<GroupIndex, std::vector<bool>> unread_hours_;
};

// Returns the time at which a look at the same report may find out something else although nothing changes,
// by the clock of the loop; nullopt: never.
std::optional<int64_t> NextLookMs(const LoopMemory& memory, const LoopObservation& reported,
                                  const ClusterState& cluster, const FleetOptions& options, int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_LOOP_VIEW_H_
