// Objects of Kubernetes that an input makes: valid as messages, and up to 1.5 MiB of what an API server would
// take.
#ifndef LOADLINE_TEST_FUZZ_MADE_OBJECTS_H_
#define LOADLINE_TEST_FUZZ_MADE_OBJECTS_H_

#include <string>

#include "loadline/k8s/v1/core.pb.h"
#include "loadline/k8s/v1/storage.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "test/fuzz/choices.h"

namespace loadline {

// Makes objects. If many elements are asked for, one beyond the first few is the one before under another
// number, so that a few bytes of input make a large object.
class ObjectMaker {
 public:
  explicit ObjectMaker(Choices* choices) : choices_(*choices) {}

  k8s::v1::Pod Pod() {
    k8s::v1::Pod pod;
    Metadata(pod.mutable_metadata());
    Owners(pod.mutable_metadata());
    k8s::v1::PodSpec* const spec = pod.mutable_spec();
    const int containers = choices_.Count();
    for (int i = 0; i <= containers; ++i) Container(i, spec->add_containers());
    if (choices_.OneIn(4)) Container(0, spec->add_init_containers());
    if (choices_.OneIn(8)) Quantities(spec->mutable_overhead());
    if (choices_.OneIn(8)) Quantities(spec->mutable_resources()->mutable_limits());
    if (choices_.OneIn(3)) Affinity(spec->mutable_affinity());
    if (choices_.OneIn(3)) Spread(spec);
    if (choices_.OneIn(3)) Tolerations(spec);
    if (choices_.OneIn(4)) Volumes(spec);
    if (choices_.OneIn(4)) Labels(spec->mutable_node_selector());
    if (choices_.OneIn(8)) spec->set_priority(choices_.Number32());
    if (choices_.OneIn(8)) spec->set_restart_policy("Never");
    if (choices_.OneIn(8)) spec->set_node_name(Name(0));
    if (choices_.OneIn(8)) spec->add_resource_claims()->set_name("claim");
    if (choices_.OneIn(8)) spec->set_termination_grace_period_seconds(choices_.Number());
    if (choices_.OneIn(4)) Status(pod.mutable_status());
    return pod;
  }

  k8s::v1::Node Node(const std::string& name) {
    k8s::v1::Node node;
    Metadata(node.mutable_metadata());
    node.mutable_metadata()->set_name(name);
    node.mutable_metadata()->clear_namespace_();
    Add("kubernetes.io/hostname", name, node.mutable_metadata()->mutable_labels());
    for (const char* const resource : {"cpu", "memory", "pods"}) {
      Quantity(resource, "64", node.mutable_status()->mutable_allocatable());
    }
    if (choices_.OneIn(2)) Quantities(node.mutable_status()->mutable_allocatable());
    for (int i = choices_.OneIn(4) ? choices_.Count() : 0; i > 0; --i) {
      k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
      taint->set_key(Key(i));
      taint->set_effect(i % 2 == 0 ? "NoSchedule" : "NoExecute");
    }
    if (choices_.OneIn(8)) node.mutable_spec()->set_unschedulable(true);
    k8s::v1::NodeCondition* const ready = node.mutable_status()->add_conditions();
    ready->set_type("Ready");
    ready->set_status(choices_.OneIn(8) ? "False" : "True");
    return node;
  }

  v1::ClusterObject Object() {
    v1::ClusterObject object;
    object.set_kind(static_cast<v1::ObjectKind>(1 + choices_.Byte() % 12));
    object.set_object(ObjectBytes(object.kind()));
    return object;
  }

 private:
  using Entries = google::protobuf::RepeatedPtrField<k8s::v1::StringEntry>;
  using Amounts = google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>;

