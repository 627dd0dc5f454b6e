// Step G: nodes for placeholders that have none.
#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "core/slack/slack_planner.h"

namespace loadline {
namespace {

// Returns whether each further node asks for as much slack as it takes: a cluster that grows for it never
// rests. Pod slots, or room that is left over on each node, may bring that about at rates below 1.
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

}  // namespace

const std::vector<NodeShape>& SlackPlanner::Shapes(Turn* turn) const {
  if (turn->shapes.empty()) {
    turn->shapes = ShapesOfNew(*turn->question.cluster, rooms_, turn->groups(), turn->sketch);
  }
  return turn->shapes;
}

GrowthSketch::Allowed SlackPlanner::AllowedFor(const SlackClassView* of, const PodShape* pod,
                                               std::string* left_out, Turn* turn) const {
  const std::vector<NodeShape>& shapes = Shapes(turn);
  const ResourceNames names = turn->question.names.value_or(turn->question.cluster->resource_names());
  const SlackOptions& options = turn->question.options;
  GrowthSketch::Allowed allowed(shapes.size(), false);
  if (!turn->budget->Spend(static_cast<int64_t>(1 + shapes.size()))) return allowed;
  ResourceAmounts needed;
  if (of != nullptr) needed = NeededResources(*of, rooms_, names, options);
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (of != nullptr) {
      const SlackClassKey key = ClassOf(shapes[i], rooms_.rules(), names);
      if (!MayBeOn(of->key, key)) continue;
    }
    const std::string& name = turn->sketch.growable()[i].class_name;
    const auto lacking = std::find_if(needed.begin(), needed.end(), [&](const auto& entry) {
      return shapes[i].allocatable.Get(entry.id) < entry.value;
    });
    if (lacking != needed.end()) {
      *left_out =
          absl::StrCat("nodes of ", name, " have less ", names.name(lacking->id), " than its pods request");
      continue;
    }
    const std::string resource = UnneededResource(shapes[i], pod, names, options);
    allowed[i] = resource.empty();
    if (resource.empty()) continue;
    *left_out = absl::StrCat("nodes of ", name, " have ", resource, ", of which it needs none");
  }
  return allowed;
}

void SlackPlanner::AskForClass(const SlackClassView& of, ClassSlack* slack, Turn* turn) {
  std::vector<AskedPlaceholders> asked;
  for (const PlaceholderGroup& group : GroupsOf(of.key.name)) {
    const int64_t unplaced = WithoutNode(group, *turn);
    if (unplaced == 0) continue;
    if (group.kind == PlaceholderKind::kStandard && RunsAway(turn->question.options, of.empty, group.size)) {
      RaiseStatus(SlackStatus::kLimited, "each further node would ask for as much slack as it takes", slack);
      continue;
    }
    asked.push_back({group, unplaced});
  }
  if (asked.empty()) return;
  std::string left_out;
  const GrowthSketch::Allowed allowed = AllowedFor(&of, nullptr, &left_out, turn);
  const int64_t left = turn->sketch.Ask(allowed, std::move(asked), turn->budget);
  RaiseStatus(SlackStatus::kMissing, "", slack);
  if (left == 0) return;
  std::string why = absl::StrCat("no node may come for ", left, left == 1 ? " placeholder" : " placeholders");
  if (turn->budget->ended()) {
    why = absl::StrCat(left, left == 1 ? " placeholder has" : " placeholders have",
                       " no node: the plan was cut short, out of ", Name(turn->budget->end()));
  } else if (!left_out.empty()) {
    absl::StrAppend(&why, ": ", left_out);
  }
  RaiseStatus(SlackStatus::kLimited, why, slack);
}

}  // namespace loadline
