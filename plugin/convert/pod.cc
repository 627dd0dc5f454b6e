#include "plugin/convert/pod.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/error_details.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod_rules.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"

namespace loadline {
namespace {

using Containers = google::protobuf::RepeatedPtrField<k8s::v1::Container>;
using ContainerStatuses = google::protobuf::RepeatedPtrField<k8s::v1::ContainerStatus>;

// `status`, which may be OK, with the path of a list element before its text.
absl::Status AnnotateElement(const absl::Status& status, absl::string_view field, int index,
                             absl::string_view name) {
  if (status.ok()) return status;
  return Annotate(status, absl::StrCat(field, "[", index, "] ", Quoted(name)));
}

absl::Status ReadContainer(const k8s::v1::Container& message, ResourceReader* resources,
                           ContainerResources* container) {
  container->name = message.name();
  container->sidecar = message.restart_policy() == "Always";
  absl::Status status =
      resources->Read(message.resources().requests(), "resources.requests", &container->requests);
  status.Update(resources->Read(message.resources().limits(), "resources.limits", &container->limits));
  return status;
}

template <typename List>
absl::Status ReadContainers(const Containers& messages, absl::string_view field, ResourceReader* resources,
                            List* containers) {
  absl::Status status = CheckEntries(messages.size(), field, kMaxContainers);
  const int count = std::min(messages.size(), kMaxContainers);
  containers->reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const absl::Status of_container = ReadContainer(messages[i], resources, &containers->emplace_back());
    if (status.ok()) status = AnnotateElement(of_container, field, i, messages[i].name());
  }
  return status;
}

absl::Status ReadContainerStatus(const k8s::v1::ContainerStatus& message, ResourceReader* resources,
                                 ContainerStatusResources* container) {
  container->name = message.name();
  container->has_resources = message.has_resources();
  absl::Status status =
      resources->Read(message.resources().requests(), "resources.requests", &container->requests);
  status.Update(resources->Read(message.resources().limits(), "resources.limits", &container->limits));
  status.Update(resources->Read(message.allocated_resources(), "allocatedResources", &container->allocated));
  return status;
}

absl::Status ReadContainerStatuses(const ContainerStatuses& messages, absl::string_view field,
                                   ResourceReader* resources, PodResources* pod) {
  absl::Status status = CheckEntries(messages.size(), field, kMaxContainers);
  const int count = std::min(messages.size(), kMaxContainers);
  for (int i = 0; i < count; ++i) {
    const absl::Status of_container =
        ReadContainerStatus(messages[i], resources, &pod->container_statuses.emplace_back());
    if (status.ok()) status = AnnotateElement(of_container, field, i, messages[i].name());
  }
  return status;
}

// Says whether a pod states a resource anywhere but in the amounts of its spec for the pod as a whole.
bool Names(const PodResources& pod, ResourceId id) {
  const auto in = [id](const ResourceList& list) { return list.Find(id) != nullptr; };
  const auto stated = [id](const std::optional<ResourceList>& list) {
    return list.has_value() && list->Find(id) != nullptr;
  };
  const auto in_spec = [&](const ContainerResources& container) {
    return in(container.requests) || in(container.limits);
  };
  const auto in_status = [&](const ContainerStatusResources& container) {
    return stated(container.requests) || stated(container.limits) || stated(container.allocated);
  };
  if (pod.pod_level_status.has_value() &&
      (stated(pod.pod_level_status->requests) || stated(pod.pod_level_status->limits))) {
    return true;
  }
  return stated(pod.pod_level_allocated) ||
         std::any_of(pod.containers.begin(), pod.containers.end(), in_spec) ||
         std::any_of(pod.init_containers.begin(), pod.init_containers.end(), in_spec) ||
         std::any_of(pod.container_statuses.begin(), pod.container_statuses.end(), in_status);
}

// Amounts of 0 count as absent, but what a pod as a whole states of huge pages replaces the sum of its
// containers, also by 0.
void KeepZeros(const QuantityEntries& entries, const ResourceNames& names, const PodResources& pod,
               ResourceList* list) {
  const int count = std::min(entries.size(), static_cast<int>(kMaxResourceEntries));
  for (int i = 0; i < count; ++i) {
    if (!absl::StartsWith(entries[i].key(), "hugepages-")) continue;
    const std::optional<ResourceId> id = names.Find(entries[i].key());
    if (!id.has_value() || list->Find(*id) != nullptr || !Names(pod, *id)) continue;
    const absl::StatusOr<ParsedQuantity> amount = ParseAmount(entries[i].value().string());
    if (!entries[i].value().has_string() || (amount.ok() && amount->value.IsZero()))
      (*list)[*id] = Quantity();
  }
}

void KeepZeros(const QuantityEntries& entries, const ResourceNames& names, const PodResources& pod,
               std::optional<ResourceList>* list) {
  if (list->has_value()) KeepZeros(entries, names, pod, &**list);
}

// Keeps what a pod as a whole states, in its spec and its status.
void KeepZerosOfPodLevel(const k8s::v1::Pod& message, const ResourceNames& names, PodResources* pod) {
  const k8s::v1::ResourceRequirements& spec = message.spec().resources();
  const k8s::v1::PodStatus& status = message.status();
  KeepZeros(spec.requests(), names, *pod, &pod->pod_level->requests);
  KeepZeros(spec.limits(), names, *pod, &pod->pod_level->limits);
  KeepZeros(status.allocated_resources(), names, *pod, &pod->pod_level_allocated);
  if (!pod->pod_level_status.has_value()) return;
  KeepZeros(status.resources().requests(), names, *pod, &pod->pod_level_status->requests);
  KeepZeros(status.resources().limits(), names, *pod, &pod->pod_level_status->limits);
}

bool AnySetsPodLevel(const QuantityEntries& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const k8s::v1::QuantityEntry& entry) { return SetsPodLevel(entry.key()); });
}

