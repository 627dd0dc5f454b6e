#include "core/cluster/node_offer.h"

#include <optional>

namespace loadline {
namespace {

constexpr char kGpuResource[] = "nvidia.com/gpu";

}  // namespace

NodeOffer OfferOf(const NodeShape& node, const ResourceNames& names,
                  std::span<const std::string> gpu_labels) {
  NodeOffer offer{node.allocatable.Get(kCpu), node.allocatable.Get(kMemory)};
  for (const std::string& label : gpu_labels) {
    const std::string* const type = node.labels.Find(label);
    if (type == nullptr) continue;
    offer.gpu_type = *type;
    const std::optional<ResourceId> gpu = names.Find(kGpuResource);
    if (gpu.has_value()) offer.gpus = node.allocatable.Get(*gpu);
    break;
  }
  return offer;
}

}  // namespace loadline
