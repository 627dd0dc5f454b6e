#include "core/slack/slack_view.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

const SlackClassRule* RuleOf(const SlackClassKey& key, const SlackOptions& options) {
  for (const SlackClassRule& rule : options.class_rules) {
    if (!rule.class_name.empty() && rule.class_name != key.name) continue;
    const bool has_all = std::all_of(rule.labels.begin(), rule.labels.end(), [&](const Label& label) {
      const std::string* const value = key.labels.Find(label.key);
      return value != nullptr && *value == label.value;
    });
    if (has_all) return &rule;
  }
  return nullptr;
}

const SlackGroupRule* RuleOf(const SlackGroup& group, const SlackOptions& options) {
  const auto found = std::find_if(
      options.group_rules.begin(), options.group_rules.end(),
      [&](const SlackGroupRule& rule) { return !rule.group.empty() && rule.group == group.of->name; });
  return found == options.group_rules.end() ? nullptr : &*found;
}

bool IsOff(const SlackGroup& group, const SlackOptions& options) {
  const SlackGroupRule* const rule = RuleOf(group, options);
  return rule != nullptr && rule->off;
}

std::optional<int64_t> MayAddForSlack(const SlackGroup& group, const SlackOptions& options) {
  const SlackGroupRule* const rule = RuleOf(group, options);
  if (rule == nullptr) return group.may_add;
  if (rule->off) return 0;
  if (!rule->max_nodes.has_value()) return group.may_add;
  const int64_t of_rule = std::max<int64_t>(0, *rule->max_nodes - group.nodes);
  return std::min(group.may_add.value_or(of_rule), of_rule);
}

void ApplyRules(const SlackOptions& options, const SlackGroupList* groups, SlackClassView* view) {
  const SlackClassRule* const rule = RuleOf(view->key, options);
  view->max_extra = rule != nullptr && rule->max_extra.has_value() ? rule->max_extra : options.max_extra;
  if (rule != nullptr && rule->off) view->off = "slack is switched off for this class";
  if (groups == nullptr || view->groups.empty()) return;
  const bool all_off = std::all_of(view->groups.begin(), view->groups.end(),
                                   [&](SlackGroupIndex group) { return IsOff((*groups)[group], options); });
  if (all_off) view->off = "slack is switched off for the node groups of this class";
}

// Returns whether nodes are added for the sake of the resource: an extended one that nodes of any kind do not
// have.
bool IsUncommon(ResourceId resource, const ResourceNames& names, const SlackOptions& options) {
  if (static_cast<size_t>(resource) >= names.size()) return false;
  const absl::string_view name = names.name(resource);
  return IsExtendedResource(name) &&
         std::none_of(options.common_resources.begin(), options.common_resources.end(),
                      [&](const std::string& prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace

std::vector<SlackClassView> MakeViews(const SlackRooms& rooms, const SlackOptions& options,
                                      const SlackGroupList* groups, const ResourceNames& names) {
  absl::btree_map<std::string, SlackClassView> views;
  for (const auto& [name, of] : rooms.classes()) views[name] = {of.key, &of, of.TypicalEmpty()};
  for (const SlackGroupIndex i : IndexRange<SlackGroupIndex>(groups == nullptr ? 0 : groups->size())) {
    const SlackGroup& group = (*groups)[i];
    SlackClassKey key = ClassOf(WithoutPassingTaints(group.of->model->shape, rooms.rules().startup_taints),
                                rooms.rules(), names);
    SlackClassView& view = views[key.name];
    view.groups.push_back(i);
    if (!view.key.name.empty()) continue;
    view.empty = group.empty;
    view.key = std::move(key);
  }
  std::vector<SlackClassView> classes;
  for (auto& [name, view] : views) {
    ApplyRules(options, groups, &view);
    classes.push_back(std::move(view));
  }
  return classes;
}

std::vector<GrowableNodes> MakeGrowable(const std::vector<SlackClassView>& views, const SlackOptions& options,
                                        const SlackGroupList* groups) {
  std::vector<GrowableNodes> growable;
  for (const SlackClassView& view : views) {
    if (groups == nullptr) {
      growable.push_back(
          {view.key.name, view.empty, view.off.empty() ? std::nullopt : std::optional<int64_t>(0)});
      continue;
    }
    for (const SlackGroupIndex position : view.groups) {
      const SlackGroup& group = (*groups)[position];
      growable.push_back({view.key.name, group.empty, view.off.empty() ? MayAddForSlack(group, options) : 0,
                          group.of->usd_per_hour, position, group.of->name, group.of->priority});
    }
    // No node of it may be added, and yet the answer for a pod may say that its copy would not fit such a
    // node.
    if (view.groups.empty()) growable.push_back({view.key.name, view.empty, 0});
  }
  return growable;
}

std::vector<NodeShape> ShapesOfNew(const ClusterState& cluster, const SlackRooms& rooms,
                                   const SlackGroupList* groups, const GrowthSketch& sketch) {
  absl::btree_map<std::string, size_t> first;
  for (size_t slot = 0; slot < rooms.node_end(); ++slot) {
    const SlackRooms::Node& node = rooms.node(slot);
    if (!node.machine) continue;
    const auto [found, added] = first.try_emplace(node.class_name, slot);
    if (!added && node.name < rooms.node(found->second).name) found->second = slot;
  }
  const StartupTaints& names = rooms.rules().startup_taints;
  std::vector<NodeShape> shapes;
  for (const GrowableNodes& growable : sketch.growable()) {
    if (growable.group.has_value()) {
      shapes.push_back(WithoutPassingTaints((*groups)[*growable.group].of->model->shape, names));
    } else {
      const size_t slot = first.at(growable.class_name);
      shapes.push_back(WithoutPassingTaints(cluster.node_shape(Slot{static_cast<int32_t>(slot)}), names));
    }
  }
  return shapes;
}

bool IsExtendedResource(absl::string_view name) {
  return name.find('/') != absl::string_view::npos && !absl::StrContains(name, "kubernetes.io/") &&
         !absl::StartsWith(name, "requests.");
}

std::string UnneededResource(const NodeShape& node, const PodShape* pod, const ResourceNames& names,
                             const SlackOptions& options) {
  if (options.buy_extended_resources) return "";
  std::string unneeded;
  for (const auto& [resource, amount] : node.allocatable) {
    if (amount == 0 || !IsUncommon(resource, names, options)) continue;
    if (pod != nullptr && pod->requests.Get(resource) > 0) return "";
    if (unneeded.empty()) unneeded = absl::StrCat(names.name(resource));
  }
  return unneeded;
}

ResourceAmounts NeededResources(const SlackClassView& of, const SlackRooms& rooms, const ResourceNames& names,
                                const SlackOptions& options) {
  ResourceAmounts needed;
  if (of.of == nullptr) return needed;
  for (const auto& [number, count] : of.of->pods) {
    const SlackPod& pod = rooms.pod(number);
    if (pod.overhead) continue;
    for (const auto& [resource, amount] : pod.shape.requests) {
      if (amount <= needed.Get(resource) || !IsUncommon(resource, names, options)) continue;
      needed[resource] = amount;
    }
  }
  return needed;
}

LabelKeys AbsentLabels(const SlackClassKey& of, const LabelKeys& needed) {
  LabelKeys absent;
  std::copy_if(needed.begin(), needed.end(), std::back_inserter(absent),
               [&](const std::string& key) { return of.labels.Find(key) == nullptr; });
  return absent;
}

}  // namespace loadline
