// Arrivals are bought together: growth for pods waits a moment while further ones come.
#ifndef LOADLINE_CORE_LOOP_GROWTH_BATCH_H_
#define LOADLINE_CORE_LOOP_GROWTH_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace loadline {

// Longer ago than any pod that waits came.
inline constexpr int64_t kLongAgoMs = std::numeric_limits<int64_t>::max();

// Equal pods: how long ago the first and the last of them came, in milliseconds. 0 <= last <= first.
struct PodAges {
  int64_t first_ms = kLongAgoMs;
  int64_t last_ms = kLongAgoMs;
};

// What there is to know of a batch, which begins when the first pod comes that needs a new node.
struct GrowthBatch {
  // It ends when no pod has come for so long that needs a node which is not there yet. 0: growth waits for no
  // further pods.
  int64_t idle_ms = 0;
  // It ends so long after its first pod at the latest.
  int64_t max_ms = 0;
  // How long ago groups grew for pods, which ended the last batch: pods that have waited since then begin no
  // batch of their own before it. nullopt: long ago.
  std::optional<int64_t> since_growth_ms;
  // Of the pods that wait, by position; those beyond its end came long ago.
  std::vector<PodAges> ages;
};

// For how many milliseconds growth still waits, > 0, if no further pod comes; nullopt: groups grow now.
// `need_nodes`: positions of the pods that a plan needs new nodes for; `on_the_way`: of those that take nodes
// on their way, with which a stream of pods goes on. Cost: O(positions). Pure: any thread. Source:
// batchIdleDuration and batchMaxDuration of Karpenter, which count from the last pod of any kind; here pods
// that fit on nodes that are there hold up nobody.
std::optional<int64_t> BatchWaitMs(const GrowthBatch& batch, std::span<const size_t> need_nodes,
                                   std::span<const size_t> on_the_way);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_GROWTH_BATCH_H_
