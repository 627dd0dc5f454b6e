// Carries out what the loop has decided: orders machines, drains nodes, and deletes them.
#ifndef LOADLINE_CORE_SIM_ACTUATION_H_
#define LOADLINE_CORE_SIM_ACTUATION_H_

#include <cstdint>
#include <vector>

#include "core/sim/cloud.h"
#include "core/sim/world.h"

namespace loadline {

// Is told of what the loop under test does, before it happens.
class ActObserver {
 public:
  virtual ~ActObserver() = default;
  virtual void Grows(int32_t group, int64_t machines) = 0;
  virtual void StartsToGo(int32_t node, bool empty) = 0;
  virtual void GivesBack(int32_t node) = 0;
  // `late`: as one that did not become a node in time; else because its node goes.
  virtual void Deletes(int32_t machine, bool late) = 0;
};

// A node that goes: tainted, its pods evicted, then deleted at the cloud. It looks at the pods as they are,
// as a client of the API server does. Where pods stay for two minutes, or the cloud does not take the
// deletion, the node is given back; never once the cloud has.
class Actuation {
 public:
  struct EvictedPod {
    int32_t pod;
    int64_t at_s;
  };
  // What has happened since the last loop.
  struct Progress {
    std::vector<int32_t> started;  // nodes
    std::vector<int32_t> failed;
    std::vector<EvictedPod> evicted;
    bool empty() const { return started.empty() && failed.empty() && evicted.empty(); }
  };

  // All outlive it.
  Actuation(World* world, Cloud* cloud, ActObserver* observer);

  CloudAnswer Grow(int32_t group, int64_t machines);
  CloudAnswer DeleteLate(int32_t machine);
  // `pods`: how many are to be evicted.
  void Start(int32_t node, int64_t pods);
  // Upon kActuate.
  void Step(int32_t node);

  // Nodes go.
  bool busy() const { return !going_.empty(); }
  bool HasProgress() const { return !progress_.empty(); }
  Progress TakeProgress();

 private:
  struct Going {
    int32_t node = 0;
    int64_t since_ms = 0;
    int64_t planned_pods = 0;
    int64_t refused_deletions = 0;
    bool looked = false;
    bool acknowledged = false;
  };
  Going* Find(int32_t node);
  void GiveBack(Going* going);
  void DeleteMachine(Going* going);

  World& world_;
  Cloud& cloud_;
  ActObserver& observer_;
  std::vector<Going> going_;
  Progress progress_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_ACTUATION_H_
