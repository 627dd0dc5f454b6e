// Judges whether the nodes by which a group has grown take the pods that it has grown for.
#ifndef LOADLINE_CORE_GROW_PURCHASE_JUDGE_H_
#define LOADLINE_CORE_GROW_PURCHASE_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/grow/loop_problem.h"
#include "core/observe/back_off.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// The nodes of groups, each group's sorted by age when it is first asked for.
class GroupedNodes {
 public:
  // Cost: O(nodes). The arguments outlive the object.
  GroupedNodes(const DrainProblem& drain, size_t groups, const StartupTaints& startup_taints);

  // Returns the node of the group with this KeyOfNode().
  std::optional<Slot> Find(GroupIndex group, uint64_t key);
  // Returns the nodes of the group that have joined since then and are in a state that lasts, the newest
  // first, at most `most`.
  std::vector<Slot> JoinedSince(GroupIndex group, int64_t asked_ms, size_t most);

 private:
  // A node, and the negative time of its creation, in seconds.
  using Aged = std::pair<int64_t, Slot>;
  using NodeByKey = absl::flat_hash_map<uint64_t, Slot>;
  std::vector<Aged> Newest(GroupIndex group) const;
  // Returns whether the next node will be like this one: it is healthy, or keeps its startup taint. A node
  // that is not ready may be broken since.
  bool WillStayAsItIs(Slot slot) const;

  const ClusterState& cluster_;
  const std::vector<Slot>& not_started_;
  const StartupTaints& startup_taints_;
  StrongVector<GroupIndex, std::vector<Slot>> nodes_;
  StrongVector<GroupIndex, std::optional<std::vector<Aged>>> newest_;
  StrongVector<GroupIndex, std::optional<NodeByKey>> by_key_;
};

// Notes that such a node came and did not help, and until when the group does not grow again. Fills in all of
// the purchase. LoopProblem::model_keys are filled in.
void NoteVain(const LoopProblem& problem, const BackOffOptions& back_off, int64_t now_ms, GroupIndex group,
              Slot node, Purchase* purchase);

// Judges purchases of groups and pods of `problem`, both by position. The arguments of the constructor
// outlive the object; LoopProblem::model_keys are filled in. Not thread-safe.
class PurchaseJudge {
 public:
  PurchaseJudge(const BackOffOptions& back_off, int64_t now_ms, const LoopProblem& problem,
                Snapshot* snapshot, WorkBudget* budget)
      : back_off_(back_off),
        now_ms_(now_ms),
        problem_(problem),
        snapshot_(*snapshot),
        budget_(*budget),
        nodes_(problem.drain, problem.groups.size(), problem.startup_taints) {}

  // Judges the nodes that have come, and notes a failure where all of them refuse the pods. Returns whether
  // the purchase has helped, and is to be forgotten.
  bool HasHelped(GroupIndex group, size_t pods, Purchase* purchase);

  // Ends the period of a purchase where the model or the node has changed. A node that is gone is no change:
  // it was removed since it did not help, and the model is again as it was before the node came. Returns the
  // node.
  std::optional<Slot> Compare(GroupIndex group, Purchase* purchase);

  // Returns the newest nodes that have come since the group was asked to grow, at most eight.
  std::vector<Slot> NodesOf(GroupIndex group, const Purchase& purchase);

  // Returns why the node refuses the pods; empty if it does not, or if that cannot be judged.
  std::string ReasonOf(size_t pods, Slot node);

 private:
  enum class Answer { kTakes, kRefuses, kUnknown };

  // Returns whether the node refuses the pods both as it is and without pods that do not belong to it, and
  // why.
  Answer Ask(size_t pods, Slot slot, std::string* why);
  Answer AskAsItIs(size_t pods, NodeIndex node, std::string* why);

  const BackOffOptions& back_off_;
  int64_t now_ms_;
  const LoopProblem& problem_;
  Snapshot& snapshot_;
  WorkBudget& budget_;
  GroupedNodes nodes_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_PURCHASE_JUDGE_H_
