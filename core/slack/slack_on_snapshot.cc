#include "core/slack/slack_on_snapshot.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/leaving.h"
#include "core/cluster/pod_role.h"
#include "core/fit/line_left.h"

namespace loadline {
namespace {

// The units of work, of about 100 ns each, of a search for a node. Estimated.
constexpr int64_t kWorkOfCopy = 10;

// Returns whether the node is none of the cluster.
bool IsComing(const Snapshot& snapshot, NodeIndex node) { return snapshot.slot(node) < Slot{0}; }

}  // namespace

SlackOnSnapshot::SlackOnSnapshot(Snapshot* snapshot, const FitOptions* options, std::span<const Slot> leaving,
                                 std::span<const SlackPending> waiting, const SlackRooms* rooms,
                                 PlaceholderSet* set, WorkBudget* budget)
    : snapshot_(*snapshot),
      fork_(snapshot),
      options_(*options),
      rooms_(*rooms),
      set_(*set),
      budget_(*budget),
      memory_(budget) {
  RemovePodsThatGiveWay(&snapshot_);
  Close(leaving, waiting);
  search_.emplace(&snapshot_, &options_, ByRoom(/*with_placeholders=*/false));
}

void SlackOnSnapshot::Close(std::span<const Slot> leaving, std::span<const SlackPending> waiting) {
  absl::flat_hash_set<int32_t> moving;
  for (const SlackPending& pods : waiting) {
    if (pods.still_run) moving.insert(snapshot_.InternShape(pods.pod.shape));
  }
  for (const Slot slot : leaving) {
    const std::optional<NodeIndex> node = snapshot_.FindSlot(slot);
    if (!node.has_value()) continue;
    std::vector<int32_t> shapes;
    for (const SnapshotPod& pod : snapshot_.pods(*node)) {
      if (moving.contains(pod.shape)) shapes.push_back(pod.shape);
    }
    Vacate(*node, shapes, &snapshot_);
  }
}

std::vector<NodeIndex> SlackOnSnapshot::ByRoom(bool with_placeholders) const {
  budget_.Spend(1 + snapshot_.node_end() / kNodesPerUnit);
  using Key = std::tuple<bool, int64_t, int64_t, absl::string_view>;
  std::vector<std::pair<Key, NodeIndex>> order;
  for (int32_t i = 0; i < snapshot_.node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot_.Contains(node) || IsComing(snapshot_, node)) continue;
    const size_t slot = IndexOf(snapshot_.slot(node));
    const SlackRooms::Node& room = rooms_.node(slot);
    const bool counted = with_placeholders && set_.Has(slot);
    const CpuMemory free = counted ? set_.Free(slot) : Minus(room.allocatable, room.real);
    order.push_back({{with_placeholders && !counted, free.cpu, free.memory, room.name}, node});
  }
  std::sort(order.begin(), order.end());
  std::vector<NodeIndex> nodes;
  for (const auto& [key, node] : order) nodes.push_back(node);
  return nodes;
}

void SlackOnSnapshot::AddComing(const std::vector<NodeShape>& shapes, const GrowthSketch& sketch) {
  // None is asked for once the budget has ended.
  while (to_come_.size() < sketch.coming() && memory_.Node(snapshot_)) {
    AddToCome(shapes, to_come_.size(), sketch);
  }
}

std::optional<size_t> SlackOnSnapshot::PlaceOnComing(PodFit* fit, const CpuMemory& size,
                                                     GrowthSketch* sketch) {
  fit->Refresh(&budget_);
  for (size_t node = 0; node < to_come_.size(); ++node) {
    if (!sketch->FitsOn(node, size) || !budget_.Spend(fit->UnitsPerNode()) || !fit->Fits(to_come_[node]))
      continue;
    snapshot_.PlacePod(to_come_[node], fit->shape());
    sketch->TakeRoom(node, RoomTaken(to_come_[node], fit->shape(), size), 1);
    return node;
  }
  return std::nullopt;
}

