#include "core/price/capacity_type.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"

namespace loadline {
namespace {

// How the value of a label is read.
enum class Reading {
  kWord,      // the value names the capacity type
  kFlag,      // true, or no value: spot. Else it says nothing.
  kReserves,  // any value: reserved, as it names the reservation
};

struct KnownLabel {
  absl::string_view key;
  Reading reading;
};

// Platforms first, conventions after them.
constexpr KnownLabel kLabels[] = {
    {"karpenter.sh/capacity-type", Reading::kWord},
    {"eks.amazonaws.com/capacityType", Reading::kWord},
    {"cloud.google.com/gke-spot", Reading::kFlag},
    {"cloud.google.com/gke-preemptible", Reading::kFlag},
    {"cloud.google.com/gke-provisioning", Reading::kWord},
    {"cloud.google.com/reservation-name", Reading::kReserves},
    {"kubernetes.azure.com/scalesetpriority", Reading::kWord},
    {"oci.oraclecloud.com/oke-is-preemptible", Reading::kFlag},
    {"yandex.cloud/preemptible", Reading::kFlag},
    {"machine.openshift.io/interruptible-instance", Reading::kFlag},
    {"cluster.x-k8s.io/interruptible", Reading::kFlag},
    {"node.alibabacloud.com/spot-strategy", Reading::kWord},
    {"spotinst.io/node-lifecycle", Reading::kWord},
    {"scheduling.cast.ai/spot", Reading::kFlag},
    {"node-role.kubernetes.io/spot-worker", Reading::kFlag},
    {"node-role.kubernetes.io/spot", Reading::kFlag},
    {"node.kubernetes.io/lifecycle", Reading::kWord},
    {"kubernetes.io/lifecycle", Reading::kWord},
    {"node.kubernetes.io/capacity-type", Reading::kWord},
    {"kubernetes.io/role", Reading::kWord},
    {"aws.amazon.com/spot", Reading::kFlag},
    {"node-lifecycle", Reading::kWord},
    {"lifecycle", Reading::kWord},
    {"capacity-type", Reading::kWord},
    {"capacityType", Reading::kWord},
};

struct Word {
  absl::string_view word;
  CapacityType type;
};

// In lower case, without '-' and '_'.
constexpr Word kWords[] = {
    {"spot", CapacityType::kSpot},
    {"ec2spot", CapacityType::kSpot},
    {"spotworker", CapacityType::kSpot},
    {"ondemandworker", CapacityType::kOnDemand},
    {"spotinstance", CapacityType::kSpot},
    {"spotinstances", CapacityType::kSpot},
    {"spotwithpricelimit", CapacityType::kSpot},
    {"spotaspricego", CapacityType::kSpot},
    {"nospot", CapacityType::kOnDemand},
    {"preemptible", CapacityType::kSpot},
    {"preemptable", CapacityType::kSpot},
    {"lowpriority", CapacityType::kSpot},
    {"low", CapacityType::kSpot},
    {"interruptible", CapacityType::kSpot},
    {"ondemand", CapacityType::kOnDemand},
    {"ec2ondemand", CapacityType::kOnDemand},
    {"od", CapacityType::kOnDemand},
    {"regular", CapacityType::kOnDemand},
    {"standard", CapacityType::kOnDemand},
    {"normal", CapacityType::kOnDemand},
    {"reserved", CapacityType::kReserved},
    {"reservation", CapacityType::kReserved},
    {"capacityblock", CapacityType::kReserved},
    {"capacityreservation", CapacityType::kReserved},
};

CapacityType Read(const KnownLabel& label, absl::string_view value) {
  if (label.reading == Reading::kReserves) return CapacityType::kReserved;
  const std::string word = absl::StrReplaceAll(absl::AsciiStrToLower(value), {{"-", ""}, {"_", ""}});
  if (label.reading == Reading::kFlag) {
    return word.empty() || word == "true" ? CapacityType::kSpot : CapacityType::kUnknown;
  }
  const auto* const found = absl::c_find_if(kWords, [&](const Word& w) { return w.word == word; });
  return found == std::end(kWords) ? CapacityType::kUnknown : found->type;
}

}  // namespace

absl::string_view Name(CapacityType type) {
  switch (type) {
    case CapacityType::kUnknown:
      return "";
    case CapacityType::kOnDemand:
      return "on-demand";
    case CapacityType::kSpot:
      return "spot";
    case CapacityType::kReserved:
      return "reserved";
  }
  return "invalid capacity type";
}

CapacityType CapacityTypeOf(const Labels& labels) {
  for (const KnownLabel& label : kLabels) {
    const std::string* const value = labels.Find(label.key);
    if (value == nullptr) continue;
    const CapacityType type = Read(label, *value);
    if (type != CapacityType::kUnknown) return type;
  }
  return CapacityType::kUnknown;
}

}  // namespace loadline
