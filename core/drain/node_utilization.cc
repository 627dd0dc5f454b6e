#include "core/drain/node_utilization.h"

#include <algorithm>
#include <limits>

#include "core/base/amount.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/pod_role.h"
#include "core/drain/rules.h"

namespace loadline {
namespace {

// The requests for one resource: what counts, and what is ignored.
struct Requests {
  int64_t counted = 0;
  int64_t ignored = 0;
};

bool IsIgnored(const PodShape& shape, const ClusterObjects& objects, const UtilizationOptions& options) {
  return (options.ignore_daemonsets && OfKnownDaemonSet(shape, objects)) ||
         (options.ignore_mirror_pods && TraitsOf(shape).mirror);
}

Requests RequestsOf(const ClusterState& state, Slot slot, ResourceId resource,
                    const UtilizationOptions& options, int64_t now_s) {
  Requests requests;
  for (const NodePods::Pod& pod : state.pods(slot).pods()) {
    const PodShape& shape = state.pod_shapes()[pod.shape];
    if (IsLongTerminating(TraitsOf(shape), now_s) || IsExpendable(TraitsOf(shape))) continue;
    int64_t& sum = IsIgnored(shape, state.objects(), options) ? requests.ignored : requests.counted;
    sum = SaturatingAdd(sum, shape.requests.Get(resource));
  }
  return requests;
}

double Share(const Requests& requests, int64_t allocatable) {
  const int64_t left = allocatable - requests.ignored;
  if (left > 0) return static_cast<double>(requests.counted) / static_cast<double>(left);
  return requests.counted == 0 ? 0 : std::numeric_limits<double>::infinity();
}

Utilization GpuUtilization(const ClusterState& state, Slot slot, const UtilizationOptions& options,
                           int64_t now_s) {
  const ResourceNames& names = state.resource_names();
  const ResourceAmounts& allocatable = state.node_shape(slot).allocatable;
  const absl::string_view name = GpuResourceOf(allocatable, names);
  if (name.empty()) return {.resource = std::string(kNvidiaGpu)};
  const ResourceId gpu = *names.Find(name);
  // Cluster Autoscaler ignores no pod here.
  UtilizationOptions all = options;
  all.ignore_daemonsets = all.ignore_mirror_pods = false;
  return {.value = Share(RequestsOf(state, slot, gpu, all, now_s), allocatable.Get(gpu)),
          .resource = std::string(name)};
}

std::optional<Utilization> FullestPool(std::span<const DevicePool> pools) {
  std::optional<Utilization> fullest;
  for (const DevicePool& pool : pools) {
    if (!pool.complete || pool.devices <= 0) return std::nullopt;
    const Utilization one = {.value = static_cast<double>(pool.allocated) / static_cast<double>(pool.devices),
                             .resource = pool.name};
    const bool fuller = !fullest.has_value() || one.value > fullest->value ||
                        (one.value == fullest->value && one.resource < fullest->resource);
    if (fuller) fullest = one;
  }
  return fullest;
}

}  // namespace

std::optional<Utilization> NodeUtilization(const ClusterState& state, Slot slot,
                                           const UtilizationOptions& options, int64_t now_s,
                                           std::span<const DevicePool> pools) {
  if (HasGpuLabel(state.node_shape(slot).labels, options.gpu_labels))
    return GpuUtilization(state, slot, options, now_s);
  if (!pools.empty()) return FullestPool(pools);
  const ResourceAmounts& allocatable = state.node_shape(slot).allocatable;
  if (allocatable.Get(kCpu) == 0 || allocatable.Get(kMemory) == 0) return std::nullopt;
  const double cpu = Share(RequestsOf(state, slot, kCpu, options, now_s), allocatable.Get(kCpu));
  const double memory = Share(RequestsOf(state, slot, kMemory, options, now_s), allocatable.Get(kMemory));
  return memory > cpu ? Utilization{memory, "memory", cpu, memory} : Utilization{cpu, "cpu", cpu, memory};
}

}  // namespace loadline
