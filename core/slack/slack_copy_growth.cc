#include "core/slack/slack_copy_growth.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/slack/slack_on_snapshot.h"

namespace loadline {
namespace {

// The units of work, of about 100 ns each, of a node that is tried. Estimated.
constexpr int64_t kWorkOfNode = 100;

// Groups of the highest priority come first. Among those of one priority it is the ones with a price, and
// then the ones with the smallest nodes, by the cores and the memory that these have.
void RankWithoutPrices(const std::vector<CpuMemory>& rooms, GrowableGroups* groups) {
  using Tier = std::tuple<std::optional<int64_t>, bool, int64_t, int64_t>;
  const auto tier_of = [&](GrowableIndex i) {
    const NodeGroup& group = (*groups)[i];
    const bool has_price = group.usd_per_hour.has_value();
    const CpuMemory room = has_price ? CpuMemory() : rooms[IndexOf(i)];
    return Tier(group.priority, has_price, -room.cpu, -room.memory);
  };
  std::set<Tier> tiers;
  for (const GrowableIndex i : groups->indices()) tiers.insert(tier_of(i));
  for (const GrowableIndex i : groups->indices())
    (*groups)[i].priority = std::distance(tiers.begin(), tiers.find(tier_of(i)));
}

// Returns a node that has this room left for pods of cpu and memory, whatever has taken the rest.
NodeModel ModelWithRoom(NodeShape shape, const EmptyNode& room, std::optional<ResourceId> pods) {
  NodeModel model;
  const CpuMemory taken = Minus(CpuMemoryOf(shape.allocatable), room.room);
  if (pods.has_value()) shape.allocatable[*pods] = room.slots + (taken == CpuMemory() ? 0 : 1);
  model.shape = std::move(shape);
  if (taken != CpuMemory()) model.static_pods.push_back(ShapeOfRoom(taken));
  return model;
}

}  // namespace

PodShape ShapeOfRoom(const CpuMemory& size) {
  PodResources resources;
  ContainerResources& container = resources.containers.emplace_back();
  container.requests[kCpu] = Quantity::FromMilli(size.cpu);
  container.requests[kMemory] = Quantity::FromUnits(size.memory);
  container.limits = container.requests;
  return MakePodShape("", /*finished=*/false, resources, ResourceNames(), PodRole::kIncoming);
}

void SlackOnSnapshot::AddToCome(const std::vector<NodeShape>& shapes, size_t node,
                                const GrowthSketch& sketch) {
  const size_t of = sketch.PositionOf(node);
  const std::string name = absl::StrCat("node ", node, " to come of ", sketch.growable()[of].class_name);
  const std::optional<ResourceId> pods = snapshot_.state().resource_names().Find("pods");
  to_come_.push_back(AddNodeOf(ModelWithRoom(shapes[of], sketch.RoomOf(node), pods), name, &snapshot_));
}

void SlackOnSnapshot::CloseWithoutRoom() {
  budget_.Spend(1 + snapshot_.node_end() / kNodesPerUnit);
  for (int32_t i = 0; i < snapshot_.node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot_.Placeable(node) || snapshot_.slot(node) < Slot{0}) continue;
    const size_t slot = IndexOf(snapshot_.slot(node));
    if (!set_.Has(slot) || !set_.FitsOn(slot, CpuMemory())) snapshot_.CloseNode(node);
  }
}

GrowableGroups SlackOnSnapshot::GroupsFor(const GrowthSketch::Allowed& allowed, Asking* asking) {
  const GrowthSketch& sketch = *asking->sketch;
  const NewNodes& new_nodes = asking->new_nodes;
  int64_t copies = 0;
  for (const int64_t left : asking->left) copies += left;
  GrowableGroups groups;
  std::vector<CpuMemory> rooms;
  asking->positions.clear();
  for (size_t i = 0; i < new_nodes.shapes.size(); ++i) {
    const GrowableNodes& of = sketch.growable()[i];
    const int64_t most = allowed[i] ? sketch.MayStillAdd(i, copies) : 0;
    if (most <= 0 || of.empty.slots < 1 || !budget_.Spend()) continue;
    NodeGroup& group = groups.emplace_back();
    if (of.group.has_value()) {
      const SlackGroup& known = (*new_nodes.groups)[*of.group];
      group = *known.of;
      group.balance_set = known.balance_set;
      group.model->shape = new_nodes.shapes[i];
    } else {
      group.name = of.class_name;
      group.model =
          ModelWithRoom(new_nodes.shapes[i], of.empty, snapshot_.state().resource_names().Find("pods"));
    }
    group.target = 0;
    group.max_nodes = most;
    rooms.push_back(of.empty.room);
    asking->positions.push_back(i);
  }
  if (!sketch.by_ranking()) RankWithoutPrices(rooms, &groups);
  return groups;
}

void SlackOnSnapshot::PutOnToCome(size_t node, size_t copy, int64_t count, Asking* asking) {
  const MirroredPod& pod = asking->copies[copy]->pod;
  GrowthSketch* const sketch = asking->sketch;
  sketch->Take(node, {PlaceholderKind::kMirrored, pod.key, pod.size}, count);
  const int32_t shape = snapshot_.InternShape(pod.shape);
  for (int64_t i = 0; i < count && memory_.Pod(); ++i) snapshot_.PlacePod(to_come_[node], shape);
  std::vector<CpuMemory>& home = (*asking->homes)[sketch->growable()[sketch->PositionOf(node)].class_name];
  home.insert(home.end(), static_cast<size_t>(count), pod.size);
  asking->left[copy] -= count;
}