  std::string Name(int i) {
    static constexpr const char* kNames[] = {"a",  "b",           "web", "kube-system", "test", "n0",
                                             "n1", "\xff\x1b[2J", ""};
    std::string name = choices_.Of(kNames);
    if (i > 0) name += std::to_string(i);
    return choices_.OneIn(64) && choices_.Take(100'000) ? std::string(100'000, 'n') : name;
  }
  std::string Key(int i) {
    static constexpr const char* kKeys[] = {"app",
                                            "kubernetes.io/hostname",
                                            "topology.kubernetes.io/zone",
                                            "pod-template-hash",
                                            "loadline.dev/placeholder",
                                            "loadline.dev/slack",
                                            "loadline.dev/slack-copies",
                                            "cluster-autoscaler.kubernetes.io/safe-to-evict",
                                            "example.com/"};
    std::string key = choices_.Of(kKeys);
    if (i > 0) key += std::to_string(i);
    return choices_.OneIn(64) && choices_.Take(300) ? std::string(300, 'k') + key : key;
  }
  std::string Value() {
    static constexpr const char* kValues[] = {"true", "a", "b", "", "5", "-1", "1000000000", "\x1b[31m\xc3"};
    return choices_.OneIn(64) && choices_.Take(1'000'000) ? std::string(1'000'000, 'v')
                                                          : choices_.Of(kValues);
  }
  std::string Amount() {
    static constexpr const char* kAmounts[] = {"1", "0", "100m", "1Gi", "1e30", "-1", "1x", "", "1n", "8Ei"};
    return choices_.Of(kAmounts);
  }

  static void Add(const std::string& key, const std::string& value, Entries* entries) {
    k8s::v1::StringEntry* const entry = entries->Add();
    entry->set_key(key);
    entry->set_value(value);
  }
  static void Quantity(const std::string& name, const std::string& amount, Amounts* amounts) {
    k8s::v1::QuantityEntry* const entry = amounts->Add();
    entry->set_key(name);
    entry->mutable_value()->set_string(amount);
  }

  void Labels(Entries* entries) {
    const int count = choices_.Count();
    for (int i = 0; i < count; ++i) Add(Key(i), i < 4 ? Value() : "v", entries);
  }
  void Quantities(Amounts* amounts) {
    static constexpr const char* kResources[] = {"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu",
                                                 "a.b/r"};
    const int count = choices_.Count();
    for (int i = 0; i < count; ++i) {
      const std::string name = choices_.Of(kResources);
      Quantity(i < 4 ? name : "a.b/r" + std::to_string(i), i < 4 ? Amount() : "1", amounts);
    }
  }

  void Metadata(k8s::v1::ObjectMeta* metadata) {
    metadata->set_name(Name(0));
    metadata->set_namespace_(Name(0));
    metadata->set_uid(Name(0));
    if (choices_.OneIn(2)) Labels(metadata->mutable_labels());
    if (choices_.OneIn(4)) Labels(metadata->mutable_annotations());
    if (choices_.OneIn(8)) metadata->mutable_creation_timestamp()->set_seconds(choices_.Number());
    if (choices_.OneIn(8)) metadata->mutable_deletion_timestamp()->set_seconds(choices_.Number());
  }
  void Owners(k8s::v1::ObjectMeta* metadata) {
    static constexpr const char* kKinds[] = {"ReplicaSet", "DaemonSet", "Job", "Node", "StatefulSet", "\xff"};
    if (choices_.OneIn(4)) return;
    k8s::v1::OwnerReference* const owner = metadata->add_owner_references();
    owner->set_api_version("apps/v1");
    owner->set_kind(choices_.Of(kKinds));
    owner->set_name(Name(0));
    owner->set_uid(Name(0));
    owner->set_controller(true);
  }

  void Container(int i, k8s::v1::Container* container) {
    container->set_name("c" + std::to_string(i));
    if (i >= 4) return;
    Quantities(container->mutable_resources()->mutable_requests());
    if (choices_.OneIn(2)) Quantities(container->mutable_resources()->mutable_limits());
    if (choices_.OneIn(8)) container->set_restart_policy("Always");
    for (int port = choices_.OneIn(8) ? choices_.Count() : 0; port > 0; --port) {
      container->add_ports()->set_host_port(port);
    }
  }

