// Decodes the rules of a pod about where it may run.
#ifndef LOADLINE_PLUGIN_CONVERT_POD_RULES_H_
#define LOADLINE_PLUGIN_CONVERT_POD_RULES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/cluster/pod_rules.h"
#include "core/cluster/shapes.h"
#include "loadline/k8s/v1/core.pb.h"

namespace loadline {

// The most tolerations of a pod: they are matched with the taints of each kind of node, once.
inline constexpr int kMaxTolerations = 10'000;
// The most required terms of pod affinity, those of pod anti-affinity, and spread constraints, each: every
// one is a count over all nodes. Every other pod that a term of anti-affinity selects is matched with it as
// well. Likewise terms of node affinity, volumes and host ports, which a filter matches with each node.
inline constexpr int kMaxPodTerms = 1'000;
// Requirements of all selectors of a pod, of which each has at most kMaxSelectorRequirements.
inline constexpr int kMaxPodRequirements = 4'096;

// Reads the rules of a pod with these labels. `role`: spec.nodeName is read of an incoming pod only; of
// others it says where the pod is. Errors: kInvalidArgument  a list is too long; names the field
absl::Status ReadPodRules(const k8s::v1::Pod& message, const Labels& labels, PodRole role, PodRules* rules);

// Reads one constraint for a pod with these labels; nullopt when it is not DoNotSchedule. A selector that
// does not parse sets `error`.
std::optional<SpreadConstraint> ReadSpreadConstraint(const k8s::v1::TopologySpreadConstraint& message,
                                                     const Labels& labels, std::string* error);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_POD_RULES_H_
