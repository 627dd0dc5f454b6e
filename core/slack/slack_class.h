// Tells which nodes keep slack together.
#ifndef LOADLINE_CORE_SLACK_SLACK_CLASS_H_
#define LOADLINE_CORE_SLACK_SLACK_CLASS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/cpu_memory.h"
#include "core/base/resource_names.h"
#include "core/cluster/shapes.h"
#include "core/cluster/startup_taints.h"

namespace loadline {

// Nodes of a class take the same pods and are of the same size: equal values of the labels that count, equal
// taints that stay, equal cpu, and memory within a 32nd (machines of one type differ by some pages). Where no
// label that counts names the type of the machine, equal GPUs as well; see GpuKindOf().
struct SlackClassKey {
  Labels labels;
  // The labels that a placeholder of the class needs: all, but the instance type where no pod selects nodes
  // by it.
  Labels needs;
  std::vector<Taint> taints;  // sorted
  std::string name;           // tells all but which labels are needed; a long one ends in its hash
  friend bool operator==(const SlackClassKey&, const SlackClassKey&) = default;
};

// The rules that tell classes apart.
struct SlackClassRules {
  LabelKeys label_keys;          // labels that count, sorted, each once
  LabelKeys selected;            // those among them that pods select nodes by
  StartupTaints startup_taints;  // beside the well-known ones
  friend bool operator==(const SlackClassRules&, const SlackClassRules&) = default;
};

// `names`: those of the amounts of the node.
SlackClassKey ClassOf(const NodeShape& node, const SlackClassRules& rules, const ResourceNames& names);

// Returns whether a placeholder may be on the node. A pod of its class may be there as well: it tolerates the
// taints of its class, and nothing distinguishes the nodes by labels that both lack or share. Slack, drains
// and growth ask this and nothing else.
bool MayBeOn(const SlackClassKey& placeholder, const SlackClassKey& node);

// The same in terms of Kubernetes, for whoever places placeholders as pods. `absent`: keys of labels that
// other classes need, and this one does not have, sorted.
PodRules PlaceholderRules(const SlackClassKey& of, const LabelKeys& absent);

// Labels that count where pods select by none: architecture, operating system, zone and instance type.
const LabelKeys& DefaultClassLabels();

// Returns whether placeholders may be on the node: it is schedulable, and no taint repels that does not last.
bool TakesPlaceholders(const NodeShape& node, const StartupTaints& names);

// Returns the cpu and memory of these amounts.
CpuMemory CpuMemoryOf(const ResourceAmounts& amounts);

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_CLASS_H_
