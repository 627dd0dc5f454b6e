#include "plugin/convert/pod.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod_rules.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"

namespace loadline {
namespace {

using Containers = google::protobuf::RepeatedPtrField<k8s::v1::Container>;
using ContainerStatuses = google::protobuf::RepeatedPtrField<k8s::v1::ContainerStatus>;

absl::Status CheckCount(int count, absl::string_view field) {
  if (count <= kMaxContainers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": has ", count, " entries, at most ", kMaxContainers, " are allowed"));
}

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
  if (absl::Status status =
          resources->Read(message.resources().requests(), "resources.requests", &container->requests);
      !status.ok()) {
    return status;
  }
  return resources->Read(message.resources().limits(), "resources.limits", &container->limits);
}

template <typename List>
absl::Status ReadContainers(const Containers& messages, absl::string_view field, ResourceReader* resources,
                            List* containers) {
  if (absl::Status status = CheckCount(messages.size(), field); !status.ok()) return status;
  containers->reserve(static_cast<size_t>(messages.size()));
  for (int i = 0; i < messages.size(); ++i) {
    absl::Status status = ReadContainer(messages[i], resources, &containers->emplace_back());
    if (!status.ok()) return AnnotateElement(status, field, i, messages[i].name());
  }
  return absl::OkStatus();
}

absl::Status ReadContainerStatus(const k8s::v1::ContainerStatus& message, ResourceReader* resources,
                                 ContainerStatusResources* container) {
  container->name = message.name();
  container->has_resources = message.has_resources();
  absl::Status status =
      resources->Read(message.resources().requests(), "resources.requests", &container->requests);
  if (status.ok()) {
    status = resources->Read(message.resources().limits(), "resources.limits", &container->limits);
  }
  if (status.ok()) {
    status = resources->Read(message.allocated_resources(), "allocatedResources", &container->allocated);
  }
  return status;
}

absl::Status ReadContainerStatuses(const ContainerStatuses& messages, absl::string_view field,
                                   ResourceReader* resources, PodResources* pod) {
  if (absl::Status status = CheckCount(messages.size(), field); !status.ok()) return status;
  for (int i = 0; i < messages.size(); ++i) {
    absl::Status status =
        ReadContainerStatus(messages[i], resources, &pod->container_statuses.emplace_back());
    if (!status.ok()) return AnnotateElement(status, field, i, messages[i].name());
  }
  return absl::OkStatus();
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
  if (status.ok()) {
    status = ReadContainers(spec.init_containers(), "spec.initContainers", resources_, &pod->init_containers);
  }
  if (status.ok()) status = resources_->Read(spec.overhead(), "spec.overhead", &pod->overhead);
  if (!status.ok() || !spec.has_resources()) return status;
  PodResources::PodLevel& level = pod->pod_level.emplace();
  status = resources_->Read(spec.resources().requests(), "spec.resources.requests", &level.requests);
  if (!status.ok()) return status;
  return resources_->Read(spec.resources().limits(), "spec.resources.limits", &level.limits);
}

absl::Status PodDecoder::ReadStatus(PodResources* pod) {
  const k8s::v1::PodStatus& message = message_.status();
  pod->resize_infeasible = ResizeIsInfeasible(message);
  absl::Status status =
      ReadContainerStatuses(message.container_statuses(), "status.containerStatuses", resources_, pod);
  if (status.ok()) {
    status = ReadContainerStatuses(message.init_container_statuses(), "status.initContainerStatuses",
                                   resources_, pod);
  }
  if (status.ok()) {
    status = resources_->Read(message.allocated_resources(), "status.allocatedResources",
                              &pod->pod_level_allocated);
  }
  if (!status.ok() || !message.has_resources()) return status;
  PodResources::PodLevelStatus& level = pod->pod_level_status.emplace();
  status = resources_->Read(message.resources().requests(), "status.resources.requests", &level.requests);
  if (!status.ok()) return status;
  return resources_->Read(message.resources().limits(), "status.resources.limits", &level.limits);
}

absl::StatusOr<PodShape> PodDecoder::Decode(absl::string_view bytes, PodRole role) {
  if (bytes.size() > kMaxObjectBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes, at most ", kMaxObjectBytes, " are allowed"));
  }
  if (absl::Status status = Parse(bytes, "k8s.io.api.core.v1.Pod", &message_); !status.ok()) return status;
  const std::string& namespace_name = message_.metadata().namespace_();
  if (absl::Status status = CheckName(namespace_name); !status.ok()) {
    return Annotate(status, "metadata.namespace");
  }
  labels_ = ReadLabels(message_.metadata().labels());
  pod_ = PodResources();
  PodRules rules;
  absl::Status status = ReadSpec(&pod_);
  if (status.ok()) status = ReadPodRules(message_, labels_, role, &rules);
  bool finished = false;
  if (status.ok() && role == PodRole::kExisting) {
    const std::string& phase = message_.status().phase();
    finished = phase == "Succeeded" || phase == "Failed";
    status = ReadStatus(&pod_);
  }
  if (!status.ok()) return Annotate(status, absl::StrCat("(namespace ", Quoted(namespace_name), ")"));
  PodTraits traits = ReadPodTraits(message_);
  if (!pod_.init_containers.empty() || !pod_.overhead.empty() || pod_.pod_level.has_value() ||
      !pod_.container_statuses.empty()) {
    traits.container_requests = ContainerRequests(pod_);
  }
  PodShape shape = MakePodShape(namespace_name, finished, pod_, resources_->names(), role, std::move(rules),
                                std::move(traits));
  for (const auto& [amounts, what] : {std::pair(&shape.requests, "requests"), {&shape.limits, "limits"}}) {
    if (amounts->size() <= kMaxPodResources) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "(namespace ", Quoted(namespace_name), "): spec.containers: resources.", what, ": has ",
        amounts->size(), " distinct entries in all, at most ", kMaxPodResources, " are allowed"));
  }
  return shape;
}

}  // namespace loadline
