// estimator.jsonl: Estimator in the mode of Cluster Autoscaler, its order and limits, and which pods it takes
// for equal.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/expand/equivalence.h"
#include "core/expand/estimate.h"
#include "core/expand/node_limits.h"
#include "loadline/k8s/v1/core.pb.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/pod_identity.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/units.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

FitNode NodeOf(const Json& json, const std::string& name) {
  FitNode node{.name = name,
               .allocatable = {{"cpu", json.at("mcpu")},
                               {"memory", json.at("memory_mib").get<int64_t>() * kMi},
                               {"pods", json.at("max_pods")}}};
  if (json.contains("zone")) node.labels = {{kZone, json.at("zone")}};
  return node;
}

FitPod PodOf(const Json& json) {
  FitPod pod{.requests = {{"cpu", json.at("mcpu")}, {"memory", json.at("memory_bytes")}},
             .labels = {{"app", "estimatee"}}};
  if (json.contains("host_port")) pod.rules.host_ports = {{json.at("host_port"), "TCP", "0.0.0.0"}};
  if (json.contains("spread")) {
    const Json& spread = json.at("spread");
    pod.rules.has_spread = true;
    if (spread.at("when_unsatisfiable") == "DoNotSchedule") {
      pod.rules.spread = {{.max_skew = spread.at("max_skew"),
                           .topology_key = spread.at("topology_key"),
                           .selector = Select("app", "estimatee"),
                           .min_domains = spread.at("min_domains")}};
    }
  }
  return pod;
}

NodeGroup TemplateOf(const FitNode& node, FitCluster* cluster) {
  return {.name = node.name, .model = NodeModel{cluster->Shape(node)}};
}

void EstimateNodes(const Json& in, Answers* answers) {
  FitCluster cluster;
  for (const Json& node : in.at("existing_nodes")) {
    std::vector<FitPod> pods;
    for (const Json& pod : node.at("pods")) pods.push_back(PodOf(pod));
    cluster.Add(NodeOf(node, node.at("name")), pods);
  }
  const NodeGroup node = TemplateOf(NodeOf(in.at("template"), "template"), &cluster);
  std::vector<PendingPods> pending;
  for (const Json& group : in.at("groups")) {
    pending.push_back({cluster.Incoming(PodOf(group)), group.at("count").get<int64_t>()});
  }
  const FitOptions options;
  Snapshot snapshot(cluster.state());
  WorkBudget budget;
  Estimator estimator(&snapshot, &options, std::move(pending), {}, &budget, EstimateMode::kClusterAutoscaler);
  const NodeThreshold limit{.max_nodes = ReadNodeLimit(in.at("max_nodes"))};
  const NodeEstimate estimate = estimator.Estimate(node, NodeLimiter({&limit, 1}), &budget);
  answers->Equal("nodes", estimate.nodes);
  answers->Equal("pods", estimate.pods);
  answers->Equal("pods_per_group", estimate.placed);
}

void GroupOrder(const Json& in, Answers* answers) {
  FitCluster cluster;
  std::vector<PendingPods> pending;
  for (const Json& group : in.at("groups")) {
    pending.push_back({cluster.Incoming(PodOf(group)), group.at("count").get<int64_t>()});
  }
  const NodeGroup node = TemplateOf(NodeOf(in.at("template"), "template"), &cluster);
  Json names = Json::array();
  for (const size_t i : EstimationOrder(node.model->shape.allocatable, pending)) {
    names.push_back(in.at("groups")[i].at("name"));
  }
  answers->Equal("order", names);
}

// Returns a limit as Cluster Autoscaler writes it.
int64_t Written(NodeLimit limit) {
  if (!limit.has_value()) return 0;
  return *limit > 0 ? *limit : -1;
}

void ClusterLimit(const Json& in, Answers* answers) {
  answers->Equal("limit", Written(ClusterNodeLimit(in.at("max_nodes_total"), in.at("current_nodes"))));
}

NodeGroup GroupOf(const Json& json) { return {.max_nodes = json.at("max"), .target = json.at("current")}; }

