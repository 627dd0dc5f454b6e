#include "core/slack/slack_on_snapshot.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace loadline {

SlackOnSnapshot::SlackOnSnapshot(Snapshot* snapshot, const FitOptions* options, const SlackRooms* rooms,
                                 PlaceholderSet* set)
    : snapshot_(*snapshot), rooms_(*rooms), set_(*set) {
  snapshot_.Fork();
  // Placeholders that run as pods give way to any pod.
  for (const size_t slot : rooms_.with_placeholders()) {
    const std::optional<NodeIndex> node = snapshot_.FindSlot(Slot{static_cast<int32_t>(slot)});
    if (!node.has_value()) continue;
    for (size_t i = snapshot_.pods(*node).size(); i-- > 0;) {
      if (TraitsOf(snapshot_.pod_shape(snapshot_.pods(*node)[i].shape)).placeholder) {
        snapshot_.RemovePod(*node, i);
      }
    }
  }
  using Key = std::tuple<int64_t, int64_t, std::string>;
  std::vector<std::pair<Key, NodeIndex>> order;
  for (int32_t i = 0; i < snapshot_.node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot_.Contains(node)) continue;
    const SlackRooms::Node& room = rooms_.node(IndexOf(snapshot_.slot(node)));
    const CpuMemory free = Minus(room.allocatable, room.real);
    order.push_back({{free.cpu, free.memory, room.name}, node});
  }
  std::sort(order.begin(), order.end());
  std::vector<NodeIndex> nodes;
  for (const auto& [key, node] : order) nodes.push_back(node);
  search_.emplace(snapshot, options, std::move(nodes));
}

void SlackOnSnapshot::PlaceWaiting(std::vector<SlackPending> waiting, std::vector<size_t>* filled) {
  std::stable_sort(waiting.begin(), waiting.end(), [](const SlackPending& a, const SlackPending& b) {
    return TraitsOf(a.pod.shape).priority > TraitsOf(b.pod.shape).priority;
  });
  for (SlackPending& pods : waiting) {
    if (TraitsOf(pods.pod.shape).placeholder) continue;
    const CpuMemory size = CpuMemoryOf(pods.pod.shape.requests);
    if (pods.node.has_value()) {
      const std::optional<NodeIndex> node = snapshot_.FindSlot(*pods.node);
      if (!node.has_value()) continue;
      const int32_t shape = snapshot_.InternShape(pods.pod.shape);
      for (int64_t i = 0; i < pods.count; ++i) Place(*node, shape, size, filled);
      continue;
    }
    const SearchPod pod = search_->Add(std::move(pods.pod));
    for (int64_t i = 0; i < pods.count; ++i) {
      const std::optional<NodeIndex> node = search_->FirstFit(pod);
      if (!node.has_value()) break;
      Place(*node, search_->fit(pod).shape(), size, filled);
    }
  }
}

void SlackOnSnapshot::Place(NodeIndex node, int32_t shape, const CpuMemory& size,
                            std::vector<size_t>* filled) {
  snapshot_.PlacePod(node, shape);
  const size_t slot = IndexOf(snapshot_.slot(node));
  if (!set_.Has(slot)) return;
  SlackNode content = set_.node(slot);
  content.real = Plus(content.real, size);
  --content.free_slots;
  set_.SetNode(slot, std::move(content));
  filled->push_back(slot);
}

SearchPod SlackOnSnapshot::Prepare(const MirroredPod& pod) {
  if (const auto found = prepared_.find(pod.key); found != prepared_.end()) return found->second;
  IncomingPod incoming;
  incoming.shape = pod.shape;
  incoming.names = snapshot_.state().resource_names();
  const SearchPod prepared = search_->Add(std::move(incoming));
  prepared_.emplace(pod.key, prepared);
  return prepared;
}

