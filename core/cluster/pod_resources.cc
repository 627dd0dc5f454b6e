#include "core/cluster/pod_resources.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

constexpr ResourceId kCpuAndMemory[] = {kCpu, kMemory};

// The half of the resources that is summed up.
enum class Kind { kRequests, kLimits };

const ResourceList& SpecOf(const ContainerResources& container, Kind kind) {
  return kind == Kind::kRequests ? container.requests : container.limits;
}

// The most of what spec, node and (requests) allocation state; without the spec after an infeasible resize.
ResourceList MostOf(const ResourceList& spec, const ResourceList& actuated, const ResourceList* allocated,
                    bool infeasible) {
  ResourceList most = actuated;
  if (!infeasible) RaiseTo(most, spec);
  if (allocated != nullptr) RaiseTo(most, *allocated);
  return most;
}

// Finds the status of a container by its name.
class Statuses {
 public:
  Statuses(const PodResources& pod, bool use_status) {
    if (!use_status) return;
    statuses_ = &pod.container_statuses;
    if (statuses_->size() <= kScanned) return;
    for (const ContainerStatusResources& status : *statuses_) by_name_.insert_or_assign(status.name, &status);
  }

  // The last status of that name, or nullptr where there is none or it states no resources.
  const ContainerStatusResources* Find(const std::string& name) const {
    const ContainerStatusResources* const status = Last(name);
    return status != nullptr && status->has_resources ? status : nullptr;
  }

 private:
  // Few names are compared faster than hashed; many containers and statuses must not cost their product.
  static constexpr size_t kScanned = 8;

  const ContainerStatusResources* Last(const std::string& name) const {
    if (statuses_ == nullptr) return nullptr;
    if (statuses_->size() > kScanned) {
      const auto found = by_name_.find(name);
      return found == by_name_.end() ? nullptr : found->second;
    }
    const auto found =
        std::find_if(statuses_->rbegin(), statuses_->rend(),
                     [&](const ContainerStatusResources& status) { return status.name == name; });
    return found == statuses_->rend() ? nullptr : &*found;
  }

  const std::vector<ContainerStatusResources>* statuses_ = nullptr;
  absl::flat_hash_map<absl::string_view, const ContainerStatusResources*> by_name_;
};

// What one regular container or sidecar counts for.
ResourceList Counted(const ContainerResources& container, Kind kind, const Statuses& statuses,
                     bool infeasible) {
  const ResourceList& spec = SpecOf(container, kind);
  const ContainerStatusResources* const status = statuses.Find(container.name);
  if (status == nullptr) return spec;
  if (kind == Kind::kRequests) return MostOf(spec, status->requests, &status->allocated, infeasible);
  return MostOf(spec, status->limits, nullptr, infeasible);
}

ResourceList SumOfContainers(const PodResources& pod, Kind kind, bool use_status) {
  const Statuses statuses(pod, use_status);
  ResourceList sum;
  for (const ContainerResources& container : pod.containers) {
    AddTo(sum, Counted(container, kind, statuses, pod.resize_infeasible));
  }
  ResourceList sidecars;  // those up to the current init container
  // The most that an init container and the sidecars before it take, of the resources that it states itself:
  // of others they take no more than the sum. Looking at all resources in each step would cost their product.
  ResourceList steps;
  for (const ContainerResources& container : pod.init_containers) {
    if (container.sidecar) {
      const ResourceList own = Counted(container, kind, statuses, pod.resize_infeasible);
      AddTo(sum, own);
      AddTo(sidecars, own);
    } else {
      for (const ResourceList::Entry& entry : SpecOf(container, kind)) {
        Quantity step = sidecars.Get(entry.id);
        step.Add(entry.value);
        RaiseTo(steps, entry.id, step);
      }
    }
  }
  RaiseTo(sum, steps);
  return sum;
}

bool SetsPodLevel(ResourceId id, const ResourceNames& names) {
  return id == kCpu || id == kMemory || absl::StartsWith(names.name(id), "hugepages-");
}

