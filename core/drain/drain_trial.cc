#include "core/drain/drain_trial.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cluster/leaving.h"
#include "core/cluster/pod_role.h"
#include "core/drain/eligibility.h"
#include "core/drain/filter_shape.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

// The memory that counts as a millicore. Chosen: clouds sell machines with 2, 4 and 8 GiB for each core.
constexpr int64_t kBytesPerMilliCpu = (int64_t{4} << 30) / 1000;

// Returns whether the ids of what the pod requests mean the same in `names`.
bool HasNamesOf(const ResourceNames& names, const IncomingPod& pod) {
  return std::all_of(pod.shape.requests.begin(), pod.shape.requests.end(), [&](const auto& request) {
    return static_cast<size_t>(request.id) < names.size() &&
           names.name(request.id) == pod.names.name(request.id);
  });
}

// Returns what the pod requests of resources that `names` has, with the ids there.
ResourceAmounts RequestsByName(const IncomingPod& pod, const ResourceNames& names) {
  ResourceAmounts requests;
  for (const auto& [id, amount] : pod.shape.requests) {
    if (const auto there = names.Find(pod.names.name(id)); there.has_value()) requests[*there] = amount;
  }
  return requests;
}

}  // namespace

DrainTrial::DrainTrial(const ClusterState& state, const FitOptions* fit)
    : state_(state), fit_(*fit), snapshot_(state, Snapshot::Source::kChanges) {
  NoteNewPods();
  RemoveExpendablePods(&snapshot_);
  SetOrder({});
}

void DrainTrial::NoteNewPods() {
  for (; shapes_seen_ < snapshot_.pod_shape_end(); ++shapes_seen_) {
    pods_depend_ = pods_depend_ || DependsOnOthers(snapshot_.pod_shape(shapes_seen_));
  }
}

void DrainTrial::ForgetSearch() {
  search_.reset();
  SetOrder({});
}

std::vector<Slot> DrainTrial::Touched() const {
  std::vector<Slot> slots;
  for (int32_t i = 0; i < snapshot_.node_end(); ++i) {
    const NodeIndex node{i};
    if (snapshot_.Contains(node) && (received(node) > 0 || snapshot_.Leaving(node))) {
      slots.push_back(snapshot_.slot(node));
    }
  }
  return slots;
}

void DrainTrial::SetOrder(std::vector<NodeIndex> order) {
  if (search_ != nullptr && order == order_) return;
  order_ = std::move(order);
  search_ = std::make_unique<FitSearch>(&snapshot_, &fit_, order_);
  for (Kind& kind : kinds_) kind.handle.reset();
}

int32_t DrainTrial::KindOf(int32_t state_shape) {
  return KindOfSnapshotShape(snapshot_.ShapeOf(state_shape));
}

int32_t DrainTrial::KindOf(const IncomingPod& pod) {
  LOADLINE_CHECK(Covers(pod.names, pod.shape.requests))
      << "pod " << pod.name << " requests what its names lack";
  if (HasNamesOf(state_.resource_names(), pod)) return KindOfSnapshotShape(snapshot_.InternShape(pod.shape));
  PodShape renamed = pod.shape;
  renamed.requests = RequestsByName(pod, state_.resource_names());
  return KindOfSnapshotShape(snapshot_.InternShape(ShapeForFilters(renamed, fit_.load_line)));
}

int32_t DrainTrial::KindOfSnapshotShape(int32_t shape) {
  const size_t i = static_cast<size_t>(shape);
  if (i >= kind_of_shape_.size()) kind_of_shape_.resize(std::max(i + 1, 2 * kind_of_shape_.size()), -1);
  if (kind_of_shape_[i] >= 0) return kind_of_shape_[i];
  PodShape for_filters = ShapeForFilters(snapshot_.pod_shape(shape), fit_.load_line);
  const int32_t id = snapshot_.InternShape(for_filters);
  const size_t at = static_cast<size_t>(id);
  if (at >= kind_of_shape_.size()) kind_of_shape_.resize(at + 1, -1);
  if (kind_of_shape_[at] < 0) {
    Kind kind;
    kind.shape_id = id;
    kind.size =
        std::max(for_filters.requests.Get(kCpu), for_filters.requests.Get(kMemory) / kBytesPerMilliCpu);
    kind.by_name = for_filters.rules != nullptr &&
                   std::any_of(for_filters.rules->volumes.begin(), for_filters.rules->volumes.end(),
                               [](const PodVolume& volume) { return volume.kind == VolumeKind::kEphemeral; });
    kind.only_room = !DependsOnOthers(for_filters);
    kind.shape = std::move(for_filters);
    kind_of_shape_[at] = static_cast<int32_t>(kinds_.size());
    kinds_.push_back(std::move(kind));
  }
  return kind_of_shape_[i] = kind_of_shape_[at];
}

