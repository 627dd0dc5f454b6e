// The amount that the cheapest mix of all options would spend on each.
#ifndef LOADLINE_CORE_EXPAND_JOINT_SPENDING_H_
#define LOADLINE_CORE_EXPAND_JOINT_SPENDING_H_

#include <vector>

#include "core/expand/rank_options.h"

namespace loadline {

// Packs the pods of all options onto nodes of all options, as many as each needs, at little cost; a pod is
// placed on nodes of those options that list it. Returns US dollars per hour by option; all 0 where nothing
// can be planned: no option has a price and a template, or there are more than 4 million pairs of kinds of
// pods and options.
//
// CPU, memory and GPUs of the nodes' capacity count; what daemons and the system take off it is not known
// here. The largest count of a pod that several options list decides. A node does not take more pods of a
// kind than an option lists, nor than `most_on_node`. That pods keep apart is not known here either.
//
// Cost: O(runs + kinds * options), and a packing; deterministic.
std::vector<double> SpendJointly(const RankQuestion& question);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_JOINT_SPENDING_H_
