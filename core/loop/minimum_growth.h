// Node groups below their minimum grow to it: --enforce-node-group-min-size.
#ifndef LOADLINE_CORE_LOOP_MINIMUM_GROWTH_H_
#define LOADLINE_CORE_LOOP_MINIMUM_GROWTH_H_

#include "core/loop/growth_ledger.h"

namespace loadline {

// Adds what groups lack of their minimum to those on their way, and to the growth; in the order of the
// groups, as far as all limits permit. Groups that are sized keep their minimum by themselves. A group needs
// a template and must not be blocked; it needs no price. One that has all of its nodes or none gets all, or
// none. Source: ScaleUpToNodeGroupMinSize() of Cluster Autoscaler.
void GrowToMinima(GrowthLedger* ledger);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_MINIMUM_GROWTH_H_
