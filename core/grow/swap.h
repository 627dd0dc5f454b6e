// Nodes on their way that the provider has not begun to make are given up where a cheaper mix takes the same
// pods.
#ifndef LOADLINE_CORE_GROW_SWAP_H_
#define LOADLINE_CORE_GROW_SWAP_H_

#include "core/grow/loop_growth.h"
#include "core/grow/loop_plan.h"

namespace loadline {

// A mix is cheaper if it saves this share of the price of the nodes that it replaces, and this amount per
// hour. Chosen: prices that nearly agree are no reason to buy again.
inline constexpr double kLeastSavedShare = 0.05;
inline constexpr double kLeastSavedUsd = 0.001;

// Looks for a cheaper mix where pods have come that need new nodes: growth is planned again as if the nodes
// that are not begun had not been asked for. Those that this plan would not ask for again are given up if,
// with the others on their way, groups then grow by less for the same pods: what is given up and grown costs
// less, and no pod is left over that had a place. They are taken back then, and growth and rooms are those of
// the new plan; else nothing changes, but for the work.
//
// Only nodes that pods count on are given up, and only in groups that may grow and have no less than their
// minimum left. Nodes that growth has chosen with further pods in mind stay, see LookAhead: for the pods that
// wait now a smaller node always costs less, and the next pod would have growth ask for the large one again.
// Nothing is swapped where groups are ranked, or a plan was cut short. Call it where growth does not wait for
// further pods. A plan
// without new nodes gives up nothing, so that the same pods are never bought for twice in turn. Limits hold
// even if nothing is taken back: all that groups grow by fits beside what was asked for.
//
// Deterministic. Cost: at most twice that of GrowForPods(), and once more for each group with nodes that may
// be given up, within half of the budget that is left; nothing where no group has nodes that are not begun,
// or none grows.
void SwapForLess(const GrowthQuestion& question, GrowthLedger* ledger, WaitingPodsPlan* plan,
                 GroupRooms* rooms);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_SWAP_H_
