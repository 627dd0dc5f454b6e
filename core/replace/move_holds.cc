#include "core/replace/move_holds.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/observe/move_objects.h"

namespace loadline {
namespace {

using Phase = MoveUnderWay::Phase;

// Collects what one move reserves.
class HoldMaker {
 public:
  explicit HoldMaker(const LoopFacts& facts) : facts_(facts) {
    holds_.on_the_way.resize(facts.groups.size());
  }

  void Add(const MoveUnderWay& move) {
    for (const auto& [group, missing] : MissingNodes(facts_.groups, move))
      holds_.on_the_way[group] += missing;
    if (move.phase == Phase::kGivingBack) return GiveBack(move);
    const std::vector<Slot> targets = TargetsOf(facts_.nodes, move);
    for (const Slot slot : targets) {
      if (slot != kNoSlot && !facts_.leaving.contains(slot)) holds_.takes_pods.push_back(slot);
    }
    for (const Slot slot : FindAll(facts_.nodes, move.remove)) {
      if (!facts_.leaving.contains(slot)) AddOld(move, slot, targets);
    }
  }

  MoveHolds Take() { return std::move(holds_); }

 private:
  void GiveBack(const MoveUnderWay& move) {
    for (const Slot slot : FindAll(facts_.nodes, move.came)) {
      if (!facts_.leaving.contains(slot) && IsEmptyNode(facts_.cluster, slot))
        holds_.replaced.push_back({slot, {}});
    }
  }

  void AddOld(const MoveUnderWay& move, Slot slot, const std::vector<Slot>& targets) {
    const NodePods& pods = facts_.cluster.pods(slot);
    ReplacedNode node{slot, {}};
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      const MoveUnderWay::Place* const place = PlaceOf(move, KeyOfPod(facts_.cluster, slot, i));
      if (place == nullptr) continue;
      const Slot to = targets[static_cast<size_t>(place->target)];
      if (to == kNoSlot) continue;
      const bool ordered = move.phase == Phase::kOrdered;
      holds_.reserved.push_back({slot, static_cast<int32_t>(i), to, ordered});
      const PodShape& shape = facts_.cluster.pod_shapes()[pods.pods()[i].shape];
      node.hints.push_back({pods.uid(i).empty() ? absl::StrCat(shape.namespace_name, "/", pods.name(i))
                                                : std::string(pods.uid(i)),
                            std::string(facts_.cluster.name(to))});
    }
    if (move.phase == Phase::kDraining) holds_.replaced.push_back(std::move(node));
  }

  const LoopFacts& facts_;
  MoveHolds holds_;
};

}  // namespace

MoveHolds HoldsOf(const LoopFacts& facts, std::span<const MoveUnderWay> moves) {
  if (moves.empty()) return {};
  HoldMaker maker(facts);
  for (const MoveUnderWay& move : moves) maker.Add(move);
  return maker.Take();
}

void HoldNodesOnTheWay(const MoveHolds& holds, CountsOfGroups* counts) {
  for (const GroupIndex group : holds.on_the_way.indices()) {
    GroupCounts& of = (*counts)[group];
    const int64_t held = std::min(of.upcoming, holds.on_the_way[group]);
    of.registered += held;
    of.upcoming -= held;
  }
}

void PlaceReserved(const ClusterState& cluster, const MoveHolds& holds, Snapshot* snapshot) {
  for (const ReservedPlace& place : holds.reserved) {
    const std::optional<NodeIndex> to = snapshot->FindSlot(place.to);
    if (!to.has_value()) continue;
    const NodePods::Pod& pod = cluster.pods(place.from).pods()[static_cast<size_t>(place.position)];
    snapshot->PlacePod(*to, snapshot->ShapeOf(pod.shape));
  }
}

void HoldInDrains(const MoveHolds& holds, DrainProblem* drain) {
  const ClusterState& cluster = *drain->cluster;
  drain->replaced = holds.replaced;
  drain->takes_replaced_pods = holds.takes_pods;
  for (const ReservedPlace& place : holds.reserved) {
    if (!place.ordered) continue;
    const size_t position = static_cast<size_t>(place.position);
    const NodePods& pods = cluster.pods(place.from);
    IncomingPod pod;
    pod.shape = cluster.pod_shapes()[pods.pods()[position].shape];
    pod.names = cluster.resource_names();
    drain->placeholders.emplace_back(absl::StrCat("move/", cluster.name(place.from), "/", position),
                                     std::string(cluster.name(place.to)), std::move(pod));
  }
}

}  // namespace loadline
