#include "core/slack/slack_class.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace loadline {
namespace {

constexpr absl::string_view kInstanceTypes[] = {"node.kubernetes.io/instance-type",
                                                "beta.kubernetes.io/instance-type"};

// Rounded down to six binary digits.
int64_t Band(int64_t memory) {
  const int spare = static_cast<int>(std::bit_width(static_cast<uint64_t>(memory))) - 6;
  return spare <= 0 ? memory : memory >> spare << spare;
}

}  // namespace

CpuMemory CpuMemoryOf(const ResourceAmounts& amounts) { return {amounts.Get(kCpu), amounts.Get(kMemory)}; }

const LabelKeys& DefaultClassLabels() {
  static const LabelKeys* const kKeys =
      new LabelKeys{"kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type",
                    "topology.kubernetes.io/zone"};
  return *kKeys;
}

bool IsPassing(const Taint& taint) {
  for (const absl::string_view prefix :
       {"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler", "startup-taint.cluster-autoscaler.kubernetes.io/",
        "status-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/",
        "karpenter.sh/disrupted", "karpenter.sh/unregistered", "atlassian.com/escalator"}) {
    if (absl::StartsWith(taint.key, prefix)) return true;
  }
  return false;
}

bool TakesPlaceholders(const NodeShape& node) {
  return !node.unschedulable && std::none_of(node.taints.begin(), node.taints.end(), [](const Taint& taint) {
    return taint.Repels() && IsPassing(taint);
  });
}

SlackClassKey ClassOf(const NodeShape& node, const LabelKeys& label_keys, const LabelKeys& selected) {
  SlackClassKey key;
  std::string type;
  for (const Label& label : node.labels) {
    if (!std::binary_search(label_keys.begin(), label_keys.end(), label.key)) continue;
    key.labels.Set(label.key, label.value);
    const bool by_size =
        absl::c_linear_search(kInstanceTypes, label.key) && !absl::c_linear_search(selected, label.key);
    absl::StrAppend(by_size ? &type : &key.family, label.key, "=", label.value, ",");
  }
  for (const Taint& taint : node.taints) {
    if (taint.Repels() && !IsPassing(taint)) key.taints.push_back(taint);
  }
  const auto order = [](const Taint& taint) { return std::tie(taint.key, taint.value, taint.effect); };
  std::sort(key.taints.begin(), key.taints.end(),
            [&](const Taint& a, const Taint& b) { return order(a) < order(b); });
  for (const Taint& taint : key.taints) {
    absl::StrAppend(&key.family, "taint ", taint.key, "=", taint.value, ":", taint.effect, ",");
  }
  const CpuMemory size = CpuMemoryOf(node.allocatable);
  key.name = absl::StrCat(key.family, type, "cpu ", size.cpu, "m,memory ", Band(size.memory));
  return key;
}

}  // namespace loadline
