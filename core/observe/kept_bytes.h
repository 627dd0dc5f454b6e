// Sizes and slack as bytes of a memory.
#ifndef LOADLINE_CORE_OBSERVE_KEPT_BYTES_H_
#define LOADLINE_CORE_OBSERVE_KEPT_BYTES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/container/btree_map.h"
#include "core/observe/state_coder.h"
#include "core/size/size_group.h"
#include "core/slack/slack_plan.h"

namespace loadline {

// In at most so many bytes: the last groups by name are left out.
void WriteSizes(const absl::btree_map<std::string, GroupState>& sizes, size_t most_bytes, StateWriter* out);
absl::btree_map<std::string, GroupState> ReadSizes(StateReader* in);

// In at most so many bytes, or as none.
void WriteSlack(const std::optional<KeptSlack>& slack, size_t most_bytes, StateWriter* out);
std::optional<KeptSlack> ReadSlack(StateReader* in);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_KEPT_BYTES_H_
