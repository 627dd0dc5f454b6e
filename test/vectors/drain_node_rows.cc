// drain_eligibility.jsonl and drain_utilisation.jsonl.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/eligibility.h"
#include "core/drain/node_reason.h"
#include "test/vectors/drain_cluster.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

constexpr char kGpuLabel[] = "cloud.google.com/gke-accelerator";
constexpr char kGpu[] = "nvidia.com/gpu";

void SetRequests(const Json& in, k8s::v1::Container* container) {
  auto* const requests = container->mutable_resources()->mutable_requests();
  if (const Json mcpu = in.value("mcpu", Json()); !mcpu.is_null()) {
    SetAmount(requests, "cpu", absl::StrCat(mcpu.get<int64_t>(), "m"));
  }
  if (const Json memory = in.value("memory", Json()); !memory.is_null()) {
    SetAmount(requests, "memory", absl::StrCat(memory.get<int64_t>()));
  }
  if (const int64_t gpus = in.value("gpu", int64_t{0}); gpus > 0) {
    SetAmount(requests, kGpu, absl::StrCat(gpus));
  }
}

k8s::v1::Pod ReadPod(const Json& in) {
  k8s::v1::Pod pod;
  SetRequests(in, pod.mutable_spec()->add_containers());
  for (const Json& init : in.value("init", Json::array())) {
    k8s::v1::Container* const container = pod.mutable_spec()->add_init_containers();
    SetRequests(init, container);
    if (init.value("sidecar", false)) container->set_restart_policy("Always");
  }
  const std::string kind = in.value("daemonset", false) ? "daemonset" : in.value("kind", "regular");
  auto* const annotations = pod.mutable_metadata()->mutable_annotations();
  if (kind == "daemonset") SetOwner("DaemonSet", "apps/v1", "owner", pod.mutable_metadata());
  if (kind == "daemonset_by_annotation") {
    SetEntry(annotations, "cluster-autoscaler.kubernetes.io/daemonset-pod", "true");
  }
  if (kind == "mirror") SetEntry(annotations, "kubernetes.io/config.mirror", "mirror");
  SetDeletion({{"deleted_s_ago", in.value("deleted_s_ago", Json())}, {"grace_s", in.value("grace_s", 30)}},
              &pod);
  return pod;
}

std::vector<k8s::v1::Pod> ReadPods(const Json& in) {
  std::vector<k8s::v1::Pod> pods;
  for (const Json& pod : in) pods.push_back(ReadPod(pod));
  return pods;
}

void CloseTo(const std::string& key, double got, double tolerance, Answers* answers) {
  const Json* const wanted = answers->Wanted(key);
  const bool agrees =
      wanted != nullptr && wanted->is_number() && std::abs(wanted->get<double>() - got) <= tolerance;
  answers->Agrees(key, agrees, got);
}

void UtilisationOf(const Json& in, Answers* answers) {
  const Json& allocatable = in.at("allocatable");
  k8s::v1::Node node =
      NodeOffering("node", allocatable.value("mcpu", Json()), allocatable.value("memory", Json()));
  if (in.at("gpu_label")) SetEntry(node.mutable_metadata()->mutable_labels(), kGpuLabel, "any");
  if (const Json& gpus = in.at("gpu_allocatable"); !gpus.is_null()) {
    SetAmount(node.mutable_status()->mutable_allocatable(), kGpu, absl::StrCat(gpus.get<int64_t>()));
  }
  DrainCluster cluster;
  cluster.Add(node, ReadPods(in.at("pods")));
  std::vector<DevicePool> pools;
  for (const auto& [name, pool] : in.at("dra_pools").items()) {
    if (in.at("dra_enabled")) pools.push_back({name, pool.at("devices"), pool.at("allocated")});
  }
  UtilizationOptions options;
  options.ignore_daemonsets = in.at("ignore_daemonsets");
  options.ignore_mirror_pods = in.at("ignore_mirror");
  const std::optional<Utilization> got = NodeUtilization(cluster.state(), Slot{0}, options, kRowNow, pools);
  if (!got.has_value()) return answers->Agrees("error", answers->Wanted("error") != nullptr, "error");
  CloseTo("utilisation", got->value, 1e-3, answers);
  answers->Equal("resource", got->resource);
  CloseTo("cpu", got->cpu, 1e-3, answers);
}

void EligibilityOf(const Json& in, Answers* answers) {
  k8s::v1::Node node =
      NodeOffering("node", in.at("allocatable").at("mcpu"), in.at("allocatable").at("memory"));
  if (!in.at("ready")) node.mutable_status()->mutable_conditions(0)->set_status("False");
  for (const auto& [key, value] : in.at("annotations").items()) {
    SetEntry(node.mutable_metadata()->mutable_annotations(), key, value);
  }
  if (const Json& age = in.at("to_be_deleted_taint_age_s"); !age.is_null()) {
    k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
    taint->set_key(kToBeDeletedTaint);
    taint->set_value(absl::StrCat(kRowNow - age.get<int64_t>()));
    taint->set_effect("NoSchedule");
  }
  DrainCluster cluster;
  cluster.Add(node, ReadPods(in.at("pods")));
  const NodeGroup group = {.name = "group", .min_nodes = 0, .target = 10};
  std::vector<DevicePool> pools;
  if (in.at("dra_enabled") && in.at("dra_pool_incomplete")) {
    pools.push_back({.name = "pool", .devices = 1, .allocated = 0, .complete = false});
  }
  EligibilityOptions options;
  options.utilization_threshold = in.at("threshold");
  options.utilization.ignore_daemonsets = in.at("ignore_daemonsets");
  options.scale_down_unready_enabled = in.at("scale_down_unready_enabled");
  const Eligibility got =
      CheckEligibility(cluster.state(), {.slot = Slot{0}, .group = &group, .pools = pools}, options, kRowNow);
  answers->Equal("verdict", got.reason == NodeReason::kNone ? "eligible" : std::string(Name(got.reason)));
  if (got.utilization.has_value()) CloseTo("utilisation", got.utilization->value, 1e-9, answers);
}

}  // namespace

void AddDrainNodeHandlers(Handlers* handlers) {
  handlers->insert({{"utilisation", UtilisationOf}, {"eligibility", EligibilityOf}});
}

}  // namespace loadline::vectors
