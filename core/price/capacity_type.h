// The way in which the capacity of a node is bought, by its labels: the one list of spot labels.
#ifndef LOADLINE_CORE_PRICE_CAPACITY_TYPE_H_
#define LOADLINE_CORE_PRICE_CAPACITY_TYPE_H_

#include "absl/strings/string_view.h"
#include "core/cluster/labels.h"

namespace loadline {

// The way in which a node is bought.
enum class CapacityType {
  kUnknown,   // no label says anything
  kOnDemand,  // paid by the hour
  kSpot,      // cheaper, and may be taken away: spot, preemptible, low priority
  kReserved,  // paid for in advance, whether nodes use it or not
};

// Returns "", "on-demand", "spot" or "reserved".
absl::string_view Name(CapacityType type);

// Returns what the labels of a node say. Labels that platforms set come before those that are conventions of
// users; within each the first one that says anything holds. Upper and lower case, '-' and '_' make no
// difference in values. Cost: O(known labels * log labels).
//
// Sources: the labels of Karpenter, EKS, GKE, AKS, OKE, Yandex, OpenShift and Cluster API, kOps, Spot Ocean,
// CAST AI, and those that guides to spot nodes of EC2 use, such as lifecycle=Ec2Spot.
CapacityType CapacityTypeOf(const Labels& labels);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_CAPACITY_TYPE_H_
