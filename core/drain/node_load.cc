#include "core/drain/node_load.h"

#include <algorithm>

#include "absl/numeric/int128.h"

namespace loadline {

int64_t LoadOf(const Snapshot& snapshot, NodeIndex node) {
  constexpr int64_t kMillion = 1'000'000;
  int64_t load = 0;
  for (const ResourceId resource : {kCpu, kMemory}) {
    const NodeAmount& amount = snapshot.amount(node, resource);
    if (amount.allocatable <= 0) continue;
    const absl::int128 share = amount.requested * kMillion / amount.allocatable;
    load = std::max(load, static_cast<int64_t>(std::min<absl::int128>(share, INT64_MAX)));
  }
  return load;
}

}  // namespace loadline
