#include "core/cluster/pod_role.h"

#include <cstddef>
#include <optional>

namespace loadline {
namespace {

using Role = bool (*)(const PodTraits&);

void RemoveFromNode(NodeIndex node, Role role, Snapshot* snapshot) {
  // From the end: the last pod takes the place of a removed one.
  for (size_t position = snapshot->pods(node).size(); position-- > 0;) {
    const PodShape& shape = snapshot->pod_shape(snapshot->pods(node)[position].shape);
    if (role(TraitsOf(shape))) snapshot->RemovePod(node, position);
  }
}

void RemoveFromAll(Role role, Snapshot* snapshot) {
  if (!snapshot->HasShapesBelow(kExpendablePriority)) return;
  for (int32_t i = 0; i < snapshot->node_end(); ++i) {
    if (snapshot->Contains(NodeIndex{i})) RemoveFromNode(NodeIndex{i}, role, snapshot);
  }
}

}  // namespace

void RemoveExpendablePods(Snapshot* snapshot) { RemoveFromAll(IsExpendable, snapshot); }

void RemoveExpendablePods(std::span<const Slot> slots, Snapshot* snapshot) {
  if (!snapshot->HasShapesBelow(kExpendablePriority)) return;
  for (const Slot slot : slots) {
    const std::optional<NodeIndex> node = snapshot->FindSlot(slot);
    if (node.has_value()) RemoveFromNode(*node, IsExpendable, snapshot);
  }
}

void RemovePodsThatGiveWay(Snapshot* snapshot) { RemoveFromAll(GivesWay, snapshot); }

}  // namespace loadline