CpuMemory ContainerRequests(const PodResources& pod) {
  const ResourceAmounts requests = ToAmounts(SimpleRequests(pod));
  return {requests.Get(kCpu), requests.Get(kMemory)};
}

// The first condition of that type decides, as for the kubelet and the scheduler.
bool ResizeIsInfeasible(const k8s::v1::PodStatus& status) {
  for (const k8s::v1::PodCondition& condition : status.conditions()) {
    if (condition.type() == "PodResizePending") return condition.reason() == "Infeasible";
  }
  return false;
}

}  // namespace

absl::Status PodDecoder::ReadSpec(PodResources* pod) {
  const k8s::v1::PodSpec& spec = message_.spec();
  absl::Status status = ReadContainers(spec.containers(), "spec.containers", resources_, &pod->containers);
  status.Update(
      ReadContainers(spec.init_containers(), "spec.initContainers", resources_, &pod->init_containers));
  status.Update(resources_->Read(spec.overhead(), "spec.overhead", &pod->overhead));
  if (!spec.has_resources()) return status;
  PodLevelResources& level = pod->pod_level.emplace();
  level.sets_requests = AnySetsPodLevel(spec.resources().requests());
  level.sets_limits = AnySetsPodLevel(spec.resources().limits());
  status.Update(resources_->Read(spec.resources().requests(), "spec.resources.requests", &level.requests));
  status.Update(resources_->Read(spec.resources().limits(), "spec.resources.limits", &level.limits));
  return status;
}

absl::Status PodDecoder::ReadStatus(PodResources* pod) {
  const k8s::v1::PodStatus& message = message_.status();
  pod->resize_infeasible = ResizeIsInfeasible(message);
  pod->resize_rule = resources_->options().resize_rule;
  absl::Status status =
      ReadContainerStatuses(message.container_statuses(), "status.containerStatuses", resources_, pod);
  status.Update(ReadContainerStatuses(message.init_container_statuses(), "status.initContainerStatuses",
                                      resources_, pod));
  status.Update(resources_->Read(message.allocated_resources(), "status.allocatedResources",
                                 &pod->pod_level_allocated));
  if (!message.has_resources()) return status;
  PodLevelStatusResources& level = pod->pod_level_status.emplace();
  status.Update(
      resources_->Read(message.resources().requests(), "status.resources.requests", &level.requests));
  status.Update(resources_->Read(message.resources().limits(), "status.resources.limits", &level.limits));
  return status;
}

