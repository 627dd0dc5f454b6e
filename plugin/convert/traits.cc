#include "plugin/convert/traits.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/cluster/node_annotations.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"
#include "plugin/convert/usage.h"

namespace loadline {
namespace {

constexpr char kPlaceholderLabel[] = "loadline.dev/placeholder";
// The value of manifests/autoscaler/slack, PriorityClass loadline-placeholder.
constexpr int32_t kPlaceholderPriority = -10;
constexpr char kWorkload[] = "loadline.dev/workload";
constexpr char kSlack[] = "loadline.dev/slack";
constexpr size_t kMaxProviderIdLength = 4096;
constexpr char kSlackCopies[] = "loadline.dev/slack-copies";

bool Is(const StringEntries& entries, absl::string_view key, absl::string_view value) {
  const std::string* const found = FindEntry(entries, key);
  return found != nullptr && *found == value;
}

// Notes an annotation that protects by a value which nobody knows.
void NoteUnknownProtection(absl::string_view key, absl::string_view value, std::string* unknown) {
  absl::StrAppend(unknown, unknown->empty() ? "" : ", ", key, ": ", Quoted(value));
}

SafeToEvict ReadSafeToEvict(const StringEntries& annotations, std::string* unknown) {
  constexpr char kSafeToEvict[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  const std::string* const value = FindEntry(annotations, kSafeToEvict);
  if (value == nullptr) return SafeToEvict::kUnstated;
  if (*value == "true") return SafeToEvict::kYes;
  if (*value == "false") return SafeToEvict::kNo;
  if (*value == "on-completion") return SafeToEvict::kOnCompletion;
  NoteUnknownProtection(kSafeToEvict, *value, unknown);
  return SafeToEvict::kNo;
}

// Returns a duration as Go writes it, in seconds, rounded up; nullopt: the text is none, or it is not
// positive.
std::optional<int64_t> ReadSeconds(const std::string& text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration)) return std::nullopt;
  // Go has no longer ones.
  if (duration <= absl::ZeroDuration() || duration > absl::Nanoseconds(INT64_MAX)) return std::nullopt;
  return absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1)));
}

// Returns the end of a protection that lasts for so long from the start of the pod, at a full minute;
// nullopt: nobody knows when it started.
std::optional<int64_t> EndOfProtection(const k8s::v1::Pod& message, int64_t seconds) {
  constexpr int64_t kLatestS = int64_t{1} << 52;  // far from any overflow
  const int64_t start_s = message.status().start_time().seconds();
  if (!message.status().has_start_time() || start_s < 0 || start_s > kLatestS) return std::nullopt;
  return (start_s + seconds + 59) / 60 * 60;
}

// Source: Karpenter 1.12 takes "true" and positive durations of Go from status.startTime, and passes over all
// other values.
void ReadDoNotDisrupt(const k8s::v1::Pod& message, PodTraits* traits) {
  for (const absl::string_view key : {"karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict"}) {
    const std::string* const value = FindEntry(message.metadata().annotations(), key);
    if (value == nullptr || *value == "false") continue;
    const bool again = std::exchange(traits->do_not_disrupt, true);
    const std::optional<int64_t> seconds = ReadSeconds(*value);
    std::optional<int64_t> until_s;
    if (seconds.has_value()) until_s = EndOfProtection(message, *seconds);
    if (!seconds.has_value() && *value != "true")
      NoteUnknownProtection(key, *value, &traits->unknown_protection);
    // The longer one of two protections counts.
    const bool ends = until_s.has_value() && (!again || traits->do_not_disrupt_until_s.has_value());
    traits->do_not_disrupt_until_s = ends ? std::max(until_s, traits->do_not_disrupt_until_s) : std::nullopt;
  }
}

