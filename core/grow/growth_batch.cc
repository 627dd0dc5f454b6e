#include "core/grow/growth_batch.h"

#include <algorithm>

namespace loadline {

std::optional<int64_t> BatchWaitMs(const GrowthBatch& batch, std::span<const size_t> need_nodes,
                                   std::span<const size_t> on_the_way) {
  if (need_nodes.empty()) return std::nullopt;
  int64_t first = 0;
  int64_t last = kLongAgoMs;
  for (const size_t pods : need_nodes) {
    first = std::max(first, batch.AgesOf(pods).first_ms);
    last = std::min(last, batch.AgesOf(pods).last_ms);
  }
  for (const size_t pods : on_the_way) last = std::min(last, batch.AgesOf(pods).last_ms);
  first = std::min(first, batch.since_growth_ms.value_or(kLongAgoMs));
  if (last >= batch.idle_ms || first >= batch.max_ms) return std::nullopt;
  return std::min(batch.idle_ms - last, batch.max_ms - first);
}

}  // namespace loadline