void GroupLimit(const Json& in, Answers* answers) {
  std::vector<NodeGroup> similar;
  for (const Json& group : in.at("similar")) similar.push_back(GroupOf(group));
  answers->Equal("limit", Written(GroupNodeLimit(GroupOf(in.at("group")), similar)));
}

void MinLimit(const Json& in, Answers* answers) {
  answers->Equal("limit",
                 Written(SmallerLimit(ReadNodeLimit(in.at("base")), ReadNodeLimit(in.at("target")))));
}

void Limiter(const Json& in, Answers* answers) {
  std::vector<NodeThreshold> thresholds;
  for (const Json& threshold : in.at("thresholds")) {
    NodeThreshold& read = thresholds.emplace_back();
    read.max_nodes = ReadNodeLimit(threshold.at("max_nodes"));
    if (const double seconds = threshold.at("max_seconds"); seconds != 0) read.max_seconds = seconds;
  }
  NodeLimiter limiter(thresholds);
  Json granted = Json::array();
  for (int64_t i = 0; i < in.at("asks").get<int64_t>(); ++i) {
    granted.push_back(limiter.Grant(1, in.at("elapsed_s")) == 1);
  }
  answers->Equal("granted", granted);
}

// Returns a pod as a client sends it. Only projected volume sources have to be distinguished.
std::string PodBytes(const Json& json) {
  k8s::v1::Pod pod;
  auto* const requests = pod.mutable_spec()->add_containers()->mutable_resources();
  for (const auto& [name, key] : {std::pair("cpu", "mcpu"), std::pair("memory", "memory_bytes")}) {
    auto* const request = requests->add_requests();
    request->set_key(name);
    request->mutable_value()->set_string(std::to_string(json.at(key).get<int64_t>()) +
                                         (name == std::string("cpu") ? "m" : ""));
  }
  for (const auto& [key, value] : json.at("labels").items()) {
    auto* const label = pod.mutable_metadata()->add_labels();
    label->set_key(key);
    label->set_value(value.get<std::string>());
  }
  if (const Json& owner = json.at("owner"); !owner.is_null()) {
    auto* const reference = pod.mutable_metadata()->add_owner_references();
    reference->set_kind(owner.at("kind").get<std::string>());
    reference->set_uid(owner.at("uid").get<std::string>());
    reference->set_controller(true);
  }
  if (const Json& json_volume = json.at("volume"); !json_volume.is_null()) {
    auto* const volume = pod.mutable_spec()->add_volumes();
    volume->set_name(json_volume.at("name").get<std::string>());
    if (json_volume.at("type") == "projected") volume->mutable_volume_source()->mutable_projected();
  }
  return pod.SerializeAsString();
}

void Equivalence(const Json& in, Answers* answers) {
  ResourceNames names;
  ResourceReader reader(&names);
  PodDecoder decoder(&reader);
  std::vector<PodIdentity> pods;
  for (const Json& json : in.at("pods")) {
    const absl::StatusOr<PodShape> shape = decoder.Decode(PodBytes(json), PodRole::kIncoming);
    if (!shape.ok()) return;  // leaves the wanted keys without an answer
    pods.push_back(IdentityOf(decoder, *shape));
  }
  Json groups = Json::array();
  for (const std::vector<size_t>& group : EquivalenceGroups(pods)) {
    Json members = Json::array();
    for (const size_t i : group) members.push_back(in.at("pods")[i].at("name"));
    groups.push_back(members);
  }
  // Sets of sets: in the row both are sorted.
  for (Json& group : groups) std::sort(group.begin(), group.end());
  const Json* const wanted = answers->Wanted("groups");
  Json sorted_wanted = wanted == nullptr ? Json::array() : *wanted;
  for (Json& group : sorted_wanted) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  std::sort(sorted_wanted.begin(), sorted_wanted.end());
  answers->Agrees("groups", groups == sorted_wanted, groups);
}

}  // namespace

void AddEstimatorHandlers(Handlers* handlers) {
  handlers->insert({{"estimate", EstimateNodes},
                    {"group_order", GroupOrder},
                    {"cluster_limit", ClusterLimit},
                    {"group_limit", GroupLimit},
                    {"min_limit", MinLimit},
                    {"limiter", Limiter},
                    {"equivalence_groups", Equivalence}});
}

}  // namespace loadline::vectors