std::optional<size_t> SlackOnSnapshot::TightestFit(SearchPod pod, const CpuMemory& size) {
  std::vector<NodeIndex> nodes;
  search_->AllFits(pod, &nodes);
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

int64_t SlackOnSnapshot::PlaceMirrored(const MirroredPod& pod) {
  int64_t placed = 0;
  const PlaceholderGroup group{PlaceholderKind::kMirrored, pod.key, pod.size};
  const PlaceholderSet::Members* const members = set_.Find(group);
  if (members == nullptr) return 0;
  const SearchPod prepared = Prepare(pod);
  PodFit& fit = search_->fit(prepared);
  const std::vector<int64_t> ids(members->ids.begin(), members->ids.end());
  const auto put = [&](size_t slot) {
    snapshot_.PlacePod(*snapshot_.FindSlot(Slot{static_cast<int32_t>(slot)}), fit.shape());
  };
  for (const int64_t id : ids) {
    const size_t slot = set_.NodeOf(id);
    if (slot == PlaceholderSet::kNoNode) continue;
    fit.Refresh();
    if (fit.Fits(*snapshot_.FindSlot(Slot{static_cast<int32_t>(slot)}))) {
      put(slot);
    } else {
      set_.Detach(id);
    }
  }
  for (const int64_t id : ids) {
    if (set_.NodeOf(id) != PlaceholderSet::kNoNode) continue;
    const std::string& name = set_.placeholder(id).last_node;
    const size_t last = name.empty() ? PlaceholderSet::kNoNode : set_.Find(name);
    std::optional<size_t> slot;
    fit.Refresh();
    if (last != PlaceholderSet::kNoNode && set_.FitsOn(last, pod.size) &&
        fit.Fits(*snapshot_.FindSlot(Slot{static_cast<int32_t>(last)}))) {
      slot = last;
    } else {
      slot = TightestFit(prepared, pod.size);
    }
    if (!slot.has_value()) break;
    set_.Attach(id, *slot);
    put(*slot);
    ++placed;
  }
  return placed;
}

std::optional<size_t> SlackOnSnapshot::NodeToCome(PodFit* fit, const CpuMemory& size,
                                                  const std::vector<NodeShape>& shapes, size_t* first,
                                                  GrowthSketch* sketch) {
  fit->Refresh();
  // A node that is refused for balance takes a copy once others have theirs.
  const PodRules* const rules = fit->pod().shape.rules.get();
  const bool for_good = rules == nullptr || rules->spread.empty();
  for (size_t node = *first; node < to_come_.size(); ++node) {
    if (sketch->FitsOn(node, size) && fit->Fits(to_come_[node])) return node;
    if (for_good && node == *first) ++*first;
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const EmptyNode& empty = sketch->classes()[i].empty;
    if (!sketch->MayAdd(i) || empty.slots < 1 || !Within(size, empty.room)) continue;
    const std::string name = absl::StrCat("new node ", to_come_.size(), " of ", sketch->classes()[i].name);
    const NodeIndex node = snapshot_.AddNode({name, shapes[i], name});
    fit->Refresh();
    if (fit->Fits(node)) {
      to_come_.push_back(node);
      return sketch->AddNode(i);
    }
    snapshot_.RemoveNode(node);
  }
  return std::nullopt;
}

std::string SlackOnSnapshot::WhyNot(PodFit* fit, const CpuMemory& size, const std::vector<NodeShape>& shapes,
                                    const GrowthSketch& sketch, bool* fits_some) {
  std::string reason = "no class of nodes is known";
  *fits_some = false;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const GrowableClass& of = sketch.classes()[i];
    if (of.empty.slots < 1 || !Within(size, of.empty.room)) {
      reason = absl::StrCat("an empty node of ", of.name, " has cpu ", of.empty.room.cpu, "m, memory ",
                            of.empty.room.memory, ", less than the pod asks for");
      continue;
    }
    const std::string name = absl::StrCat("empty node of ", of.name);
    const NodeIndex node = snapshot_.AddNode({name, shapes[i], name});
    fit->Refresh();
    const Verdict verdict = fit->Judge(node);
    snapshot_.RemoveNode(node);
    if (verdict.judgement == Judgement::kFits) {
      *fits_some = true;
      return absl::StrCat("class ", of.name, " cannot grow");
    }
    reason = absl::StrCat("a new node of ", of.name, ": ", absl::StrJoin(verdict.reasons, "; "));
  }
  return reason;
}

void SlackOnSnapshot::AskFor(const std::vector<NodeShape>& shapes, GrowthSketch* sketch,
                             MirroredSlack* mirrored, absl::btree_map<std::string, int64_t>* homes) {
  const PlaceholderGroup group{PlaceholderKind::kMirrored, mirrored->pod.key, mirrored->pod.size};
  for (size_t node = to_come_.size(); node < sketch->node_end(); ++node) {  // those that come anyway
    const size_t of = sketch->ClassOf(node);
    const std::string name = absl::StrCat("node ", node, " on its way of ", sketch->classes()[of].name);
    to_come_.push_back(snapshot_.AddNode({name, shapes[of], name}));
  }
  PodFit& fit = search_->fit(Prepare(mirrored->pod));
  size_t first = 0;
  for (int64_t i = mirrored->placed; i < mirrored->count; ++i) {
    const std::optional<size_t> node = NodeToCome(&fit, group.size, shapes, &first, sketch);
    if (!node.has_value()) {
      bool fits_some = false;
      const std::string why = WhyNot(&fit, group.size, shapes, *sketch, &fits_some);
      mirrored->status = fits_some ? SlackStatus::kLimited : SlackStatus::kUnplaceable;
      mirrored->reason = absl::StrCat(mirrored->count - i, " of ", mirrored->count, " copies: ", why);
      return;
    }
    sketch->Take(*node, group, 1);
    snapshot_.PlacePod(to_come_[*node], fit.shape());
    ++(*homes)[sketch->classes()[sketch->ClassOf(*node)].name];
    mirrored->status = SlackStatus::kMissing;
  }
}

}  // namespace loadline
