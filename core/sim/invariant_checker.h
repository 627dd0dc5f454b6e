// The invariants of a simulated cluster, whatever is planned. Shares no code with planners or filters.
#ifndef LOADLINE_CORE_SIM_INVARIANT_CHECKER_H_
#define LOADLINE_CORE_SIM_INVARIANT_CHECKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/sim/actuation.h"
#include "core/sim/cloud.h"
#include "core/sim/world.h"

namespace loadline {

// Looks at the world as it is, at every change and before everything that the loop under test does. Numbers
// are those of test/invariants.md:
//
//   C1   no group is asked to grow beyond its maximum, or by less than one node
//   C2   not more nodes are asked for at once than pods need one, where the loop sees the cluster as it is
//   C4   no group is asked to grow that has just failed to, nor any while too many nodes are not ready
//   C5   no group is asked to grow for the same pods soon after a node that came for them was ready and took
//        none of them although it has room, nor while such a node starts that has room for all that waits
//   D1   an eviction leaves as many ready pods as the budget wants, and none is of a pod with two budgets
//   D2   no group falls below its minimum, by its target or by its nodes
//   D3   no node is removed with a pod that must not move, or with one that was not evicted
//   D6   not more nodes are removed at once, not more of them with pods, and not more of a group, than may
//   D7   no node is removed that has not been there for as long as one must be unneeded, but in a move
//   D8   no node is removed while the API server is out of reach, nor as an empty one that has long had pods
//   D9   no machine is given up as late that has had a node, or has had less time than it may take
//   D10  no node is removed, and no machine deleted, twice; none is given back once the cloud has taken it
//   D11  no removal starts while groups grow or have just grown, or while too many nodes are not ready
//   D13  no group grows for a move while it grows for something else, has machines on their way, or loses a
//        node, nor while pods wait that its nodes would take, for 15 minutes; and not more nodes that are
//        replaced are drained at once than may
//   D14  no node is removed that an operator keeps by an annotation
//   F5   what the loop keeps of a node is the sum of its pods
//   G3   no node stays marked for deletion for long that nobody deletes
//   A7   no node has more on it than it offers, and no pod is bound to one that is to be deleted
//   E3   pods that would have a node do not wait for hours, and empty nodes do not stay, where there is no
//        fault
class InvariantChecker : public SimObserver, public ActObserver {
 public:
  // Both outlive it.
  InvariantChecker(const World* world, const Cloud* cloud);

  void PodChanged(SimPodIndex pod) override;
  void NodeChanged(SimNodeIndex node) override;
  void WorkloadChanged(SimWorkloadIndex) override {}
  void Grows(const SimGrowth& growth) override;
  void Grew(GroupIndex group, CloudAnswer answer) override;
  void StartsToGo(SimNodeIndex node, bool empty, bool of_move) override;
  void GivesBack(SimNodeIndex node) override;
  void GivesUp(SimNodeIndex node) override;
  void Deletes(SimMachineIndex machine, bool late) override;
  void LeaderChanges() override;
  // E3 and G3; once in an hour.
  void CheckProgress();
  // F5: checks what the loop counts on a node, where all news have reached it.
  void CheckSums(SimNodeIndex node, const CpuMemory& requested);

  // The first ones, each with its time.
  const std::vector<std::string>& violations() const { return violations_; }
  static constexpr size_t kMostViolations = 100;

 private:
  // The age below which a node may still be starting. Chosen.
  static constexpr int64_t kStartupMs = 900'000;

  struct PodNote {
    OptionalIndex<SimNodeIndex> on;
    bool ready = false;
    bool evicted = false;
  };
  struct NodeNote {
    int64_t cpu = 0;
    int64_t memory = 0;
    int64_t gpus = 0;
    int64_t pods = 0;
    int64_t to_move = 0;  // pods for which HasToMove()
    int64_t empty_since_ms = 0;
    int64_t tainted_since_ms = 0;  // while it is
    int64_t tries = 0;             // to remove it meanwhile
    bool tainted = false;
    bool started = false;  // it was ready once
    uint8_t marks = 0;
    int64_t marked_ms = 0;   // when its marks last changed
    int64_t offers_ms = -1;  // since when it is as it is now and pods may come; -1: they may not
  };
  struct GroupNote {
    int64_t failed_ms = -1;  // when it last failed to grow, as this process knows; -1: never
    int64_t full_ms = -1;    // when it last had its maximum of nodes; -1: never
    bool full = false;       // it had when it was last looked at
  };
  struct Going {
    SimNodeIndex node;
    bool drain;
    bool of_move = false;     // it is replaced
    bool abandoned = false;   // who let it go is gone
    int64_t deleted_ms = -1;  // when the cloud was asked
  };

  void Violation(absl::string_view invariant, const std::string& text);
  void Comes(SimPodIndex pod, SimNodeIndex node);
  void Leaves(SimPodIndex pod, SimNodeIndex node);
  bool HasToMove(SimPodIndex pod) const;
  void CheckEviction(SimPodIndex pod);
  void CheckMinimum(SimNodeIndex node);
  bool IsLeftBehind(const Going& going) const;
  bool IsUnderWay(const Going& going) const;
  void CheckParallelism();
  void CheckRefused(const SimGrowth& growth);
  void CheckGrowthForMoves(const SimGrowth& growth);
  CpuMemory FreeOn(SimNodeIndex node) const;
  bool HasRoomFor(SimWorkloadIndex workload, SimNodeIndex node) const;
  bool HasRoomForAll(SimNodeIndex node) const;
  bool SeesAll() const;
  bool RemembersAll() const;
  void CheckUnready(absl::string_view invariant, const std::string& what, int64_t youngest_ms);
  void CheckKnown(SimNodeIndex node, bool empty);
  void CheckMayMove(SimNodeIndex node);
  void CheckTaints();
  void CheckWaiting();
  void CheckEmptyNodes();
  void NoteWhetherFull(GroupIndex group);
  bool MaySpreadTo(SimWorkloadIndex workload, const std::string& zone) const;
  bool WouldTake(GroupIndex number, SimWorkloadIndex of) const;
  bool WouldHaveNode(SimWorkloadIndex number, int64_t since_ms) const;
  bool Waits(SimWorkloadIndex workload, int64_t since_ms) const;

  const World& world_;
  const Cloud& cloud_;
  const bool has_line_;  // a load line may refuse pods that have room
  StrongVector<SimPodIndex, PodNote> pods_;
  StrongVector<SimNodeIndex, NodeNote> nodes_;
  StrongVector<SimWorkloadIndex, int64_t> ready_;  // pods
  std::vector<Going> going_;
  // Machines whose deletion was asked for and may have been taken.
  absl::flat_hash_set<SimMachineIndex> deleted_;
  StrongVector<GroupIndex, GroupNote> groups_;
  std::vector<SimWorkloadIndex> grows_for_;  // SimGrowth::workloads of the last order
  absl::flat_hash_map<SimMachineIndex, std::vector<SimWorkloadIndex>> bought_for_;  // likewise
  int64_t granted_ms_ = -1;  // when the cloud last agreed that one grows
  int64_t grew_ms_ = -1;
  int64_t removed_ms_ = 0;  // when a node last went
  int64_t evicted_ms_ = 0;  // when a pod was last evicted
  int64_t no_pods_ms_ =
      -1;                  // when there was last not a single pod: nobody knows then whether pods were listed
  int64_t grown_now_ = 0;  // nodes asked for at grew_ms_
  std::vector<std::string> violations_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_INVARIANT_CHECKER_H_
