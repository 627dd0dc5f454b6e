// The messages of a simulated cluster to an engine.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "loadline/v1/loop.pb.h"
#include "test/plugin/simulated_cluster.h"

namespace loadline {
namespace {

constexpr v1::ObjectKind kKinds[] = {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET,
                                     v1::DAEMON_SET, v1::JOB};

void AddQuantity(const std::string& name, const std::string& amount,
                 google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries) {
  k8s::v1::QuantityEntry* const entry = entries->Add();
  entry->set_key(name);
  entry->mutable_value()->set_string(amount);
}

void AddSize(const SimulatedSize& size, google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries) {
  AddQuantity("cpu", absl::StrCat(size.milli_cpu, "m"), entries);
  AddQuantity("memory", absl::StrCat(size.mib, "Mi"), entries);
}

constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";
constexpr char kGroupTaint[] = "dedicated";

void AddLabel(const std::string& key, const std::string& value,
              google::protobuf::RepeatedPtrField<k8s::v1::StringEntry>* labels) {
  k8s::v1::StringEntry* const label = labels->Add();
  label->set_key(key);
  label->set_value(value);
}

k8s::v1::Node NodeOf(const std::string& name, const SimulatedGroup& group) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name(name);
  AddLabel("kubernetes.io/hostname", name, node.mutable_metadata()->mutable_labels());
  if (!group.zone.empty()) AddLabel(kZoneLabel, group.zone, node.mutable_metadata()->mutable_labels());
  if (group.tainted) {
    k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
    taint->set_key(kGroupTaint);
    taint->set_effect("NoSchedule");
  }
  AddSize(group.node, node.mutable_status()->mutable_allocatable());
  AddQuantity("pods", absl::StrCat(SimulatedCluster::kPodsPerNode),
              node.mutable_status()->mutable_allocatable());
  k8s::v1::NodeCondition* const ready = node.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  return node;
}

void AddRules(const SimulatedRules& rules, const std::string& app, bool running, k8s::v1::Pod* pod) {
  if (rules.none()) return;
  AddLabel("app", app, pod->mutable_metadata()->mutable_labels());
  if (rules.alone) {
    k8s::v1::PodAffinityTerm* const term =
        pod->mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity()->add_required();
    AddLabel("app", app, term->mutable_label_selector()->mutable_match_labels());
    term->set_topology_key("kubernetes.io/hostname");
  }
  if (rules.tolerates) {
    k8s::v1::Toleration* const toleration = pod->mutable_spec()->add_tolerations();
    toleration->set_key(kGroupTaint);
    toleration->set_operator_("Exists");
  }
  if (!rules.zone.empty()) {
    k8s::v1::NodeSelectorRequirement* const requirement = pod->mutable_spec()
                                                              ->mutable_affinity()
                                                              ->mutable_node_affinity()
                                                              ->mutable_required()
                                                              ->add_node_selector_terms()
                                                              ->add_match_expressions();
    requirement->set_key(kZoneLabel);
    requirement->set_operator_("In");
    requirement->add_values(rules.zone);
  }
  if (running) {
    k8s::v1::PodCondition* const ready = pod->mutable_status()->add_conditions();
    ready->set_type("Ready");
    ready->set_status("True");
  }
}

}  // namespace

std::string SimulatedCluster::Uid(int64_t number) {
  return absl::StrFormat("00000000-0000-4000-8000-%012d", number);
}

std::string SimulatedCluster::ProviderId(const SimulatedNode& node) {
  return absl::StrCat("simulated:///", node.name);
}

std::string SimulatedCluster::NodeBytes(const SimulatedNode& node) const {
  k8s::v1::Node message = NodeOf(node.name, groups_[node.group]);
  message.mutable_metadata()->set_uid(Uid(node.number));
  message.mutable_spec()->set_provider_id(ProviderId(node));
  if (node.leaves >= 0) {
    k8s::v1::Taint* const taint = message.mutable_spec()->add_taints();
    taint->set_key("ToBeDeletedByClusterAutoscaler");
    taint->set_value(absl::StrCat(now_));
    taint->set_effect("NoSchedule");
  }
  return message.SerializeAsString();
}

std::string SimulatedCluster::PodBytes(size_t workload, bool running) const {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("default");
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("ReplicaSet");
  owner->set_name(absl::StrCat("app-", workload));
  owner->set_controller(true);
  AddSize(workloads_[workload],
          pod.mutable_spec()->add_containers()->mutable_resources()->mutable_requests());
  AddRules(rules_[workload], absl::StrCat("app-", workload), running, &pod);
  return pod.SerializeAsString();
}

v1::NodeRecord SimulatedCluster::Record(int32_t slot) const {
  const SimulatedNode& node = nodes_.at(slot);
  v1::NodeRecord record;
  record.set_slot(slot);
  record.set_node(NodeBytes(node));
  for (const SimulatedPod& pod : node.pods) {
    v1::PodRecord* const message = record.add_pods();
    message->set_shape(static_cast<int32_t>(pod.workload));
    message->set_name(absl::StrCat("app-", pod.workload, "-", pod.number));
    message->set_uid(Uid(pod.number));
  }
  return record;
}

void SimulatedCluster::AddShapes(v1::Changes* changes) const {
  for (size_t workload = 0; workload < workloads_.size(); ++workload) {
    v1::PodShape* const shape = changes->add_pod_shapes();
    shape->set_id(static_cast<int32_t>(workload));
    shape->set_pod(PodBytes(workload, /*running=*/true));
  }
  AddOwners(changes);
  for (const v1::ObjectKind kind : kKinds) changes->add_complete_kinds(kind);
}

