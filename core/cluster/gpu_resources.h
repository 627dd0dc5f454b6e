// Resources by which device plugins offer whole GPUs: the one list of them.
#ifndef LOADLINE_CORE_CLUSTER_GPU_RESOURCES_H_
#define LOADLINE_CORE_CLUSTER_GPU_RESOURCES_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "core/cluster/labels.h"

namespace loadline {

// NVIDIA's name. It means GPUs where none are offered yet, and GCE's prices use it.
inline constexpr absl::string_view kNvidiaGpu = "nvidia.com/gpu";

// The label that names the type of GPUs on GKE; the prices of GCE know it.
inline constexpr absl::string_view kGceGpuLabel = "cloud.google.com/gke-accelerator";

// Returns all names, NVIDIA's first. Sources: the device plugins of NVIDIA, AMD, Intel (i915 and xe, by the
// driver of the card), Habana and Microsoft (DirectX on Windows). Shares and slices of a GPU, such as
// nvidia.com/mig-1g.5gb, are not in it: how much of a GPU one is depends on the model.
std::span<const absl::string_view> GpuResources();

// Returns the labels by which platforms tell a node with GPUs, also before these are there; the value is
// their type. Sources: Cluster Autoscaler's providers of GCE, AWS and Azure, those that have "accelerator",
// and Cluster API.
std::span<const absl::string_view> GpuLabels();

// The keys of labels that tell the type of a node's GPUs: GpuLabels(), or what a cluster uses instead. Copies
// share them.
class GpuLabelKeys {
 public:
  GpuLabelKeys();
  GpuLabelKeys(std::initializer_list<std::string> keys) : GpuLabelKeys(std::vector<std::string>(keys)) {}
  explicit GpuLabelKeys(std::vector<std::string> keys)
      : keys_(std::make_shared<const std::vector<std::string>>(std::move(keys))) {}

  operator std::span<const std::string>() const { return *keys_; }
  friend bool operator==(const GpuLabelKeys& a, const GpuLabelKeys& b) {
    return a.keys_ == b.keys_ || *a.keys_ == *b.keys_;
  }

 private:
  std::shared_ptr<const std::vector<std::string>> keys_;  // not nullptr
};

// Returns whether one of these labels is set.
bool HasGpuLabel(const Labels& labels, const GpuLabelKeys& keys = {});

// Returns the number and kind of the GPUs of a node, which distinguishes machines without a stated type:
// "8-nvidia-tesla-t4" where a label names their type, else as "8-nvidia.com/gpu", or
// "7-nvidia.com/mig-1g.5gb" where they are offered in slices. Without the number as long as only the label
// tells of them; empty: the node has none.
std::string GpuKindOf(const Labels& labels, const ResourceAmounts& amounts, const ResourceNames& names);

// The sum of all of them.
int64_t GpusOf(const ResourceAmounts& amounts, const ResourceNames& names);

// Returns the number of machines' GPUs behind those that a node offers, which may be shares of them: time
// slices of NVIDIA's device plugin, by the labels of its feature discovery, and clients that share a GPU on
// GKE. Where a node offers slices alone, these labels state the number.
int64_t GpusBehind(int64_t offered, const Labels& labels);

// Returns the first of them that `amounts` has; empty: it has none.
absl::string_view GpuResourceOf(const ResourceAmounts& amounts, const ResourceNames& names);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_GPU_RESOURCES_H_
