#include "core/cluster/pod_traits.h"

#include "absl/strings/string_view.h"
#include "core/cluster/node_annotations.h"
#include "core/cluster/node_kind.h"

namespace loadline {
namespace {

// Published: the default of terminationGracePeriodSeconds, and Cluster Autoscaler's
// PodLongTerminatingExtraThreshold.
constexpr int64_t kDefaultGraceS = 30;
constexpr int64_t kTerminatingHeadroomS = 30;

void AddText(const std::string& text, FingerprintBuilder* builder) { builder->Add(absl::string_view(text)); }

template <typename Number>
void AddOptional(const std::optional<Number>& number, FingerprintBuilder* builder) {
  builder->Add(int64_t{number.has_value()});
  if (number.has_value()) builder->Add(static_cast<int64_t>(*number));
}

}  // namespace

void PodTraits::AddTo(FingerprintBuilder* builder) const {
  builder->Add("traits");
  builder->Add(int64_t{owner.has_value()});
  if (owner.has_value()) {
    for (const std::string* text : {&owner->kind, &owner->api_version, &owner->name, &owner->uid}) {
      AddText(*text, builder);
    }
  }
  for (const int64_t number :
       {static_cast<int64_t>(phase), int64_t{ready}, int64_t{priority}, int64_t{mirror}, int64_t{static_pod},
        int64_t{daemon_by_annotation}, static_cast<int64_t>(safe_to_evict), int64_t{placeholder},
        int64_t{states_affinity}, int64_t{slack.opted_out}, int64_t{container_requests.has_value()}}) {
    builder->Add(number);
  }
  if (container_requests.has_value()) {
    builder->Add(container_requests->cpu);
    builder->Add(container_requests->memory);
  }
  for (const std::optional<int64_t>* time : {&deleted_s, &grace_s, &created_s}) AddOptional(*time, builder);
  AddOptional(evict_daemon, builder);
  AddOptional(slack.copies, builder);
  AddText(slack.error, builder);
  AddText(local_volume, builder);
  if (!unreadable.empty()) AddText(unreadable, builder);
  if (do_not_disrupt) builder->Add("do not disrupt");
  if (do_not_disrupt_until_s.has_value()) AddOptional(do_not_disrupt_until_s, builder);
  if (!unknown_protection.empty()) AddText(unknown_protection, builder);
  if (deletion_cost != 0) {
    builder->Add("deletion cost");
    builder->Add(int64_t{deletion_cost});
  }
  if (!workload.name.empty()) {
    builder->Add("workload");
    AddText(workload.name, builder);
    builder->Add(static_cast<int64_t>(workload.pod_template));
  }
}

bool IsDisruptionForbidden(const PodTraits& traits, int64_t now_s) {
  return traits.do_not_disrupt && now_s < traits.do_not_disrupt_until_s.value_or(INT64_MAX);
}

bool IsDaemonPod(const PodTraits& traits) {
  return traits.daemon_by_annotation || (traits.owner.has_value() && traits.owner->kind == "DaemonSet");
}

bool NodeTraits::Plain() const {
  NodeTraits plain;
  plain.capacity = capacity;
  return *this == plain;
}

void NodeTraits::AddTo(FingerprintBuilder* builder) const {
  builder->Add("traits");
  AddText(uid, builder);
  AddText(provider_id, builder);
  AddOptional(created_s, builder);
  builder->Add(int64_t{ready});
  if (deleted_s.has_value()) AddOptional(deleted_s, builder);
  for (const NodeAnnotationEntry& entry : NodeAnnotations()) {
    builder->Add(int64_t{States(*this, entry.annotation)});
  }
  if (!unknown_protection.empty()) AddText(unknown_protection, builder);
  if (!machine_set.empty()) AddText(machine_set, builder);
  if (!stated_price.empty()) AddText(stated_price, builder);
  if (kind != NodeKind::kMachine) builder->Add(static_cast<int64_t>(kind));
  if (!unreadable.empty()) AddText(unreadable, builder);
}

bool IsLongTerminating(std::optional<int64_t> deleted_s, std::optional<int64_t> grace_s, int64_t now_s) {
  if (!deleted_s.has_value()) return false;
  // In double: any time and any grace period may be stated, and seconds are exact where it matters.
  const double end = static_cast<double>(*deleted_s) + static_cast<double>(grace_s.value_or(kDefaultGraceS)) +
                     kTerminatingHeadroomS;
  return end < static_cast<double>(now_s);
}

}  // namespace loadline
