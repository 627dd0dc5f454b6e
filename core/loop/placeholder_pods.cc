#include "core/loop/placeholder_pods.h"

#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/cluster/pod_resources.h"

namespace loadline {
namespace {

constexpr char kPrefix[] = "slack/";

PodShape ShapeOf(const CpuMemory& size, PodRules rules) {
  PodResources resources;
  ContainerResources& container = resources.containers.emplace_back();
  container.requests[kCpu] = Quantity::FromMilli(size.cpu);
  container.requests[kMemory] = Quantity::FromUnits(size.memory);
  container.limits =
      container.requests;  // a pod without limits would count as the whole node at the load line
  PodTraits traits;
  traits.placeholder = true;
  return MakePodShape("", /*finished=*/false, resources, ResourceNames(), PodRole::kIncoming,
                      std::move(rules), std::move(traits));
}

}  // namespace

std::vector<DrainPlaceholder> PlaceholderPods(const SlackState& state, const SlackPlan& plan,
                                              const ResourceNames& names) {
  absl::btree_map<std::string, const PodRules*> rules;
  for (const ClassSlack& slack : plan.classes) rules.emplace(slack.key.name, &slack.rules);
  absl::btree_map<PlaceholderGroup, PodShape> shapes;
  for (const MirroredSlack& mirrored : plan.mirrored) {
    shapes.emplace(PlaceholderGroup{PlaceholderKind::kMirrored, mirrored.pod.key, mirrored.pod.size},
                   mirrored.pod.shape);
  }
  std::vector<DrainPlaceholder> pods;
  pods.reserve(state.placeholders.size());
  for (const Placeholder& placeholder : state.placeholders) {
    if (placeholder.node.empty()) continue;
    const PlaceholderGroup group{placeholder.kind, placeholder.owner, placeholder.size};
    auto shape = shapes.find(group);
    if (shape == shapes.end()) {
      const auto of = rules.find(placeholder.owner);
      shape = shapes.emplace(group, ShapeOf(placeholder.size, of == rules.end() ? PodRules() : *of->second))
                  .first;
    }
    IncomingPod pod;
    pod.shape = shape->second;
    pod.names = names;
    pods.emplace_back(absl::StrCat(kPrefix, placeholder.id), placeholder.node, std::move(pod));
  }
  return pods;
}

std::optional<int64_t> SlackPlaceholder(absl::string_view name) {
  int64_t id = 0;
  if (!absl::ConsumePrefix(&name, kPrefix) || !absl::SimpleAtoi(name, &id)) return std::nullopt;
  return id;
}

}  // namespace loadline
