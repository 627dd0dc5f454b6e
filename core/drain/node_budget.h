// Limits on the nodes of a group that are removed at once, by the reason of the removal.
#ifndef LOADLINE_CORE_DRAIN_NODE_BUDGET_H_
#define LOADLINE_CORE_DRAIN_NODE_BUDGET_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/time_window.h"
#include "core/cluster/node_group.h"

namespace loadline {

// The reasons for a removal that budgets distinguish.
enum class RemovalReason {
  kEmpty,          // no pod has to move
  kUnderutilized,  // its pods fit elsewhere
  kReplaced,       // a move brings cheaper nodes in its place, or makes do without it
};

// A limit on the nodes of a group that are removed at once, optionally within windows of time.
struct NodeBudget {
  // By name, each for itself, or all of these together; none: all groups.
  std::vector<std::string> groups;
  bool together = false;
  // None: all.
  std::vector<RemovalReason> reasons;
  // Nodes, or with `percent` so much of those that are there, rounded up. >= 0, and <= 100.
  int64_t nodes = 0;
  bool percent = false;
  // When it holds.
  TimeWindows windows;
  friend bool operator==(const NodeBudget&, const NodeBudget&) = default;
};

// Counts the removals that may still start under all budgets that apply at a time.
class NodeAllowance {
 public:
  // `nodes`: those that are there, by group, with those that go. Cost: O(budgets * groups); of a budget with
  // names O(names).
  NodeAllowance(std::span<const NodeBudget> budgets, NodeGroupSpan groups,
                StrongSpan<GroupIndex, const int64_t> nodes, int64_t now_s);

  // INT64_MAX: no budget holds, as for nodes in no group. 0 also where more go than budgets allow.
  int64_t Left(std::optional<GroupIndex> group, RemovalReason reason) const;
  // Returns whether the removals of nodes may begin together.
  bool Allows(std::optional<GroupIndex> group, std::span<const RemovalReason> reasons) const;
  // Counts a node that is being removed, or begins to be.
  void Take(std::optional<GroupIndex> group, RemovalReason reason);

 private:
  struct Rule {
    std::vector<RemovalReason> reasons;
    int64_t left = 0;
    bool IsFor(RemovalReason reason) const;
  };

  // `groups`: those that the budget holds for, each once.
  void AddRules(const NodeBudget& budget, const std::vector<GroupIndex>& groups,
                StrongSpan<GroupIndex, const int64_t> nodes);

  std::vector<Rule> rules_;
  StrongVector<GroupIndex, std::vector<size_t>> rules_of_;  // positions in rules_
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_NODE_BUDGET_H_