// Kubernetes refuses a sign "+" and zeros in front.
int32_t ReadDeletionCost(const StringEntries& annotations) {
  const std::string* const value = FindEntry(annotations, "controller.kubernetes.io/pod-deletion-cost");
  int32_t cost = 0;
  if (value == nullptr || !absl::SimpleAtoi(*value, &cost) || absl::StrCat(cost) != *value) return 0;
  return cost;
}

// The names in the annotation are taken as they are, without trimming.
std::string FirstLocalVolume(const k8s::v1::Pod& message) {
  const std::string* const list = FindEntry(message.metadata().annotations(),
                                            "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes");
  const std::vector<std::string> safe =
      list == nullptr ? std::vector<std::string>() : absl::StrSplit(*list, ',');
  for (const k8s::v1::Volume& volume : message.spec().volumes()) {
    const k8s::v1::VolumeSource& source = volume.volume_source();
    const bool local =
        source.has_host_path() || (source.has_empty_dir() && source.empty_dir().medium() != "Memory");
    if (local && !absl::c_linear_search(safe, volume.name())) return Printable(volume.name());
  }
  return "";
}

std::optional<PodOwner> ReadOwner(const k8s::v1::ObjectMeta& metadata) {
  for (const k8s::v1::OwnerReference& owner : metadata.owner_references()) {
    if (owner.controller())
      return PodOwner{Printable(owner.kind()), Printable(owner.api_version()), Printable(owner.name()),
                      Printable(owner.uid())};
  }
  return std::nullopt;
}

// Returns whether the pod is one of a Deployment that gives way to all others. In the namespace of slack
// nobody else may create any: who may, is an administrator.
bool IsOurs(const PodTraits& traits) {
  return traits.owner.has_value() && traits.owner->kind == "ReplicaSet" &&
         absl::StartsWith(traits.owner->api_version, "apps/") && traits.priority <= kPlaceholderPriority;
}

PodPhase ReadPhase(const std::string& phase) {
  if (phase == "Pending") return PodPhase::kPending;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  return phase == "Failed" ? PodPhase::kFailed : PodPhase::kUnfinished;
}

}  // namespace

SlackWish ReadSlackWish(const StringEntries& annotations) {
  SlackWish wish;
  if (const std::string* const value = FindEntry(annotations, kSlack)) {
    wish.opted_out = *value == "false";
    if (!wish.opted_out && *value != "true") {
      wish.error = absl::StrCat(kSlack, ": ", Quoted(*value), " is neither true nor false");
    }
  }
  if (const std::string* const value = FindEntry(annotations, kSlackCopies)) {
    int32_t copies = 0;
    if (absl::SimpleAtoi(*value, &copies) && copies >= 0) {
      wish.copies = copies;
    } else {
      wish.error = absl::StrCat(kSlackCopies, ": ", Quoted(*value), " is not a number from 0 to 2147483647");
    }
  }
  return wish;
}

