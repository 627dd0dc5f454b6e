// pod_limits.jsonl: EffectiveLimits, the proposal's two functions, PodDecoder, and the sums that a node
// keeps.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/core.pb.h"
#include "plugin/convert/pod.h"
#include "test/vectors/fleet.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

const MissingLimitRule kCountsNothing = {.rule = MissingLimit::kZero};

Json Limits(const Fleet& fleet, const PodResources& pod, bool use_status) {
  return fleet.ToJson(ToAmounts(EffectiveLimits(pod, fleet.names(), use_status)));
}

void PodLimitsOf(const Json& in, Answers* answers) {
  Fleet fleet;
  PodResources pod = fleet.Pod(in.at("pod"));
  // The product always counts overhead: a question without it is one about a pod that has none.
  if (in.value("exclude_overhead", false)) pod.overhead.clear();
  answers->Equal("limits", Limits(fleet, pod, in.value("use_status", false)));
}

void SidecarStatus(const Json& in, Answers* answers) {
  Json limits = Json::array();
  for (const Json& c : in.at("cases")) {
    const Json& sidecar = c.at("sidecar");
    Fleet fleet;
    const PodResources pod = fleet.Pod(
        {{"init_containers",
          {{{"sidecar", true}, {"limits", sidecar.at("spec")}, {"status_limits", sidecar.at("status")}}}}});
    limits.push_back(Limits(fleet, pod, c.at("use_status").get<bool>()));
  }
  answers->Equal("limits", limits);
}

void Resize(const Json& in, Answers* answers) {
  Fleet fleet;
  Json containers = Json::array();
  bool infeasible = false;
  for (const Json& container : in.at("containers")) {
    containers.push_back({{"limits", container.at("spec")}, {"status_limits", container.at("status")}});
    infeasible = infeasible || container.at("infeasible").get<bool>();
  }
  PodResources pod = fleet.Pod({{"containers", containers}});
  pod.resize_infeasible = infeasible;
  answers->Equal("with_status", Limits(fleet, pod, /*use_status=*/true));
  answers->Equal("spec_only", Limits(fleet, pod, /*use_status=*/false));
  pod.resize_rule = ResizeRule::kPerPod;
  answers->Equal("with_status_0_37", Limits(fleet, pod, /*use_status=*/true));
}

// A pod of a node as a client sends it. That it is terminating is not among the fields that the engine reads.
std::string LimitedPodBytes(const Json& json) {
  k8s::v1::Pod pod;
  auto* const resources = pod.mutable_spec()->add_containers()->mutable_resources();
  for (const auto& [name, amount] : json.at("limits").items()) {
    auto* const limit = resources->add_limits();
    limit->set_key(name);
    limit->mutable_value()->set_string(absl::StrCat(amount.get<int64_t>(), name == "cpu" ? "m" : ""));
  }
  pod.mutable_status()->set_phase(json.at("phase").get<std::string>());
  return pod.SerializeAsString();
}

void CountedPods(const Json& in, Answers* answers) {
  ResourceNames names;
  ResourceReader reader(&names);
  PodDecoder decoder(&reader);
  ClusterState cluster;
  std::vector<PodContent> pods;
  for (const Json& json : in.at("pods")) {
    absl::StatusOr<PodShape> shape = decoder.Decode(LimitedPodBytes(json), PodRole::kExisting);
    if (!shape.ok()) return;  // leaves the wanted keys without an answer
    pods.push_back({.shape = cluster.pod_shapes().Acquire(*shape), .tag = 0, .name = "", .uid = ""});
  }
  cluster.set_resource_names(names);
  cluster.SetNode(Slot{0}, "node", MakeNodeShape({}, names), pods);

  Json limits = Json::object();
  for (int32_t id = 0; id < cluster.resource_end(); ++id) {
    const int64_t sum = cluster.columns(ResourceId{id})->limits[0];
    if (sum > 0) limits[std::string(names.name(ResourceId{id}))] = sum;
  }
  answers->Equal("limits", limits);
}

// The policies of the two readings in whole numbers.
LimitPolicy Proposal() {
  LimitPolicy policy = WholeNumbers({{"cpu", 1}}, kCountsNothing);
  policy.pod_limits = PodLimits::kProposal;
  return policy;
}
LimitPolicy Effective() { return WholeNumbers({{"cpu", 1}}, kCountsNothing); }

void ProposalPodLimit(const Json& in, Answers* answers) {
  Fleet fleet;
  const PodResources pod = fleet.Pod(in.at("pod"));
  answers->Equal("proposal_limit", ProposalIncomingLimits(pod).Get(kCpu));
  answers->Equal("limit", ToAmounts(EffectiveLimits(pod, fleet.names(), /*use_status=*/false)).Get(kCpu));
  if (!in.contains("allocatable")) return;
  fleet.AddNode(in.at("allocatable"), {});
  answers->Equal("proposal_raw_int", fleet.Raw(Proposal(), pod).values[0]);
  answers->Equal("raw_int", fleet.Raw(Effective(), pod).values[0]);
}

void ProposalNodeLimit(const Json& in, Answers* answers) {
  Fleet fleet;
  for (const Json& node : in.at("nodes")) {
    std::vector<PodResources> pods;
    for (const Json& pod : node) pods.push_back(fleet.Pod(pod));
    fleet.AddNode(in.at("allocatable"), pods);
  }
  const PodResources incoming = fleet.Pod(in.at("incoming"));
  answers->Equal("proposal_limits", LimitsAfterPlacing(Proposal(), fleet.Explain(Proposal(), incoming)));
  answers->Equal("proposal_raw_int", fleet.Raw(Proposal(), incoming).values);
  answers->Equal("limits", LimitsAfterPlacing(Effective(), fleet.Explain(Effective(), incoming)));
  answers->Equal("raw_int", fleet.Raw(Effective(), incoming).values);
}

}  // namespace

void AddPodLimitsHandlers(Handlers* handlers) {
  handlers->insert({{"pod_limits", PodLimitsOf},
                    {"pod_limits_sidecar_status", SidecarStatus},
                    {"resize", Resize},
                    {"counted_pods", CountedPods},
                    {"proposal_pod_limit", ProposalPodLimit},
                    {"proposal_node_limit", ProposalNodeLimit}});
}

}  // namespace loadline::vectors
