// The condition on labels that keeps a pod off a new node, in words.
#ifndef LOADLINE_CORE_FIT_UNMET_AFFINITY_H_
#define LOADLINE_CORE_FIT_UNMET_AFFINITY_H_

#include <string>

#include "core/cluster/labels.h"
#include "core/cluster/pod_rules.h"

namespace loadline {

// Returns the first condition of nodeSelector and required node affinity that a new node does not meet, with
// the labels of both, such as "the pod selects disk=ssd, and a new node has disk=hdd"; empty: it meets all.
// Cost: O(conditions * log labels).
std::string UnmetAffinity(const PodRules& rules, const NodeLabels& node);

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_UNMET_AFFINITY_H_
