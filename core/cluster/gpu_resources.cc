#include "core/cluster/gpu_resources.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

const std::array<absl::string_view, 6> kGpuResources = {
    kNvidiaGpu,           "habana.ai/gaudi", "gpu.intel.com/xe",
    "gpu.intel.com/i915", "amd.com/gpu",     "microsoft.com/directx",
};

int64_t AmountOf(const ResourceAmounts& amounts, const ResourceNames& names, absl::string_view name) {
  const std::optional<ResourceId> id = names.Find(name);
  return id.has_value() ? amounts.Get(*id) : 0;
}

}  // namespace

std::span<const absl::string_view> GpuResources() { return kGpuResources; }

std::span<const absl::string_view> GpuLabels() {
  static constexpr absl::string_view kKeys[] = {"cloud.google.com/gke-accelerator",
                                                "k8s.amazonaws.com/accelerator", "accelerator"};
  return kKeys;
}

std::string GpuKindOf(const Labels& labels, const ResourceAmounts& amounts, const ResourceNames& names) {
  const std::string* type = nullptr;
  for (const absl::string_view key : GpuLabels()) {
    type = labels.Find(key);
    if (type != nullptr && !type->empty()) break;
  }
  if (type != nullptr && !type->empty()) {
    const int64_t gpus = GpusOf(amounts, names);
    return gpus > 0 ? absl::StrCat(gpus, "-", *type) : *type;
  }
  std::vector<std::string> kinds;
  for (const absl::string_view name : kGpuResources) {
    const int64_t gpus = AmountOf(amounts, names, name);
    if (gpus > 0) kinds.push_back(absl::StrCat(gpus, "-", name));
  }
  std::sort(kinds.begin(), kinds.end());
  return absl::StrJoin(kinds, "-");
}

int64_t GpusOf(const ResourceAmounts& amounts, const ResourceNames& names) {
  int64_t gpus = 0;
  for (const absl::string_view name : kGpuResources)
    gpus = SaturatingAdd(gpus, AmountOf(amounts, names, name));
  return gpus;
}

absl::string_view GpuResourceOf(const ResourceAmounts& amounts, const ResourceNames& names) {
  for (const absl::string_view name : kGpuResources) {
    if (AmountOf(amounts, names, name) > 0) return name;
  }
  return "";
}

}  // namespace loadline
