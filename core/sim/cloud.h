// A cloud with groups of machines, and what goes wrong with them.
#ifndef LOADLINE_CORE_SIM_CLOUD_H_
#define LOADLINE_CORE_SIM_CLOUD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/sim/random_stream.h"
#include "core/sim/world.h"

namespace loadline {

// How long the cloud may take from being asked to delete a machine to saying that it does.
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

  // Puts in what comes by itself, and the nodes of the start, which are there at once.
  void Start();

  // --- calls of the loop under test ---------------------------------------------------------------------

  CloudAnswer Grow(int32_t group, int64_t machines);
  // Its target sinks with it.
  CloudAnswer Delete(int32_t machine);
  // Machines that the group is to have.
  int64_t target(int32_t group) const { return targets_[static_cast<size_t>(group)]; }
  // Those that are not gone, in the order in which they were ordered.
  const std::vector<int32_t>& machines(int32_t group) const { return machines_[static_cast<size_t>(group)]; }
  // Counts up with each change that the loop would see.
  int64_t version() const { return version_; }

  // --- events -------------------------------------------------------------------------------------------

  void MachineUp(int32_t machine);
  void NodeReady(int32_t node);
  void MachineGone(int32_t machine);
  void SpotHour(int32_t machine);
  void SpotEnd(int32_t machine);
  void NodeFaultHour();
  void NodeBack(int32_t node);
  void PodsOfLostNode(int32_t node);
  void MachineFails(int32_t machine);
  void MachineTaken(int32_t machine);
  void NodeReturns(int32_t machine);
  void NodeFlaps(int32_t node);
  void HandHour();
  void HandMarkHour();
  void HandMarkEnds(int32_t subject);

  // What all machines have cost until now, and cost in an hour.
  double Usd() const;
  double UsdPerHour() const;

 private:
  bool Throttled();
  CloudAnswer Ordered(int32_t group, int64_t machines);
  void Deleted(int32_t machine);
  void Register(int32_t machine, int8_t startup_taint);
  void FailNode(int32_t node);
  int32_t Order(int32_t group);
  void Lose(int32_t machine);

  World& world_;
  RandomStream start_;
  RandomStream faults_;
  RandomStream spot_;
  RandomStream node_faults_;
  RandomStream hand_;
  RandomStream hand_mark_;
  RandomStream startup_;
  std::vector<int64_t> targets_;
  std::vector<std::vector<int32_t>> machines_;
  std::vector<int64_t> no_capacity_until_ms_;
  // Machine milliseconds of those that are gone, and the sum of the times of order of the others.
  std::vector<int64_t> gone_ms_;
  std::vector<int64_t> ordered_ms_;
  int64_t minute_ = -1;
  int64_t calls_ = 0;
  int64_t version_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_CLOUD_H_
