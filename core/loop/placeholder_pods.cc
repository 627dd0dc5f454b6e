#include "core/loop/placeholder_pods.h"

#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/resource_names.h"
#include "core/cluster/pod_resources.h"

namespace loadline {
namespace {

constexpr char kInstanceType[] = "node.kubernetes.io/instance-type";

PodRules RulesOf(const SlackClassKey& key) {
  PodRules rules;
  rules.node_selector = key.labels;
  rules.node_selector.Take(kInstanceType);
  for (const Taint& taint : key.taints) {
    rules.tolerations.push_back({taint.key, "Equal", taint.value, taint.effect});
  }
  return rules;
}

PodShape ShapeOf(const CpuMemory& size, PodRules rules) {
  PodResources resources;
  ContainerResources& container = resources.containers.emplace_back();
  container.requests[kCpu] = Quantity::FromMilli(size.cpu);
  container.requests[kMemory] = Quantity::FromUnits(size.memory);
  PodTraits traits;
  traits.placeholder = true;
  return MakePodShape("", /*finished=*/false, resources, ResourceNames(), PodRole::kIncoming,
                      std::move(rules), std::move(traits));
}

}  // namespace

std::vector<DrainPlaceholder> PlaceholderPods(const SlackState& state, const SlackPlan& plan,
                                              const ResourceNames& names) {
  absl::btree_map<std::string, PodRules> rules;
  for (const ClassSlack& slack : plan.classes) rules.emplace(slack.key.name, RulesOf(slack.key));
  absl::btree_map<PlaceholderGroup, PodShape> shapes;
  for (const MirroredSlack& mirrored : plan.mirrored) {
    shapes.emplace(PlaceholderGroup{PlaceholderKind::kMirrored, mirrored.pod.key, mirrored.pod.size},
                   mirrored.pod.shape);
  }
  std::vector<DrainPlaceholder> pods;
  for (const Placeholder& placeholder : state.placeholders) {
    if (placeholder.node.empty()) continue;
    const PlaceholderGroup group{placeholder.kind, placeholder.owner, placeholder.size};
    auto shape = shapes.find(group);
    if (shape == shapes.end()) {
      const auto of = rules.find(placeholder.owner);
      shape =
          shapes.emplace(group, ShapeOf(placeholder.size, of == rules.end() ? PodRules() : of->second)).first;
    }
    IncomingPod pod;
    pod.shape = shape->second;
    pod.names = names;
    pods.emplace_back(absl::StrCat("slack/", placeholder.id), placeholder.node, std::move(pod));
  }
  return pods;
}

}  // namespace loadline