void SimulatedCluster::AddOwners(v1::Changes* changes) const {
  for (size_t workload = 0; workload < workloads_.size(); ++workload) {
    k8s::v1::ReplicaSet owner;
    owner.mutable_metadata()->set_namespace_("default");
    owner.mutable_metadata()->set_name(absl::StrCat("app-", workload));
    owner.mutable_spec()->set_replicas(static_cast<int32_t>(waiting_[workload] + Running(workload)));
    v1::ClusterObject* const object = changes->add_objects();
    object->set_kind(v1::REPLICA_SET);
    object->set_object(owner.SerializeAsString());
    if (rules_[workload].max_unavailable.has_value()) *changes->add_objects() = Budget(workload);
  }
}

v1::ClusterObject SimulatedCluster::Budget(size_t workload) const {
  const std::string app = absl::StrCat("app-", workload);
  const int64_t running = Running(workload);
  const int64_t desired =
      std::max<int64_t>(0, waiting_[workload] + running - *rules_[workload].max_unavailable);
  k8s::v1::PodDisruptionBudget budget;
  budget.mutable_metadata()->set_namespace_("default");
  budget.mutable_metadata()->set_name(app);
  AddLabel("app", app, budget.mutable_spec()->mutable_selector()->mutable_match_labels());
  k8s::v1::PodDisruptionBudgetStatus* const status = budget.mutable_status();
  status->set_expected_pods(static_cast<int32_t>(waiting_[workload] + running));
  status->set_current_healthy(static_cast<int32_t>(running));
  status->set_desired_healthy(static_cast<int32_t>(desired));
  status->set_disruptions_allowed(static_cast<int32_t>(std::max<int64_t>(0, running - desired)));
  v1::ClusterObject object;
  object.set_kind(v1::POD_DISRUPTION_BUDGET);
  object.set_object(budget.SerializeAsString());
  return object;
}

v1::Changes SimulatedCluster::Header() const {
  v1::Changes changes;
  changes.set_view("simulated");
  changes.set_epoch(epoch_);
  changes.set_revision(revision_);
  return changes;
}

std::vector<v1::Changes> SimulatedCluster::FullList(int32_t nodes_per_message) {
  ++epoch_;
  revision_ = 1;
  changed_.clear();
  std::vector<v1::Changes> chunks = {Header()};
  AddShapes(&chunks[0]);
  for (const auto& [slot, node] : nodes_) {
    if (chunks.back().nodes_size() == nodes_per_message) chunks.push_back(Header());
    *chunks.back().add_nodes() = Record(slot);
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].mutable_full_list()->set_index(static_cast<int32_t>(i));
    chunks[i].mutable_full_list()->set_last(i + 1 == chunks.size());
  }
  return chunks;
}

std::vector<v1::Changes> SimulatedCluster::Deltas(int32_t nodes_per_message) {
  std::vector<v1::Changes> deltas;
  const auto begin = [&] {
    const int64_t base = revision_++;
    deltas.push_back(Header());
    deltas.back().set_base_revision(base);
  };
  begin();
  AddOwners(&deltas.back());
  for (const int32_t slot : std::exchange(changed_, {})) {
    if (deltas.back().nodes_size() == nodes_per_message) begin();
    if (nodes_.contains(slot)) {
      *deltas.back().add_nodes() = Record(slot);
    } else {
      deltas.back().add_removed_slots(slot);
    }
  }
  return deltas;
}

v1::Changes SimulatedCluster::At() const {
  v1::Changes changes = Header();
  changes.set_base_revision(revision_);
  return changes;
}

v1::Changes SimulatedCluster::Own() const {
  v1::Changes changes;
  AddShapes(&changes);
  for (const auto& [slot, node] : nodes_) *changes.add_nodes() = Record(slot);
  return changes;
}

v1::PlanLoopRequest SimulatedCluster::Question() {
  v1::PlanLoopRequest request;
  request.set_now_s(now_);
  for (size_t i = 0; i < groups_.size(); ++i) {
    const SimulatedGroup& group = groups_[i];
    v1::LoopGroup* const message = request.add_groups();
    v1::ScalableGroup* const growth = message->mutable_growth();
    growth->set_node_group(group.name);
    growth->set_template_node(NodeOf(group.name, group).SerializeAsString());
    growth->set_current_nodes(static_cast<int32_t>(CurrentNodes(i)));
    growth->set_max_nodes(static_cast<int32_t>(group.max_nodes));
    growth->set_node_usd_per_hour(group.usd_per_hour);
    message->mutable_scale_down()->set_min_nodes(static_cast<int32_t>(group.min_nodes));
    if (group.backs_off > 0) message->set_held("back-off");
  }
  for (const auto& [slot, node] : nodes_) {
    request.mutable_groups(static_cast<int>(node.group))->mutable_scale_down()->add_slots(slot);
    if (node.leaves >= 0) request.mutable_progress()->add_started(node.name);
  }
  for (size_t workload = 0; workload < workloads_.size(); ++workload) {
    if (waiting_[workload] == 0) continue;
    v1::PendingPods* const pods = request.add_pods();
    pods->mutable_pod()->set_pod(PodBytes(workload, /*running=*/false));
    pods->set_count(static_cast<int32_t>(waiting_[workload]));
  }
  return request;
}

}  // namespace loadline
