#include <cstddef>
#include <cstdint>

#include "core/cluster/view.h"

namespace loadline {

LeftOutList View::LeftOut() const {
  LeftOutList list;
  for (const auto& [key, reason] : cluster().objects().unreadable()) {
    list.Add(Name(key.kind), key.namespace_name, key.name,
             reason.empty() ? "cannot be read, as others of its kind" : reason);
  }
  if (cluster().unreadable_nodes() == 0 && content_.unreadable_shapes == 0) return list;
  for (int32_t i = 0; i < cluster().slot_end(); ++i) {
    const Slot slot{i};
    if (!cluster().Occupied(slot)) continue;
    const NodeTraits& traits = cluster().traits(slot);
    if (!traits.unreadable.empty()) list.Add("Node", "", cluster().name(slot), traits.unreadable);
    if (content_.unreadable_shapes == 0) continue;
    const NodePods& pods = cluster().pods(slot);
    for (size_t pod = 0; pod < pods.pods().size(); ++pod) {
      const PodShape& shape = cluster().pod_shapes()[pods.pods()[pod].shape];
      const PodTraits& of_pod = TraitsOf(shape);
      if (of_pod.unreadable.empty() || shape.finished) continue;
      list.Add("Pod", shape.namespace_name, pods.name(pod), of_pod.unreadable);
    }
  }
  return list;
}

}  // namespace loadline