std::optional<SearchPod> DrainTrial::HandleOf(const MovingPod& pod, WorkBudget* budget) {
  Kind& kind = At(pod.kind);
  if (kind.handle.has_value() && !kind.by_name) return *kind.handle;
  IncomingPod incoming;
  incoming.shape = kind.shape;
  incoming.names = state_.resource_names();
  if (kind.by_name) {
    incoming.name.assign(pod.name.data(), pod.name.size());
    incoming.uid.assign(pod.uid.data(), pod.uid.size());
  }
  const SearchPod handle = search_->Add(std::move(incoming), budget);
  kind.handle.reset();
  if (!search_->fit(handle).CutShort()) kind.handle = handle;
  return kind.handle;
}

// Takes one unit for a pod. The first pod of a kind costs a look at all nodes, some 10 ns each.
bool DrainTrial::Pay(const MovingPod& pod, WorkBudget* budget) const {
  constexpr int64_t kNodesPerUnit = 8;
  const Kind& kind = At(pod.kind);
  if (kind.handle.has_value() && !kind.by_name) return budget->Spend();
  return budget->Spend(1 + snapshot_.node_end() / kNodesPerUnit);
}

bool DrainTrial::FitsOn(const MovingPod& pod, NodeIndex node, WorkBudget* budget) {
  if (!snapshot_.Placeable(node)) return false;
  const std::optional<SearchPod> handle = HandleOf(pod, budget);
  if (!handle.has_value()) return false;
  PodFit& fit = search_->fit(*handle);
  fit.Refresh(budget);
  // The pod itself was paid for.
  return (budget == nullptr || budget->Spend(fit.UnitsPerNode() - 1)) && fit.Fits(node);
}

void DrainTrial::Put(MovingPod* pod, NodeIndex node) {
  const Kind& kind = At(pod->kind);
  if (kind.by_name) {
    snapshot_.PlacePod(node, kind.shape_id, pod->name, pod->uid);
  } else {
    snapshot_.PlacePod(node, kind.shape_id);
  }
  pod->to = node;
  if (IndexOf(node) >= received_.size()) received_.resize(static_cast<size_t>(snapshot_.node_end()), 0);
  ++received_[IndexOf(node)];
}

void DrainTrial::AddPlaceholder(NodeIndex node, int32_t kind) { snapshot_.PlacePod(node, At(kind).shape_id); }

// Forgets the places of pods that a Revert() took away.
void DrainTrial::Unplace(std::span<MovingPod> pods) {
  for (MovingPod& pod : pods) {
    if (pod.to != kNoNode) --received_[IndexOf(pod.to)];
    pod.to = kNoNode;
  }
}

