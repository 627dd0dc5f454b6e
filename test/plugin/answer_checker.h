// The invariants of one answer of PlanLoop, by a count of our own from the simulated cluster.
#ifndef LOADLINE_TEST_PLUGIN_ANSWER_CHECKER_H_
#define LOADLINE_TEST_PLUGIN_ANSWER_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "loadline/v1/loop.pb.h"
#include "test/plugin/simulated_cluster.h"

namespace loadline {

// Limits of a question; 0: none.
struct LoopLimits {
  int32_t max_new_nodes = 0;
  int32_t max_nodes_total = 0;
  // Nodes that go at once, and how many of them with pods.
  int32_t nodes_at_once = 10;
  int32_t drains_at_once = 5;
};

// Failures are those of the test that runs.
class AnswerChecker {
 public:
  // Keeps references to its arguments.
  AnswerChecker(const SimulatedCluster& cluster, const LoopLimits& limits,
                const v1::PlanLoopResponse& response);

  void Check();

 private:
  // The room that a node has left, and the pods that it runs.
  struct Room {
    size_t group;
    SimulatedSize free;
    int64_t slots;
    std::map<size_t, int64_t> pods = {};  // by workload
  };

  Room RoomOn(const SimulatedNode& node) const;
  Room NewRoom(size_t group) const;
  // Returns the room after all that was put there. nullptr: there is no such node.
  Room* RoomAt(int32_t slot);
  // Returns whether the pod fits there; takes its room if it does.
  bool Put(size_t workload, Room* room) const;
  void ExpectRoom(size_t workload, int64_t count, const std::string& where, Room* room) const;
  bool FindRoom(const std::vector<size_t>& workloads, size_t next, std::vector<Room>* rooms,
                int64_t* tries) const;

  size_t WorkloadOf(const v1::PodRun& run) const;
  size_t GroupNamed(const std::string& name) const;
  int64_t Leaving() const;
  int64_t NewNodes() const;
  int64_t Grown(size_t group) const;
  bool MayGrowFurther(size_t group) const;

  void CheckPods();
  void CheckUpcoming(size_t group, std::vector<size_t>* workloads) const;
  void CheckLeftOver();
  void CheckGrowth() const;
  void CheckRemovals();
  void CheckMoves();
  void CheckMinimum() const;
  void CheckBudgets() const;
  void CheckParallelism() const;
  void CheckSlack() const;
  void CheckTexts() const;

  const SimulatedCluster& cluster_;
  const LoopLimits& limits_;
  const v1::PlanLoopResponse& response_;
  std::vector<size_t> workload_of_;  // by position of pods in the answer
  std::vector<int64_t> wanted_;      // as many of them
  std::map<int32_t, Room> rooms_;    // by slot: nodes that take pods which wait or move
};

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_ANSWER_CHECKER_H_
