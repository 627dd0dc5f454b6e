// Resource slack: reading U of the proposal, steps A to H, for a whole cluster.
#ifndef LOADLINE_CORE_SLACK_SLACK_PLANNER_H_
#define LOADLINE_CORE_SLACK_SLACK_PLANNER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/fit/node_filter.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_on_snapshot.h"
#include "core/slack/slack_options.h"
#include "core/slack/slack_plan.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// A node group that may grow.
struct SlackGroup {
  NodeShape shape;
  EmptyNode empty;                 // less the pods that come with each node
  int64_t may_add = kNoNodeLimit;  // nodes
  // What is left on its nodes that are on their way.
  std::vector<EmptyNode> coming = {};
};

struct SlackQuestion {
  const ClusterState* cluster = nullptr;
  SlackOptions options;  // valid
  // nullopt: not known, and every class that has nodes may grow without end.
  std::optional<std::vector<SlackGroup>> groups;
  std::vector<SlackPending> waiting;
  const FitOptions* fit = nullptr;
  int64_t now_s = 0;  // seconds since 1970; only differences count
  bool literal = false;
  // A snapshot of the cluster; asked for only where pods wait or are mirrored.
  std::function<Snapshot*()> snapshot;
};

// Plans again and again for one cluster. All that it keeps beside State() follows from the cluster: a planner
// that takes over a state answers as the one that gave it. Equal cluster, state and question give an equal
// plan; the same question again changes nothing.
//
// Where nodes are short, placeholders get them in this order: copies of pods, room for the biggest pods, then
// standard ones; classes by name. Each class uses nodes of its own first, then of its family.
//
// Cost: O(pods on changed nodes + changed placeholders * log nodes + classes), and O(shapes of pods) where
// placeholders depend on the biggest pods; what waits or is mirrored takes a snapshot, O(nodes log nodes +
// pods), and filters. The first plan: O(pods + nodes log nodes).
class SlackPlanner {
 public:
  // Takes over a state in place of its own. Placeholders of nodes that are not there lose them.
  void Restore(const SlackState& state);
  SlackState State() const;

  // `question.cluster` is the same one each time, or one that journals as it does (ClusterState::changes()).
  SlackPlan Plan(const SlackQuestion& question);

 private:
  // A class as it is for one plan.
  struct View;

  void CatchUp(const SlackQuestion& question);
  void PutNode(size_t slot);
  void PutBack(const SlackState& state);
  int32_t ClassId(const std::string& name);
  std::vector<View> Classes(const SlackQuestion& question) const;
  static void AddComing(const SlackQuestion& question, const std::vector<View>& classes,
                        GrowthSketch* sketch);
  std::vector<NodeShape> ShapesOfNew(const SlackQuestion& question, const GrowthSketch& sketch) const;
  void DropStrangers(const std::vector<View>& classes, const SlackWishes& wishes, SlackPlan* plan);
  void SizeMirrored(const SlackQuestion& question, SlackWishes wishes, SlackPlan* plan);
  void PlanOnSnapshot(const SlackQuestion& question, GrowthSketch* sketch, std::vector<View>* classes,
                      SlackPlan* plan);
  void SizeClass(const SlackQuestion& question, const View& of, ClassSlack* slack, SlackPlan* plan);
  // Both tell whether there is more than wanted.
  bool SetReserve(const std::string& owner, const std::vector<CpuMemory>& reserve, bool take_away,
                  SlackPlan* plan);
  bool SetStandard(const SlackOptions& options, const CpuMemory& room, bool take_away,
                   const ClassSlack& slack, SlackPlan* plan);
  void PlaceClass(const std::string& owner, const std::vector<int32_t>& classes, SlackPlan* plan);
  void AskForClass(const SlackOptions& options, const View& of, GrowthSketch* sketch, ClassSlack* slack);
  void SumUp(const View& of, ClassSlack* slack) const;
  void Grow(const PlaceholderGroup& group, int64_t count, SlackPlan* plan);
  void Shrink(const PlaceholderGroup& group, int64_t count, SlackPlan* plan);
  int64_t CountOf(const PlaceholderGroup& group) const;
  // By kind and size.
  std::vector<PlaceholderGroup> GroupsOf(const std::string& owner) const;

  SlackRooms rooms_;
  PlaceholderSet set_;
  LabelKeys set_labels_;                // by which the owners of its placeholders are named
  std::optional<SlackState> restored_;  // to be taken over by the next plan
  absl::btree_map<std::string, int32_t> class_ids_;
  std::vector<size_t> filled_;  // slots that pods which wait were put on, for the last plan
  int64_t next_id_ = 1;
  absl::btree_map<std::string, int64_t> excess_since_s_;  // by class
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_PLANNER_H_
