// How large a cluster may be that a client gives as a whole.
#ifndef LOADLINE_PLUGIN_BASE_CLUSTER_BYTES_H_
#define LOADLINE_PLUGIN_BASE_CLUSTER_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loadline {

// Returns the most bytes of all parts of a SetCluster, where a question may take `question_bytes`: its
// objects are in memory as they came, as parsed, and as a batch, of which each takes less than the one
// before. Not less than an ordinary request.
inline size_t MostClusterBytes(int64_t question_bytes) {
  return static_cast<size_t>(std::max<int64_t>(question_bytes / 4, 4 << 20));
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_BASE_CLUSTER_BYTES_H_
