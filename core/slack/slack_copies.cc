// Copies of pods, and pods that wait: what is put onto nodes by all of the scheduler's filters.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"
#include "core/slack/slack_planner.h"

namespace loadline {
namespace {

// The limits on the sum of the copies that are kept: they cost nodes.
class CopyLimits {
 public:
  explicit CopyLimits(const SlackOptions& options) : options_(options) {}

  // How many copies of a pod are kept of those that are wanted; `why` says what keeps others away.
  int64_t Take(const MirroredPod& pod, std::string* why) {
    Used& used = by_namespace_[pod.shape.namespace_name];
    int64_t count = pod.copies;
    const auto limit = [&](int64_t most, auto... text) {
      if (count <= most) return;
      count = std::max<int64_t>(0, most);
      *why = absl::StrCat(text...);
    };
    const std::string in = absl::StrCat(" of namespace ", pod.shape.namespace_name);
    const CpuMemory& most = options_.max_copies_room_per_namespace;
    limit(options_.max_placeholders, "at most ", options_.max_placeholders, " copies");
    limit(options_.max_copies_per_namespace - used.count, "at most ", options_.max_copies_per_namespace,
          " copies", in);
    limit(options_.max_copies - count_, "at most ", options_.max_copies, " copies in all");
    if (pod.size.cpu > 0) {
      limit(Minus(most, used.room).cpu / pod.size.cpu, "copies", in, " request at most ", most.cpu, "m cpu");
    }
    if (pod.size.memory > 0) {
      limit(Minus(most, used.room).memory / pod.size.memory, "copies", in, " request at most ", most.memory,
            " bytes of memory");
    }
    count_ += count;
    used.count += count;
    used.room = Plus(used.room, Times(pod.size, count));
    return count;
  }

  int64_t count() const { return count_; }

 private:
  struct Used {
    int64_t count = 0;
    CpuMemory room;
  };
  const SlackOptions& options_;
  int64_t count_ = 0;
  absl::btree_map<std::string, Used> by_namespace_;
};

// The class whose new nodes take a pod that fits nowhere: that of the smallest ones.
const SlackClassView* HomeOfNew(const PodShape& pod, const GrowthSketch& sketch,
                                const std::vector<NodeShape>& shapes,
                                const absl::btree_map<std::string, SlackClassView*>& by_name) {
  const PodRules none;
  const PodRules& rules = pod.rules == nullptr ? none : *pod.rules;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const GrowableNodes& growable = sketch.growable()[i];
    const NodeLabels labels{&shapes[i].labels, nullptr, ""};
    if (growable.may_add.value_or(1) > 0 && Within(CpuMemoryOf(pod.requests), growable.empty.room) &&
        ToleratesTaints(rules, shapes[i]) && MatchesNodeAffinity(rules, labels)) {
      return by_name.at(growable.class_name);
    }
  }
  return nullptr;
}

absl::btree_map<std::string, SlackClassView*> ByName(std::vector<SlackClassView>* views) {
  absl::btree_map<std::string, SlackClassView*> by_name;
  for (SlackClassView& view : *views) by_name[view.key.name] = &view;
  return by_name;
}

}  // namespace

void SlackPlanner::SizeMirrored(SlackWishes wishes, Turn* turn) {
  turn->plan->errors = std::move(wishes.errors);
  turn->plan->errors_total = wishes.errors_total;
  CopyLimits limits(turn->question.options);
  for (MirroredPod& pod : wishes.pods) {
    MirroredSlack& mirrored = turn->plan->mirrored.emplace_back();
    mirrored.count = limits.Take(pod, &mirrored.limit);
    const PlaceholderGroup group{PlaceholderKind::kMirrored, pod.key, pod.size};
    const int64_t there = CountOf(group);
    Grow(group, mirrored.count - there, turn);
    Shrink(group, there - mirrored.count, turn->plan);
    mirrored.pod = std::move(pod);
  }
  turn->left_in_all = std::max<int64_t>(0, turn->left_in_all - limits.count());
}

