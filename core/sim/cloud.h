// A cloud with groups of machines, and its faults.
#ifndef LOADLINE_CORE_SIM_CLOUD_H_
#define LOADLINE_CORE_SIM_CLOUD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/sim/random_stream.h"
#include "core/sim/world.h"

namespace loadline {

// The time that the cloud may take from the call that deletes a machine until it reports the deletion.
// Chosen.
inline constexpr int64_t kDeletionPatienceMs = 300'000;

// How a call ended.
enum class CloudAnswer {
  kDone,
  kNoCapacity,  // none of the machines was ordered
  kThrottled,   // too many calls in this minute
  kFailed,      // for another reason, and nothing has changed
  kUnknown,     // the answer was lost, and nobody knows whether it was done
  kRefused,     // beyond the bounds of the group, or of a machine that is no longer there
};

// Machines cost from their order until they are gone. A deletion that was accepted is not taken back.
class Cloud {
 public:
  explicit Cloud(World* world);

  // Schedules the events that need no cause, and adds the nodes of the start, which are there at once.
  void Start();

  // --- calls of the loop under test ---------------------------------------------------------------------

  CloudAnswer Grow(GroupIndex group, int64_t machines);
  // Its target sinks with it.
  CloudAnswer Delete(SimMachineIndex machine);
  // Machines that the group is to have.
  int64_t target(GroupIndex group) const { return targets_[group]; }
  // Returns the machines that are not gone, in the order in which they were ordered.
  const std::vector<SimMachineIndex>& machines(GroupIndex group) const { return machines_[group]; }
  // Counts up with each change that the loop would see.
  int64_t version() const { return version_; }

  // --- events -------------------------------------------------------------------------------------------

  void MachineUp(SimMachineIndex machine);
  void NodeReady(SimNodeIndex node);
  void MachineGone(SimMachineIndex machine);
  void SpotHour(SimMachineIndex machine);
  void SpotEnd(SimMachineIndex machine);
  void NodeFaultHour();
  void NodeBack(SimNodeIndex node);
  void PodsOfLostNode(SimNodeIndex node);
  void MachineFails(SimMachineIndex machine);
  void MachineTaken(SimMachineIndex machine);
  void NodeReturns(SimMachineIndex machine);
  void NodeFlaps(SimNodeIndex node);
  void HandHour();
  void HandMarkHour();
  void HandMarkEnds(int32_t subject);

  // Returns the cost of all machines until now, and in an hour.
  double Usd() const;
  double UsdPerHour() const;

 private:
  bool Throttled();
  CloudAnswer Ordered(GroupIndex group, int64_t machines);
  void Deleted(SimMachineIndex machine);
  void Register(SimMachineIndex machine, int8_t startup_taint);
  void FailNode(SimNodeIndex node);
  SimMachineIndex Order(GroupIndex group);
  void Lose(SimMachineIndex machine);

  World& world_;
  RandomStream start_;
  RandomStream faults_;
  RandomStream spot_;
  RandomStream node_faults_;
  RandomStream hand_;
  RandomStream hand_mark_;
  RandomStream startup_;
  StrongVector<GroupIndex, int64_t> targets_;
  StrongVector<GroupIndex, std::vector<SimMachineIndex>> machines_;
  StrongVector<GroupIndex, int64_t> no_capacity_until_ms_;
  // Machine milliseconds of those that are gone, and the sum of the times of order of the others.
  StrongVector<GroupIndex, int64_t> gone_ms_;
  StrongVector<GroupIndex, int64_t> ordered_ms_;
  int64_t minute_ = -1;
  int64_t calls_ = 0;
  int64_t version_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_CLOUD_H_
