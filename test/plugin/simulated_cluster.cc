#include "test/plugin/simulated_cluster.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "loadline/k8s/v1/workloads.pb.h"

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

size_t SimulatedCluster::AddGroup(SimulatedGroup group) {
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

size_t SimulatedCluster::AddWorkload(const SimulatedSize& pod, const SimulatedRules& rules) {
  workloads_.push_back(pod);
  rules_.push_back(rules);
  waiting_.push_back(0);
  return workloads_.size() - 1;
}

int32_t SimulatedCluster::AddNode(size_t group) {
  int32_t slot = slot_end_;
  if (free_slots_.empty()) {
    ++slot_end_;
  } else {
    slot = *free_slots_.begin();
    free_slots_.erase(free_slots_.begin());
  }
  const int64_t number = made_++;
  nodes_[slot] = {
      absl::StrFormat("%s-%07d", groups_[group].name, number), number, group, {}, groups_[group].node};
  changed_.insert(slot);
  return slot;
}

bool SimulatedCluster::Permits(size_t workload, size_t group) const {
  const SimulatedRules& rules = rules_[workload];
  return (rules.zone.empty() || rules.zone == groups_[group].zone) &&
         (rules.tolerates || !groups_[group].tainted);
}

int64_t SimulatedCluster::PodsOf(const SimulatedNode& node, size_t workload) {
  return std::count_if(node.pods.begin(), node.pods.end(),
                       [&](const SimulatedPod& pod) { return pod.workload == workload; });
}

bool SimulatedCluster::Fits(const SimulatedNode& node, size_t workload) const {
  const SimulatedSize& pod = workloads_[workload];
  if (!Permits(workload, node.group) || (rules_[workload].alone && PodsOf(node, workload) > 0)) return false;
  return node.leaves < 0 && node.free.milli_cpu >= pod.milli_cpu && node.free.mib >= pod.mib &&
         static_cast<int64_t>(node.pods.size()) < kPodsPerNode;
}

void SimulatedCluster::Bind(int32_t slot, size_t workload) {
  SimulatedNode& node = nodes_.at(slot);
  node.pods.push_back({workload, made_++});
  node.free.milli_cpu -= workloads_[workload].milli_cpu;
  node.free.mib -= workloads_[workload].mib;
  --waiting_[workload];
  changed_.insert(slot);
}

void SimulatedCluster::End(int32_t slot, size_t position) {
  SimulatedNode& node = nodes_.at(slot);
  const SimulatedSize& pod = workloads_[node.pods[position].workload];
  node.free.milli_cpu += pod.milli_cpu;
  node.free.mib += pod.mib;
  node.pods.erase(node.pods.begin() + static_cast<std::ptrdiff_t>(position));
  changed_.insert(slot);
}

void SimulatedCluster::Lose(int32_t slot) {
  for (const SimulatedPod& pod : nodes_.at(slot).pods) ++waiting_[pod.workload];
  nodes_.erase(slot);
  free_slots_.insert(slot);
  changed_.insert(slot);
}

int64_t SimulatedCluster::Running(size_t workload) const {
  int64_t count = 0;
  for (const auto& [slot, node] : nodes_) count += PodsOf(node, workload);
  return count;
}

void SimulatedCluster::Scale(size_t workload, int64_t replicas) {
  int64_t more = replicas - waiting_[workload] - Running(workload);
  if (more < 0) {
    const int64_t given_up = std::min(-more, waiting_[workload]);
    waiting_[workload] -= given_up;
    more += given_up;
  } else {
    waiting_[workload] += more;
  }
  std::vector<int32_t> slots;
  for (const auto& [slot, node] : nodes_) {
    for (const SimulatedPod& pod : node.pods) {
      if (pod.workload == workload) slots.push_back(slot);
    }
  }
  std::shuffle(slots.begin(), slots.end(), random_);
  for (size_t i = 0; more < 0; ++i, ++more) {
    const std::vector<SimulatedPod>& pods = nodes_.at(slots[i]).pods;
    const auto at = std::find_if(pods.begin(), pods.end(),
                                 [&](const SimulatedPod& pod) { return pod.workload == workload; });
    End(slots[i], static_cast<size_t>(at - pods.begin()));
  }
}

void SimulatedCluster::Fill(int32_t slot, size_t workload, int64_t pods) {
  for (int64_t i = 0; i < pods && Fits(nodes_.at(slot), workload); ++i) {
    ++waiting_[workload];
    Bind(slot, workload);
  }
}

void SimulatedCluster::ReplaceOne(int32_t slot) {
  const auto node = nodes_.find(slot);
  if (node == nodes_.end() || node->second.pods.empty()) return;
  const size_t position = Below(random_, node->second.pods.size());
  ++waiting_[node->second.pods[position].workload];
  End(slot, position);
}

void SimulatedCluster::Schedule() {
  for (size_t workload = 0; workload < workloads_.size(); ++workload) {
    for (auto& [slot, node] : nodes_) {
      while (waiting_[workload] > 0 && Fits(node, workload)) Bind(slot, workload);
    }
  }
}

void SimulatedCluster::ScheduleAnywhere() {
  std::vector<int32_t> slots;
  for (const auto& [slot, node] : nodes_) slots.push_back(slot);
  for (size_t workload = 0; workload < workloads_.size(); ++workload) {
    while (waiting_[workload] > 0 && !slots.empty()) {
      // From a node on that is drawn.
      const size_t first = Below(random_, slots.size());
      size_t tried = 0;
      const auto slot = [&] { return slots[(first + tried) % slots.size()]; };
      while (tried < slots.size() && !Fits(nodes_.at(slot()), workload)) ++tried;
      if (tried == slots.size()) break;
      Bind(slot(), workload);
    }
  }
}

void SimulatedCluster::Act(const v1::PlanLoopResponse& answer) {
  for (const v1::LoopGrowth& growth : answer.growth()) {
    const auto group = static_cast<size_t>(
        std::find_if(groups_.begin(), groups_.end(),
                     [&](const SimulatedGroup& g) { return g.name == growth.node_group(); }) -
        groups_.begin());
    for (int64_t i = 0; i < growth.nodes_for_pods() + growth.nodes_for_slack(); ++i) {
      const auto late = static_cast<int32_t>(Below(random_, static_cast<size_t>(faults_.start_loops) + 1));
      const bool fails = faults_.failed_machines > 0 && OneIn(random_, faults_.failed_machines);
      machines_.push_back({group, late, fails});
    }
  }
  for (const v1::NodeRemoval& removal : answer.scale_down().remove()) {
    if (!removal.start()) continue;
    nodes_.at(removal.slot()).leaves = faults_.drain_loops;
    changed_.insert(removal.slot());
  }
}

void SimulatedCluster::Step(int64_t seconds) {
  now_ += seconds;
  for (SimulatedGroup& group : groups_) group.backs_off = std::max(0, group.backs_off - 1);
  std::vector<SimulatedMachine> coming;
  for (SimulatedMachine machine : std::exchange(machines_, {})) {
    if (machine.loops-- > 0) {
      coming.push_back(machine);
    } else if (machine.fails) {
      groups_[machine.group].backs_off = 3;
    } else {
      AddNode(machine.group);
    }
  }
  machines_ = std::move(coming);
  std::vector<int32_t> gone;
  for (auto& [slot, node] : nodes_) {
    if (node.leaves >= 0 && node.leaves-- == 0) gone.push_back(slot);
  }
  for (const int32_t slot : gone) Lose(slot);
  if (faults_.lost_nodes > 0 && !nodes_.empty() && OneIn(random_, faults_.lost_nodes)) {
    Lose(std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(Below(random_, nodes_.size())))->first);
  }
}

int64_t SimulatedCluster::AllWaiting() const {
  return std::accumulate(waiting_.begin(), waiting_.end(), int64_t{0});
}

int64_t SimulatedCluster::CurrentNodes(size_t group) const {
  const auto of_group = [&](const auto& machine) { return machine.group == group; };
  return std::count_if(nodes_.begin(), nodes_.end(),
                       [&](const auto& node) { return of_group(node.second); }) +
         std::count_if(machines_.begin(), machines_.end(), of_group);
}

bool SimulatedCluster::Quiet() const {
  return machines_.empty() &&
         std::none_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.second.leaves >= 0; });
}

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