void DrainTrial::Sort(std::vector<MovingPod>* pods) const {
  const auto before = [&](const MovingPod& a, const MovingPod& b) {
    const auto rank = [&](const MovingPod& pod) {
      return std::make_tuple(pod.placeholder, -int64_t{pod.priority}, pod.hint == kNoNode, -size(pod.kind));
    };
    const auto rank_a = rank(a);
    const auto rank_b = rank(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    if (const auto names = std::tie(a.namespace_name, a.name, a.uid),
        others = std::tie(b.namespace_name, b.name, b.uid);
        names != others) {
      return names < others;
    }
    return a.pod.position() < b.pod.position();
  };
  if (!std::is_sorted(pods->begin(), pods->end(), before)) std::sort(pods->begin(), pods->end(), before);
}

DrainTrial::Answer DrainTrial::Place(std::span<MovingPod> pods, bool hints_only, WorkBudget* budget,
                                     bool may_stop) {
  WorkBudget* const search = may_stop ? budget : nullptr;
  const auto no_place = [&](size_t i) {
    return Answer{may_stop && budget->ended() ? Outcome::kStopped : Outcome::kNoPlace, i};
  };
  for (size_t i = 0; i < pods.size(); ++i) {
    if (!Pay(pods[i], budget) && may_stop) return {Outcome::kStopped, i};
    MovingPod& pod = pods[i];
    if (pod.hint != kNoNode && FitsOn(pod, pod.hint, search)) {
      Put(&pod, pod.hint);
      continue;
    }
    if (hints_only) return no_place(i);
    const std::optional<SearchPod> handle = HandleOf(pod, search);
    if (!handle.has_value()) return no_place(i);
    const std::optional<NodeIndex> node = search_->FirstFit(*handle, search);
    if (!node.has_value()) return no_place(i);
    Put(&pod, *node);
  }
  return {};
}

DrainTrial::Answer DrainTrial::Drain(NodeIndex node, std::span<MovingPod> pods, bool hints_only,
                                     WorkBudget* budget, bool may_stop) {
  // Most that fail do so because there is no room for some pod of theirs, whatever becomes of the others.
  if (!hints_only) {
    for (size_t i = 0; i < pods.size(); ++i) {
      if (i > 0 && pods[i].kind == pods[i - 1].kind) continue;
      if (!Pay(pods[i], budget) && may_stop) return {Outcome::kStopped, i};
      if (HasPlaceAlone(pods[i], may_stop ? budget : nullptr)) continue;
      return {may_stop && budget->ended() ? Outcome::kStopped : Outcome::kNoPlace, i};
    }
  }
  snapshot_.Fork();
  Leave(node, pods);
  Answer answer = Place(pods, hints_only, budget, may_stop);
  if (answer.outcome == Outcome::kNoPlace && !hints_only) {
    // First fit may have put the pods in each other's way, so few pods are tried in all ways. Chosen: 20,000
    // steps suffice for nearly all ways on few nodes; with many nodes only 64 steps are made, for each
    // candidate may need them.
    constexpr size_t kFewPods = 7;
    constexpr int32_t kFewNodes = 16;
    snapshot_.Revert();
    Unplace(pods);
    snapshot_.Fork();
    Leave(node, pods);
    int64_t steps = snapshot_.node_end() <= kFewNodes ? 20'000 : 64;
    WorkBudget* const search = may_stop ? budget : nullptr;
    if (pods.size() >= 2 && pods.size() <= kFewPods && PlaceExactly(pods, &steps, search)) answer = {};
    const bool stopped = may_stop && budget->ended() && answer.outcome != Outcome::kPlaced;
    if (stopped) answer.outcome = Outcome::kStopped;
  }
  if (answer.outcome == Outcome::kPlaced) {
    snapshot_.Commit();
    return answer;
  }
  snapshot_.Revert();
  Unplace(pods);
  return answer;
}

std::optional<Verdict> DrainTrial::Nearest(NodeIndex node, const MovingPod& pod, NearestVerdicts* known) {
  if (const auto found = known->of_kind.find(pod.kind); found != known->of_kind.end()) return found->second;
  const std::optional<SearchPod> handle = HandleOf(pod, nullptr);
  if (!handle.has_value()) return std::nullopt;
  PodFit& fit = search_->fit(*handle);
  known->units -= snapshot_.node_end() * fit.UnitsPerNode();
  if (known->units < 0) return std::nullopt;
  snapshot_.Fork();
  Leave(node, {&pod, 1});
  fit.Refresh();
  std::optional<Verdict> nearest = NearestOf(node, &fit);
  // All pods of a kind for which only room counts are refused alike, whichever node they leave.
  const bool refused = nearest.has_value() && nearest->judgement != Judgement::kFits;
  if (refused && fit.OnlyNeedsRoom()) known->of_kind.emplace(pod.kind, *nearest);
  snapshot_.Revert();
  return nearest;
}

// A node that fits and only takes no moved pods is closer than those that do not fit. If no other node stays,
// those that leave show what the pod asks for beside room.
std::optional<Verdict> DrainTrial::NearestOf(NodeIndex node, PodFit* fit) {
  const auto fits = [](const std::optional<Near>& near) {
    return near.has_value() && near->verdict.judgement == Judgement::kFits;
  };
  std::optional<Near> open = NearestOf(node, Standing::kOpen, fit);
  if (fits(open)) return std::move(open->verdict);
  std::optional<Near> closed = NearestOf(node, Standing::kClosed, fit);
  if (fits(closed)) {
    const absl::string_view why = WhyNoDestination(state_, snapshot_.slot(closed->node));
    return Refusal(FilterName::kNone, StatusClass::kUnschedulable,
                   {absl::StrCat(snapshot_.name(closed->node), " would take it, but is ", why)});
  }
  std::optional<Near> nearest = open.has_value() ? std::move(open) : std::move(closed);
  if (!nearest.has_value()) nearest = NearestOf(node, Standing::kLeaving, fit);
  if (!nearest.has_value() || fits(nearest)) return std::nullopt;  // it lacks room
  if (nearest->verdict.filter == FilterName::kTaintToleration) {
    const std::string taint = UntoleratedTaint(fit->pod().shape, snapshot_.node_shape(nearest->node));
    nearest->verdict.reasons = {absl::StrCat(snapshot_.name(nearest->node), " has ", taint)};
  }
  return std::move(nearest->verdict);
}

// Filters are numbered in the order in which they are asked.
std::optional<DrainTrial::Near> DrainTrial::NearestOf(NodeIndex node, Standing standing, PodFit* fit) {
  const auto standing_of = [&](NodeIndex other) {
    if (snapshot_.Leaving(other)) return Standing::kLeaving;
    return snapshot_.Placeable(other) ? Standing::kOpen : Standing::kClosed;
  };
  std::optional<Near> nearest;
  for (int32_t i = 0; i < snapshot_.node_end(); ++i) {
    const NodeIndex other{i};
    if (other == node || !snapshot_.Contains(other) || standing_of(other) != standing) continue;
    Verdict verdict = fit->Judge(other, nearest.has_value() ? nearest->verdict.filter : FilterName::kNone);
    if (verdict.judgement == Judgement::kFits) return Near{other, std::move(verdict)};
    if (!nearest.has_value() || verdict.filter > nearest->verdict.filter)
      nearest = Near{other, std::move(verdict)};
  }
  return nearest;
}

void DrainTrial::Repeat(NodeIndex node, std::span<MovingPod> pods) {
  Leave(node, pods);
  for (MovingPod& pod : pods) Put(&pod, pod.hint);
}

// Returns whether there is a node for the pod, if nothing of its node has moved yet. True without a search
// unless room is all that counts for the pod.
bool DrainTrial::HasPlaceAlone(const MovingPod& pod, WorkBudget* budget) {
  if (!At(pod.kind).only_room) return true;
  const std::optional<SearchPod> handle = HandleOf(pod, budget);
  if (!handle.has_value()) return false;
  PodFit& fit = search_->fit(*handle);
  fit.Refresh(budget);
  if (!fit.Hopeless() && !fit.OnlyNeedsRoom()) return true;
  return search_->FirstFit(*handle, budget).has_value();
}

// Depth first. Pods may not be in order of size, and the first that fails decides little.
bool DrainTrial::PlaceExactly(std::span<MovingPod> pods, int64_t* steps, WorkBudget* budget) {
  if (pods.empty()) return true;
  const std::optional<SearchPod> handle = HandleOf(pods.front(), budget);
  if (!handle.has_value()) return false;
  std::vector<NodeIndex> nodes;
  search_->AllFits(*handle, &nodes, budget);
  for (const NodeIndex node : nodes) {
    if (--*steps < 0 || (budget != nullptr && !budget->Spend())) return false;
    snapshot_.Fork();
    Put(&pods.front(), node);
    if (PlaceExactly(pods.subspan(1), steps, budget)) {
      snapshot_.Commit();
      return true;
    }
    snapshot_.Revert();
    Unplace(pods.first(1));
  }
  return false;
}

// Pods on a node that leaves count only in rules about other pods, and nothing asks for placeholders there.
void DrainTrial::Leave(NodeIndex node, std::span<const MovingPod> pods) {
  const std::span<const NodePods::Pod> there = state_.pods(snapshot_.slot(node)).pods();
  std::vector<int32_t> shapes;
  for (const MovingPod& pod : pods) {
    if (!pods_depend_ || pod.pod.is_placeholder()) continue;
    const size_t position = CheckedIndex("pod of the node", pod.pod.position(), there.size());
    shapes.push_back(snapshot_.ShapeOf(there[position].shape));
  }
  Vacate(node, shapes, &snapshot_);
}

void DrainTrial::TakeBack(int32_t kind, NodeIndex node) {
  TakeOff(node, At(kind).shape_id, &snapshot_);
  --received_[CheckedIndex("node", IndexOf(node), received_.size())];
}

void DrainTrial::CheckConsistent() const {
  snapshot_.CheckConsistent();
  LOADLINE_CHECK(snapshot_.depth() == 0) << snapshot_.depth() << " forks were left behind";
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const size_t shape =
        CheckedIndex("shape", static_cast<size_t>(kinds_[i].shape_id), kind_of_shape_.size());
    LOADLINE_CHECK(static_cast<size_t>(kind_of_shape_[shape]) == i)
        << "kind " << i << " is not that of its shape";
    LOADLINE_CHECK(snapshot_.pod_shape(kinds_[i].shape_id) == kinds_[i].shape) << "shape of kind " << i;
  }
  for (const int32_t kind : kind_of_shape_) {
    LOADLINE_CHECK(kind < static_cast<int32_t>(kinds_.size())) << "kind " << kind << " is not known";
  }
  for (size_t i = 0; i < received_.size(); ++i) {
    const NodeIndex node{static_cast<int32_t>(i)};
    const int64_t pods = static_cast<int64_t>(snapshot_.pods(node).size());
    LOADLINE_CHECK(0 <= received_[i] && received_[i] <= pods)
        << "node " << i << " has taken " << received_[i];
  }
}

void DrainTrial::Reload(std::span<const Slot> slots) {
  received_.resize(static_cast<size_t>(snapshot_.node_end()), 0);
  for (const Slot slot : slots) {  // before nodes get other numbers
    if (const std::optional<NodeIndex> node = snapshot_.FindSlot(slot)) received_[IndexOf(*node)] = 0;
  }
  snapshot_.Reload(slots);
  RemoveExpendablePods(slots, &snapshot_);
  received_.resize(static_cast<size_t>(snapshot_.node_end()), 0);
}

}  // namespace loadline
