#include "core/cluster/gpu_resources.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

// Returns whether NVIDIA's device plugin offers parts of GPUs under this name: by MIG, or renamed time
// slices.
bool IsSlice(absl::string_view resource) {
  return absl::StartsWith(resource, "nvidia.com/mig-") || resource == "nvidia.com/gpu.shared";
}

// Returns the number in a label, [1, 2^30]; 0: there is none.
int64_t NumberIn(const Labels& labels, absl::string_view key) {
  const std::string* const text = labels.Find(key);
  int64_t number = 0;
  const bool valid = text != nullptr && absl::SimpleAtoi(*text, &number) && number > 0 && number <= 1 << 30;
  return valid ? number : 0;
}

}  // namespace

std::span<const absl::string_view> GpuResources() { return kGpuResources; }

std::span<const absl::string_view> GpuLabels() {
  static constexpr absl::string_view kKeys[] = {kGceGpuLabel, "k8s.amazonaws.com/accelerator",
                                                "kubernetes.azure.com/accelerator", "accelerator",
                                                "cluster-api/accelerator"};
  return kKeys;
}

GpuLabelKeys::GpuLabelKeys() {
  static const GpuLabelKeys* const kDefault =
      new GpuLabelKeys(std::vector<std::string>(GpuLabels().begin(), GpuLabels().end()));
  keys_ = kDefault->keys_;
}

bool HasGpuLabel(const Labels& labels, const GpuLabelKeys& keys) {
  const std::span<const std::string> all = keys;
  return absl::c_any_of(all, [&](const std::string& key) { return labels.Find(key) != nullptr; });
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
  for (const auto& [resource, amount] : amounts) {
    if (amount > 0 && IsSlice(names.name(resource)))
      kinds.push_back(absl::StrCat(amount, "-", names.name(resource)));
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

int64_t GpusBehind(int64_t offered, const Labels& labels) {
  const int64_t replicas = std::max({int64_t{1}, NumberIn(labels, "nvidia.com/gpu.replicas"),
                                     NumberIn(labels, "cloud.google.com/gke-max-shared-clients-per-gpu")});
  const int64_t stated = NumberIn(labels, "nvidia.com/gpu.count");
  if (offered == 0) return stated;
  if (replicas == 1) return offered;
  return stated > 0 ? std::min(stated, offered) : (offered + replicas - 1) / replicas;
}

absl::string_view GpuResourceOf(const ResourceAmounts& amounts, const ResourceNames& names) {
  for (const absl::string_view name : kGpuResources) {
    if (AmountOf(amounts, names, name) > 0) return name;
  }
  return "";
}

}  // namespace loadline
