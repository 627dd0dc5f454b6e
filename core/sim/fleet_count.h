// What machines without nodes mean: on their way, late, or lost. And which groups do not grow for now.
#ifndef LOADLINE_CORE_SIM_FLEET_COUNT_H_
#define LOADLINE_CORE_SIM_FLEET_COUNT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/sim/cloud.h"
#include "core/sim/observed_cluster.h"

namespace loadline {

// One group, as the loop counts it.
struct GroupFleet {
  int64_t registered = 0;     // nodes that the loop sees
  int64_t on_the_way = 0;     // machines that have had no node yet, and are not late
  int64_t lost = 0;           // machines that had a node, which the loop no longer sees
  std::vector<int32_t> late;  // machines
};

// Remembers which machines had a node: one that had is never late, whatever becomes of its node. A group
// whose machines cannot be had, or are late, is left alone for 5 minutes, twice as long each time up to 30,
// and as at first when 3 hours have passed.
class FleetCount {
 public:
  explicit FleetCount(const Scenario& scenario);

  GroupFleet Count(int32_t group, const World& world, const Cloud& cloud, const ObservedCluster& seen);
  // When the next machine on its way is late, or the next group may grow again; milliseconds. Of the groups
  // that were counted since the last call.
  std::optional<int64_t> TakeNextTime();

  void BackOff(int32_t group, int64_t now_ms);
  bool BacksOff(int32_t group, int64_t now_ms) const {
    return now_ms < groups_[static_cast<size_t>(group)].until_ms;
  }

 private:
  struct Group {
    int64_t until_ms = 0;
    int64_t pause_ms = 0;
    int64_t failed_ms = 0;
  };
  void NoteTime(int64_t at_ms);

  const int64_t provision_ms_;
  std::vector<Group> groups_;
  std::vector<bool> had_node_;  // by machine
  std::optional<int64_t> next_ms_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_FLEET_COUNT_H_
