// Carries out what the loop has decided: orders machines, drains nodes, and deletes them.
#ifndef LOADLINE_CORE_SIM_ACTUATION_H_
#define LOADLINE_CORE_SIM_ACTUATION_H_

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "core/removal/removal.h"
#include "core/removal/removal_rules.h"
#include "core/sim/cloud.h"
#include "core/sim/world.h"

namespace loadline {

// The number of nodes that a group is asked to grow by.
struct SimGrowth {
  GroupIndex group{};
  int64_t machines = 0;
  int64_t for_slack = 0;  // so many of them for no pod
  int64_t for_moves = 0;  // and so many for pods of nodes that are replaced
  // The workloads whose waiting pods the others are for, ascending.
  std::vector<SimWorkloadIndex> workloads;
};

// Hears of the actions of the loop under test, before each happens.
class ActObserver {
 public:
  virtual ~ActObserver() = default;
  virtual void Grows(const SimGrowth& growth) = 0;
  // How that ended.
  virtual void Grew(GroupIndex group, CloudAnswer answer) = 0;
  // `of_move`: it is replaced, or was bought for that in vain.
  virtual void StartsToGo(SimNodeIndex node, bool empty, bool of_move) = 0;
  virtual void GivesBack(SimNodeIndex node) = 0;
  // Nobody continues the removal of the node, which keeps its taint and notes for now.
  virtual void GivesUp(SimNodeIndex node) = 0;
  // `late`: the machine did not become a node in time, or cannot; else its node is being removed.
  virtual void Deletes(SimMachineIndex machine, bool late) = 0;
  // Another process leads, which knows what was kept, and what nodes carry.
  virtual void LeaderChanges() = 0;
};

// Nodes that go: tainted, then by the steps of core/removal, which act on clusters too. It looks at nodes and
// pods as they are, as a client of the API server does.
class Actuation {
 public:
  struct EvictedPod {
    SimPodIndex pod;
    int64_t at_ms;
  };
  // The events since the last loop.
  struct Progress {
    std::vector<SimNodeIndex> started;
    std::vector<SimNodeIndex> failed;
    std::vector<SimNodeIndex> removed;  // that the cloud deletes
    std::vector<EvictedPod> evicted;
    bool empty() const { return started.empty() && failed.empty() && removed.empty() && evicted.empty(); }
  };

  // All outlive it.
  Actuation(World* world, Cloud* cloud, ActObserver* observer);

  CloudAnswer Grow(const SimGrowth& growth);
  CloudAnswer DeleteLate(SimMachineIndex machine);
  // `pods`: those that are to be evicted. False: it could not be tainted, and stays.
  bool Start(SimNodeIndex node, std::vector<SimPodIndex> pods, bool of_move);
  // The removal of a node ends without its going.
  void GiveBack(SimNodeIndex node);
  // Takes the taint off a node whose removal somebody else has begun, if the API server does.
  void Release(SimNodeIndex node);
  // Upon kActuate.
  void Step(SimNodeIndex node);
  // The process has ended: all that it was about is forgotten. The clock of the next one is ahead by so much.
  void Forget(int64_t clock_ms);

  // Nodes go, and have not been taken by the cloud yet.
  const std::vector<SimNodeIndex>& under_way() const { return under_way_; }
  bool UnderWay(SimNodeIndex node) const { return absl::c_linear_search(under_way_, node); }
  // The cloud has said to this process that it deletes it.
  bool Acknowledged(SimNodeIndex node) const { return acknowledged_.contains(node); }
  bool HasProgress() const { return !progress_.empty(); }
  Progress TakeProgress();

 private:
  struct Going {
    SimNodeIndex node{};
    std::vector<SimPodIndex> planned;  // sorted
    Removal removal;
    int64_t next_ms = 0;  // when it is looked at again, and at what
    bool look_at_node = false;
    bool look_at_pods = false;
  };
  Going* Find(SimNodeIndex node);
  // Adds what is to be looked at.
  void Look(const Going& going, RemovalFacts* seen) const;
  // Does what was ordered, and tells what became of it.
  RemovalFacts CarryOut(const RemovalOrders& orders, SimNodeIndex node);
  // Takes steps until something is to be waited for.
  void Advance(Going* going, RemovalFacts seen);
  void End(SimNodeIndex node);
  void Finish(SimNodeIndex node, const RemovalEnd& end);
  // Its removal has failed; the mark stays.
  void Fail(SimNodeIndex node);

  World& world_;
  Cloud& cloud_;
  ActObserver& observer_;
  const RemovalRules rules_;
  std::vector<Going> going_;
  std::vector<SimNodeIndex> under_way_;  // the nodes of going_
  absl::flat_hash_set<SimNodeIndex> acknowledged_;
  Progress progress_;
  int64_t clock_ms_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_ACTUATION_H_
