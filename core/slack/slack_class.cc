#include "core/slack/slack_class.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/bounded_name.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/node_model.h"
#include "core/cluster/platform_labels.h"

namespace loadline {
namespace {

// Rounded down to six binary digits.
int64_t Band(int64_t memory) {
  const int spare = static_cast<int>(std::bit_width(static_cast<uint64_t>(memory))) - 6;
  return spare <= 0 ? memory : memory >> spare << spare;
}

bool TaintBefore(const Taint& a, const Taint& b) {
  return std::tie(a.key, a.value, a.effect) < std::tie(b.key, b.value, b.effect);
}

}  // namespace

CpuMemory CpuMemoryOf(const ResourceAmounts& amounts) { return {amounts.Get(kCpu), amounts.Get(kMemory)}; }

const LabelKeys& DefaultClassLabels() {
  static const LabelKeys* const kKeys =
      new LabelKeys{"kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type",
                    "topology.kubernetes.io/zone"};
  return *kKeys;
}

bool TakesPlaceholders(const NodeShape& node, const StartupTaints& names) {
  return !node.unschedulable && absl::c_none_of(node.taints, [&](const Taint& taint) {
    return taint.Repels() && KindOfTaint(taint, names) != TaintKind::kLasting;
  });
}

SlackClassKey ClassOf(const NodeShape& node, const SlackClassRules& rules, const ResourceNames& names) {
  SlackClassKey key;
  std::string type;
  for (const Label& label : node.labels) {
    // Nobody knows which value a new node will have: no placeholder may ask for it.
    if (!absl::c_binary_search(rules.label_keys, label.key) || label.value == kOneOfSeveral) continue;
    key.labels.Set(label.key, label.value);
    const bool is_type = IsInstanceTypeLabel(label.key);
    if (!is_type || absl::c_binary_search(rules.selected, label.key)) {
      key.needs.Set(label.key, label.value);
    }
    absl::StrAppend(is_type ? &type : &key.name, label.key, "=", label.value, ",");
  }
  for (const Taint& taint : LastingTaints(node.taints, rules.startup_taints)) {
    if (taint.Repels()) key.taints.push_back(taint);
  }
  std::sort(key.taints.begin(), key.taints.end(), TaintBefore);
  for (const Taint& taint : key.taints) {
    absl::StrAppend(&key.name, "taint ", taint.key, "=", taint.value, ":", taint.effect, ",");
  }
  if (type.empty()) {
    const std::string gpus = GpuKindOf(node.labels, node.allocatable, names);
    if (!gpus.empty()) absl::StrAppend(&type, "gpus ", gpus, ",");
  }
  const CpuMemory size = CpuMemoryOf(node.allocatable);
  absl::StrAppend(&key.name, type, "cpu ", size.cpu, "m,memory ", Band(size.memory));
  key.name = BoundedName(std::move(key.name));  // whoever may write a pod says which labels count
  return key;
}

bool MayBeOn(const SlackClassKey& placeholder, const SlackClassKey& node) {
  return placeholder.needs == node.needs &&
         std::includes(placeholder.taints.begin(), placeholder.taints.end(), node.taints.begin(),
                       node.taints.end(), TaintBefore);
}

PodRules PlaceholderRules(const SlackClassKey& of, const LabelKeys& absent) {
  PodRules rules;
  rules.node_selector = of.needs;
  for (const Taint& taint : of.taints) {
    rules.tolerations.push_back({taint.key, "Equal", taint.value, taint.effect});
  }
  if (absent.empty()) return rules;
  NodeSelectorTerm& term = rules.node_affinity.emplace().terms.emplace_back();
  for (const std::string& key : absent) {
    term.labels.push_back({key, SelectorOperator::kDoesNotExist, {}, 0});
  }
  return rules;
}

}  // namespace loadline
