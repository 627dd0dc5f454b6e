// Labels and provider ids by which platforms state where a node is, whose machine it is and which pool it is
// of: the one list of them.
#ifndef LOADLINE_CORE_CLUSTER_PLATFORM_LABELS_H_
#define LOADLINE_CORE_CLUSTER_PLATFORM_LABELS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/labels.h"

namespace loadline {

// The labels by which kubelets state the system and the architecture of their nodes.
inline constexpr absl::string_view kOperatingSystemLabel = "kubernetes.io/os";
inline constexpr absl::string_view kArchitectureLabel = "kubernetes.io/arch";
inline constexpr absl::string_view kZoneLabel = "topology.kubernetes.io/zone";

// Labels of roles, and taints that keep pods off them, begin so; the role follows.
inline constexpr absl::string_view kNodeRolePrefix = "node-role.kubernetes.io/";

// Returns the pool, group or set of machines that made the node, as a label states it: those of platforms
// first, in the order of the list, then any label whose name ends in words for a pool, such as
// "example.com/team-node-pool", by key. Empty: no label states one. Cost: O(labels * known labels).
//
// Sources: the documentation of Karpenter, EKS, eksctl, GKE, AKS, OpenShift, OKE, DOKS, Gardener, Hetzner's
// provider of Cluster Autoscaler, Scaleway, Cluster API, kOps, Civo, LKE, Vultr, Exoscale, IBM, ACK, CCE,
// Yandex, Spot Ocean and CAST AI.
absl::string_view PoolOf(const Labels& labels);

// Returns the first value of the label for it, or of the one that Kubernetes had before; empty: none.
absl::string_view InstanceTypeOf(const Labels& labels);
// Returns the same, without the names of distributions: k3s and RKE2 write theirs in place of a type.
absl::string_view MachineTypeOf(const Labels& labels);
absl::string_view ZoneOf(const Labels& labels);
absl::string_view RegionOf(const Labels& labels);
absl::string_view OperatingSystemOf(const Labels& labels);
absl::string_view ArchitectureOf(const Labels& labels);

// Returns the keys under which kubelets and clouds state one fact, today's key first: the type of the
// machine, its system, architecture, zone and region.
std::span<const std::span<const absl::string_view>> KeysOfFacts();
// Returns the first value of these labels; empty: none.
absl::string_view FirstOf(const Labels& labels, std::span<const absl::string_view> keys);

// Returns "aws", "azure" or "gce" for a node with a label that only one of these clouds sets; empty: it has
// none.
absl::string_view CloudOf(const Labels& labels);

// Returns the cloud that a provider id begins with, such as "aws" of "aws:///us-east-1a/i-1"; empty: none.
absl::string_view CloudOfProviderId(absl::string_view provider_id);

// Returns whether provider ids that begin with `cloud` are of machines of another cloud than `of`, which is
// "aws", "azure" or "gce". False where nobody knows: distributions and tools have words of their own.
bool IsOtherCloud(absl::string_view cloud, absl::string_view of);

// Returns the roles of a node as their labels name them, in order, without those that say nothing: "worker",
// "node", "agent", and how its capacity is bought.
std::vector<absl::string_view> RolesOf(const Labels& labels);

// Returns whether the label names a zone or a region, also under the key of a CSI driver. A cloud spreads the
// nodes of one group over the values of such labels.
bool IsZoneLabel(absl::string_view key);

// Returns whether nodes that are the same in all else may differ by the label: it names a zone, a region, a
// pool or a machine.
bool IsPlaceLabel(absl::string_view key);

// Returns whether the label names the type of a machine.
bool IsInstanceTypeLabel(absl::string_view key);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_PLATFORM_LABELS_H_
