#include "core/loop/placeholder_pods.h"

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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
  const auto incoming = [&](PodShape shape) {
    auto pod = std::make_shared<IncomingPod>();
    pod->shape = std::move(shape);
    pod->names = names;
    return pod;
  };
  // By what makes up a PlaceholderGroup.
  using Group = std::tuple<absl::string_view, PlaceholderKind, int64_t, int64_t>;
  absl::flat_hash_map<Group, std::shared_ptr<const IncomingPod>> kinds;
  for (const MirroredSlack& mirrored : plan.mirrored) {
    const MirroredPod& copied = mirrored.pod;
    kinds.emplace(Group(copied.key, PlaceholderKind::kMirrored, copied.size.cpu, copied.size.memory),
                  incoming(copied.shape));
  }
  std::vector<DrainPlaceholder> pods;
  pods.reserve(state.placeholders.size());
  for (const Placeholder& placeholder : state.placeholders) {
    if (placeholder.node.empty()) continue;
    std::shared_ptr<const IncomingPod>& pod =
        kinds[Group(placeholder.owner, placeholder.kind, placeholder.size.cpu, placeholder.size.memory)];
    if (pod == nullptr) {
      const auto of = rules.find(placeholder.owner);
      pod = incoming(ShapeOf(placeholder.size, of == rules.end() ? PodRules() : *of->second));
    }
    pods.emplace_back(absl::StrCat(kPrefix, placeholder.id), placeholder.node, pod);
  }
  return pods;
}

std::optional<int64_t> SlackPlaceholder(absl::string_view name) {
  int64_t id = 0;
  if (!absl::ConsumePrefix(&name, kPrefix) || !absl::SimpleAtoi(name, &id)) return std::nullopt;
  return id;
}

}  // namespace loadline
