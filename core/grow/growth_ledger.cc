#include "core/grow/growth_ledger.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace loadline {

void GrowthLedger::MeasureRoom() {
  room = facts->room;
  if (room.unlimited()) return;
  for (const GroupIndex group : counts.indices()) {
    if (const auto& offer = facts->offers[group]) room.Take(*offer, counts[group].upcoming);
  }
}

LoopGrowth& GrowthLedger::Of(GroupIndex group) {
  const auto at = std::lower_bound(growth.begin(), growth.end(), group,
                                   [](const LoopGrowth& of, GroupIndex g) { return of.group < g; });
  if (at != growth.end() && at->group == group) return *at;
  return *growth.insert(at, {.group = group});
}

void GrowthLedger::ForgetPods() {
  for (LoopGrowth& of : growth) of.for_pods = 0;
  std::erase_if(growth, [](const LoopGrowth& of) { return of.nodes() == 0; });
}

int64_t GrowthLedger::NotBegunLeft(GroupIndex group) const {
  int64_t left = facts->groups[group].not_begun;
  for (const TakeBack& back : take_back) {
    if (back.group == group) left -= back.nodes;
  }
  return std::max<int64_t>(0, left);
}

void GrowthLedger::TakeBackNodes(GroupIndex group, int64_t nodes) {
  const int64_t taken = std::min(nodes, NotBegunLeft(group));
  if (taken <= 0) return;
  for (TakeBack& back : take_back) {
    if (back.group != group) continue;
    back.nodes += taken;
    return;
  }
  take_back.push_back({group, taken});
}

bool GrowthLedger::AnyComes() const {
  return std::any_of(counts.begin(), counts.end(), [](const GroupCounts& of) { return of.upcoming > 0; });
}

int64_t GrowthLedger::RoomOf(GroupIndex group) const {
  int64_t nodes = NodesOf(group);
  for (const LoopGrowth& of : growth) {
    // Nodes for the minimum are among the upcoming ones already.
    if (of.group == group) nodes += of.nodes() - of.for_minimum;
  }
  return std::max<int64_t>(0, facts->groups[group].max_nodes - nodes);
}

NodeLimit GrowthLedger::NewNodesLeft() const {
  int64_t added = -given_up;
  for (const LoopGrowth& of : growth) added += of.nodes();
  return LimitLeft(facts->max_new_nodes, added);
}

ResourceRoom GrowthLedger::RoomLeft() const {
  ResourceRoom left = room;
  if (left.unlimited()) return left;
  for (const LoopGrowth& of : growth) {
    if (const auto& offer = facts->offers[of.group]) left.Take(*offer, of.nodes());
  }
  return left;
}

NodeLimit GrowthLedger::MostNodesOf(GroupIndex group, const ResourceRoom& left) const {
  const std::optional<CountedNode>& offer = facts->offers[group];
  return left.unlimited() || !offer.has_value() ? std::nullopt : left.MostNodes(*offer);
}

int64_t GrowthLedger::NodesWithinLimits(GroupIndex group) const {
  const int64_t of_group = RoomOf(group);
  const int64_t left = SmallerLimit(NewNodesLeft(), MostNodesOf(group, RoomLeft())).value_or(of_group);
  if (facts->groups[group].atomic && of_group > left) return 0;
  return std::min(left, of_group);
}

bool GrowthLedger::Permits(const NodesOfGroups& nodes) const {
  ResourceRoom left = RoomLeft();
  for (const auto& [group, added] : nodes) {
    if (MostNodesOf(group, left).value_or(added) < added) return false;
    left.Take(*facts->offers[group], added);
  }
  return true;
}

StrongVector<GroupIndex, NodeLimit> GrowthLedger::CapsTogether(const NodesOfGroups& nodes) const {
  ResourceRoom left = RoomLeft();
  StrongVector<GroupIndex, NodeLimit> caps(facts->groups.size());
  const auto give = [&](GroupIndex group, int64_t wanted) {
    int64_t given = std::min(wanted, MostNodesOf(group, left).value_or(wanted));
    if (facts->groups[group].atomic && given < wanted) given = 0;
    left.Take(*facts->offers[group], given);
    caps[group] = caps[group].value_or(0) + given;
  };
  for (const bool atomic : {false, true}) {
    for (const auto& [group, wanted] : nodes) {
      if (facts->groups[group].atomic == atomic) give(group, wanted);
    }
  }
  for (const GroupIndex group : caps.indices()) {
    const NodeGroup& of = facts->groups[group];
    if (!of.model.has_value()) continue;
    if (of.atomic) {
      caps[group] = caps[group].value_or(0);
    } else {
      give(group, std::max<int64_t>(0, of.max_nodes - NodesOf(group) - caps[group].value_or(0)));
    }
  }
  return caps;
}

std::vector<GroupAtMaximum> GrowthLedger::AtMaximum() const {
  std::vector<GroupAtMaximum> at_maximum;
  const ResourceRoom left = RoomLeft();
  if (left.unlimited()) return at_maximum;
  for (const GroupIndex group : facts->groups.indices()) {
    if (!facts->offers[group].has_value()) continue;
    std::vector<std::string> exceeded = left.ExceededBy(*facts->offers[group]);
    if (!exceeded.empty()) at_maximum.push_back({group, std::move(exceeded)});
  }
  return at_maximum;
}

}  // namespace loadline
