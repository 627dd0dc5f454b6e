// Arrivals are bought together: growth for pods waits a moment while further ones come.
#ifndef LOADLINE_CORE_GROW_GROWTH_BATCH_H_
#define LOADLINE_CORE_GROW_GROWTH_BATCH_H_

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

// The facts about a batch, which begins when the first pod arrives that needs a new node.
struct GrowthBatch {
  // It ends when no pod has come for so long that needs a node which is not there yet. 0: growth waits for no
  // further pods.
  int64_t idle_ms = 0;
  // It ends so long after its first pod at the latest.
  int64_t max_ms = 0;
  // How long ago groups grew for pods, which ended the last batch: pods that have waited since then begin no
  // batch of their own before it. nullopt: long ago.
  std::optional<int64_t> since_growth_ms;
  // The ages of the waiting pods, by position; those beyond its end arrived long ago.
  std::vector<PodAges> ages;
  PodAges AgesOf(size_t pods) const { return pods < ages.size() ? ages[pods] : PodAges(); }
};

// Returns for how many milliseconds growth still waits, > 0, if no further pod arrives; nullopt: groups grow
// now. `need_nodes`: positions of the pods that a plan needs new nodes for; `on_the_way`: of those that take
// nodes on their way, with which a stream of pods continues. Cost: O(positions). Pure: any thread. Source:
// batchIdleDuration and batchMaxDuration of Karpenter, which count from the last pod of any kind; here pods
// that fit on nodes that are there hold up nobody.
std::optional<int64_t> BatchWaitMs(const GrowthBatch& batch, std::span<const size_t> need_nodes,
                                   std::span<const size_t> on_the_way);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_GROWTH_BATCH_H_
