// Resource slack for a whole cluster, in the steps A to H of README.md.
#ifndef LOADLINE_CORE_SLACK_SLACK_PLANNER_H_
#define LOADLINE_CORE_SLACK_SLACK_PLANNER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/base/work_budget.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/fit/node_filter.h"
#include "core/fit/trial_memory.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_on_snapshot.h"
#include "core/slack/slack_options.h"
#include "core/slack/slack_plan.h"
#include "core/slack/slack_rooms.h"
#include "core/slack/slack_view.h"

namespace loadline {

// The question: the cluster, the options, and the groups that may grow.
struct SlackQuestion {
  const ClusterState* cluster = nullptr;
  SlackOptions options;  // valid
  // nullopt: not known, and every class that has nodes may grow without end.
  std::optional<SlackGroupList> groups;
  // How options to grow are ranked; nullptr: by what they cost.
  SlackRanking ranking;
  // How nodes are bought for copies of pods, see CopyGrowth; nullptr: by PlanScaleUp().
  CopyGrowth growth = nullptr;
  // Pods that new nodes of groups carry, where they fit. They outlive the call.
  std::span<const IncomingPod> daemons = {};
  // The number of nodes by which all groups together may grow; nullopt: any number.
  std::optional<int64_t> max_new_nodes = std::nullopt;
  // Names that the shapes of groups and of pods that wait refer to: nullopt: those of the cluster.
  std::optional<ResourceNames> names;
  std::vector<SlackPending> waiting;
  // Nodes that are being deleted: no pod that waits is expected there, and no copy is kept. Their own pods
  // that need another node wait, see SlackPending::still_run.
  std::vector<Slot> leaving = {};
  // Nodes that start, to which placeholders and pods come once they have, if groups are not known; else see
  // SlackGroup::coming.
  std::vector<Slot> starting = {};
  // Nodes of named groups that are machines for that alone, sorted; see NamedAsMachines().
  std::vector<Slot> named_machines = {};
  const FitOptions* fit = nullptr;
  int64_t now_s = 0;  // seconds since 1970; only differences count
  bool literal = false;
  // A snapshot of the cluster; asked for only where pods wait or are mirrored.
  std::function<Snapshot*()> snapshot;
};

// Plans repeatedly for one cluster. Everything that it keeps beside State() follows from the cluster: a
// planner that starts from the state of another one gives the same answers. Equal cluster, state and question
// give an equal plan; the same question again changes nothing.
//
// If nodes are scarce, placeholders get them in this order: copies of pods, room for the biggest pods, then
// standard ones; classes by name. Each class uses nodes of its own first, then others where it may be.
//
// Cost: O(pods on changed nodes + changed placeholders * log nodes + classes), and O(shapes of pods) where
// placeholders depend on the biggest pods; what waits or is mirrored takes a snapshot, O(nodes log nodes +
// pods), and filters. The first plan: O(pods + nodes log nodes).
class SlackPlanner {
 public:
  // Takes over a state in place of its own. Placeholders of nodes that are not there lose them.
  void Restore(const SlackState& state);
  SlackState State() const;
  // The same without places. Cost: O(groups of placeholders)
  KeptSlack Kept() const;
  // Takes over what another process kept, unless this planner keeps something itself. No node is asked for
  // placeholders that find no room at first: they had none.
  void Restore(const KeptSlack& kept);
  // Returns the times since which classes have more than they want, in seconds, by class, as of the last
  // plan.
  const absl::btree_map<std::string, int64_t>& excess_since_s() const { return excess_since_s_; }

  // `question.cluster` is the same one each time, or one that journals as it does (ClusterState::changes()).
  // `budget` bounds the search for nodes for pods that wait and for copies, what is asked for, and the memory
  // of placeholders; what is cut short is done by the next plan, and what is placed stays.
  SlackPlan Plan(const SlackQuestion& question, WorkBudget* budget);

  // Notes the node on which the placeholder is tried first when it loses its own: a drain found room for it
  // there.
  void Expect(int64_t placeholder, const std::string& node);

  // Checks what is kept for the next plan. For tests.
  void CheckConsistent() const;

