#include "plugin/convert/slots.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/error_details.h"

namespace loadline {
namespace {

absl::Status RefusedSlot(absl::string_view field, int index, int32_t slot, absl::string_view reason) {
  return WithReason(
      absl::InvalidArgumentError(absl::StrCat(field, "[", index, "]: slot ", slot, " ", reason)),
      kUnknownSlot);
}

// Refuses a slot outside [0, slot_end) and one that came before.
class DistinctSlots {
 public:
  DistinctSlots(absl::string_view field, int32_t slot_end)
      : field_(field), seen_(static_cast<size_t>(slot_end)) {}

  absl::Status Add(int index, int32_t slot) {
    if (slot < 0 || static_cast<size_t>(slot) >= seen_.size()) {
      return RefusedSlot(field_, index, slot, absl::StrCat("is not in [0, ", seen_.size(), ")"));
    }
    if (seen_[static_cast<size_t>(slot)]) return RefusedSlot(field_, index, slot, "is named twice");
    seen_[static_cast<size_t>(slot)] = true;
    return absl::OkStatus();
  }

 private:
  absl::string_view field_;
  std::vector<bool> seen_;
};

}  // namespace

absl::StatusOr<std::vector<Slot>> DecodeCandidates(const SlotNumbers& slots, const ClusterState& cluster) {
  std::vector<Slot> candidates;
  if (slots.empty()) {
    candidates.reserve(static_cast<size_t>(cluster.node_count()));
    for (int32_t slot = 0; slot < cluster.slot_end(); ++slot) {
      if (cluster.Occupied(Slot{slot})) candidates.push_back(Slot{slot});
    }
    return candidates;
  }
  DistinctSlots distinct("slots", cluster.slot_end());
  candidates.reserve(static_cast<size_t>(slots.size()));
  for (int i = 0; i < slots.size(); ++i) {
    if (absl::Status status = distinct.Add(i, slots[i]); !status.ok()) return status;
    if (!cluster.Occupied(Slot{slots[i]})) return RefusedSlot("slots", i, slots[i], "holds no node");
    candidates.push_back(Slot{slots[i]});
  }
  return candidates;
}

absl::StatusOr<std::vector<size_t>> DecodeExplained(const SlotNumbers& slots,
                                                    std::span<const Slot> candidates,
                                                    const ClusterState& cluster) {
  std::vector<size_t> explained;
  if (slots.empty()) {
    for (size_t i = 0; i < candidates.size(); ++i) explained.push_back(i);
    return explained;
  }
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> positions(static_cast<size_t>(cluster.slot_end()), kNone);
  for (size_t i = 0; i < candidates.size(); ++i) positions[IndexOf(candidates[i])] = i;
  DistinctSlots distinct("explain_slots", cluster.slot_end());
  for (int i = 0; i < slots.size(); ++i) {
    if (absl::Status status = distinct.Add(i, slots[i]); !status.ok()) return status;
    const size_t position = positions[static_cast<size_t>(slots[i])];
    if (position == kNone) return RefusedSlot("explain_slots", i, slots[i], "is not a candidate");
    explained.push_back(position);
  }
  return explained;
}

absl::StatusOr<std::vector<Slot>> DecodeDescribed(const SlotNumbers& slots, int32_t slot_end) {
  std::vector<Slot> described;
  described.reserve(static_cast<size_t>(slots.size()));
  DistinctSlots distinct("slots", slot_end);
  for (int i = 0; i < slots.size(); ++i) {
    if (absl::Status status = distinct.Add(i, slots[i]); !status.ok()) return status;
    described.push_back(Slot{slots[i]});
  }
  return described;
}

}  // namespace loadline
