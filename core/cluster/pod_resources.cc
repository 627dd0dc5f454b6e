#include "core/cluster/pod_resources.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "core/base/amount.h"
#include "core/cluster/container_amounts.h"

namespace loadline {
namespace {

constexpr ResourceId kCpuAndMemory[] = {kCpu, kMemory};

// The most of what spec, node and (requests) allocation state; without the spec after an infeasible resize.
ResourceList MostOf(const ResourceList& spec, const std::optional<ResourceList>& actuated,
                    const std::optional<ResourceList>& allocated, bool infeasible) {
  ResourceList most;
  if (!infeasible) most = spec;
  if (actuated.has_value()) RaiseTo(most, *actuated);
  if (allocated.has_value()) RaiseTo(most, *allocated);
  return most;
}

ResourceList SumOfContainers(const PodResources& pod, const ContainerAmounts& amounts, AmountKind kind,
                             Reading reading) {
  ResourceList sum;
  for (const ContainerResources& container : pod.containers) AddTo(sum, amounts.Of(container, kind, reading));
  ResourceList sidecars;  // those up to the current init container
  // The most that an init container and the sidecars before it take, of the resources that it states itself:
  // of others they take no more than the sum. Looking at all resources in each step would cost their product.
  ResourceList steps;
  for (const ContainerResources& container : pod.init_containers) {
    if (container.sidecar) {
      const ResourceList own = amounts.Of(container, kind, reading);
      AddTo(sum, own);
      AddTo(sidecars, own);
    } else {
      for (const ResourceList::Entry& entry : amounts.OfInit(container, kind, reading)) {
        Quantity step = sidecars.Get(entry.id);
        step.Add(entry.value);
        RaiseTo(steps, entry.id, step);
      }
    }
  }
  RaiseTo(sum, steps);
  return sum;
}

// The most of the sums over the containers that count.
ResourceList MostOfSums(const PodResources& pod, AmountKind kind, bool use_status) {
  const ContainerAmounts amounts(pod, use_status);
  ResourceList most;
  for (const Reading reading : amounts.Readings(kind)) {
    const ResourceList* const stated = amounts.SumOfStatus(kind, reading);
    RaiseTo(most, stated != nullptr ? *stated : SumOfContainers(pod, amounts, kind, reading));
  }
  return most;
}

// Puts the values of the pod level in place of the sums: of the resources that its spec states, `effective`
// values where they count.
void ReplaceByPodLevel(ResourceList& sum, const ResourceList& spec,
                       const std::optional<ResourceList>& effective, const ResourceNames& names) {
  for (const ResourceList::Entry& entry : spec) {
    if (!SetsPodLevel(names.name(entry.id))) continue;
    sum[entry.id] = effective.has_value() ? effective->Get(entry.id) : entry.value;
  }
}

// The same by ResizeRule::kPerPod: the effective values say which resources the pod level sets.
void ReplaceByPodLevel(ResourceList& sum, const ResourceList& effective, const ResourceNames& names) {
  for (const ResourceList::Entry& entry : effective) {
    if (SetsPodLevel(names.name(entry.id))) sum[entry.id] = entry.value;
  }
}

bool AnyCpuOrMemory(const ResourceList& list) {
  return list.Get(kCpu).IsPositive() || list.Get(kMemory).IsPositive();
}

bool AnyCpuOrMemory(const ContainerResources& container) {
  return AnyCpuOrMemory(container.requests) || AnyCpuOrMemory(container.limits);
}

}  // namespace

bool SetsPodLevel(absl::string_view resource) {
  return resource == "cpu" || resource == "memory" || absl::StartsWith(resource, "hugepages-");
}

ResourceList EffectiveRequests(const PodResources& pod, const ResourceNames& names, bool use_status) {
  ResourceList requests = MostOfSums(pod, AmountKind::kRequests, use_status);
  if (pod.pod_level.has_value()) {
    std::optional<ResourceList> effective;
    if (use_status && pod.pod_level_status.has_value()) {
      effective = MostOf(pod.pod_level->requests, pod.pod_level_status->requests, pod.pod_level_allocated,
                         pod.resize_infeasible);
    }
    if (!effective.has_value() || pod.resize_rule == ResizeRule::kPerContainer) {
      ReplaceByPodLevel(requests, pod.pod_level->requests, effective, names);
    } else if (pod.pod_level->sets_requests) {
      ReplaceByPodLevel(requests, *effective, names);
    }
  }
  AddTo(requests, pod.overhead);
  return requests;
}

ResourceList EffectiveLimits(const PodResources& pod, const ResourceNames& names, bool use_status) {
  ResourceList limits = MostOfSums(pod, AmountKind::kLimits, use_status);
  if (pod.pod_level.has_value()) {
    const bool per_container = pod.resize_rule == ResizeRule::kPerContainer;
    std::optional<ResourceList> effective;
    // Per container, after an infeasible resize, a status without any limit leaves the spec in force, as in
    // component-helpers.
    if (use_status && pod.pod_level_status.has_value() &&
        !(per_container && pod.resize_infeasible && !pod.pod_level_status->limits.has_value())) {
      effective =
          MostOf(pod.pod_level->limits, pod.pod_level_status->limits, std::nullopt, pod.resize_infeasible);
    }
    if (!effective.has_value() || per_container) {
      ReplaceByPodLevel(limits, pod.pod_level->limits, effective, names);
    } else if (pod.pod_level->sets_requests || pod.pod_level->sets_limits) {
      ReplaceByPodLevel(limits, *effective, names);
    }
  }
  for (const ResourceList::Entry& entry : pod.overhead) {
    if (Quantity* const limit = limits.Find(entry.id); limit != nullptr && !limit->IsZero()) {
      limit->Add(entry.value);
    }
  }
  return limits;
}

ResourceAmounts ProposalIncomingLimits(const PodResources& pod) {
  ResourceAmounts limits = ProposalExistingLimits(pod);
  for (const ContainerResources& container : pod.init_containers) {
    for (const ResourceAmounts::Entry& entry : ToAmounts(container.limits)) {
      int64_t& limit = limits[entry.id];
      limit = std::max(limit, entry.value);
    }
  }
  for (const ResourceList::Entry& entry : pod.overhead) {
    int64_t& limit = limits[entry.id];
    limit = SaturatingAdd(limit, std::max<int64_t>(0, Units(entry.value)));
  }
  return limits;
}

ResourceAmounts ProposalExistingLimits(const PodResources& pod) {
  ResourceAmounts limits;
  for (const ContainerResources& container : pod.containers) AddTo(limits, ToAmounts(container.limits));
  return limits;
}

ResourceList SimpleRequests(const PodResources& pod) {
  ResourceList requests;
  for (const ContainerResources& container : pod.containers) AddTo(requests, container.requests);
  for (const ContainerResources& container : pod.init_containers) RaiseTo(requests, container.requests);
  AddTo(requests, pod.overhead);
  return requests;
}

bool LacksRequests(const PodResources& pod) {
  return std::any_of(std::begin(kCpuAndMemory), std::end(kCpuAndMemory), [&](ResourceId id) {
    if (pod.pod_level.has_value() && pod.pod_level->requests.Get(id).IsPositive()) return false;
    const auto lacks = [&](const ContainerResources& container) {
      return !container.requests.Get(id).IsPositive();
    };
    return std::any_of(pod.containers.begin(), pod.containers.end(), lacks) ||
           std::any_of(pod.init_containers.begin(), pod.init_containers.end(),
                       [&](const ContainerResources& init) { return init.sidecar && lacks(init); });
  });
}

bool IsBestEffort(const PodResources& pod) {
  if (pod.pod_level.has_value()) {
    return !AnyCpuOrMemory(pod.pod_level->requests) && !AnyCpuOrMemory(pod.pod_level->limits);
  }
  const auto none = [](const ContainerResources& container) { return !AnyCpuOrMemory(container); };
  return std::all_of(pod.containers.begin(), pod.containers.end(), none) &&
         std::all_of(pod.init_containers.begin(), pod.init_containers.end(), none);
}

}  // namespace loadline