 private:
  // The state of one plan.
  struct Turn {
    const SlackQuestion& question;
    WorkBudget* budget;
    std::vector<SlackClassView> views;
    GrowthSketch sketch;
    SlackPlan* plan;
    std::vector<NodeShape> shapes = {};  // what new nodes are, by position in the sketch; see Shapes()
    LabelKeys needed = {};               // keys of labels that any class needs, sorted
    std::vector<std::pair<PlaceholderGroup, int64_t>> excess = {};  // how many more there are than wanted
    int64_t left_in_all = kMostPlaceholders;
    TrialMemory memory{budget};  // of the placeholders
    const SlackGroupList* groups() const { return question.groups.has_value() ? &*question.groups : nullptr; }
  };

  // slack_planner.cc: what is kept from plan to plan.
  void CatchUp(const SlackQuestion& question);
  void PutNode(size_t slot);
  CpuMemory AtLine(size_t slot) const;
  void PutBack(const SlackState& state);
  int32_t ClassId(const std::string& name);
  void Remember(const std::vector<SlackClassView>& views);
  void AddComing(Turn* turn) const;
  void RemoveOrphans(const SlackWishes& wishes, Turn* turn);
  // Returns the classes on whose nodes the placeholders of each class may be; none where all had a node.
  std::vector<std::vector<int32_t>> Place(Turn* turn);
  void RemoveUnplaced(Turn* turn);
  void PlaceClass(const std::string& owner, const std::vector<int32_t>& classes, Turn* turn);
  // Removes placeholders that are kept beyond what is wanted where they keep wanted ones from a node: none is
  // asked for because of them. `may_be_on`: classes by position of their views.
  void UseExcess(const std::vector<std::vector<int32_t>>& may_be_on, Turn* turn);

  // slack_copies.cc: copies of pods, and pods that wait.
  void SizeMirrored(SlackWishes wishes, Turn* turn);
  void PlanOnSnapshot(Turn* turn);
  void CountWaiting(const std::vector<ExpectedPods>& expected, Turn* turn);
  void CountCopies(const MirroredSlack& mirrored, const absl::btree_map<std::string, SlackClassView*>& homes);

  // slack_sizing.cc: step D, how many placeholders a class is to have.
  std::vector<CpuMemory> ReserveOf(const SlackClassView& of, const SlackQuestion& question,
                                   std::optional<CpuMemory>* bound) const;
  void SizeClass(const SlackClassView& of, ClassSlack* slack, Turn* turn);
  // Both tell whether there is more than wanted.
  bool SetReserve(const std::string& owner, const std::vector<CpuMemory>& reserve, bool take_away,
                  Turn* turn);
  bool SetStandard(int64_t most, const CpuMemory& room, bool take_away, const ClassSlack& slack, Turn* turn);
  void SumUp(const SlackClassView& of, const Turn& turn, ClassSlack* slack) const;
  // Returns how many of a group have no node and are to have one: the rest is beyond what is wanted, and
  // waits for the removal delay.
  int64_t WithoutNode(const PlaceholderGroup& group, const Turn& turn) const;
  // Adds none when the memory of the budget ends: the next plan does.
  void Grow(const PlaceholderGroup& group, int64_t count, Turn* turn);
  void Shrink(const PlaceholderGroup& group, int64_t count, SlackPlan* plan);
  int64_t CountOf(const PlaceholderGroup& group) const;
  // By kind and size.
  std::vector<PlaceholderGroup> GroupsOf(const std::string& owner) const;

  // slack_asking.cc: step G, nodes for placeholders that have none.
  void AskForClass(const SlackClassView& of, ClassSlack* slack, Turn* turn);
  // Returns where nodes may be asked for: `pod` is nullptr for placeholders of a class, and then `of` says
  // where they may be. `left_out` gets the reason for which nodes were left out.
  GrowthSketch::Allowed AllowedFor(const SlackClassView* of, const PodShape* pod, std::string* left_out,
                                   Turn* turn) const;
  const std::vector<NodeShape>& Shapes(Turn* turn) const;

  SlackRooms rooms_;
  PlaceholderSet set_;
  LabelKeys set_labels_;                // by which the owners of its placeholders are named
  LabelKeys selected_labels_;           // see SlackState
  std::optional<SlackState> restored_;  // to be taken over by the next plan
  bool restored_without_places_ = false;
  absl::btree_map<std::string, int32_t> class_ids_;
  const ClusterState* cluster_ = nullptr;  // of the plan under way
  LoadLine line_;                          // of the last plan
  std::vector<size_t> filled_;             // slots that pods which wait were put on, for the last plan
  int64_t next_id_ = 1;
  absl::btree_map<std::string, int64_t> excess_since_s_;  // by class
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_PLANNER_H_
