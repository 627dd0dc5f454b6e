#include "plugin/convert/pod_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/known_fields.h"
#include "plugin/convert/selectors.h"

namespace loadline {
namespace {

using Containers = google::protobuf::RepeatedPtrField<k8s::v1::Container>;
constexpr char kDefaultSchedulerName[] = "default-scheduler";
using Terms = google::protobuf::RepeatedPtrField<k8s::v1::PodAffinityTerm>;

// Adds up the requirements of a pod's selectors.
class RequirementCount {
 public:
  void Add(int64_t requirements, absl::string_view field) {
    sum_ += requirements;
    if (status_.ok()) status_ = CheckEntries(requirements, field, kMaxSelectorRequirements);
  }
  void Add(const k8s::v1::LabelSelector& selector, int keys, absl::string_view field) {
    Add(int64_t{selector.match_labels_size()} + selector.match_expressions_size() + keys, field);
  }
  void Add(const Terms& terms, absl::string_view field) {
    for (const k8s::v1::PodAffinityTerm& term : terms) {
      Add(term.label_selector(), term.match_label_keys_size() + term.mismatch_label_keys_size(), field);
      Add(term.namespace_selector(), 0, field);
    }
  }
  absl::Status Check() const {
    return !status_.ok() ? status_ : CheckEntries(sum_, "spec: selectors", kMaxPodRequirements);
  }