  void Selector(k8s::v1::LabelSelector* selector) {
    static constexpr const char* kOperators[] = {"Exists", "In", "NotIn", "DoesNotExist", "Gt"};
    if (choices_.Yes()) Add(Key(0), Value(), selector->mutable_match_labels());
    const int count = choices_.OneIn(4) ? choices_.Count() : 0;
    for (int i = 0; i < count; ++i) {
      k8s::v1::LabelSelectorRequirement* const requirement = selector->add_match_expressions();
      requirement->set_key(Key(i));
      requirement->set_operator_(choices_.Of(kOperators));
      if (i < 4 && choices_.Yes()) requirement->add_values(Value());
    }
  }
  void Terms(k8s::v1::PodAffinity* affinity) {
    const int count = choices_.Count();
    for (int i = 0; i < count; ++i) {
      if (i >= 4 && !choices_.Take(static_cast<int64_t>(affinity->required(i - 4).ByteSizeLong()))) return;
      k8s::v1::PodAffinityTerm* const term = affinity->add_required();
      if (i >= 4) {
        *term = affinity->required(i - 4);
        if (choices_.Yes()) term->set_topology_key(Key(i));
        continue;
      }
      term->set_topology_key(Key(0));
      if (!choices_.OneIn(8)) Selector(term->mutable_label_selector());
      if (choices_.OneIn(4)) Selector(term->mutable_namespace_selector());
      if (choices_.OneIn(4)) term->add_namespaces(Name(0));
      if (choices_.OneIn(8)) term->add_match_label_keys(Key(0));
      if (choices_.OneIn(8)) term->add_mismatch_label_keys(Key(0));
    }
  }
  void NodeTerms(k8s::v1::NodeSelector* selector) {
    static constexpr const char* kOperators[] = {"In", "Exists", "Gt", "Lt", "NotIn", "DoesNotExist", "?"};
    const int count = choices_.Count();
    for (int i = 0; i < count; ++i) {
      k8s::v1::NodeSelectorTerm* const term = selector->add_node_selector_terms();
      k8s::v1::NodeSelectorRequirement* const requirement =
          choices_.OneIn(8) ? term->add_match_fields() : term->add_match_expressions();
      requirement->set_key(Key(i));
      requirement->set_operator_(choices_.Of(kOperators));
      for (int value = i < 2 ? choices_.Count() : 1; value > 0; --value) {
        requirement->add_values("n" + std::to_string(value));
      }
    }
  }
  void Affinity(k8s::v1::Affinity* affinity) {
    if (choices_.OneIn(2)) NodeTerms(affinity->mutable_node_affinity()->mutable_required());
    if (choices_.OneIn(2)) Terms(affinity->mutable_pod_affinity());
    if (choices_.OneIn(2)) Terms(affinity->mutable_pod_anti_affinity());
  }
  void Spread(k8s::v1::PodSpec* spec) {
    const int count = choices_.Count();
    for (int i = 0; i < count; ++i) {
      k8s::v1::TopologySpreadConstraint* const constraint = spec->add_topology_spread_constraints();
      constraint->set_topology_key(Key(i));
      constraint->set_max_skew(i < 4 ? choices_.Small() : 1);
      constraint->set_when_unsatisfiable(choices_.OneIn(8) ? "ScheduleAnyway" : "DoNotSchedule");
      if (i >= 4) continue;
      Selector(constraint->mutable_label_selector());
      if (choices_.OneIn(8)) constraint->set_min_domains(choices_.Number32());
      if (choices_.OneIn(8)) constraint->set_node_affinity_policy("Ignore");
      if (choices_.OneIn(8)) constraint->add_match_label_keys(Key(0));
    }
  }
  void Tolerations(k8s::v1::PodSpec* spec) {
    const int count = choices_.Count();
    for (int i = 0; i < count; ++i) {
      k8s::v1::Toleration* const toleration = spec->add_tolerations();
      if (!choices_.OneIn(8)) toleration->set_key(Key(i));
      toleration->set_operator_(choices_.Yes() ? "Exists" : "Equal");
    }
  }
  void Volumes(k8s::v1::PodSpec* spec) {
    const int count = choices_.Count();
    for (int i = 0; i < count; ++i) {
      k8s::v1::Volume* const volume = spec->add_volumes();
      volume->set_name("v" + std::to_string(i));
      k8s::v1::VolumeSource* const source = volume->mutable_volume_source();
      switch (choices_.Byte() % 5) {
        case 0:
          source->mutable_persistent_volume_claim()->set_claim_name(Name(i));
          break;
        case 1:
          source->mutable_aws_elastic_block_store()->set_volume_id(Name(i));
          break;
        case 2:
          source->mutable_gce_persistent_disk()->set_pd_name(Name(i));
          break;
        case 3:
          source->mutable_ephemeral();
          break;
        default:
          source->mutable_empty_dir();
      }
    }
  }
  void Status(k8s::v1::PodStatus* status) {
    static constexpr const char* kPhases[] = {"Running", "Pending", "Succeeded", "Failed"};
    status->set_phase(choices_.Of(kPhases));
    k8s::v1::ContainerStatus* const container = status->add_container_statuses();
    container->set_name("c0");
    Quantities(container->mutable_allocated_resources());
    if (choices_.Yes()) Quantities(status->mutable_resources()->mutable_requests());
  }

