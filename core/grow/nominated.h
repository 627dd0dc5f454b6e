// Pods for which the scheduler makes room on a node, by preempting others, need no new node: they wait for
// that one, and it keeps the room for them.
#ifndef LOADLINE_CORE_GROW_NOMINATED_H_
#define LOADLINE_CORE_GROW_NOMINATED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"

namespace loadline {

struct LoopProblem;
struct WaitingPodsPlan;

// Pods that are nominated to a node.
struct Nomination {
  int32_t pods = 0;  // position in LoopProblem::pending
  Slot node{-1};     // one that is not there says nothing
  int64_t count = 0;
};

// A node that keeps, or kept, room for pods that are nominated to it.
struct ReservedNode {
  std::string node;
  std::string uid;
  int64_t since_s = 0;
  friend bool operator==(const ReservedNode&, const ReservedNode&) = default;
};

// A node keeps room for a nominated pod for kLongestHoldS, and again only kHoldAgainAfterS after the first
// time. So somebody who creates pods that preempt others, or forges nominations, keeps no node for ever.
// Chosen: ten minutes of each hour.
inline constexpr int64_t kLongestHoldS = 600;
inline constexpr int64_t kHoldAgainAfterS = 3'600;
// A pod that takes longer to end, or is overdue by more, makes room for no other pod. Chosen.
inline constexpr int64_t kLongestPreemptionS = 300;
inline constexpr int64_t kOverduePreemptionS = 60;

// Puts nominated pods where they are to run: onto nodes of the snapshot, whose pods of lower priority that
// are about to end are taken off before, and into `expected`; they no longer count as waiting. Other
// pods that wait find no room there. Only those stay nominated that fit then, on nodes that may keep room;
// all others wait as any pod. Sets `reserved_nodes` and `next_reserved_nodes`. The caller has a Fork()
// open; pods that depend on others are placed in the order of the nominations. Deterministic. Cost: a trial
// of each nomination.
void PlaceNominated(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget,
                    std::vector<PendingPods>* waiting, WaitingPodsPlan* plan);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_NOMINATED_H_
