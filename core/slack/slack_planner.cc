#include "core/slack/slack_planner.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "core/slack/literal_plan.h"

namespace loadline {

struct SlackPlanner::View {
  SlackClassKey key;
  const SlackClass* of = nullptr;  // nullptr: it has no nodes
  EmptyNode empty;
  int64_t may_add = 0;
  // Copies of pods that are on its nodes, or asked of it.
  std::vector<CpuMemory> mirrored = {};
  int64_t mirrored_placed = 0;
  CpuMemory mirrored_ready = {};
  // Positions of the groups of the question.
  std::vector<int32_t> groups = {};
};

namespace {

// The worse one, with its reason, stays.
void Worsen(SlackStatus status, const std::string& reason, ClassSlack* slack) {
  if (status <= slack->status) return;
  slack->status = status;
  slack->reason = reason;
}

std::string Describe(const CpuMemory& amounts) {
  return absl::StrCat("cpu ", amounts.cpu, "m, memory ", amounts.memory);
}

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// How many of a size make up `room`; nullopt: no number does.
std::optional<int64_t> HowMany(const CpuMemory& room, const CpuMemory& size) {
  if ((room.cpu > 0 && size.cpu == 0) || (room.memory > 0 && size.memory == 0)) return std::nullopt;
  return std::max(room.cpu > 0 ? CeilDiv(room.cpu, size.cpu) : 0,
                  room.memory > 0 ? CeilDiv(room.memory, size.memory) : 0);
}

// Whether each further node asks for as much slack as it takes: a cluster that grows for it never comes to
// rest. Pod slots, or room that is left over on each node, may bring that about at rates below 1.
bool RunsAway(const SlackOptions& options, const EmptyNode& empty, const CpuMemory& size) {
  if (options.basis != SlackBasis::kCapacity) return false;
  int64_t taken = empty.slots;
  if (size.cpu > 0) taken = std::min(taken, empty.room.cpu / size.cpu);
  if (size.memory > 0) taken = std::min(taken, empty.room.memory / size.memory);
  const auto grows = [&](int64_t room, int64_t piece) {
    return piece > 0 && absl::int128(room) * options.rate >= absl::int128(piece) * taken * kWholeRate;
  };
  return grows(empty.room.cpu, size.cpu) || grows(empty.room.memory, size.memory);
}

NodeShape WithoutPassing(NodeShape shape) {
  std::erase_if(shape.taints, IsPassing);
  shape.unschedulable = false;
  return shape;
}

}  // namespace

// --- state

void SlackPlanner::Restore(const SlackState& state) { restored_ = state; }

SlackState SlackPlanner::State() const {
  if (restored_.has_value()) return *restored_;
  SlackState state;
  state.next_id = next_id_;
  state.placeholders = set_.Export();
  state.class_labels = set_labels_;
  for (const auto& [name, since] : excess_since_s_) state.excesses.push_back({name, since});
  return state;
}

int32_t SlackPlanner::ClassId(const std::string& name) {
  return class_ids_.try_emplace(name, static_cast<int32_t>(class_ids_.size())).first->second;
}

void SlackPlanner::PutNode(size_t slot) {
  const SlackRooms::Node* const node = slot < rooms_.node_end() ? &rooms_.node(slot) : nullptr;
  if (node == nullptr || !node->present || !node->usable) {
    set_.RemoveNode(slot);
    return;
  }
  set_.SetNode(slot,
               {node->name, node->allocatable, node->real, node->free_slots, ClassId(node->class_name)});
}

void SlackPlanner::PutBack(const SlackState& state) {
  const int64_t lost = set_.lost();
  set_ = PlaceholderSet(lost);
  class_ids_.clear();
  for (size_t slot = 0; slot < rooms_.node_end(); ++slot) PutNode(slot);
  set_labels_ = rooms_.label_keys();
  next_id_ = state.next_id;
  excess_since_s_.clear();
  for (const SlackState::Excess& excess : state.excesses) excess_since_s_[excess.class_name] = excess.since_s;
  for (Placeholder placeholder : state.placeholders) {
    const size_t node = placeholder.node.empty() ? PlaceholderSet::kNoNode : set_.Find(placeholder.node);
    if (node != PlaceholderSet::kNoNode && placeholder.kind != PlaceholderKind::kMirrored) {
      // Where nodes are classed by other labels than before, a placeholder is of the class that it is on.
      const SlackClass& there = rooms_.classes().at(rooms_.node(node).class_name);
      const auto owner = rooms_.classes().find(placeholder.owner);
      if (owner == rooms_.classes().end() && state.class_labels != rooms_.label_keys()) {
        placeholder.owner = there.key.name;
      } else if (owner != rooms_.classes().end() && owner->second.key.family != there.key.family) {
        placeholder.last_node = std::exchange(placeholder.node, "");
      }
    }
    set_.Restore(placeholder);
  }
}

void SlackPlanner::CatchUp(const SlackQuestion& question) {
  std::vector<size_t> changed = std::exchange(filled_, {});
  const bool all = rooms_.CatchUp(*question.cluster, question.options.class_labels, &changed);
  if (all || restored_.has_value()) {
    const SlackState state = State();
    restored_.reset();
    PutBack(state);
    return;
  }
  for (const size_t slot : changed) PutNode(slot);
}

// --- placeholders

int64_t SlackPlanner::CountOf(const PlaceholderGroup& group) const {
  const PlaceholderSet::Members* const members = set_.Find(group);
  return members == nullptr ? 0 : static_cast<int64_t>(members->ids.size());
}

std::vector<PlaceholderGroup> SlackPlanner::GroupsOf(const std::string& owner) const {
  std::vector<PlaceholderGroup> groups;
  for (auto at = set_.groups().lower_bound({PlaceholderKind::kStandard, owner, {}});
       at != set_.groups().end() && at->first.owner == owner; ++at) {
    groups.push_back(at->first);
  }
  return groups;
}

void SlackPlanner::Grow(const PlaceholderGroup& group, int64_t count, SlackPlan* plan) {
  for (int64_t i = 0; i < count; ++i) set_.Add(group, next_id_++);
  plan->added += std::max<int64_t>(0, count);
}

void SlackPlanner::Shrink(const PlaceholderGroup& group, int64_t count, SlackPlan* plan) {
  const int64_t before = set_.size();
  set_.Trim(group, count);
  plan->removed += before - set_.size();
}

// --- classes

std::vector<SlackPlanner::View> SlackPlanner::Classes(const SlackQuestion& question) const {
  absl::btree_map<std::string, View> views;
  for (const auto& [name, of] : rooms_.classes()) {
    views[name] = {of.key, &of, of.TypicalEmpty(), question.groups.has_value() ? 0 : kNoNodeLimit};
  }
  if (question.groups.has_value()) {
    for (size_t i = 0; i < question.groups->size(); ++i) {
      const SlackGroup& group = (*question.groups)[i];
      SlackClassKey key = ClassOf(WithoutPassing(group.shape), rooms_.label_keys(), rooms_.selected());
      View& view = views[key.name];
      view.groups.push_back(static_cast<int32_t>(i));
      if (view.key.name.empty()) {
        view.empty = group.empty;
        view.key = std::move(key);
      }
      view.may_add =
          group.may_add > kNoNodeLimit - view.may_add ? kNoNodeLimit : view.may_add + group.may_add;
    }
  }
  std::vector<View> classes;
  for (auto& [name, view] : views) classes.push_back(std::move(view));
  return classes;
}

void SlackPlanner::AddComing(const SlackQuestion& question, const std::vector<View>& classes,
                             GrowthSketch* sketch) {
  absl::btree_map<std::string, size_t> positions;
  for (size_t i = 0; i < sketch->classes().size(); ++i) positions[sketch->classes()[i].name] = i;
  for (const View& of : classes) {
    for (const int32_t group : of.groups) {
      for (const EmptyNode& room : (*question.groups)[static_cast<size_t>(group)].coming) {
        sketch->AddComing(positions.at(of.key.name), room);
      }
    }
  }
}

std::vector<NodeShape> SlackPlanner::ShapesOfNew(const SlackQuestion& question,
                                                 const GrowthSketch& sketch) const {
  absl::btree_map<std::string, NodeShape> shapes;
  if (question.groups.has_value()) {
    for (const SlackGroup& group : *question.groups) {
      const NodeShape shape = WithoutPassing(group.shape);
      shapes.try_emplace(ClassOf(shape, rooms_.label_keys(), rooms_.selected()).name, shape);
    }
  }
  // What is not in a group is as the first of its nodes by name.
  absl::btree_map<std::string, size_t> first;
  for (size_t slot = 0; slot < rooms_.node_end(); ++slot) {
    const SlackRooms::Node& node = rooms_.node(slot);
    if (!node.present) continue;
    const auto [found, added] = first.try_emplace(node.class_name, slot);
    if (!added && node.name < rooms_.node(found->second).name) found->second = slot;
  }
  for (const auto& [name, slot] : first) {
    shapes.try_emplace(name, WithoutPassing(question.cluster->node_shape(Slot{static_cast<int32_t>(slot)})));
  }
  std::vector<NodeShape> of_new;
  for (const GrowableClass& growable : sketch.classes()) of_new.push_back(shapes.at(growable.name));
  return of_new;
}

void SlackPlanner::DropStrangers(const std::vector<View>& classes, const SlackWishes& wishes,
                                 SlackPlan* plan) {
  absl::btree_map<std::string, const CpuMemory*> owners;
  for (const View& of : classes) owners[of.key.name] = nullptr;
  for (const MirroredPod& pod : wishes.pods) owners[pod.key] = &pod.size;
  std::vector<std::pair<PlaceholderGroup, int64_t>> strangers;
  for (const auto& [group, members] : set_.groups()) {
    const auto owner = owners.find(group.owner);
    const bool mirrored = group.kind == PlaceholderKind::kMirrored;
    const bool known =
        owner != owners.end() &&
        (mirrored ? owner->second != nullptr && *owner->second == group.size : owner->second == nullptr);
    if (!known) strangers.emplace_back(group, static_cast<int64_t>(members.ids.size()));
  }
  for (const auto& [group, count] : strangers) Shrink(group, count, plan);
  for (auto at = excess_since_s_.begin(); at != excess_since_s_.end();) {
    const auto owner = owners.find(at->first);
    at = owner == owners.end() ? excess_since_s_.erase(at) : std::next(at);
  }
}

void SlackPlanner::SizeMirrored(const SlackQuestion& question, SlackWishes wishes, SlackPlan* plan) {
  plan->errors = std::move(wishes.errors);
  for (MirroredPod& pod : wishes.pods) {
    MirroredSlack& mirrored = plan->mirrored.emplace_back();
    mirrored.count = std::min(pod.copies, question.options.max_placeholders);
    const PlaceholderGroup group{PlaceholderKind::kMirrored, pod.key, pod.size};
    const int64_t there = CountOf(group);
    Grow(group, mirrored.count - there, plan);
    Shrink(group, there - mirrored.count, plan);
    mirrored.pod = std::move(pod);
  }
}

// Steps B and C, and all that concerns copies of pods.
void SlackPlanner::PlanOnSnapshot(const SlackQuestion& question, GrowthSketch* sketch,
                                  std::vector<View>* classes, SlackPlan* plan) {
  SlackOnSnapshot on(question.snapshot(), question.fit, &rooms_, &set_);
  on.PlaceWaiting(question.waiting, &filled_);
  set_.PushOutAll();
  for (const MirroredSlack& mirrored : plan->mirrored) plan->placed += on.PlaceMirrored(mirrored.pod);
  if (plan->mirrored.empty()) return;
  absl::btree_map<std::string, View*> by_name;
  for (View& of : *classes) by_name[of.key.name] = &of;
  const std::vector<NodeShape> shapes = ShapesOfNew(question, *sketch);
  for (MirroredSlack& mirrored : plan->mirrored) {
    const PlaceholderSet::Members& members =
        *set_.Find({PlaceholderKind::kMirrored, mirrored.pod.key, mirrored.pod.size});
    for (const int64_t id : members.ids) {
      const size_t slot = set_.NodeOf(id);
      if (slot == PlaceholderSet::kNoNode) continue;
      View& home = *by_name.at(rooms_.node(slot).class_name);
      home.mirrored.push_back(mirrored.pod.size);
      ++home.mirrored_placed;
      home.mirrored_ready = Plus(home.mirrored_ready, mirrored.pod.size);
    }
    mirrored.placed = members.placed();
    absl::btree_map<std::string, int64_t> homes;
    on.AskFor(shapes, sketch, &mirrored, &homes);
    for (const auto& [name, count] : homes) {
      std::vector<CpuMemory>& home = by_name.at(name)->mirrored;
      home.insert(home.end(), static_cast<size_t>(count), mirrored.pod.size);
    }
    if (mirrored.pod.copies > mirrored.count && mirrored.status < SlackStatus::kLimited) {
      mirrored.status = SlackStatus::kLimited;
      mirrored.reason = absl::StrCat("at most ", mirrored.count, " copies");
    }
  }
}

// --- step D: how many placeholders a class is to have

void SlackPlanner::SizeClass(const SlackQuestion& question, const View& of, ClassSlack* slack,
                             SlackPlan* plan) {
  const SlackOptions& options = question.options;
  slack->key = of.key;
  slack->nodes = of.of == nullptr ? 0 : of.of->nodes;
  slack->empty = of.empty;
  if (of.of != nullptr) {
    slack->basis = (options.basis == SlackBasis::kRequested ? of.of->requested : of.of->capacity).value();
  }
  const CpuMemory extra = ExtraRoom(slack->basis, options.rate);
  slack->extra = Smaller(extra, options.max_extra.value_or(extra));
  if (slack->extra != extra)
    Worsen(SlackStatus::kLimited, "at most the extra room that is configured", slack);
  std::vector<CpuMemory> reserve;
  std::optional<CpuMemory> bound;
  if (of.of != nullptr && (options.reserve != ReserveMode::kNone || BoundByPods(options))) {
    const std::vector<CpuMemory> sizes = EligibleSizes(*of.of, rooms_, question.cluster->objects());
    reserve = ReserveFor(options.reserve, sizes, of.empty.room);
    // Room for a copy that is as large is room for this one as well.
    std::erase_if(reserve, [&](const CpuMemory& size) { return FitsOneOf(size, of.mirrored); });
    if (of.empty.slots < 1) reserve.clear();
    if (BoundByPods(options) && !sizes.empty()) {
      CpuMemory most;
      for (const CpuMemory& size : sizes) most = Larger(most, size);
      // Pods that request none of a resource set no bound to it.
      bound = {most.cpu > 0 ? most.cpu : kMaxAmount, most.memory > 0 ? most.memory : kMaxAmount};
    }
  }
  slack->reserved = Plus(SumOfReserve(reserve, /*dedupe=*/true), SumOfReserve(of.mirrored, /*dedupe=*/false));
  slack->unit = of.empty.slots < 1 ? CpuMemory{} : LargestPiece(of.empty.room, options.granularity, bound);
  const CpuMemory room = Minus(slack->extra, slack->reserved);
  if (const std::optional<Pieces> pieces = Share(room, slack->unit); pieces.has_value()) {
    slack->pieces = *pieces;
  } else {
    Worsen(SlackStatus::kUnplaceable,
           absl::StrCat("a placeholder may have ", Describe(slack->unit), " of an empty node (",
                        Describe(of.empty.room), ", ", of.empty.slots, " pods), and ", Describe(room),
                        " is wanted"),
           slack);
  }
  if (slack->pieces.count > options.max_placeholders) {
    slack->pieces = {options.max_placeholders, slack->unit};
    Worsen(SlackStatus::kLimited, absl::StrCat("at most ", options.max_placeholders, " placeholders"), slack);
  }

  // What is too much goes when it has been so for long enough.
  const auto since = excess_since_s_.try_emplace(of.key.name, question.now_s).first;
  since->second = std::min(since->second, question.now_s);
  const bool take_away = question.now_s - since->second >= options.removal_delay_s;
  bool excess = SetReserve(of.key.name, reserve, take_away, plan);
  excess |= SetStandard(options, room, take_away, *slack, plan);
  if (!excess) excess_since_s_.erase(since);
}

bool SlackPlanner::SetReserve(const std::string& owner, const std::vector<CpuMemory>& reserve, bool take_away,
                              SlackPlan* plan) {
  bool excess = false;
  for (const PlaceholderGroup& group : GroupsOf(owner)) {
    if (group.kind != PlaceholderKind::kReserved) continue;
    const bool wanted = std::find(reserve.begin(), reserve.end(), group.size) != reserve.end();
    const int64_t over = CountOf(group) - (wanted ? 1 : 0);
    if (over > 0 && take_away) Shrink(group, over, plan);
    excess |= over > 0 && !take_away;
  }
  for (const CpuMemory& size : reserve) {
    const PlaceholderGroup group{PlaceholderKind::kReserved, owner, size};
    Grow(group, 1 - CountOf(group), plan);
  }
  return excess;
}

bool SlackPlanner::SetStandard(const SlackOptions& options, const CpuMemory& room, bool take_away,
                               const ClassSlack& slack, SlackPlan* plan) {
  const std::string& owner = slack.key.name;
  const Pieces& fresh = slack.pieces;
  // Of several sizes the one that most have; others are left from elsewhere.
  PlaceholderGroup kept{PlaceholderKind::kStandard, owner, fresh.size};
  int64_t count = 0;
  const std::vector<PlaceholderGroup> groups = GroupsOf(owner);
  for (const PlaceholderGroup& group : groups) {
    if (group.kind != PlaceholderKind::kStandard || CountOf(group) <= count) continue;
    kept = group;
    count = CountOf(group);
  }
  const bool none = slack.status == SlackStatus::kUnplaceable;
  const std::optional<int64_t> needed = none ? 0 : HowMany(room, kept.size);
  const int64_t target = std::min(needed.value_or(0), options.max_placeholders);
  const bool useless = !needed.has_value() || !Within(kept.size, slack.empty.room) ||
                       (*needed > options.max_placeholders && kept.size != fresh.size);
  const CpuMemory sum = Times(kept.size, target);
  const CpuMemory tolerated =
      Plus(Plus(Times(fresh.size, fresh.count), kept.size), ExtraRoom(room, options.size_tolerance));
  const bool oversize = target > 0 && (!Within(kept.size, slack.unit) || !Within(sum, tolerated));
  // More of what is too large already would make the cluster grow for the size alone.
  if (useless || (oversize && (take_away || target > count))) {
    for (const PlaceholderGroup& group : groups) {
      if (group.kind == PlaceholderKind::kStandard) Shrink(group, CountOf(group), plan);
    }
    Grow({PlaceholderKind::kStandard, owner, fresh.size}, fresh.count, plan);
    return false;
  }
  for (const PlaceholderGroup& group : groups) {
    if (group.kind == PlaceholderKind::kStandard && group != kept) Shrink(group, CountOf(group), plan);
  }
  Grow(kept, target - count, plan);
  if (take_away) Shrink(kept, count - target, plan);
  return oversize || (count > target && !take_away);
}

// --- steps F and G

void SlackPlanner::PlaceClass(const std::string& owner, const std::vector<int32_t>& classes,
                              SlackPlan* plan) {
  std::vector<PlaceholderGroup> groups = GroupsOf(owner);
  // Room for the biggest pods first, then the largest.
  std::sort(groups.begin(), groups.end(), [](const PlaceholderGroup& a, const PlaceholderGroup& b) {
    return std::make_tuple(b.kind, b.size.cpu, b.size.memory) <
           std::make_tuple(a.kind, a.size.cpu, a.size.memory);
  });
  for (const PlaceholderGroup& group : groups) plan->placed += set_.Place(group, classes);
}

void SlackPlanner::AskForClass(const SlackOptions& options, const View& of, GrowthSketch* sketch,
                               ClassSlack* slack) {
  std::vector<AskedPlaceholders> asked;
  for (const PlaceholderGroup& group : GroupsOf(of.key.name)) {
    const int64_t unplaced = static_cast<int64_t>(set_.Find(group)->unplaced.size());
    if (unplaced == 0) continue;
    if (group.kind == PlaceholderKind::kStandard && RunsAway(options, of.empty, group.size)) {
      Worsen(SlackStatus::kLimited, "each further node would ask for as much slack as it takes", slack);
      continue;
    }
    asked.push_back({group, unplaced});
  }
  if (asked.empty()) return;
  const int64_t left = sketch->Ask(of.key.family, std::move(asked));
  Worsen(SlackStatus::kMissing, "", slack);
  if (left > 0) {
    Worsen(SlackStatus::kLimited, absl::StrCat("no node may come for ", left, " placeholders"), slack);
  }
}

void SlackPlanner::SumUp(const View& of, ClassSlack* slack) const {
  slack->sum = SumOfReserve(of.mirrored, /*dedupe=*/false);
  slack->count = static_cast<int64_t>(of.mirrored.size());
  slack->placed = of.mirrored_placed;
  slack->ready = of.mirrored_ready;
  for (const PlaceholderGroup& group : GroupsOf(of.key.name)) {
    const PlaceholderSet::Members& members = *set_.Find(group);
    const int64_t count = static_cast<int64_t>(members.ids.size());
    slack->sum = Plus(slack->sum, Times(group.size, count));
    slack->count += count;
    slack->placed += members.placed();
    slack->ready = Plus(slack->ready, Times(group.size, members.placed()));
  }
  if (slack->placed < slack->count) Worsen(SlackStatus::kMissing, "", slack);
}

// --- the whole

SlackPlan SlackPlanner::Plan(const SlackQuestion& question) {
  SlackPlan plan;
  const int64_t lost = set_.lost();
  CatchUp(question);
  std::vector<View> classes = Classes(question);
  SlackWishes wishes = CollectWishes(*question.cluster, rooms_);
  DropStrangers(classes, wishes, &plan);
  SizeMirrored(question, std::move(wishes), &plan);
  std::vector<GrowableClass> growable;
  for (const View& of : classes) growable.push_back({of.key.name, of.key.family, of.empty, of.may_add});
  GrowthSketch sketch(std::move(growable));
  AddComing(question, classes, &sketch);
  if (!question.waiting.empty() || !plan.mirrored.empty()) {
    PlanOnSnapshot(question, &sketch, &classes, &plan);
  } else {
    set_.PushOutAll();
  }
  absl::btree_map<std::string, std::vector<int32_t>> families;
  for (const View& of : classes) {
    families[of.key.family].push_back(ClassId(of.key.name));
    SizeClass(question, of, &plan.classes.emplace_back(), &plan);
    PlaceClass(of.key.name, {ClassId(of.key.name)}, &plan);
  }
  for (const View& of : classes) PlaceClass(of.key.name, families.at(of.key.family), &plan);
  for (size_t i = 0; i < classes.size(); ++i) {
    AskForClass(question.options, classes[i], &sketch, &plan.classes[i]);
    SumUp(classes[i], &plan.classes[i]);
  }
  for (const auto& [group, members] : set_.groups()) {
    plan.shapes.push_back({group, static_cast<int64_t>(members.ids.size()), members.placed()});
  }
  plan.demands = sketch.demands();
  for (SlackDemand& demand : plan.demands) {
    const auto of = std::find_if(classes.begin(), classes.end(),
                                 [&](const View& view) { return view.key.name == demand.class_name; });
    demand.groups = of->groups;
  }
  plan.overcommitted.assign(set_.overcommitted().begin(), set_.overcommitted().end());
  plan.pushed_out = set_.lost() - lost;
  if (question.literal) plan.literal = LiteralPlan(rooms_, question.options);
  return plan;
}

}  // namespace loadline