  template <typename Workload>
  std::string WorkloadBytes() {
    Workload workload;
    Metadata(workload.mutable_metadata());
    *workload.mutable_spec()->mutable_template_() = Pod();
    if constexpr (requires { workload.mutable_spec()->set_replicas(1); }) {
      workload.mutable_spec()->set_replicas(choices_.Small());
    }
    return workload.SerializeAsString();
  }
  std::string BudgetBytes() {
    k8s::v1::PodDisruptionBudget budget;
    Metadata(budget.mutable_metadata());
    Selector(budget.mutable_spec()->mutable_selector());
    budget.mutable_status()->set_disruptions_allowed(choices_.Small());
    budget.mutable_status()->set_current_healthy(choices_.Small());
    return budget.SerializeAsString();
  }
  std::string VolumeBytes() {
    k8s::v1::PersistentVolume volume;
    Metadata(volume.mutable_metadata());
    volume.mutable_spec()->set_storage_class_name(Name(0));
    volume.mutable_spec()->mutable_claim_ref()->set_name(Name(0));
    NodeTerms(volume.mutable_spec()->mutable_node_affinity()->mutable_required());
    return volume.SerializeAsString();
  }
  template <typename Other>
  std::string OtherBytes() {
    Other other;
    Metadata(other.mutable_metadata());
    return other.SerializeAsString();
  }

  std::string ObjectBytes(v1::ObjectKind kind) {
    switch (kind) {
      case v1::PERSISTENT_VOLUME:
        return VolumeBytes();
      case v1::PERSISTENT_VOLUME_CLAIM:
        return OtherBytes<k8s::v1::PersistentVolumeClaim>();
      case v1::STORAGE_CLASS:
        return OtherBytes<k8s::v1::StorageClass>();
      case v1::CSI_NODE:
        return OtherBytes<k8s::v1::CSINode>();
      case v1::POD_DISRUPTION_BUDGET:
        return BudgetBytes();
      case v1::REPLICA_SET:
      case v1::REPLICATION_CONTROLLER:
        return WorkloadBytes<k8s::v1::ReplicaSet>();
      case v1::STATEFUL_SET:
        return WorkloadBytes<k8s::v1::StatefulSet>();
      case v1::DAEMON_SET:
        return WorkloadBytes<k8s::v1::DaemonSet>();
      case v1::JOB:
        return WorkloadBytes<k8s::v1::Job>();
      case v1::DEPLOYMENT:
        return WorkloadBytes<k8s::v1::Deployment>();
      default:
        return OtherBytes<k8s::v1::Namespace>();
    }
  }

  Choices& choices_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_FUZZ_MADE_OBJECTS_H_
