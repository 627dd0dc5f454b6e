// Makes the question to consolidation about a cluster whose groups and drain rules are known.
#ifndef LOADLINE_CORE_REPLACE_CONSOLIDATION_QUESTION_H_
#define LOADLINE_CORE_REPLACE_CONSOLIDATION_QUESTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/node_group.h"
#include "core/consolidate/consolidation.h"
#include "core/drain/disturbance.h"
#include "core/drain/drain_question.h"

namespace loadline {

// A node that may not go, and why: as of drains.
struct FixedNode {
  Slot slot = Slot{-1};
  NodeReason reason{};
  std::optional<PodRef> pod;  // the one that keeps it there
  PodReason pod_reason = PodReason::kNone;
  BudgetRefusal budget = BudgetRefusal::kNone;
};

// The question of a loop to core/consolidate.
struct ConsolidationQuestion {
  ConsolidationProblem problem;
  std::vector<FixedNode> fixed;  // in the order of slots
};

// Prepares a question. A node may go under the rules of drains, but for utilization, which does not matter:
// what its pods are worth decides. Nodes that have not started or are not ready, whose group has all of its
// nodes or none, or is sized by utilization, stay; so do nodes with pods that run to completion first, or
// whose budget lets none go now. `drain` and `groups` outlive the question: groups of nodes, placeholders and
// time are those of `drain`. A group that is blocked gets no new nodes. Cost: O(nodes + pods).
ConsolidationQuestion PrepareConsolidation(const DrainProblem& drain, const DrainOptions& options,
                                           NodeGroupSpan groups, const DisturbancePrices& prices);

// For moves that are carried out: load that has come lately is expected to go soon. See
// ConsolidationNode::age_hours. Cost: O(nodes).
void SetAges(ConsolidationProblem* problem);

}  // namespace loadline

#endif  // LOADLINE_CORE_REPLACE_CONSOLIDATION_QUESTION_H_
