// The next step of the removal of a node.
#ifndef LOADLINE_CORE_REMOVAL_STEP_REMOVAL_H_
#define LOADLINE_CORE_REMOVAL_STEP_REMOVAL_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/removal/removal.h"
#include "core/removal/removal_rules.h"

namespace loadline {

// Takes a node that was tainted one step further: it is looked at again, its pods are evicted and end, others
// who delay its deletion are waited for, and the cloud is asked. Where something is not as planned, stays for
// too long, or is refused, the removal ends, and the node is given back; never once the cloud may delete it.
// Nodes that go together, or not at all, wait for each other twice: before the first of them is noted on, and
// before the cloud is asked for all of them.
//
// `seen`: all that the orders of the step before asked for, once each. `now_ms` never decreases.
// Cost: O(pods * log(pods) + pods * priority groups). Pure: any thread.
RemovalOrders StepRemoval(const RemovalRules& rules, const RemovalFacts& seen, int64_t now_ms,
                          Removal* removal);

// For people: "tainted", "draining", "waiting" or "deleting".
absl::string_view Name(RemovalStage stage);

}  // namespace loadline

#endif  // LOADLINE_CORE_REMOVAL_STEP_REMOVAL_H_
