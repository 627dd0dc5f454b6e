#include "test/vectors/fleet.h"

#include <string>
#include <utility>

#include "core/base/amount.h"
#include "core/cluster/shapes.h"

namespace loadline::vectors {
namespace {

// A member of an object, empty where it is left out.
const Json& Member(const Json& object, const char* key) {
  static const Json* const kEmpty = new Json(Json::object());
  const auto found = object.find(key);
  return found == object.end() ? *kEmpty : *found;
}

LimitPolicy Count(LimitPolicy policy, const MissingLimitRule& missing) {
  policy.pod_limits = PodLimits::kEffective;
  policy.max_limit_ratio = 0;
  policy.aggregate = Aggregate::kWeightedSum;
  policy.missing_limit_scope = MissingLimitScope::kAllPods;
  for (ScoredResource& resource : policy.resources) resource.best_effort = resource.others = missing;
  return policy;
}

}  // namespace

ResourceList Fleet::List(const Json& amounts) {
  ResourceList list;
  for (const auto& [name, amount] : amounts.items()) {
    const ResourceId id = names_.Intern(name);
    const int64_t value = amount.get<int64_t>();
    list[id] = id == kCpu ? Quantity::FromMilli(value) : Quantity::FromUnits(value);
  }
  return list;
}

Json Fleet::ToJson(const ResourceAmounts& amounts) const {
  Json json = Json::object();
  for (const auto& [id, amount] : amounts) json[std::string(names_.name(id))] = amount;
  return json;
}

PodResources Fleet::Pod(const Json& pod) {
  PodResources resources;
  const auto add = [&](const Json& json, const std::string& name, auto* containers) {
    containers->push_back({.name = name,
                           .sidecar = json.value("sidecar", false),
                           .requests = List(Member(json, "requests")),
                           .limits = List(Member(json, "limits"))});
    if (!json.contains("status_limits")) return;
    resources.container_statuses.push_back(
        {.name = name, .has_resources = true, .limits = List(json.at("status_limits"))});
  };
  for (const auto& [index, json] : Member(pod, "containers").items()) {
    add(json, "container-" + index, &resources.containers);
  }
  for (const auto& [index, json] : Member(pod, "init_containers").items()) {
    add(json, "init-" + index, &resources.init_containers);
  }
  resources.overhead = List(Member(pod, "overhead"));
  if (const Json& limits = Member(pod, "pod_level_limits"); !limits.empty()) {
    resources.pod_level.emplace().limits = List(limits);
  }
  return resources;
}

PodResources Fleet::PodWithLimits(const Json& limits) {
  PodResources resources;
  resources.containers.push_back({.name = "container", .limits = List(limits)});
  return resources;
}

void Fleet::AddNode(const Json& allocatable, const std::vector<PodResources>& pods) {
  NodeShape shape = MakeNodeShape(ToAmounts(List(allocatable)), names_);
  cluster_.set_resource_names(names_);
  std::vector<PodContent> contents;
  for (const PodResources& pod : pods) {
    const int32_t index = cluster_.pod_shapes().Acquire(Shape(pod, PodRole::kExisting));
    contents.push_back({.shape = index, .tag = 0, .name = "", .uid = ""});
  }
  const Slot slot{cluster_.slot_end()};
  cluster_.SetNode(slot, "node-" + std::to_string(cluster_.slot_end()), std::move(shape), contents);
}

RawScores Fleet::Raw(const LimitPolicy& policy, const PodResources& incoming) {
  LimitColumns columns(policy);
  columns.CatchUp(cluster_);
  return ScoreRaw(columns, cluster_, Shape(incoming, PodRole::kIncoming), AllSlots());
}

std::vector<int32_t> Fleet::Scores(const LimitPolicy& policy, const PodResources& incoming) {
  LimitColumns columns(policy);
  columns.CatchUp(cluster_);
  std::vector<int32_t> scores;
  ScoreNodes(columns, cluster_, Shape(incoming, PodRole::kIncoming), AllSlots(), &scores);
  return scores;
}

std::vector<NodeExplanation> Fleet::Explain(const LimitPolicy& policy, const PodResources& incoming) {
  LimitColumns columns(policy);
  columns.CatchUp(cluster_);
  const std::vector<Slot> slots = AllSlots();
  std::vector<size_t> all;
  for (const Slot slot : slots) all.push_back(IndexOf(slot));
  return ExplainNodes(columns, cluster_, Shape(incoming, PodRole::kIncoming), slots, all);
}

PodShape Fleet::Shape(const PodResources& pod, PodRole role) const {
  return MakePodShape(/*namespace_name=*/"default", /*finished=*/false, pod, names_, role);
}

std::vector<Slot> Fleet::AllSlots() const {
  std::vector<Slot> slots;
  for (int32_t slot = 0; slot < cluster_.slot_end(); ++slot) slots.push_back(Slot{slot});
  return slots;
}

std::vector<ResourceWeight> Weights(const Json& weights) {
  std::vector<ResourceWeight> resources;
  for (const auto& [name, weight] : weights.items()) resources.push_back({name, weight.get<int32_t>()});
  return resources;
}

LimitPolicy WholeNumbers(const std::vector<ResourceWeight>& resources, const MissingLimitRule& missing) {
  return Count(Kep217Policy(resources), missing);
}

LimitPolicy FixedPoint(const std::vector<ResourceWeight>& resources, const MissingLimitRule& missing) {
  return Count(StrictPolicy(resources), missing);
}

Json LimitsAfterPlacing(const LimitPolicy& policy, const std::vector<NodeExplanation>& nodes) {
  Json limits = Json::array();
  for (const NodeExplanation& node : nodes) {
    Json of_node = Json::object();
    for (size_t r = 0; r < node.resources.size(); ++r) {
      of_node[policy.resources[r].name] =
          SaturatingAdd(node.resources[r].node_limits, node.resources[r].pod.amount);
    }
    limits.push_back(of_node.size() == 1 ? of_node.front() : of_node);
  }
  return limits;
}

}  // namespace loadline::vectors
