#include "core/slack/slack_planner.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/btree_set.h"
#include "core/cluster/pod_role.h"
#include "core/fit/line_left.h"
#include "core/slack/literal_plan.h"

namespace loadline {

// --- state

void SlackPlanner::Restore(const SlackState& state) {
  restored_ = state;
  restored_without_places_ = false;
}

SlackState SlackPlanner::State() const {
  if (restored_.has_value()) return *restored_;
  SlackState state;
  state.next_id = next_id_;
  state.placeholders = set_.Export();
  state.class_labels = set_labels_;
  state.selected_labels = selected_labels_;
  for (const auto& [name, since] : excess_since_s_) state.excesses.push_back({name, since});
  return state;
}

KeptSlack SlackPlanner::Kept() const {
  KeptSlack kept;
  kept.class_labels = set_labels_;
  kept.selected_labels = selected_labels_;
  for (const auto& [group, members] : set_.groups()) {
    kept.groups.push_back({group, static_cast<int64_t>(members.ids.size())});
  }
  for (const auto& [name, since_s] : excess_since_s_) kept.excesses.push_back({name, since_s});
  return kept;
}

void SlackPlanner::Restore(const KeptSlack& kept) {
  const bool keeps = restored_.has_value() ? !restored_->placeholders.empty() : !set_.groups().empty();
  if (keeps || kept.groups.empty()) return;
  SlackState state;
  state.next_id = next_id_;
  state.class_labels = kept.class_labels;
  state.selected_labels = kept.selected_labels;
  state.excesses = kept.excesses;
  for (const KeptSlack::Group& group : kept.groups) {
    for (int64_t i = 0; i < group.count; ++i) {
      state.placeholders.push_back(
          {.id = state.next_id++, .kind = group.of.kind, .owner = group.of.owner, .size = group.of.size});
    }
  }
  restored_ = std::move(state);
  restored_without_places_ = true;
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
  set_.SetNode(slot, {node->name, node->allocatable, Larger(node->real, AtLine(slot)), node->free_slots,
                      ClassId(node->class_name)});
}

// Returns the least that real pods have of a node, so that no more is left than the load line leaves.
CpuMemory SlackPlanner::AtLine(size_t slot) const {
  if (line_.empty()) return {};
  const Slot at{static_cast<int32_t>(slot)};
  LineLeft line(line_, cluster_->node_shape(at));
  for (const NodePods::Pod& pod : cluster_->pods(at).pods()) {
    const PodShape& shape = cluster_->pod_shapes()[pod.shape];
    if (!shape.finished && !GivesWay(TraitsOf(shape))) line.Add(shape);
  }
  return Minus(rooms_.node(slot).allocatable, line.Left());
}

void SlackPlanner::PutBack(const SlackState& state) {
  const int64_t lost = set_.lost();
  set_ = PlaceholderSet(lost);
  class_ids_.clear();
  for (size_t slot = 0; slot < rooms_.node_end(); ++slot) PutNode(slot);
  set_labels_ = rooms_.rules().label_keys;
  next_id_ = state.next_id;
  excess_since_s_.clear();
  for (const SlackState::Excess& excess : state.excesses) excess_since_s_[excess.class_name] = excess.since_s;
  for (Placeholder placeholder : state.placeholders) {
    const size_t node = placeholder.node.empty() ? PlaceholderSet::kNoNode : set_.Find(placeholder.node);
    if (node != PlaceholderSet::kNoNode && placeholder.kind != PlaceholderKind::kMirrored) {
      // If nodes are classed by other labels than before, a placeholder is of the class that it is on.
      const SlackClass& there = rooms_.classes().at(rooms_.node(node).class_name);
      const auto owner = rooms_.classes().find(placeholder.owner);
      if (owner == rooms_.classes().end() && state.class_labels != rooms_.rules().label_keys) {
        placeholder.owner = there.key.name;
      } else if (owner != rooms_.classes().end() && !MayBeOn(owner->second.key, there.key)) {
        placeholder.last_node = std::exchange(placeholder.node, "");
      }
    }
    set_.Restore(placeholder);
  }
}

void SlackPlanner::CatchUp(const SlackQuestion& question) {
  std::vector<size_t> changed = std::exchange(filled_, {});
  if (restored_.has_value()) selected_labels_ = restored_->selected_labels;
  SlackClassRules rules{question.options.class_labels, selected_labels_, question.options.startup_taints};
  for (const SlackClassRule& rule : question.options.class_rules) {
    for (const Label& label : rule.labels) rules.label_keys.push_back(label.key);
  }
  cluster_ = question.cluster;
  const LoadLine line = question.fit != nullptr ? question.fit->load_line : LoadLine();
  const bool other_line = !(line == line_);
  line_ = line;
  const bool all = rooms_.CatchUp(*question.cluster, rules, question.named_machines, &changed);
  if (all || other_line || restored_.has_value()) {
    const SlackState state = State();
    restored_.reset();
    PutBack(state);
    return;
  }
  for (const size_t slot : changed) PutNode(slot);
}

// Labels that pods select nodes by, and nodes have, go on counting when the pods are gone.
void SlackPlanner::Remember(const std::vector<SlackClassView>& views) {
  absl::btree_set<std::string> on_nodes;
  for (const SlackClassView& view : views) {
    for (const Label& label : view.key.labels) on_nodes.insert(label.key);
  }
  selected_labels_.clear();
  for (const std::string& key : rooms_.rules().selected) {
    if (selected_labels_.size() < kMostRemembered && on_nodes.contains(key)) selected_labels_.push_back(key);
  }
}

void SlackPlanner::Expect(int64_t placeholder, const std::string& node) {
  if (set_.Has(placeholder)) set_.Expect(placeholder, node);
}

void SlackPlanner::CheckConsistent() const {
  set_.CheckConsistent();
  const std::vector<Placeholder> all = set_.Export();
  LOADLINE_CHECK(all.empty() || all.back().id < next_id_) << "id " << next_id_ << " would be given out twice";
}

// --- classes

void SlackPlanner::AddComing(Turn* turn) const {
  const std::vector<GrowableNodes>& growable = turn->sketch.growable();
  for (size_t position = 0; position < growable.size(); ++position) {
    const std::optional<SlackGroupIndex> group = growable[position].group;
    if (!group.has_value()) {
      for (const Slot slot : turn->question.starting) {
        if (rooms_.node(IndexOf(slot)).class_name != growable[position].class_name) continue;
        turn->sketch.AddComing(position, growable[position].empty);
      }
      continue;
    }
    for (const EmptyNode& room : (*turn->groups())[*group].coming) {
      turn->sketch.AddComing(position, room);
    }
  }
}

void SlackPlanner::RemoveOrphans(const SlackWishes& wishes, Turn* turn) {
  absl::btree_map<std::string, const CpuMemory*> owners;
  for (const SlackClassView& of : turn->views) owners[of.key.name] = nullptr;
  for (const MirroredPod& pod : wishes.pods) owners[pod.key] = &pod.size;
  std::vector<std::pair<PlaceholderGroup, int64_t>> unknown_groups;
  for (const auto& [group, members] : set_.groups()) {
    const auto owner = owners.find(group.owner);
    const bool mirrored = group.kind == PlaceholderKind::kMirrored;
    const bool known =
        owner != owners.end() &&
        (mirrored ? owner->second != nullptr && *owner->second == group.size : owner->second == nullptr);
    if (!known) unknown_groups.emplace_back(group, static_cast<int64_t>(members.ids.size()));
  }
  for (const auto& [group, count] : unknown_groups) Shrink(group, count, turn->plan);
  for (auto at = excess_since_s_.begin(); at != excess_since_s_.end();) {
    const auto owner = owners.find(at->first);
    at = owner == owners.end() ? excess_since_s_.erase(at) : std::next(at);
  }
}

// --- step F

void SlackPlanner::PlaceClass(const std::string& owner, const std::vector<int32_t>& classes, Turn* turn) {
  std::vector<PlaceholderGroup> groups = GroupsOf(owner);
  // Room for the biggest pods first, then the largest.
  std::sort(groups.begin(), groups.end(), [](const PlaceholderGroup& a, const PlaceholderGroup& b) {
    return std::make_tuple(b.kind, b.size.cpu, b.size.memory) <
           std::make_tuple(a.kind, a.size.cpu, a.size.memory);
  });
  for (const PlaceholderGroup& group : groups) {
    const int64_t unplaced = static_cast<int64_t>(set_.Find(group)->unplaced.size());
    // Each looks for a node among those of the classes, by their room.
    if (unplaced == 0 || !turn->budget->Spend(1 + unplaced)) continue;
    turn->plan->placed += set_.Place(group, classes);
  }
}

// Placeholders that have a place to return to are first, then those that fit nodes of their own class.
std::vector<std::vector<int32_t>> SlackPlanner::Place(Turn* turn) {
  std::vector<std::vector<int32_t>> may_be_on(turn->views.size());
  for (size_t i = 0; i < turn->views.size(); ++i) {
    const SlackClassView& of = turn->views[i];
    bool any = false;
    for (const PlaceholderGroup& group : GroupsOf(of.key.name)) any |= !set_.Find(group)->unplaced.empty();
    if (!any || !turn->budget->Spend(static_cast<int64_t>(turn->views.size()))) continue;
    for (const SlackClassView& other : turn->views) {
      if (MayBeOn(of.key, other.key)) may_be_on[i].push_back(ClassId(other.key.name));
    }
    for (const PlaceholderGroup& group : GroupsOf(of.key.name)) {
      turn->plan->placed += set_.PlaceBack(group, may_be_on[i]);
    }
  }
  for (const SlackClassView& of : turn->views) {
    PlaceClass(of.key.name, {ClassId(of.key.name)}, turn);
  }
  for (size_t i = 0; i < turn->views.size(); ++i) {
    PlaceClass(turn->views[i].key.name, may_be_on[i], turn);
  }
  return may_be_on;
}

void SlackPlanner::UseExcess(const std::vector<std::vector<int32_t>>& may_be_on, Turn* turn) {
  for (auto& [excess, count] : turn->excess) {
    // Excess without a node keeps nobody from one, and is the first that will be removed.
    int64_t on_nodes = count - std::ssize(set_.Find(excess)->unplaced);
    for (size_t i = 0; i < may_be_on.size(); ++i) {
      if (may_be_on[i].empty()) continue;
      for (const PlaceholderGroup& wanted : GroupsOf(turn->views[i].key.name)) {
        if (on_nodes <= 0 || wanted == excess || !turn->budget->Spend(CountOf(excess))) continue;
        const PlaceholderSet::Replaced replaced = set_.PlaceInstead(wanted, excess, on_nodes, may_be_on[i]);
        turn->plan->placed += replaced.placed;
        turn->plan->removed += replaced.removed;
        count -= replaced.removed;
        on_nodes -= replaced.removed;
      }
    }
  }
}

// --- the whole

// The next plan adds what is wanted all the same. Copies of pods are as their pods wish.
void SlackPlanner::RemoveUnplaced(Turn* turn) {
  std::vector<std::pair<PlaceholderGroup, int64_t>> unplaced;
  for (const auto& [group, members] : set_.groups()) {
    if (group.kind == PlaceholderKind::kMirrored || members.unplaced.empty()) continue;
    unplaced.emplace_back(group, static_cast<int64_t>(members.unplaced.size()));
  }
  for (const auto& [group, count] : unplaced) Shrink(group, count, turn->plan);
}

SlackPlan SlackPlanner::Plan(const SlackQuestion& question, WorkBudget* budget) {
  SlackPlan plan;
  const int64_t lost = set_.lost();
  CatchUp(question);
  const SlackGroupList* const groups = question.groups.has_value() ? &*question.groups : nullptr;
  std::vector<SlackClassView> views = MakeViews(rooms_, question.options, groups,
                                                question.names.value_or(question.cluster->resource_names()));
  Remember(views);
  GrowthSketch sketch(MakeGrowable(views, question.options, groups), question.ranking,
                      question.max_new_nodes);
  Turn turn{question, budget, std::move(views), std::move(sketch), &plan};
  for (const SlackClassView& of : turn.views) {
    for (const Label& label : of.key.needs) turn.needed.push_back(label.key);
  }
  std::sort(turn.needed.begin(), turn.needed.end());
  turn.needed.erase(std::unique(turn.needed.begin(), turn.needed.end()), turn.needed.end());
  turn.memory.Take(set_.size() * kPlaceholderBytes);
  budget->Spend(set_.size() + static_cast<int64_t>(turn.views.size()));
  SlackWishes wishes = CollectWishes(*question.cluster, rooms_);
  RemoveOrphans(wishes, &turn);
  SizeMirrored(std::move(wishes), &turn);
  AddComing(&turn);
  if (!question.waiting.empty() || !plan.mirrored.empty()) {
    PlanOnSnapshot(&turn);
  } else {
    set_.PushOutAll();
  }
  for (const SlackClassView& of : turn.views) SizeClass(of, &plan.classes.emplace_back(), &turn);
  UseExcess(Place(&turn), &turn);
  if (std::exchange(restored_without_places_, false)) RemoveUnplaced(&turn);
  for (size_t i = 0; i < turn.views.size(); ++i) {
    AskForClass(turn.views[i], &plan.classes[i], &turn);
    SumUp(turn.views[i], turn, &plan.classes[i]);
  }
  for (const auto& [group, members] : set_.groups()) {
    plan.shapes.push_back({group, static_cast<int64_t>(members.ids.size()), members.placed()});
  }
  plan.demands = turn.sketch.demands();
  plan.overcommitted.assign(set_.overcommitted().begin(), set_.overcommitted().end());
  plan.pushed_out = set_.lost() - lost;
  plan.cut_short = budget->end();
  if (question.literal) plan.literal = LiteralPlan(rooms_, question.options);
  return plan;
}

}  // namespace loadline
