// Growth that did not help: nodes have come for pods or for slack, and do not take them.
#ifndef LOADLINE_CORE_GROW_VAIN_GROWTH_H_
#define LOADLINE_CORE_GROW_VAIN_GROWTH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "core/observe/back_off.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// A group that does not grow for some of the pods that wait.
struct VainGrowth {
  GroupIndex group{};
  std::optional<size_t> pods;  // position in LoopProblem::pending; nullopt: slack
  Slot node{-1};               // the node that came and did not help; -1: it is gone
  int64_t until_ms = 0;
  std::string reason;  // why it refuses them; empty beyond kMostVainTexts, or where it is gone
};

// A label that new nodes of a group carry in plans, so that pods can be kept off them.
inline constexpr absl::string_view kPlannedGroup = "loadline.dev/planned-node-group";

// The number that is described one by one. Chosen to leave room for other warnings: one has at most 1 KiB.
inline constexpr size_t kMostVainTexts = 20;

// Returns the first ones as sentences for people, and how many there are beyond them.
std::vector<std::string> TextsOf(std::span<const VainGrowth> vain, const LoopProblem& problem,
                                 int64_t now_ms);

// Judges the nodes by which groups have grown for pods that still wait. A group does not grow again for pods
// that its new nodes refuse, until the model of its new nodes changes, or the node that refused them does, or
// a period is over. The period doubles with each further time, from back_off.initial_ms to kMostVainMs.
// `problem` is changed so that these pods do not fit the group's new nodes.
//
// A node refuses a pod where it does not fit, neither on the node as it is nor without the pods that do not
// belong to it: growth whose room other pods have taken was not in vain. So does a node that keeps a
// startup taint for longer than a start may take, until it starts. Taints that come and go, such as that of a
// node that is not needed, are no change of a node. Pods that differ only in what filters do not read, such
// as those of two Jobs, are the same pods.
//
// Growth for slack is judged by PlanLoop(), which knows where slack has its place: of it, LoopProblem gets
// `slack_growth`.
//
// Returns what is blocked, by group, slack first, and pods. Fills in LoopProblem::pending_keys and
// model_keys. Errors: none. It takes at most a tenth of the work that is left; judgements for which that does
// not suffice are left to the next loop. Cost: O(groups) where no growth is remembered, else O(nodes + pods +
// purchases + judgements * pods of a node), with at most eight judgements for a purchase whose nodes have
// come, and kMostVainTexts for reasons.
std::vector<VainGrowth> HoldVainGrowth(const BackOffOptions& back_off, int64_t now_ms, Snapshot* snapshot,
                                       WorkBudget* budget, LoopProblem* problem, LoopMemory* memory);

// Takes note of what groups grow by for which pods and for slack, and of nodes that came for slack. Where
// that is more than kMostPurchases, each namespace keeps an equal share, of the newest ones.
void NoteGrowth(const BackOffOptions& back_off, const LoopProblem& problem, const LoopPlan& plan,
                int64_t now_ms, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_VAIN_GROWTH_H_
