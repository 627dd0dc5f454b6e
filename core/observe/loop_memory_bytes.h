// The memory from loop to loop as bytes.
#ifndef LOADLINE_CORE_OBSERVE_LOOP_MEMORY_BYTES_H_
#define LOADLINE_CORE_OBSERVE_LOOP_MEMORY_BYTES_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// 4 bytes "LLLM", the version, a checksum of what follows, and that: keys of 8 bytes, numbers as varints.
inline constexpr int kLoopMemoryVersion = 8;
// The oldest version that is read, so that a new program can continue from the memory of an old one. It has
// no sizes, slack, soft taints and purchases.
inline constexpr int kOldestLoopMemoryVersion = 4;
// The most bytes of a memory: so much a ConfigMap holds, with its names.
inline constexpr size_t kMostLoopMemoryBytes = (1 << 20) - (16 << 10);
inline constexpr size_t kMostGroupNameBytes = 512;

// Encodes the memory in at most kMostLoopMemoryBytes. If it has too many entries, the oldest actions and the
// nodes with the largest keys are left out; if it is still too large, timers of nodes are. Equal memories
// give equal bytes.
std::string EncodeLoopMemory(const LoopMemory& memory);

// Errors: kInvalidArgument  is not what EncodeLoopMemory() makes, or of a version that is not read; says
// which
absl::StatusOr<LoopMemory> DecodeLoopMemory(absl::string_view bytes);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_LOOP_MEMORY_BYTES_H_