std::vector<ExpectedPods> SlackOnSnapshot::PlaceWaiting(std::vector<SlackPending>* waiting,
                                                        GrowthSketch* sketch, std::vector<size_t>* filled) {
  std::stable_sort(waiting->begin(), waiting->end(), [](const SlackPending& a, const SlackPending& b) {
    return TraitsOf(a.pod.shape).priority > TraitsOf(b.pod.shape).priority;
  });
  std::vector<ExpectedPods> expected;
  for (SlackPending& pods : *waiting) {
    const PodShape& shape = pods.pod.shape;
    if (GivesWay(TraitsOf(shape)) || pods.count <= 0) continue;
    if (pods.group.has_value()) {
      if (!pods.still_run) expected.push_back({&shape, pods.count, {}, pods.group});
      continue;
    }
    const CpuMemory size = CpuMemoryOf(shape.requests);
    if (pods.node.has_value()) {
      const std::optional<NodeIndex> node = snapshot_.FindSlot(*pods.node);
      if (!node.has_value()) continue;
      const int32_t id = snapshot_.InternShape(shape);
      for (int64_t i = 0; i < pods.count && memory_.Pod(); ++i) Place(*node, id, size, filled);
      if (!pods.still_run) expected.push_back({&shape, pods.count, IndexOf(*pods.node), {}});
      continue;
    }
    const SearchPod pod = search_->Add(pods.pod, &budget_);
    int64_t placed = 0;
    for (; placed < pods.count && memory_.Pod(); ++placed) {
      const std::optional<NodeIndex> node = search_->FirstFit(pod, &budget_);
      if (!node.has_value()) break;
      if (IsComing(snapshot_, *node)) {  // nodes that come later are searched last
        const std::optional<size_t> coming = PlaceOnComing(&search_->fit(pod), size, sketch);
        if (!coming.has_value()) break;
        const GrowableNodes& of = sketch->growable()[sketch->PositionOf(*coming)];
        if (!pods.still_run) expected.push_back({&shape, 1, {}, {}, of.class_name});
        continue;
      }
      Place(*node, search_->fit(pod).shape(), size, filled);
      if (!pods.still_run) expected.push_back({&shape, 1, IndexOf(snapshot_.slot(*node)), {}});
    }
    if (placed < pods.count && !pods.still_run) expected.push_back({&shape, pods.count - placed, {}, {}});
  }
  return expected;
}

void SlackOnSnapshot::PutPlaceholders() {
  for (const auto& [group, members] : set_.groups()) {
    if (group.kind == PlaceholderKind::kMirrored || members.placed() == 0) continue;
    const int32_t shape = snapshot_.InternShape(ShapeOfRoom(group.size));
    for (const int64_t id : members.ids) {
      const size_t slot = set_.NodeOf(id);
      if (slot == PlaceholderSet::kNoNode) continue;
      if (!memory_.Pod()) break;  // nothing is placed from now on
      snapshot_.PlacePod(*snapshot_.FindSlot(Slot{static_cast<int32_t>(slot)}), shape);
    }
  }
  prepared_.clear();
  search_.emplace(&snapshot_, &options_, ByRoom(/*with_placeholders=*/true));
}

void SlackOnSnapshot::Place(NodeIndex node, int32_t shape, const CpuMemory& size,
                            std::vector<size_t>* filled) {
  snapshot_.PlacePod(node, shape);
  const size_t slot = IndexOf(snapshot_.slot(node));
  if (!set_.Has(slot)) return;
  SlackNode content = set_.node(slot);
  content.real = Plus(content.real, RoomTaken(node, shape, size));
  --content.free_slots;
  set_.SetNode(slot, std::move(content));
  filled->push_back(slot);
}

// Returns the amount taken of the room that both requests and the load line leave.
CpuMemory SlackOnSnapshot::RoomTaken(NodeIndex node, int32_t shape, const CpuMemory& size) const {
  if (options_.load_line.empty()) return size;
  const LineLeft line(options_.load_line, snapshot_.node_shape(node));
  return Larger(size, line.TakenBy(snapshot_.pod_shape(shape)));
}

SearchPod SlackOnSnapshot::Prepare(const MirroredPod& pod) {
  if (const auto found = prepared_.find(pod.key); found != prepared_.end()) return found->second;
  IncomingPod incoming;
  incoming.shape = pod.shape;
  incoming.names = snapshot_.state().resource_names();
  const SearchPod prepared = search_->Add(std::move(incoming), &budget_);
  prepared_.emplace(pod.key, prepared);
  return prepared;
}

std::optional<size_t> SlackOnSnapshot::TightestFit(SearchPod pod, const CpuMemory& size) {
  std::vector<NodeIndex> nodes;
  search_->AllFits(pod, &nodes, &budget_);
  if (!budget_.Spend(static_cast<int64_t>(nodes.size()) / kNodesPerUnit)) return std::nullopt;
  std::optional<size_t> best;
  const auto key = [&](size_t slot) {
    const CpuMemory free = set_.Free(slot);
    return std::make_tuple(free.cpu, free.memory, absl::string_view(set_.node(slot).name));
  };
  for (const NodeIndex node : nodes) {
    const size_t slot = IndexOf(snapshot_.slot(node));
    if (!set_.Has(slot) || !set_.FitsOn(slot, size)) continue;
    if (!best.has_value() || key(slot) < key(*best)) best = slot;
  }
  return best;
}

