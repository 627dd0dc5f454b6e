#include "core/cluster/partial_limits.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/amount.h"
#include "core/base/resource_list.h"
#include "core/cluster/container_amounts.h"

namespace loadline {
namespace {

// A limit of 0 caps nothing.
bool HasLimit(const ResourceList& limits, ResourceId id) {
  const Quantity* const limit = limits.Find(id);
  return limit != nullptr && limit->IsPositive();
}

// The sums over containers that run at the same time.
struct RunningSums {
  ResourceList limits;
  ResourceList by_request;            // a container without a limit counts its request
  ResourceMap<int64_t> with_a_limit;  // how many containers
  int64_t containers = 0;

  void Add(const ResourceList& container_limits, const ResourceList& container_requests) {
    ++containers;
    for (const auto& [id, limit] : container_limits) {
      if (!limit.IsPositive()) continue;
      limits[id].Add(limit);
      by_request[id].Add(limit);
      ++with_a_limit[id];
    }
    for (const auto& [id, request] : container_requests) {
      if (!HasLimit(container_limits, id)) by_request[id].Add(request);
    }
  }
  bool AllHaveLimit(ResourceId id) const { return containers > 0 && with_a_limit.Get(id) == containers; }
  bool NoneLacksLimit(ResourceId id) const { return with_a_limit.Get(id) == containers; }
};

// The same for a whole pod, step by step as SumOfContainers().
struct PodSums {
  RunningSums running;
  // The most that an init container and the sidecars before it take, of the resources that it states.
  ResourceList steps_with_gap;
  ResourceList steps_without_gap;
  ResourceList steps_by_request;
  ResourceMap<int64_t> init_with_a_limit;  // ordinary init containers

  PodSums(const PodResources& pod, const ContainerAmounts& amounts, Reading reading) {
    const auto add = [&](const ContainerResources& container, RunningSums* sums) {
      sums->Add(amounts.Of(container, AmountKind::kLimits, reading),
                amounts.Of(container, AmountKind::kRequests, reading));
    };
    for (const ContainerResources& container : pod.containers) add(container, &running);
    RunningSums sidecars;
    for (const ContainerResources& container : pod.init_containers) {
      if (container.sidecar) {
        add(container, &running);
        add(container, &sidecars);
        continue;
      }
      const ResourceList limits = amounts.OfInit(container, AmountKind::kLimits, reading);
      for (const auto& [id, limit] : limits) {
        if (!limit.IsPositive()) continue;
        ++init_with_a_limit[id];
        AddStep(sidecars, id, limit);
      }
      for (const auto& [id, request] : amounts.OfInit(container, AmountKind::kRequests, reading)) {
        if (!HasLimit(limits, id)) AddStep(sidecars, id, request);
      }
    }
  }

  void AddStep(const RunningSums& sidecars, ResourceId id, Quantity own) {
    const auto raise = [&](ResourceList& steps, Quantity step) {
      step.Add(own);
      RaiseTo(steps, id, step);
    };
    raise(sidecars.NoneLacksLimit(id) ? steps_without_gap : steps_with_gap, sidecars.limits.Get(id));
    raise(steps_by_request, sidecars.by_request.Get(id));
  }

  // With `overhead`, but for what the pod level says.
  PartialLimit Of(ResourceId id, Quantity overhead) const {
    const auto amount = [&](Quantity a, Quantity b) {
      Quantity sum = std::max(a, b);
      sum.Add(overhead);
      return ToAmount(id, sum);
    };
    PartialLimit limit;
    limit.resource = id;
    limit.bounded = running.AllHaveLimit(id);
    limit.stated = running.with_a_limit.Get(id) > 0 || init_with_a_limit.Get(id) > 0;
    limit.by_request = amount(running.by_request.Get(id), steps_by_request.Get(id));
    if (limit.bounded) {
      limit.whole = amount(running.limits.Get(id), steps_without_gap.Get(id));
    } else {
      limit.with_gap = amount(running.limits.Get(id), steps_with_gap.Get(id));
      limit.whole = amount(steps_without_gap.Get(id), Quantity());
    }
    return limit;
  }
};

// The sums by each reading that counts: the pod counts as the most of them. A container has a limit if one of
// its readings has. If all have one, the limits in the status of the pod replace the sum of theirs.
class SumsByReading {
 public:
  SumsByReading(const PodResources& pod, bool use_status)
      : amounts_(pod, use_status), most_(pod, amounts_, Reading::kMost) {
    const std::span<const Reading> readings = amounts_.Readings(AmountKind::kRequests);
    if (readings.size() == 1) return;  // the most is all there is
    for (const Reading reading : readings) sums_.emplace_back(reading, PodSums(pod, amounts_, reading));
  }

