// The slack that is kept, where it is, and what is missing.
#ifndef LOADLINE_CORE_SLACK_SLACK_PLAN_H_
#define LOADLINE_CORE_SLACK_SLACK_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cpu_memory.h"
#include "core/base/work_budget.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_class.h"
#include "core/slack/slack_growth.h"
#include "core/slack/slack_rooms.h"
#include "core/slack/slack_size.h"
#include "core/slack/slack_wishes.h"

namespace loadline {

// The state of the slack of one class or owner.
enum class SlackStatus {
  kReady,        // all of it fits now
  kMissing,      // some needs nodes that are asked for
  kLimited,      // a limit keeps some of it away for good
  kUnplaceable,  // some would not even fit an empty node
};

// Slack of one class.
struct ClassSlack {
  SlackClassKey key;
  PodRules rules;  // of its placeholders: where they may be
  int64_t nodes = 0;
  EmptyNode empty;
  CpuMemory basis;
  CpuMemory extra;     // wanted: a rate of the basis, within the limit
  CpuMemory reserved;  // kept for the biggest pods, and copies of pods that have their place here
  CpuMemory unit;      // what one placeholder may have
  Pieces pieces;       // as they would be made anew
  CpuMemory sum;       // of placeholders that have a node or are to have one, with `reserved`
  CpuMemory ready;     // of those that fit now
  int64_t count = 0;   // of the same
  int64_t placed = 0;  // of them, those that fit now
  SlackStatus status = SlackStatus::kReady;
  std::string reason;
};

// Sets the status, with its reason, if it is worse than the present one.
inline void RaiseStatus(SlackStatus status, const std::string& reason, ClassSlack* slack) {
  if (status <= slack->status) return;
  slack->status = status;
  slack->reason = reason;
}

// Copies of one pod.
struct MirroredSlack {
  MirroredPod pod;
  int64_t count = 0;
  std::string limit;  // what keeps `count` below what is wanted
  int64_t placed = 0;
  SlackStatus status = SlackStatus::kReady;
  std::string reason;
};

// Placeholders of one owner, kind and size.
struct ShapeSlack {
  PlaceholderGroup group;
  int64_t count = 0;
  int64_t placed = 0;
  friend bool operator==(const ShapeSlack&, const ShapeSlack&) = default;
};

// The formulas of the proposal as they stand, over all nodes, and what they lead to.
struct LiteralSlackPlan {
  CpuMemory capacity;
  int64_t nodes = 0;
  LiteralSlack standard;  // version 1
  CpuMemory most_cpu;     // the pods with the most of each
  CpuMemory most_memory;
  LiteralRoom after_biggest;  // version 2, first idea: below 0 where the pods are larger than the extra room
  LiteralRoom after_hull;     // second idea
};

// The answer: slack by class and owner, and the nodes that it needs.
struct SlackPlan {
  std::vector<ClassSlack> classes;      // by name
  std::vector<MirroredSlack> mirrored;  // by key
  std::vector<ShapeSlack> shapes;       // by owner, kind and size
  std::vector<SlackDemand> demands;     // by class
  std::vector<WishError> errors;        // by source, the first of them
  int64_t errors_total = 0;
  std::vector<std::string> overcommitted;  // nodes, by name
  // Placeholders that came, were taken away, gave way to real pods or lost their node, and found a node.
  int64_t added = 0;
  int64_t removed = 0;
  int64_t pushed_out = 0;
  int64_t placed = 0;
  std::optional<LiteralSlackPlan> literal;
  // The limit that cut it short: some placeholders may have no node, and be asked for by nobody, until the
  // next plan.
  BudgetEnd cut_short = BudgetEnd::kNotEnded;
};

inline constexpr size_t kMostRemembered = 64;  // chosen: a cluster distinguishes its nodes by a few labels

// The state that is kept from one plan to the next, beside what the cluster says.
struct SlackState {
  int64_t next_id = 1;
  std::vector<Placeholder> placeholders;  // by id
  LabelKeys class_labels;                 // labels that distinguished classes
  // The labels among them that pods selected nodes by and nodes have: they count as long as nodes have them,
  // so that classes stay the same when such a pod is deleted and created again. At most kMostRemembered.
  LabelKeys selected_labels;
  struct Excess {
    std::string class_name;
    int64_t since_s = 0;
    friend bool operator==(const Excess&, const Excess&) = default;
  };
  std::vector<Excess> excesses;  // since when a class has more than it wants; by class
  friend bool operator==(const SlackState&, const SlackState&) = default;
};

// The part of a state that the next process needs: how many placeholders of each owner, kind and size, and
// not where they are.
struct KeptSlack {
  struct Group {
    PlaceholderGroup of;
    int64_t count = 0;
    friend bool operator==(const Group&, const Group&) = default;
  };
  std::vector<Group> groups;  // in their order
  LabelKeys class_labels;     // these three as in SlackState
  LabelKeys selected_labels;
  std::vector<SlackState::Excess> excesses;
  friend bool operator==(const KeptSlack&, const KeptSlack&) = default;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_PLAN_H_