bool SlackOnSnapshot::Takes(PodFit* fit, size_t slot, const CpuMemory& size) {
  if (!set_.FitsOn(slot, size) || !Pay(*fit)) return false;
  fit->Refresh(&budget_);
  return fit->Fits(*snapshot_.FindSlot(Slot{static_cast<int32_t>(slot)}));
}

std::optional<size_t> SlackOnSnapshot::FindNode(SearchPod pod, const CpuMemory& size) {
  const std::optional<NodeIndex> node = search_->FirstFit(pod, &budget_);
  if (!node.has_value()) return std::nullopt;
  const size_t slot = IndexOf(snapshot_.slot(*node));
  // Nodes that take no placeholders are searched last.
  if (!set_.Has(slot)) return std::nullopt;
  // A node that is overfull in what the pod asks none of takes it, and yet has no room for a placeholder.
  return set_.FitsOn(slot, size) ? std::optional<size_t>(slot) : TightestFit(pod, size);
}

void SlackOnSnapshot::PutCopy(int64_t id, size_t slot, int32_t shape, bool attach) {
  if (attach) set_.Attach(id, slot);
  const NodeIndex node = *snapshot_.FindSlot(Slot{static_cast<int32_t>(slot)});
  snapshot_.PlacePod(node, shape);
  const CpuMemory size = set_.placeholder(id).size;
  const CpuMemory left = Minus(set_.node(slot).allocatable, set_.node(slot).real);
  const CpuMemory beyond = Smaller(Minus(RoomTaken(node, shape, size), size), left);
  if (beyond != CpuMemory()) Charge(slot, beyond);  // limits above requests
}

// Takes room of a node as if real pods used it, for this plan.
void SlackOnSnapshot::Charge(size_t slot, const CpuMemory& amount) {
  SlackNode content = set_.node(slot);
  content.real = Plus(content.real, amount);
  set_.SetNode(slot, std::move(content));
  fuller_.push_back(slot);
}

// Copies that no longer may be where they are lose their node, but not for want of work: those that were not
// looked at stay.
void SlackOnSnapshot::KeepCopies(const std::vector<int64_t>& ids, PodFit* fit) {
  for (const int64_t id : ids) {
    const size_t slot = set_.NodeOf(id);
    if (slot == PlaceholderSet::kNoNode) continue;
    if (!Pay(*fit)) return;
    fit->Refresh(&budget_);
    if (fit->CutShort()) return;
    if (fit->Fits(*snapshot_.FindSlot(Slot{static_cast<int32_t>(slot)}))) {
      PutCopy(id, slot, fit->shape(), /*attach=*/false);
    } else {
      set_.Detach(id);
    }
  }
}

int64_t SlackOnSnapshot::PlaceMirrored(const MirroredPod& pod) {
  int64_t placed = 0;
  const PlaceholderGroup group{PlaceholderKind::kMirrored, pod.key, pod.size};
  const PlaceholderSet::Members* const members = set_.Find(group);
  if (members == nullptr) return 0;
  const SearchPod prepared = Prepare(pod);
  PodFit& fit = search_->fit(prepared);
  const std::vector<int64_t> ids(members->ids.begin(), members->ids.end());
  KeepCopies(ids, &fit);
  // Placeholders that have a place to return to are first, so that others do not take it.
  std::vector<int64_t> left;
  for (const int64_t id : ids) {
    if (set_.NodeOf(id) != PlaceholderSet::kNoNode) continue;
    const std::string& name = set_.placeholder(id).last_node;
    const size_t last = name.empty() ? PlaceholderSet::kNoNode : set_.Find(name);
    if (last == PlaceholderSet::kNoNode || !Takes(&fit, last, pod.size)) {
      left.push_back(id);
      continue;
    }
    PutCopy(id, last, fit.shape(), /*attach=*/true);
    ++placed;
  }
  for (const int64_t id : left) {
    if (!budget_.Spend(kWorkOfCopy) || !Pay(fit)) break;
    const std::optional<size_t> slot = FindNode(prepared, pod.size);
    if (!slot.has_value()) break;
    PutCopy(id, *slot, fit.shape(), /*attach=*/true);
    ++placed;
  }
  return placed;
}

}  // namespace loadline
