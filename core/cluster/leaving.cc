#include "core/cluster/leaving.h"

#include <cstddef>

#include "core/base/check.h"

namespace loadline {

void TakeOff(NodeIndex node, int32_t shape, Snapshot* snapshot) {
  const std::span<const SnapshotPod> pods = snapshot->pods(node);
  size_t position = pods.size();
  while (position > 0 && pods[position - 1].shape != shape) --position;
  LOADLINE_CHECK(position > 0) << "no pod of shape " << shape << " is on node " << snapshot->name(node);
  snapshot->RemovePod(node, position - 1);
}

void Vacate(NodeIndex node, std::span<const int32_t> shapes, Snapshot* snapshot) {
  snapshot->MarkLeaving(node);
  for (const int32_t shape : shapes) TakeOff(node, shape, snapshot);
}

}  // namespace loadline