PodTraits ReadPodTraits(const k8s::v1::Pod& message, absl::string_view slack_namespace) {
  const k8s::v1::ObjectMeta& metadata = message.metadata();
  const StringEntries& annotations = metadata.annotations();
  const k8s::v1::PodSpec& spec = message.spec();
  PodTraits traits;
  traits.owner = ReadOwner(metadata);
  const std::string* const workload = FindEntry(annotations, kWorkload);
  if (workload != nullptr) traits.workload = ReadPodWorkload(*workload);
  traits.phase = ReadPhase(message.status().phase());
  for (const k8s::v1::PodCondition& condition : message.status().conditions()) {
    if (condition.type() == "Ready") traits.ready = condition.status() == "True";
  }
  if (metadata.has_deletion_timestamp()) traits.deleted_s = metadata.deletion_timestamp().seconds();
  if (spec.has_termination_grace_period_seconds()) traits.grace_s = spec.termination_grace_period_seconds();
  if (metadata.has_creation_timestamp() && metadata.namespace_() == "kube-system") {
    traits.created_s = metadata.creation_timestamp().seconds();
  }
  traits.priority = spec.priority();
  traits.mirror = FindEntry(annotations, "kubernetes.io/config.mirror") != nullptr;
  traits.static_pod = Is(annotations, "kubernetes.io/config.source", "file");
  traits.daemon_by_annotation = Is(annotations, "cluster-autoscaler.kubernetes.io/daemonset-pod", "true");
  traits.safe_to_evict = ReadSafeToEvict(annotations, &traits.unknown_protection);
  ReadDoNotDisrupt(message, &traits);
  traits.deletion_cost = ReadDeletionCost(annotations);
  constexpr char kEvictDaemon[] = "cluster-autoscaler.kubernetes.io/enable-ds-eviction";
  if (Is(annotations, kEvictDaemon, "true")) traits.evict_daemon = true;
  if (Is(annotations, kEvictDaemon, "false")) traits.evict_daemon = false;
  traits.local_volume = FirstLocalVolume(message);
  traits.placeholder = FindEntry(metadata.labels(), kPlaceholderLabel) != nullptr &&
                       metadata.namespace_() == slack_namespace && IsOurs(traits);
  traits.states_affinity = spec.has_affinity();
  traits.slack = ReadSlackWish(annotations);
  return traits;
}

namespace {

// The set of machines that made a node, which OpenShift's Machine API and Cluster API state by annotations
// alone. OpenShift names the machine: that of its set, "-" and five letters.
std::string MachineSetOf(const StringEntries& annotations) {
  constexpr size_t kSuffix = 6;
  if (const std::string* const machine = FindEntry(annotations, "machine.openshift.io/machine")) {
    absl::string_view name = *machine;
    if (const size_t slash = name.rfind('/'); slash != absl::string_view::npos) name.remove_prefix(slash + 1);
    if (name.size() > kSuffix && name[name.size() - kSuffix] == '-') {
      name.remove_suffix(kSuffix);
      return Printable(name);
    }
  }
  if (!Is(annotations, "cluster.x-k8s.io/owner-kind", "MachineSet")) return "";
  const std::string* const owner = FindEntry(annotations, "cluster.x-k8s.io/owner-name");
  return owner == nullptr ? "" : Printable(*owner);
}

}  // namespace

NodeTraits ReadNodeTraits(const k8s::v1::Node& message) {
  const k8s::v1::ObjectMeta& metadata = message.metadata();
  NodeTraits traits;
  traits.uid = Printable(metadata.uid());
  traits.provider_id = Printable(message.spec().provider_id(), kMaxProviderIdLength);
  if (metadata.has_creation_timestamp()) traits.created_s = metadata.creation_timestamp().seconds();
  if (metadata.has_deletion_timestamp()) traits.deleted_s = metadata.deletion_timestamp().seconds();
  // A kubelet that has reported nothing is not ready.
  traits.ready = message.status().conditions_size() > 0 || message.status().allocatable_size() > 0;
  for (const k8s::v1::NodeCondition& condition : message.status().conditions()) {
    const bool is_true = condition.status() == "True";
    if (condition.type() == "Ready" && !is_true) traits.ready = false;
    if ((condition.type() == "DiskPressure" || condition.type() == "NetworkUnavailable") && is_true) {
      traits.ready = false;
    }
  }
  if (const std::string* const price = FindEntry(metadata.annotations(), kNodePriceKey)) {
    traits.stated_price = Printable(*price);
  }
  traits.machine_set = MachineSetOf(metadata.annotations());
  for (const NodeAnnotationEntry& entry : NodeAnnotations()) {
    const std::string* const value = FindEntry(metadata.annotations(), entry.key);
    if (value == nullptr || *value == (entry.any_text ? "" : "false")) continue;
    traits.annotations |= BitOf(entry.annotation);
    if (!entry.any_text && *value != "true")
      NoteUnknownProtection(entry.key, *value, &traits.unknown_protection);
  }
  return traits;
}

}  // namespace loadline
