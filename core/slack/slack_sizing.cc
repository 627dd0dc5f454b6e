// Step D: how many placeholders a class is to have.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "core/base/quantity.h"
#include "core/slack/slack_planner.h"

namespace loadline {
namespace {

std::string Describe(const CpuMemory& amounts) {
  return absl::StrCat("cpu ", amounts.cpu, "m, memory ", MemoryText(amounts.memory));
}

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Returns the number of placeholders of a size that make up `room`; nullopt: no number does.
std::optional<int64_t> PlaceholdersFor(const CpuMemory& room, const CpuMemory& size) {
  if ((room.cpu > 0 && size.cpu == 0) || (room.memory > 0 && size.memory == 0)) return std::nullopt;
  return std::max(room.cpu > 0 ? CeilDiv(room.cpu, size.cpu) : 0,
                  room.memory > 0 ? CeilDiv(room.memory, size.memory) : 0);
}

// Counts placeholders as if all were made anew, at most `most` of them.
void CountPieces(const CpuMemory& room, int64_t most, ClassSlack* slack) {
  if (const std::optional<Pieces> pieces = Share(room, slack->unit); pieces.has_value()) {
    slack->pieces = *pieces;
  } else {
    RaiseStatus(SlackStatus::kUnplaceable,
                absl::StrCat("a placeholder may have ", Describe(slack->unit), " of an empty node (",
                             Describe(slack->empty.room), ", ", slack->empty.slots, " pods), and ",
                             Describe(room), " is wanted"),
                slack);
  }
  if (slack->pieces.count > most) {
    slack->pieces = {most, slack->unit};
    RaiseStatus(SlackStatus::kLimited,
                absl::StrCat("at most ", most, most == 1 ? " placeholder" : " placeholders"), slack);
  }
}

}  // namespace

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

void SlackPlanner::Grow(const PlaceholderGroup& group, int64_t count, Turn* turn) {
  if (count <= 0 || !turn->memory.Take(count * kPlaceholderBytes)) return;
  for (int64_t i = 0; i < count; ++i) set_.Add(group, next_id_++);
  turn->plan->added += count;
}

void SlackPlanner::Shrink(const PlaceholderGroup& group, int64_t count, SlackPlan* plan) {
  const int64_t before = set_.size();
  set_.Trim(group, count);
  plan->removed += before - set_.size();
}

// --- what is wanted

// Room for the biggest pods, and `bound`: what a placeholder may have at most for their sake.
std::vector<CpuMemory> SlackPlanner::ReserveOf(const SlackClassView& of, const SlackQuestion& question,
                                               std::optional<CpuMemory>* bound) const {
  const SlackOptions& options = question.options;
  if (of.of == nullptr || !of.off.empty()) return {};
  if (options.reserve == ReserveMode::kNone && !BoundByPods(options)) return {};
  const std::vector<CpuMemory> sizes = EligibleSizes(*of.of, rooms_, question.cluster->objects());
  std::vector<CpuMemory> reserve = ReserveFor(options.reserve, sizes, of.empty.room);
  // Room for a copy that is as large is room for this one as well.
  std::erase_if(reserve, [&](const CpuMemory& size) { return FitsOneOf(size, of.mirrored); });
  if (of.empty.slots < 1) reserve.clear();
  if (BoundByPods(options) && !sizes.empty()) {
    CpuMemory most;
    for (const CpuMemory& size : sizes) most = Larger(most, size);
    // Pods that request none of a resource set no bound to it.
    *bound = {most.cpu > 0 ? most.cpu : kMaxAmount, most.memory > 0 ? most.memory : kMaxAmount};
  }
  return reserve;
}

void SlackPlanner::SizeClass(const SlackClassView& of, ClassSlack* slack, Turn* turn) {
  const SlackOptions& options = turn->question.options;
  slack->key = of.key;
  slack->rules = PlaceholderRules(of.key, AbsentLabels(of.key, turn->needed));
  slack->nodes = of.of == nullptr ? 0 : of.of->nodes;
  slack->empty = of.empty;
  const bool by_requests = options.basis == SlackBasis::kRequested;
  if (of.of != nullptr) slack->basis = (by_requests ? of.of->requested : of.of->capacity).value();
  if (by_requests) slack->basis = Plus(slack->basis, of.waiting);
  const CpuMemory extra = of.off.empty() ? ExtraRoom(slack->basis, options.rate) : CpuMemory{};
  if (!of.off.empty()) slack->reason = of.off;
  slack->extra = Smaller(extra, of.max_extra.value_or(extra));
  if (slack->extra != extra)
    RaiseStatus(SlackStatus::kLimited, "at most the extra room that is configured", slack);
  std::optional<CpuMemory> bound;
  const std::vector<CpuMemory> reserve = ReserveOf(of, turn->question, &bound);
  slack->reserved = Plus(SumOfReserve(reserve, /*dedupe=*/true), SumOfReserve(of.mirrored, /*dedupe=*/false));
  slack->unit = of.empty.slots < 1 ? CpuMemory{} : LargestPiece(of.empty.room, options.granularity, bound);
  const CpuMemory room = Minus(slack->extra, slack->reserved);
  const int64_t most = std::min(options.max_placeholders, turn->left_in_all);
  CountPieces(room, most, slack);
  turn->left_in_all -= std::min(turn->left_in_all, slack->pieces.count);

  // The excess is removed when it has been there for long enough.
  const auto since = excess_since_s_.try_emplace(of.key.name, turn->question.now_s).first;
  since->second = std::min(since->second, turn->question.now_s);
  const bool take_away = turn->question.now_s - since->second >= options.removal_delay_s;
  bool excess = SetReserve(of.key.name, reserve, take_away, turn);
  excess |= SetStandard(most, room, take_away, *slack, turn);
  if (!excess) excess_since_s_.erase(since);
}

bool SlackPlanner::SetReserve(const std::string& owner, const std::vector<CpuMemory>& reserve, bool take_away,
                              Turn* turn) {
  bool excess = false;
  for (const PlaceholderGroup& group : GroupsOf(owner)) {
    if (group.kind != PlaceholderKind::kReserved) continue;
    const bool wanted = std::find(reserve.begin(), reserve.end(), group.size) != reserve.end();
    const int64_t over = CountOf(group) - (wanted ? 1 : 0);
    if (over > 0 && take_away) Shrink(group, over, turn->plan);
    if (over <= 0 || take_away) continue;
    turn->excess.emplace_back(group, over);
    excess = true;
  }
  for (const CpuMemory& size : reserve) {
    const PlaceholderGroup group{PlaceholderKind::kReserved, owner, size};
    Grow(group, 1 - CountOf(group), turn);
  }
  return excess;
}

bool SlackPlanner::SetStandard(int64_t most, const CpuMemory& room, bool take_away, const ClassSlack& slack,
                               Turn* turn) {
  SlackPlan* const plan = turn->plan;
  const std::string& owner = slack.key.name;
  const Pieces& fresh = slack.pieces;
  // If there are several sizes, we keep the one that most have; others are left over from elsewhere.
  PlaceholderGroup kept{PlaceholderKind::kStandard, owner, fresh.size};
  int64_t count = 0;
  const std::vector<PlaceholderGroup> groups = GroupsOf(owner);
  for (const PlaceholderGroup& group : groups) {
    if (group.kind != PlaceholderKind::kStandard || CountOf(group) <= count) continue;
    kept = group;
    count = CountOf(group);
  }
  const bool none = slack.status == SlackStatus::kUnplaceable;
  const std::optional<int64_t> needed = none ? 0 : PlaceholdersFor(room, kept.size);
  const int64_t target = std::min(needed.value_or(0), most);
  const bool useless = !needed.has_value() || !Within(kept.size, slack.empty.room) ||
                       (*needed > most && kept.size != fresh.size);
  const CpuMemory sum = Times(kept.size, target);
  const CpuMemory tolerated = Plus(Plus(Times(fresh.size, fresh.count), kept.size),
                                   ExtraRoom(room, turn->question.options.size_tolerance));
  const bool oversize = target > 0 && (!Within(kept.size, slack.unit) || !Within(sum, tolerated));
  // More of what is too large already would make the cluster grow for the size alone.
  if (useless || (oversize && (take_away || target > count))) {
    for (const PlaceholderGroup& group : groups) {
      if (group.kind == PlaceholderKind::kStandard) Shrink(group, CountOf(group), plan);
    }
    Grow({PlaceholderKind::kStandard, owner, fresh.size}, fresh.count, turn);
    return false;
  }
  for (const PlaceholderGroup& group : groups) {
    if (group.kind == PlaceholderKind::kStandard && group != kept) Shrink(group, CountOf(group), plan);
  }
  Grow(kept, target - count, turn);
  if (take_away) Shrink(kept, count - target, plan);
  if (count > target && !take_away) turn->excess.emplace_back(kept, count - target);
  return oversize || (count > target && !take_away);
}

int64_t SlackPlanner::WithoutNode(const PlaceholderGroup& group, const Turn& turn) const {
  const int64_t unplaced = std::ssize(set_.Find(group)->unplaced);
  const auto excess = absl::c_find_if(turn.excess, [&](const auto& entry) { return entry.first == group; });
  return excess == turn.excess.end() ? unplaced : std::max<int64_t>(0, unplaced - excess->second);
}

void SlackPlanner::SumUp(const SlackClassView& of, const Turn& turn, ClassSlack* slack) const {
  slack->sum = SumOfReserve(of.mirrored, /*dedupe=*/false);
  slack->count = static_cast<int64_t>(of.mirrored.size());
  slack->placed = of.mirrored_placed;
  slack->ready = of.mirrored_ready;
  for (const PlaceholderGroup& group : GroupsOf(of.key.name)) {
    const PlaceholderSet::Members& members = *set_.Find(group);
    const int64_t count = members.placed() + WithoutNode(group, turn);
    slack->sum = Plus(slack->sum, Times(group.size, count));
    slack->count += count;
    slack->placed += members.placed();
    slack->ready = Plus(slack->ready, Times(group.size, members.placed()));
  }
  if (slack->placed < slack->count) RaiseStatus(SlackStatus::kMissing, "", slack);
}

}  // namespace loadline
