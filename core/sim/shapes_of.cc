#include "core/sim/shapes_of.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/pod_resources.h"
#include "core/sim/sim_use.h"

namespace loadline {
namespace {

constexpr char kSimGroupLabel[] = "loadline.dev/node-group";
constexpr char kSimZoneLabel[] = "topology.kubernetes.io/zone";
constexpr char kSimHandKey[] = "loadline.dev/by-hand";  // of the label and of the taint

void AddSimAmounts(const CpuMemory& amounts, ResourceList* list) {
  if (amounts.cpu > 0) (*list)[kCpu] = Quantity::FromMilli(amounts.cpu);
  if (amounts.memory > 0) (*list)[kMemory] = Quantity::FromUnits(amounts.memory);
}

PodRules RulesOf(const SimWorkload& workload) {
  PodRules rules;
  std::vector<Label> selector;
  if (workload.labelled_nodes_only) selector.push_back({kSimHandKey, "true"});
  if (!workload.group.empty()) {
    selector.push_back({kSimGroupLabel, workload.group});
    rules.tolerations.push_back({kSimGroupLabel, "Equal", workload.group, "NoSchedule"});
  }
  rules.node_selector = Labels(std::move(selector));
  if (workload.kind == SimWorkloadKind::kDaemon) rules.tolerations.push_back({"", "Exists", "", ""});
  return rules;
}

}  // namespace

std::span<const Taint> SimStartupTaints() {
  static const auto* const kTaints = new std::vector<Taint>{
      {"node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"},
      {"startup-taint.cluster-autoscaler.kubernetes.io/agent", "", "NoSchedule"},
      {"ignore-taint.cluster-autoscaler.kubernetes.io/agent", "", "NoSchedule"},
      {"readiness.k8s.io/network", "pending", "NoSchedule"},
      {"node.cilium.io/agent-not-ready", "", "NoExecute"},
      {"ebs.csi.aws.com/agent-not-ready", "", "NoExecute"},
      {"karpenter.sh/unregistered", "", "NoExecute"},
  };
  return *kTaints;
}

Taint SimHandTaint() { return {kSimHandKey, "", "NoSchedule"}; }

ShapesOf::ShapesOf(const Scenario& scenario)
    : scenario_(scenario), pods_(names_.Intern("pods")), gpus_(names_.Intern(kNvidiaGpu)) {}

ObjectKind ShapesOf::KindOf(const SimWorkload& workload) {
  switch (workload.kind) {
    case SimWorkloadKind::kDeployment:
      return ObjectKind::kReplicaSet;
    case SimWorkloadKind::kDaemon:
      return ObjectKind::kDaemonSet;
    case SimWorkloadKind::kBatch:
    case SimWorkloadKind::kTrace:
      return ObjectKind::kJob;
  }
  return ObjectKind::kReplicaSet;
}

PodOwner ShapesOf::Owner(SimWorkloadIndex workload) const {
  const SimWorkload& of = At(workload);
  if (of.forged_owner) {
    return {std::string(Name(ObjectKind::kDaemonSet)), "apps/v1", "no-such-set", "forged"};
  }
  const ObjectKind kind = KindOf(of);
  return {std::string(Name(kind)), kind == ObjectKind::kJob ? "batch/v1" : "apps/v1", of.name,
          UidOf(workload)};
}

std::string ShapesOf::UidOf(SimWorkloadIndex workload) { return absl::StrCat("w", IndexOf(workload)); }

PodShape ShapesOf::Make(SimWorkloadIndex workload, PodTraits traits) const {
  const SimWorkload& of = At(workload);
  PodResources resources;
  ContainerResources& container = resources.containers.emplace_back();
  AddSimAmounts(of.request, &container.requests);
  AddSimAmounts(of.limit, &container.limits);
  if (of.gpus > 0) {
    container.requests[gpus_] = Quantity::FromUnits(of.gpus);
    container.limits[gpus_] = Quantity::FromUnits(of.gpus);
  }
  traits.owner = Owner(workload);
  if (of.use.has_value()) traits.workload.name = SimProfileName(of);
  traits.priority = of.priority;
  traits.grace_s = of.grace_s;
  if (of.not_evictable) traits.safe_to_evict = SafeToEvict::kNo;
  PodRules rules = RulesOf(of);
  rules.terminating = traits.deleted_s.has_value();
  if (of.apart) {
    AffinityTerm& term = rules.anti_affinity.emplace_back();
    term.selector.requirements.push_back({kSimAppLabel, SelectorOperator::kIn, {of.name}});
    term.topology_key = kHostnameLabel;
    term.namespaces = {kSimNamespace};
    term.namespace_selector.nothing = true;
  }
  if (of.max_zone_skew > 0) {
    rules.has_spread = true;
    SpreadConstraint& spread = rules.spread.emplace_back();
    spread.max_skew = static_cast<int32_t>(of.max_zone_skew);
    spread.topology_key = kSimZoneLabel;
    spread.selector.requirements.push_back({kSimAppLabel, SelectorOperator::kIn, {of.name}});
  }
  PodShape shape = MakePodShape(kSimNamespace, /*finished=*/false, resources, names_, PodRole::kIncoming,
                                std::move(rules), std::move(traits));
  SetLabels(Labels({{kSimAppLabel, of.name}}), &shape);
  return shape;
}

IncomingPod ShapesOf::Incoming(SimWorkloadIndex workload) const {
  IncomingPod pod;
  pod.shape = Make(workload, {});
  pod.names = names_;
  return pod;
}

PodShape ShapesOf::OnNode(SimWorkloadIndex workload, bool ready, std::optional<int64_t> deleted_s) const {
  PodTraits traits;
  traits.ready = ready;
  traits.deleted_s = deleted_s;
  return Make(workload, std::move(traits));
}

NodeShape ShapesOf::Node(GroupIndex group, bool devices, bool labelled) const {
  const SimGroup& of = scenario_.groups[group];
  ResourceAmounts allocatable;
  allocatable[kCpu] = of.allocatable.cpu;
  allocatable[kMemory] = of.allocatable.memory;
  allocatable[pods_] = of.pods;
  if (of.gpus > 0) allocatable[gpus_] = devices ? of.gpus : 0;
  std::vector<Taint> taints;
  if (of.tainted) taints.push_back({kSimGroupLabel, of.name, "NoSchedule"});
  std::vector<Label> labels = {{kSimGroupLabel, of.name}};
  if (labelled) labels.push_back({kSimHandKey, "true"});
  if (!of.zone.empty()) labels.push_back({kSimZoneLabel, of.zone});
  return MakeNodeShape(std::move(allocatable), names_, Labels(labels), std::move(taints));
}

}  // namespace loadline
