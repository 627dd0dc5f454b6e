#include "core/cluster/container_amounts.h"

#include <algorithm>
#include <optional>

namespace loadline {
namespace {

// Few names are compared faster than hashed; many containers and statuses must not cost their product.
constexpr size_t kScanned = 8;

constexpr Reading kSpecAlone[] = {Reading::kSpec};
constexpr Reading kMostAlone[] = {Reading::kMost};
constexpr Reading kOfRequests[] = {Reading::kSpec, Reading::kAllocated, Reading::kActuated};
constexpr Reading kOfLimits[] = {Reading::kSpec, Reading::kActuated};

const ResourceList& Nothing() {
  static const ResourceList* const kNothing = new ResourceList;
  return *kNothing;
}

}  // namespace

ContainerAmounts::ContainerAmounts(const PodResources& pod, bool use_status)
    : pod_(pod), use_status_(use_status) {
  if (!use_status || pod.container_statuses.size() <= kScanned) return;
  for (const ContainerStatusResources& status : pod.container_statuses) {
    if (per_pod()) {
      by_name_.emplace(status.name, &status);
    } else {
      by_name_.insert_or_assign(status.name, &status);
    }
  }
}

std::span<const Reading> ContainerAmounts::Readings(AmountKind kind) const {
  if (!use_status_) return kSpecAlone;
  if (!per_pod()) return kMostAlone;
  if (pod_.container_statuses.empty() && !pod_.pod_level_status.has_value() && !pod_.resize_infeasible) {
    return kSpecAlone;  // the other sums are equal to this one
  }
  const std::span<const Reading> all =
      kind == AmountKind::kRequests ? std::span<const Reading>(kOfRequests) : kOfLimits;
  return pod_.resize_infeasible ? all.subspan(1) : all;  // nobody will act upon the spec
}

ResourceList ContainerAmounts::Of(const ContainerResources& container, AmountKind kind,
                                  Reading reading) const {
  if (!use_status_ || reading == Reading::kSpec) return SpecOf(container, kind);
  if (reading == Reading::kMost && !per_pod()) return MostPerContainer(container, kind);
  const ContainerStatusResources* const status = Find(container.name);
  if (reading != Reading::kMost) return ByReading(container, status, kind, reading);
  ResourceList most;
  for (const Reading each : Readings(kind)) RaiseTo(most, ByReading(container, status, kind, each));
  return most;
}

ResourceList ContainerAmounts::OfInit(const ContainerResources& container, AmountKind kind,
                                      Reading reading) const {
  return per_pod() ? Of(container, kind, reading) : SpecOf(container, kind);
}

const ResourceList* ContainerAmounts::SumOfStatus(AmountKind kind, Reading reading) const {
  if (!use_status_ || !per_pod() || reading == Reading::kSpec || !pod_.pod_level_status.has_value()) {
    return nullptr;
  }
  const PodLevelStatusResources& status = *pod_.pod_level_status;
  if (kind == AmountKind::kLimits) return status.limits.has_value() ? &*status.limits : nullptr;
  if (!status.requests.has_value() || !pod_.pod_level_allocated.has_value()) return nullptr;
  return reading == Reading::kAllocated ? &*pod_.pod_level_allocated : &*status.requests;
}

const ContainerStatusResources* ContainerAmounts::Find(const std::string& name) const {
  const std::vector<ContainerStatusResources>& statuses = pod_.container_statuses;
  if (statuses.size() > kScanned) {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const auto named = [&](const ContainerStatusResources& status) { return status.name == name; };
  if (per_pod()) {
    const auto first = std::find_if(statuses.begin(), statuses.end(), named);
    return first == statuses.end() ? nullptr : &*first;
  }
  const auto last = std::find_if(statuses.rbegin(), statuses.rend(), named);
  return last == statuses.rend() ? nullptr : &*last;
}

ResourceList ContainerAmounts::MostPerContainer(const ContainerResources& container, AmountKind kind) const {
  const ContainerStatusResources* const status = Find(container.name);
  if (status == nullptr || !status->has_resources) return SpecOf(container, kind);
  ResourceList most = (kind == AmountKind::kRequests ? status->requests : status->limits).value_or(Nothing());
  if (!pod_.resize_infeasible) RaiseTo(most, SpecOf(container, kind));
  if (kind == AmountKind::kRequests && status->allocated.has_value()) RaiseTo(most, *status->allocated);
  return most;
}

// The first that is there: what the status says by this reading, or by one that is nearer to the spec.
const ResourceList& ContainerAmounts::ByReading(const ContainerResources& container,
                                                const ContainerStatusResources* status, AmountKind kind,
                                                Reading reading) const {
  if (reading == Reading::kSpec) return SpecOf(container, kind);
  if (status != nullptr && kind == AmountKind::kLimits && status->limits.has_value()) return *status->limits;
  if (status != nullptr && kind == AmountKind::kRequests) {
    if (reading == Reading::kActuated && status->requests.has_value()) return *status->requests;
    if (status->allocated.has_value()) return *status->allocated;
  }
  return pod_.resize_infeasible ? Nothing() : SpecOf(container, kind);
}

}  // namespace loadline