void SlackOnSnapshot::ReserveRoom(NodeIndex node, size_t copy, int64_t count, Asking* asking) {
  const MirroredPod& pod = asking->copies[copy]->pod;
  const int32_t shape = snapshot_.InternShape(pod.shape);
  for (int64_t i = 0; i < count && memory_.Pod(); ++i) {
    snapshot_.PlacePod(node, shape);
    Charge(IndexOf(snapshot_.slot(node)), RoomTaken(node, shape, pod.size));
  }
  asking->left[copy] -= count;
}

bool SlackOnSnapshot::Use(const ScaleUpPlan& plan, Asking* asking) {
  for (const ExistingUse& use : plan.existing) {
    const auto copy = static_cast<size_t>(use.pods.pods);
    const auto to_come = std::lower_bound(to_come_.begin(), to_come_.end(), use.node);
    if (to_come != to_come_.end() && *to_come == use.node) {
      PutOnToCome(static_cast<size_t>(to_come - to_come_.begin()), copy, use.pods.count, asking);
    } else {
      ReserveRoom(use.node, copy, use.pods.count, asking);
    }
  }
  for (const PlannedNodes& run : plan.nodes) {
    for (int64_t i = 0; i < run.nodes; ++i) {
      if (!memory_.Node(snapshot_)) return false;
      const size_t node = asking->sketch->AddNode(asking->positions[IndexOf(run.group)]);
      AddToCome(asking->new_nodes.shapes, node, *asking->sketch);
      for (const PodCount& entry : run.pods) {
        PutOnToCome(node, static_cast<size_t>(entry.pods), entry.count, asking);
      }
    }
  }
  return !plan.nodes.empty();
}

std::string SlackOnSnapshot::WhyNot(PodFit* fit, const CpuMemory& size, const std::vector<NodeShape>& shapes,
                                    const GrowthSketch& sketch, bool* fits_some) {
  std::string reason = "no class of nodes is known";
  *fits_some = false;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!budget_.Spend(kWorkOfNode)) return reason;
    const GrowableNodes& of = sketch.growable()[i];
    if (of.empty.slots < 1 || !Within(size, of.empty.room)) {
      reason = absl::StrCat("an empty node of ", of.class_name, " has cpu ", of.empty.room.cpu, "m, memory ",
                            of.empty.room.memory, ", less than the pod asks for");
      continue;
    }
    const std::string name = absl::StrCat("empty node of ", of.class_name);
    const NodeIndex node = snapshot_.AddNode({name, shapes[i], name});
    fit->Refresh(&budget_);
    const Verdict verdict = fit->Judge(node);
    snapshot_.RemoveNode(node);
    if (verdict.judgement == Judgement::kFits) {
      *fits_some = true;
      return absl::StrCat("class ", of.class_name, " cannot grow");
    }
    reason = absl::StrCat("a new node of ", of.class_name, ": ", absl::StrJoin(verdict.reasons, "; "));
  }
  return reason;
}

void SlackOnSnapshot::AskFor(const NewNodes& new_nodes, const GrowthSketch::Allowed& allowed,
                             std::span<MirroredSlack* const> copies, GrowthSketch* sketch,
                             absl::btree_map<std::string, std::vector<CpuMemory>>* homes) {
  Asking asking{new_nodes, copies, sketch, homes};
  std::vector<PendingPods> pods;
  for (MirroredSlack* const mirrored : copies) {
    asking.left.push_back(mirrored->count - mirrored->placed);
    mirrored->status = SlackStatus::kMissing;
    IncomingPod& pod = pods.emplace_back().pod;
    pod.shape = mirrored->pod.shape;
    pod.names = snapshot_.state().resource_names();
  }
  CloseWithoutRoom();
  bool more = true;
  while (more && !budget_.ended()) {  // a ranking lets one group grow each time
    for (size_t i = 0; i < pods.size(); ++i) pods[i].count = asking.left[i];
    const GrowableGroups groups = GroupsFor(allowed, &asking);
    std::vector<IncomingPod> daemons(new_nodes.daemons.begin(), new_nodes.daemons.end());
    const NodeLimit limit = sketch->left_in_all();
    more = Use(new_nodes.growth != nullptr
                   ? new_nodes.growth(&snapshot_, pods, std::move(daemons), groups, limit, &budget_)
                   : PlanScaleUp(&snapshot_, &options_, pods, std::move(daemons), groups,
                                 {.max_new_nodes = limit}, &budget_),
               &asking);
    more = more && std::any_of(asking.left.begin(), asking.left.end(), [](int64_t left) { return left > 0; });
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    if (asking.left[i] == 0) continue;
    MirroredSlack* const mirrored = copies[i];
    bool fits_some = false;
    const std::string why = budget_.ended()
                                ? absl::StrCat("the plan was cut short: out of ", Name(budget_.end()))
                                : WhyNot(&search_->fit(Prepare(mirrored->pod)), mirrored->pod.size,
                                         new_nodes.shapes, *sketch, &fits_some);
    mirrored->status = fits_some || budget_.ended() ? SlackStatus::kLimited : SlackStatus::kUnplaceable;
    mirrored->reason = absl::StrCat(asking.left[i], " of ", mirrored->count, " copies: ", why);
  }
}

}  // namespace loadline
