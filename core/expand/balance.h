#ifndef LOADLINE_CORE_EXPAND_BALANCE_H_
#define LOADLINE_CORE_EXPAND_BALANCE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

// A group among similar ones that share a growth.
struct BalancedGroup {
  std::string name;
  int64_t size = 0;  // [0, 2^31)
  int64_t max = 0;   // [0, 2^31); below `size`: the group cannot grow
};

// Shares `add` >= 0 new nodes over similar groups, each to the group that is smallest at that point and has
// room; of equal ones to the one that was smaller before, then by name. Returns the new sizes, in the order
// of the groups. What no group has room for is left out.
//
// Cost:   O(groups * log) whatever `add`. Pure: any thread.
// Source: processors/nodegroupset/balancing_processor.go of Cluster Autoscaler.
std::vector<int64_t> BalanceGrowth(const std::vector<BalancedGroup>& groups, int64_t add);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_BALANCE_H_
