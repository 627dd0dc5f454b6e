#include "core/cluster/node_offer.h"

#include "core/cluster/gpu_resources.h"

namespace loadline {

NodeOffer OfferOf(const NodeShape& node, const ResourceNames& names,
                  std::span<const std::string> gpu_labels) {
  NodeOffer offer{node.allocatable.Get(kCpu), node.allocatable.Get(kMemory)};
  for (const std::string& label : gpu_labels) {
    const std::string* const type = node.labels.Find(label);
    if (type == nullptr) continue;
    offer.gpu_type = *type;
    offer.gpus = GpusOf(node.allocatable, names);
    break;
  }
  return offer;
}

}  // namespace loadline