  // With `overhead`, but for what the pod level says.
  PartialLimit Of(ResourceId id, Quantity overhead) const {
    PartialLimit limit = most_.Of(id, overhead);
    if (sums_.empty()) return limit;
    limit.by_request = limit.with_gap = limit.whole = 0;
    for (const auto& [reading, sums] : sums_) {
      PartialLimit one = sums.Of(id, overhead);
      const ResourceList* const stated = amounts_.SumOfStatus(AmountKind::kLimits, reading);
      if (limit.bounded && stated != nullptr && HasLimit(*stated, id)) {
        Quantity sum = stated->Get(id);
        sum.Add(overhead);
        one = {.resource = id, .by_request = ToAmount(id, sum), .whole = ToAmount(id, sum)};
      }
      limit.by_request = std::max(limit.by_request, one.by_request);
      limit.whole = std::max(limit.whole, one.whole);
      int64_t& gapped = limit.bounded ? limit.whole : limit.with_gap;
      gapped = std::max(gapped, one.with_gap);
    }
    return limit;
  }

  // The sums with the most of all readings: each resource of a container is among them.
  const PodSums& most() const { return most_; }

 private:
  ContainerAmounts amounts_;
  PodSums most_;
  std::vector<std::pair<Reading, PodSums>> sums_;
};

}  // namespace

PartialLimit LimitOfOneContainer(ResourceId resource, int64_t effective_request, int64_t effective_limit) {
  PartialLimit limit;
  limit.resource = resource;
  limit.bounded = limit.stated = effective_limit > 0;
  limit.by_request = limit.bounded ? effective_limit : effective_request;
  limit.whole = effective_limit;
  return limit;
}

std::vector<PartialLimit> PartialLimits(const PodResources& pod, const ResourceNames& names,
                                        bool use_status) {
  // Most pods, for which the effective amounts tell it all.
  if (pod.containers.size() <= 1 && pod.init_containers.empty() && pod.overhead.empty() &&
      !pod.pod_level.has_value()) {
    return {};
  }
  const ResourceList requests = EffectiveRequests(pod, names, use_status);
  const ResourceList limits = EffectiveLimits(pod, names, use_status);
  const SumsByReading sums(pod, use_status);
  ResourceList stated = requests;  // each resource that the pod names in any place
  RaiseTo(stated, limits);
  RaiseTo(stated, sums.most().steps_by_request);
  if (pod.pod_level.has_value() || pod.pod_level_status.has_value()) {
    RaiseTo(stated, sums.most().running.by_request);
  }
  std::vector<PartialLimit> result;
  for (const auto& [id, unused] : stated) {
    const int64_t request = ToAmount(id, requests.Get(id));
    const int64_t effective = ToAmount(id, limits.Get(id));
    const PartialLimit one = LimitOfOneContainer(id, request, effective);
    PartialLimit limit = sums.Of(id, pod.overhead.Get(id));
    if (pod.pod_level.has_value() && SetsPodLevel(names.name(id))) {
      if (pod.pod_level->limits.Find(id) != nullptr && effective > 0) {
        limit = {id, /*bounded=*/true, limit.stated, effective, /*with_gap=*/0, effective};
      } else if (pod.pod_level->requests.Find(id) != nullptr) {
        limit.by_request = std::max(limit.by_request, request);
      }
    }
    if (limit != one) result.push_back(limit);
  }
  return result;
}

std::vector<std::string> ContainersWithoutLimit(const PodResources& pod, ResourceId resource,
                                                const ResourceNames& names, bool use_status) {
  std::vector<std::string> without;
  if (pod.pod_level.has_value() && SetsPodLevel(names.name(resource)) &&
      HasLimit(pod.pod_level->limits, resource) &&
      HasLimit(EffectiveLimits(pod, names, use_status), resource)) {
    return without;
  }
  const ContainerAmounts amounts(pod, use_status);
  const auto look_at = [&](const ContainerResources& container) {
    if (!HasLimit(amounts.Of(container, AmountKind::kLimits, Reading::kMost), resource)) {
      without.push_back(container.name);
    }
  };
  for (const ContainerResources& container : pod.containers) look_at(container);
  for (const ContainerResources& container : pod.init_containers) {
    if (container.sidecar) look_at(container);
  }
  return without;
}

}  // namespace loadline
