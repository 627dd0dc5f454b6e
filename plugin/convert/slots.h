// Lists of slots in questions.
#ifndef LOADLINE_PLUGIN_CONVERT_SLOTS_H_
#define LOADLINE_PLUGIN_CONVERT_SLOTS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "google/protobuf/repeated_field.h"

namespace loadline {

using SlotNumbers = google::protobuf::RepeatedField<int32_t>;

// Each: kInvalidArgument names the field, the position and the slot.

// Decodes the candidate set: `slots`, each of which has a node and is listed once; if there are none, all
// nodes in slot order.
absl::StatusOr<std::vector<Slot>> DecodeCandidates(const SlotNumbers& slots, const ClusterState& cluster);

// Returns the positions in `candidates` of `slots`, each of which is a candidate and is listed once; if there
// are none, all.
absl::StatusOr<std::vector<size_t>> DecodeExplained(const SlotNumbers& slots,
                                                    std::span<const Slot> candidates,
                                                    const ClusterState& cluster);

// Slots to be described: in [0, slot_end), each once. They need not hold a node.
absl::StatusOr<std::vector<Slot>> DecodeDescribed(const SlotNumbers& slots, int32_t slot_end);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SLOTS_H_