 private:
  int64_t sum_ = 0;
  absl::Status status_;
};

absl::Status CheckRequirements(const k8s::v1::PodSpec& spec) {
  const k8s::v1::Affinity& affinity = spec.affinity();
  RequirementCount count;
  count.Add(spec.node_selector_size(), "spec.nodeSelector");
  for (const k8s::v1::NodeSelectorTerm& term : affinity.node_affinity().required().node_selector_terms()) {
    count.Add(int64_t{term.match_expressions_size()} + term.match_fields_size(),
              "spec.affinity.nodeAffinity");
  }
  count.Add(affinity.pod_affinity().required(), "spec.affinity.podAffinity");
  count.Add(affinity.pod_anti_affinity().required(), "spec.affinity.podAntiAffinity");
  for (const k8s::v1::TopologySpreadConstraint& constraint : spec.topology_spread_constraints()) {
    count.Add(constraint.label_selector(), constraint.match_label_keys_size(),
              "spec.topologySpreadConstraints");
  }
  return count.Check();
}

absl::Status CheckSizes(const k8s::v1::PodSpec& spec) {
  const k8s::v1::Affinity& affinity = spec.affinity();
  const struct {
    int size;
    absl::string_view field;
    int most;
  } lists[] = {
      {spec.tolerations_size(), "spec.tolerations", kMaxTolerations},
      {spec.topology_spread_constraints_size(), "spec.topologySpreadConstraints", kMaxPodTerms},
      {spec.volumes_size(), "spec.volumes", kMaxPodTerms},
      {affinity.node_affinity().required().node_selector_terms_size(), "spec.affinity.nodeAffinity",
       kMaxPodTerms},
      {affinity.pod_affinity().required_size(), "spec.affinity.podAffinity", kMaxPodTerms},
      {affinity.pod_anti_affinity().required_size(), "spec.affinity.podAntiAffinity", kMaxPodTerms},
  };
  for (const auto& list : lists) {
    if (list.size > list.most) return CheckEntries(list.size, list.field, list.most);
  }
  const bool selects =
      spec.has_affinity() || !spec.topology_spread_constraints().empty() || !spec.node_selector().empty();
  return selects ? CheckRequirements(spec) : absl::OkStatus();
}

void ReadPorts(const Containers& containers, bool sidecars_only, std::vector<HostPort>* ports) {
  for (const k8s::v1::Container& container : containers) {
    if (sidecars_only && container.restart_policy() != "Always") continue;
    for (const k8s::v1::ContainerPort& port : container.ports()) {
      if (port.host_port() <= 0) continue;
      ports->push_back({port.host_port(), port.protocol().empty() ? "TCP" : port.protocol(),
                        port.host_ip().empty() ? "0.0.0.0" : port.host_ip()});
    }
  }
}

// Adds the pod's own values of `keys` to a selector. An API server does the same before it stores a pod, and
// then changes nothing here: kube-scheduler reads the selector only, but a manifest has not been through an
// API server.
void MergeKeys(const google::protobuf::RepeatedPtrField<std::string>& keys, SelectorOperator op,
               const Labels& labels, LabelSelector* selector) {
  if (selector->nothing) return;
  for (const std::string& key : keys) {
    const std::string* const value = labels.Find(key);
    if (value == nullptr) continue;
    Requirement requirement;
    requirement.key = key;
    requirement.op = op;
    requirement.values = {*value};
    if (std::find(selector->requirements.begin(), selector->requirements.end(), requirement) ==
        selector->requirements.end()) {
      selector->requirements.push_back(std::move(requirement));
    }
  }
}

std::vector<AffinityTerm> ReadTerms(const Terms& messages, const std::string& namespace_name,
                                    const Labels& labels, std::string* error) {
  std::vector<AffinityTerm> terms;
  for (const k8s::v1::PodAffinityTerm& message : messages) {
    AffinityTerm& term = terms.emplace_back();
    term.selector = ReadLabelSelector(message.label_selector(), message.has_label_selector(), error);
    MergeKeys(message.match_label_keys(), SelectorOperator::kIn, labels, &term.selector);
    MergeKeys(message.mismatch_label_keys(), SelectorOperator::kNotIn, labels, &term.selector);
    term.topology_key = message.topology_key();
    term.namespaces.assign(message.namespaces().begin(), message.namespaces().end());
    if (term.namespaces.empty() && !message.has_namespace_selector())
      term.namespaces.push_back(namespace_name);
    std::sort(term.namespaces.begin(), term.namespaces.end());
    term.namespace_selector =
        ReadLabelSelector(message.namespace_selector(), message.has_namespace_selector(), error);
  }
  return terms;
}

// Selectors that do not parse take all terms of the pod away, as kube-scheduler does.
void ReadAffinity(const k8s::v1::Affinity& message, const std::string& namespace_name, const Labels& labels,
                  PodRules* rules) {
  if (message.node_affinity().has_required()) {
    rules->node_affinity = ReadNodeSelector(message.node_affinity().required());
  }
  std::string affinity_error, anti_affinity_error;
  rules->affinity = ReadTerms(message.pod_affinity().required(), namespace_name, labels, &affinity_error);
  rules->anti_affinity =
      ReadTerms(message.pod_anti_affinity().required(), namespace_name, labels, &anti_affinity_error);
  if (!affinity_error.empty()) {
    rules->affinity.clear();
    rules->affinity_error = absl::StrCat("parsing pod: requiredAffinityTerms: ", affinity_error);
  }
  if (!anti_affinity_error.empty()) {
    rules->anti_affinity.clear();
    rules->affinity_error = absl::StrCat("parsing pod: requiredAntiAffinityTerms: ", anti_affinity_error);
  }
}

// False for volumes that no filter looks at.
bool ReadVolume(const k8s::v1::Volume& message, PodVolume* volume) {
  const k8s::v1::VolumeSource& source = message.volume_source();
  if (source.has_persistent_volume_claim()) {
    volume->kind = VolumeKind::kClaim;
    volume->name = source.persistent_volume_claim().claim_name();
  } else if (source.has_ephemeral()) {
    volume->kind = VolumeKind::kEphemeral;
    volume->name = message.name();
  } else if (source.has_gce_persistent_disk()) {
    volume->kind = VolumeKind::kGcePersistentDisk;
    volume->name = source.gce_persistent_disk().pd_name();
    volume->read_only = source.gce_persistent_disk().read_only();
  } else if (source.has_aws_elastic_block_store()) {
    volume->kind = VolumeKind::kAwsElasticBlockStore;
    volume->name = source.aws_elastic_block_store().volume_id();
  } else if (source.has_iscsi()) {
    volume->kind = VolumeKind::kIscsi;
    volume->name = source.iscsi().iqn();
    volume->read_only = source.iscsi().read_only();
  } else if (source.has_rbd()) {
    volume->kind = VolumeKind::kRbd;
    volume->name = source.rbd().image();
    volume->pool = source.rbd().pool();
    volume->monitors.assign(source.rbd().monitors().begin(), source.rbd().monitors().end());
    std::sort(volume->monitors.begin(), volume->monitors.end());
    volume->read_only = source.rbd().read_only();
  } else if (source.has_cinder() || source.has_azure_file() || source.has_vsphere_volume() ||
             source.has_azure_disk() || source.has_portworx_volume()) {
    volume->kind = VolumeKind::kOtherMigrated;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<SpreadConstraint> ReadSpreadConstraint(const k8s::v1::TopologySpreadConstraint& message,
                                                     const Labels& labels, std::string* error) {
  if (message.when_unsatisfiable() != "DoNotSchedule") return std::nullopt;
  SpreadConstraint constraint;
  constraint.max_skew = message.max_skew();
  constraint.topology_key = message.topology_key();
  constraint.selector = ReadLabelSelector(message.label_selector(), message.has_label_selector(), error);
  if (!constraint.selector.nothing) {
    for (const std::string& key : message.match_label_keys()) {
      const std::string* const value = labels.Find(key);
      if (value == nullptr) continue;
      constraint.selector.requirements.push_back({key, SelectorOperator::kIn, {*value}});
    }
  }
  if (message.has_min_domains()) constraint.min_domains = message.min_domains();
  if (message.has_node_affinity_policy())
    constraint.honor_affinity = message.node_affinity_policy() == "Honor";
  if (message.has_node_taints_policy()) constraint.honor_taints = message.node_taints_policy() == "Honor";
  return constraint;
}

namespace {

bool RestartsAllContainers(const Containers& containers) {
  return std::any_of(containers.begin(), containers.end(), [](const k8s::v1::Container& container) {
    return std::any_of(container.restart_policy_rules().begin(), container.restart_policy_rules().end(),
                       [](const auto& rule) { return rule.action() == "RestartAllContainers"; });
  });
}

bool HasBindMountOptions(const k8s::v1::Container& container) {
  return std::any_of(container.volume_mounts().begin(), container.volume_mounts().end(),
                     [](const auto& mount) { return !mount.bind_mount_options().empty(); });
}

// Features that a pod requires of its node, as nodedeclaredfeatures of k8s.io/component-helpers v0.37.2
// infers them for scheduling. 1.36 has no bind mount options, and no pod states any there.
std::vector<std::string> RequiredFeatures(const k8s::v1::PodSpec& spec) {
  std::vector<std::string> features;
  if (RestartsAllContainers(spec.containers()) || RestartsAllContainers(spec.init_containers())) {
    features.push_back("RestartAllContainersOnContainerExits");
  }
  if (spec.host_network() && spec.has_host_users() && !spec.host_users()) {
    features.push_back("UserNamespacesHostNetworkSupport");
  }
  bool mounts =
      std::any_of(spec.containers().begin(), spec.containers().end(), HasBindMountOptions) ||
      std::any_of(spec.init_containers().begin(), spec.init_containers().end(), HasBindMountOptions);
  for (const k8s::v1::EphemeralContainer& container : spec.ephemeral_containers()) {
    mounts = mounts || HasBindMountOptions(container.common());
  }
  if (mounts) features.push_back("VolumeBindMountOptions");
  return features;  // sorted
}

}  // namespace

absl::Status ReadPodRules(const k8s::v1::Pod& message, const Labels& labels, PodRole role, PodRules* rules) {
  const k8s::v1::PodSpec& spec = message.spec();
  // If a pod states too much, none of its rules is read: some of them alone would give another decision.
  if (absl::Status status = CheckSizes(spec); !status.ok()) return status;
  if (role == PodRole::kIncoming) rules->node_name = spec.node_name();
  rules->node_selector = ReadLabels(spec.node_selector());
  for (const k8s::v1::Toleration& toleration : spec.tolerations()) {
    rules->tolerations.push_back(
        {toleration.key(), toleration.operator_(), toleration.value(), toleration.effect()});
  }
  ReadPorts(spec.containers(), /*sidecars_only=*/false, &rules->host_ports);
  ReadPorts(spec.init_containers(), /*sidecars_only=*/true, &rules->host_ports);
  absl::Status ports =
      CheckEntries(static_cast<int64_t>(rules->host_ports.size()), "spec.containers: hostPort", kMaxPodTerms);
  if (!ports.ok()) return ports;
  std::sort(rules->host_ports.begin(), rules->host_ports.end());
  rules->has_spread = !spec.topology_spread_constraints().empty();
  for (const k8s::v1::TopologySpreadConstraint& constraint : spec.topology_spread_constraints()) {
    std::optional<SpreadConstraint> read = ReadSpreadConstraint(constraint, labels, &rules->spread_error);
    if (read.has_value()) rules->spread.push_back(*std::move(read));
  }
  if (spec.has_affinity()) ReadAffinity(spec.affinity(), message.metadata().namespace_(), labels, rules);
  for (const k8s::v1::Volume& volume : spec.volumes()) {
    PodVolume read;
    if (ReadVolume(volume, &read)) rules->volumes.push_back(std::move(read));
  }
  rules->claims_resources = !spec.resource_claims().empty();
  rules->terminating = message.metadata().has_deletion_timestamp();
  rules->required_features = RequiredFeatures(spec);
  if (spec.scheduler_name() != kDefaultSchedulerName) rules->scheduler_name = spec.scheduler_name();
  rules->unknown_field = UnknownFieldOf(message);
  return absl::OkStatus();
}

}  // namespace loadline