// Pods that wait will request their amounts where they are expected: their slack is kept at the same time,
// and not one start of a node later.
void SlackPlanner::CountWaiting(const std::vector<ExpectedPods>& expected, Turn* turn) {
  const absl::btree_map<std::string, SlackClassView*> by_name = ByName(&turn->views);
  for (const ExpectedPods& pods : expected) {
    const SlackClassView* home = nullptr;
    if (pods.slot.has_value()) {
      const auto found = by_name.find(rooms_.node(*pods.slot).class_name);
      if (found != by_name.end()) home = found->second;
    } else if (!pods.class_name.empty()) {
      home = by_name.at(pods.class_name);
    } else if (pods.group.has_value()) {
      const auto of =
          std::find_if(turn->sketch.growable().begin(), turn->sketch.growable().end(),
                       [&](const GrowableNodes& growable) { return growable.group == pods.group; });
      if (of != turn->sketch.growable().end()) home = by_name.at(of->class_name);
    } else {
      home = HomeOfNew(*pods.shape, turn->sketch, Shapes(turn), by_name);
    }
    if (home == nullptr) continue;
    CpuMemory& waiting = by_name.at(home->key.name)->waiting;
    waiting = Plus(waiting, Times(CpuMemoryOf(pods.shape->requests), pods.count));
  }
}

void SlackPlanner::CountCopies(const MirroredSlack& mirrored,
                               const absl::btree_map<std::string, SlackClassView*>& homes) {
  const PlaceholderSet::Members& members =
      *set_.Find({PlaceholderKind::kMirrored, mirrored.pod.key, mirrored.pod.size});
  for (const int64_t id : members.ids) {
    const size_t slot = set_.NodeOf(id);
    if (slot == PlaceholderSet::kNoNode) continue;
    SlackClassView& home = *homes.at(rooms_.node(slot).class_name);
    home.mirrored.push_back(mirrored.pod.size);
    ++home.mirrored_placed;
    home.mirrored_ready = Plus(home.mirrored_ready, mirrored.pod.size);
  }
}

// Steps B and C, and all that concerns copies of pods.
void SlackPlanner::PlanOnSnapshot(Turn* turn) {
  SlackOnSnapshot on(turn->question.snapshot(), turn->question.fit, turn->question.leaving,
                     turn->question.waiting, &rooms_, &set_, turn->budget);
  std::vector<SlackPending> waiting = turn->question.waiting;
  if (turn->sketch.coming() > 0) on.AddComing(Shapes(turn), turn->sketch);
  CountWaiting(on.PlaceWaiting(&waiting, &turn->sketch, &filled_), turn);
  set_.PushOutAll();
  SlackPlan* const plan = turn->plan;
  if (plan->mirrored.empty()) return;
  on.PutPlaceholders();
  for (const MirroredSlack& mirrored : plan->mirrored) plan->placed += on.PlaceMirrored(mirrored.pod);
  const absl::btree_map<std::string, SlackClassView*> by_name = ByName(&turn->views);
  // Copies that may be asked for of the same nodes are planned together.
  absl::btree_map<GrowthSketch::Allowed, std::vector<MirroredSlack*>> asked;
  for (MirroredSlack& mirrored : plan->mirrored) {
    const PlaceholderSet::Members* const members =
        set_.Find({PlaceholderKind::kMirrored, mirrored.pod.key, mirrored.pod.size});
    if (members == nullptr) continue;
    CountCopies(mirrored, by_name);
    mirrored.placed = members->placed();
    if (mirrored.placed >= mirrored.count) continue;
    std::string unneeded;
    asked[AllowedFor(nullptr, &mirrored.pod.shape, &unneeded, turn)].push_back(&mirrored);
  }
  absl::btree_map<std::string, std::vector<CpuMemory>> homes;
  for (const auto& [allowed, copies] : asked) {
    const NewNodes new_nodes{Shapes(turn), turn->groups(), turn->question.daemons, turn->question.growth};
    on.AskFor(new_nodes, allowed, copies, &turn->sketch, &homes);
  }
  for (const auto& [name, sizes] : homes) {
    std::vector<CpuMemory>& home = by_name.at(name)->mirrored;
    home.insert(home.end(), sizes.begin(), sizes.end());
  }
  for (MirroredSlack& mirrored : plan->mirrored) {
    if (mirrored.pod.copies <= mirrored.count || mirrored.status >= SlackStatus::kLimited) continue;
    mirrored.status = SlackStatus::kLimited;
    mirrored.reason = mirrored.limit;
  }
  filled_.insert(filled_.end(), on.fuller().begin(), on.fuller().end());
}

}  // namespace loadline