// Puts the pod level's values in place of the sums. `effective` are its values by the status, if that counts.
void ReplaceByPodLevel(ResourceList& sum, const ResourceList& spec,
                       const std::optional<ResourceList>& effective, const ResourceNames& names) {
  for (const ResourceList::Entry& entry : spec) {
    if (!SetsPodLevel(entry.id, names)) continue;
    sum[entry.id] = effective.has_value() ? effective->Get(entry.id) : entry.value;
  }
}

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

  PodSums(const PodResources& pod, bool use_status) {
    const Statuses statuses(pod, use_status);
    const auto add = [&](const ContainerResources& container, RunningSums* sums) {
      sums->Add(Counted(container, Kind::kLimits, statuses, pod.resize_infeasible),
                Counted(container, Kind::kRequests, statuses, pod.resize_infeasible));
    };
    for (const ContainerResources& container : pod.containers) add(container, &running);
    RunningSums sidecars;
    for (const ContainerResources& container : pod.init_containers) {
      if (container.sidecar) {
        add(container, &running);
        add(container, &sidecars);
        continue;
      }
      for (const auto& [id, limit] : container.limits) {
        if (!limit.IsPositive()) continue;
        ++init_with_a_limit[id];
        AddStep(sidecars, id, limit);
      }
      for (const auto& [id, request] : container.requests) {
        if (!HasLimit(container.limits, id)) AddStep(sidecars, id, request);
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

bool AnyCpuOrMemory(const ResourceList& list) {
  return list.Get(kCpu).IsPositive() || list.Get(kMemory).IsPositive();
}

bool AnyCpuOrMemory(const ContainerResources& container) {
  return AnyCpuOrMemory(container.requests) || AnyCpuOrMemory(container.limits);
}

}  // namespace

ResourceList EffectiveRequests(const PodResources& pod, const ResourceNames& names, bool use_status) {
  ResourceList requests = SumOfContainers(pod, Kind::kRequests, use_status);
  if (pod.pod_level.has_value()) {
    std::optional<ResourceList> effective;
    if (use_status && pod.pod_level_status.has_value()) {
      effective = MostOf(pod.pod_level->requests, pod.pod_level_status->requests, &pod.pod_level_allocated,
                         pod.resize_infeasible);
    }
    ReplaceByPodLevel(requests, pod.pod_level->requests, effective, names);
  }
  AddTo(requests, pod.overhead);
  return requests;
}

ResourceList EffectiveLimits(const PodResources& pod, const ResourceNames& names, bool use_status) {
  ResourceList limits = SumOfContainers(pod, Kind::kLimits, use_status);
  if (pod.pod_level.has_value()) {
    std::optional<ResourceList> effective;
    // After an infeasible resize a status without any limit leaves the spec in force, as in
    // component-helpers.
    if (use_status && pod.pod_level_status.has_value() &&
        !(pod.resize_infeasible && pod.pod_level_status->limits.empty())) {
      effective = MostOf(pod.pod_level->limits, pod.pod_level_status->limits, nullptr, pod.resize_infeasible);
    }
    ReplaceByPodLevel(limits, pod.pod_level->limits, effective, names);
  }
  for (const ResourceList::Entry& entry : pod.overhead) {
    if (Quantity* const limit = limits.Find(entry.id); limit != nullptr && !limit->IsZero()) {
      limit->Add(entry.value);
    }
  }
  return limits;
}

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
  const PodSums sums(pod, use_status);
  ResourceList stated = requests;  // each resource that the pod names in any place
  RaiseTo(stated, limits);
  RaiseTo(stated, sums.steps_by_request);
  if (pod.pod_level.has_value()) RaiseTo(stated, sums.running.by_request);
  std::vector<PartialLimit> result;
  for (const auto& [id, unused] : stated) {
    const int64_t request = ToAmount(id, requests.Get(id));
    const int64_t effective = ToAmount(id, limits.Get(id));
    const PartialLimit one = LimitOfOneContainer(id, request, effective);
    PartialLimit limit = sums.Of(id, pod.overhead.Get(id));
    if (pod.pod_level.has_value() && SetsPodLevel(id, names)) {
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
  if (pod.pod_level.has_value() && SetsPodLevel(resource, names) &&
      HasLimit(pod.pod_level->limits, resource) &&
      HasLimit(EffectiveLimits(pod, names, use_status), resource)) {
    return without;
  }
  const Statuses statuses(pod, use_status);
  const auto look_at = [&](const ContainerResources& container) {
    if (!HasLimit(Counted(container, Kind::kLimits, statuses, pod.resize_infeasible), resource)) {
      without.push_back(container.name);
    }
  };
  for (const ContainerResources& container : pod.containers) look_at(container);
  for (const ContainerResources& container : pod.init_containers) {
    if (container.sidecar) look_at(container);
  }
  return without;
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