absl::Status PodDecoder::Read(absl::string_view bytes, PodRole role, PodShape* shape) {
  message_.Clear();
  labels_ = Labels();
  if (absl::Status status = CheckObjectSize(bytes); !status.ok()) {
    ReadName(bytes, message_.mutable_metadata());
    return status;
  }
  if (absl::Status status = ParseObject(bytes, "k8s.io.api.core.v1.Pod", &message_); !status.ok())
    return status;
  const std::string& namespace_name = message_.metadata().namespace_();
  if (absl::Status status = CheckName(namespace_name); !status.ok()) {
    return Annotate(status, "metadata.namespace");
  }
  labels_ = ReadLabels(message_.metadata().labels());
  resources_->OfPod(namespace_name);
  pod_ = PodResources();
  PodRules rules;
  absl::Status status = ReadSpec(&pod_);
  status.Update(ReadPodRules(message_, labels_, role, &rules));
  if (role == PodRole::kExisting) status.Update(ReadStatus(&pod_));
  if (pod_.pod_level.has_value()) KeepZerosOfPodLevel(message_, resources_->names(), &pod_);
  if (!status.ok()) status = Annotate(status, absl::StrCat("(namespace ", Quoted(namespace_name), ")"));
  PodTraits traits = ReadPodTraits(message_, resources_->options().slack_namespace);
  const bool finished = role == PodRole::kExisting && HasFinished(traits.phase);
  if (!pod_.init_containers.empty() || !pod_.overhead.empty() || pod_.pod_level.has_value() ||
      !pod_.container_statuses.empty()) {
    traits.container_requests = ContainerRequests(pod_);
  }
  if (!status.ok() && role == PodRole::kExisting) traits.unreadable = ReasonOf(status);
  *shape = MakePodShape(namespace_name, finished, pod_, resources_->names(), role, std::move(rules),
                        std::move(traits));
  for (const auto& [amounts, what] : {std::pair(&shape->requests, "requests"), {&shape->limits, "limits"}}) {
    if (amounts->size() <= kMaxPodResources || !status.ok()) continue;
    status = absl::InvalidArgumentError(absl::StrCat(
        "(namespace ", Quoted(namespace_name), "): spec.containers: resources.", what, ": has ",
        amounts->size(), " distinct entries in all, at most ", kMaxPodResources, " are allowed"));
    if (role == PodRole::kExisting) LeaveOutSelectors(ReasonOf(status), shape);
  }
  return status;
}

absl::StatusOr<PodShape> PodDecoder::Decode(absl::string_view bytes, PodRole role) {
  PodShape shape;
  if (absl::Status status = Read(bytes, role, &shape); !status.ok()) return status;
  return shape;
}

absl::StatusOr<PodShape> PodDecoder::DecodeAsked(absl::string_view bytes) {
  PodShape shape;
  absl::Status status = Read(bytes, PodRole::kIncoming, &shape);
  const std::string& namespace_name = message_.metadata().namespace_();
  if (status.ok() && message_.spec().containers().empty()) {
    status = absl::InvalidArgumentError(
        absl::StrCat("(namespace ", Quoted(namespace_name), "): spec.containers: required"));
  }
  if (!status.ok()) return WithObject(status, "Pod", namespace_name, name());
  return shape;
}

PodShape PodDecoder::DecodeBound(absl::string_view bytes) {
  PodShape shape;
  const absl::Status status = Read(bytes, PodRole::kExisting, &shape);
  if (status.ok() || !TraitsOf(shape).unreadable.empty()) return shape;
  PodTraits traits;
  traits.unreadable = ReasonOf(status);
  const std::string& namespace_name = message_.metadata().namespace_();
  return MakePodShape(CheckName(namespace_name).ok() ? namespace_name : "", /*finished=*/false, {},
                      resources_->names(), PodRole::kExisting, {}, std::move(traits));
}

}  // namespace loadline
