// The rules of a pod about where it may run, as the scheduler's filters read it.
#ifndef LOADLINE_CORE_CLUSTER_POD_RULES_H_
#define LOADLINE_CORE_CLUSTER_POD_RULES_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/labels.h"

namespace loadline {

// A taint of a node.
struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  // Returns whether the effect keeps pods away: NoSchedule or NoExecute.
  bool Repels() const { return effect == "NoSchedule" || effect == "NoExecute"; }
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const Taint&, const Taint&) = default;
};

// A toleration, with operators as on the wire: what is not Exists, Equal or empty tolerates nothing.
struct Toleration {
  std::string key;
  std::string op;
  std::string value;
  std::string effect;
  bool Tolerates(const Taint& taint) const;
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

// A port of the node that a container takes.
struct HostPort {
  int32_t port = 0;      // > 0
  std::string protocol;  // "TCP" where none is stated
  std::string ip;        // "0.0.0.0" where none is stated
  bool ConflictsWith(const HostPort& other) const;
  friend auto operator<=>(const HostPort&, const HostPort&) = default;
};

// A required term of pod affinity or anti-affinity.
struct AffinityTerm {
  LabelSelector selector;
  std::string topology_key;
  std::vector<std::string> namespaces;  // sorted; the pod's own one where the term names none
  LabelSelector namespace_selector;
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const AffinityTerm&, const AffinityTerm&) = default;
};

// A spread constraint with whenUnsatisfiable: DoNotSchedule.
struct SpreadConstraint {
  int32_t max_skew = 1;
  std::string topology_key;
  LabelSelector selector;  // with what matchLabelKeys adds
  int32_t min_domains = 1;
  bool honor_affinity = true;  // nodeAffinityPolicy
  bool honor_taints = false;   // nodeTaintsPolicy
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const SpreadConstraint&, const SpreadConstraint&) = default;
};

// The kinds of volumes that filters distinguish.
enum class VolumeKind {
  kClaim,      // a PersistentVolumeClaim of that name
  kEphemeral,  // the claim <pod name>-<volume name>, which the pod owns
  kGcePersistentDisk,
  kAwsElasticBlockStore,
  kIscsi,
  kRbd,
  kOtherMigrated,  // Azure disk or file, Cinder, Portworx, vSphere: served by a CSI driver
};

// A volume that a filter looks at; all others play no part.
struct PodVolume {
  VolumeKind kind = VolumeKind::kClaim;
  // A claim's name; an ephemeral volume's own name; else what identifies the disk.
  std::string name;
  std::string pool;                   // RBD
  std::vector<std::string> monitors;  // RBD, sorted
  bool read_only = false;
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const PodVolume&, const PodVolume&) = default;
};

// A plain pod has none of this.
struct PodRules {
  std::string node_name;  // spec.nodeName of an incoming pod
  Labels node_selector;
  std::optional<NodeSelector> node_affinity;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;  // sorted
  std::vector<SpreadConstraint> spread;
  // spec.topologySpreadConstraints is not empty: the cluster's defaults do not hold.
  bool has_spread = false;
  std::vector<AffinityTerm> affinity;
  std::vector<AffinityTerm> anti_affinity;
  std::vector<PodVolume> volumes;
  // It has resource claims.
  bool claims_resources = false;
  // metadata.deletionTimestamp is set.
  bool terminating = false;
  // A selector that Kubernetes refuses to parse: of pod affinity, whose terms are then empty, and of
  // spreading.
  std::string affinity_error;
  std::string spread_error;
  // Features that its node has to declare, sorted: see NodeShape::declared_features.
  std::vector<std::string> required_features;
  // spec.schedulerName if it differs from the name of the default profile; else empty.
  std::string scheduler_name;
  // A field of the pod that the engine does not know, so that nobody can say what it asks for. Empty: none.
  std::string unknown_field;

  // True when nothing is stated.
  bool IsPlain() const;
  // Returns the number of entries that other pods or objects decide: terms, spreads, ports, and volumes.
  size_t CountTerms() const {
    return affinity.size() + anti_affinity.size() + spread.size() + host_ports.size() + volumes.size();
  }
  // Returns the keys of labels that the pod selects nodes by, but the hostname: sorted, each once.
  std::vector<std::string> NodeLabelKeys() const;
  // Adds the keys of pod labels that its selectors refer to.
  void AddLabelKeys(std::vector<std::string>* keys) const;
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const PodRules&, const PodRules&) = default;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_POD_RULES_H_
