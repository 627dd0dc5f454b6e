// Pods that wait and copies of pods, put onto nodes by all of the scheduler's filters.
#ifndef LOADLINE_CORE_SLACK_SLACK_ON_SNAPSHOT_H_
#define LOADLINE_CORE_SLACK_SLACK_ON_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/base/work_budget.h"
#include "core/cluster/scoped_fork.h"
#include "core/cluster/snapshot.h"
#include "core/fit/fit_search.h"
#include "core/fit/trial_memory.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_copy_growth.h"
#include "core/slack/slack_growth.h"
#include "core/slack/slack_plan.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// Pods that wait for a node and differ in name only.
struct SlackPending {
  IncomingPod pod;
  int64_t count = 0;
  // The node on which they are expected; nullopt: see SlackOnSnapshot::PlaceWaiting().
  std::optional<Slot> node = std::nullopt;
  // Or on a node to come, of this group of the question.
  std::optional<SlackGroupIndex> group = std::nullopt;
  // They still run, on nodes that leave: they take room, and the slack that they want is counted there.
  bool still_run = false;
};

// Pods that wait and found, or state, the node that they are expected on; or that found none.
struct ExpectedPods {
  const PodShape* shape = nullptr;
  int64_t count = 0;
  std::optional<size_t> slot = {};
  std::optional<SlackGroupIndex> group = {};
  std::string class_name = {};  // of the upcoming node; empty: none
};

// One question. The snapshot is as before when the object is destroyed.
class SlackOnSnapshot {
 public:
  // `snapshot`: of the cluster that `rooms` have caught up with. Pods that give way are taken off it; nodes
  // in `leaving` take no pods, and those of theirs that are in `waiting` are no longer there. `set` has the
  // nodes of the rooms. `budget` has work taken for each node that is looked at, and memory for each pod that
  // looks for one. All but the spans outlives the object.
  SlackOnSnapshot(Snapshot* snapshot, const FitOptions* options, std::span<const Slot> leaving,
                  std::span<const SlackPending> waiting, const SlackRooms* rooms, PlaceholderSet* set,
                  WorkBudget* budget);
  SlackOnSnapshot(const SlackOnSnapshot&) = delete;
  SlackOnSnapshot& operator=(const SlackOnSnapshot&) = delete;

  // Adds the nodes of the sketch that are upcoming anyway. `shapes`: see AskFor().
  void AddComing(const std::vector<NodeShape>& shapes, const GrowthSketch& sketch);

  // Step B: puts pods that wait, by priority, then as they come, each on the first node that takes it, the
  // fullest node first, then those of AddComing(), or on the node that it states; pods that give way do not
  // count. Appends the slots that are fuller now, with repeats. Returns where those are that do not run yet;
  // the shapes are those of `waiting`.
  std::vector<ExpectedPods> PlaceWaiting(std::vector<SlackPending>* waiting, GrowthSketch* sketch,
                                         std::vector<size_t>* filled);

  // To be called once, before copies are placed: placeholders that are no copies stay where they are, and
  // nodes are searched with the fullest first, as they are now.
  void PutPlaceholders();

  // Keeps the copies of a pod where they still may be, and puts others onto nodes: where they were last, else
  // onto the first node that takes them. Returns how many found a node.
  int64_t PlaceMirrored(const MirroredPod& pod);

  // Slots on which copies took more room than their size, with repeats: their nodes are to be put anew before
  // the next plan.
  const std::vector<size_t>& fuller() const { return fuller_; }

  // Asks for nodes for the copies that have none, as a plan of growth buys them for pods that wait: these
  // copies together, in so far as `allowed` says where. Sets status and reason, and adds to `homes` the sizes
  // of those that are asked of each class.
  void AskFor(const NewNodes& new_nodes, const GrowthSketch::Allowed& allowed,
              std::span<MirroredSlack* const> copies, GrowthSketch* sketch,
              absl::btree_map<std::string, std::vector<CpuMemory>>* homes);

 private:
  // Copies that a plan of growth is asked about, with what is asked of nodes to come.
  struct Asking {
    const NewNodes& new_nodes;
    std::span<MirroredSlack* const> copies;
    GrowthSketch* sketch;
    absl::btree_map<std::string, std::vector<CpuMemory>>* homes;
    std::vector<size_t> positions = {};  // in the sketch, of the groups of the plan
    std::vector<int64_t> left = {};      // copies without a node, by position
  };

  // The number of nodes that are sorted for one unit of work, of about 100 ns. Estimated.
  static constexpr int64_t kNodesPerUnit = 4;

  void Close(std::span<const Slot> leaving, std::span<const SlackPending> waiting);
  // The fullest first, by real pods or with placeholders; those that take no placeholders last.
  std::vector<NodeIndex> ByRoom(bool with_placeholders) const;
  // Puts a pod onto an upcoming node; returns the number of that. nullopt: none takes it.
  std::optional<size_t> PlaceOnComing(PodFit* fit, const CpuMemory& size, GrowthSketch* sketch);
  void Place(NodeIndex node, int32_t shape, const CpuMemory& size, std::vector<size_t>* filled);
  SearchPod Prepare(const MirroredPod& pod);
  // Returns whether the rest of the budget pays for the placeholder and for looking at its node.
  bool Pay(const PodFit& fit) { return memory_.Pod(fit.UnitsPerNode()); }
  bool Takes(PodFit* fit, size_t slot, const CpuMemory& size);
  void KeepCopies(const std::vector<int64_t>& ids, PodFit* fit);
  std::optional<size_t> FindNode(SearchPod pod, const CpuMemory& size);
  std::optional<size_t> TightestFit(SearchPod pod, const CpuMemory& size);
  CpuMemory RoomTaken(NodeIndex node, int32_t shape, const CpuMemory& size) const;
  void PutCopy(int64_t id, size_t slot, int32_t shape, bool attach);
  void Charge(size_t slot, const CpuMemory& amount);
  // slack_copy_growth.cc: nodes for copies that have none.
  // Keeps copies off the nodes on which placeholders have no room.
  void CloseWithoutRoom();
  // Adds a node of the sketch that is to come, with the room that it has left.
  void AddToCome(const std::vector<NodeShape>& shapes, size_t node, const GrowthSketch& sketch);
  GrowableGroups GroupsFor(const GrowthSketch::Allowed& allowed, Asking* asking);
  void PutOnToCome(size_t node, size_t copy, int64_t count, Asking* asking);
  // Reserves room for copies on a node that is there and takes them only once nodes to come have theirs, as
  // where copies spread over zones. They get their place when those nodes are there.
  void ReserveRoom(NodeIndex node, size_t copy, int64_t count, Asking* asking);
  // Carries out what a plan of growth found. Returns whether nodes are asked for.
  bool Use(const ScaleUpPlan& plan, Asking* asking);
  std::string WhyNot(PodFit* fit, const CpuMemory& size, const std::vector<NodeShape>& shapes,
                     const GrowthSketch& sketch, bool* fits_some);

  Snapshot& snapshot_;
  const ScopedFork fork_;
  const FitOptions& options_;
  const SlackRooms& rooms_;
  PlaceholderSet& set_;
  WorkBudget& budget_;
  TrialMemory memory_;  // of pods and nodes that are put into the snapshot
  std::optional<FitSearch> search_;
  absl::btree_map<std::string, SearchPod> prepared_;  // by key of the pod
  std::vector<NodeIndex> to_come_;                    // by number in the sketch
  std::vector<size_t> fuller_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_ON_SNAPSHOT_H_
