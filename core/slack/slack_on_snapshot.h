// Pods that wait and copies of pods, put onto nodes by all of the scheduler's filters.
#ifndef LOADLINE_CORE_SLACK_SLACK_ON_SNAPSHOT_H_
#define LOADLINE_CORE_SLACK_SLACK_ON_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/cluster/snapshot.h"
#include "core/fit/fit_search.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_growth.h"
#include "core/slack/slack_plan.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// Pods that wait for a node and differ in name only.
struct SlackPending {
  IncomingPod pod;
  int64_t count = 0;
  // Where they are expected; nullopt: see SlackOnSnapshot::PlaceWaiting().
  std::optional<Slot> node = std::nullopt;
};

// One question. The snapshot is as before when the object goes.
class SlackOnSnapshot {
 public:
  // `snapshot`: of the cluster that `rooms` have caught up with. `set` has the nodes of the rooms. All of it
  // outlives the object.
  SlackOnSnapshot(Snapshot* snapshot, const FitOptions* options, const SlackRooms* rooms,
                  PlaceholderSet* set);
  ~SlackOnSnapshot() { snapshot_.Revert(); }
  SlackOnSnapshot(const SlackOnSnapshot&) = delete;
  SlackOnSnapshot& operator=(const SlackOnSnapshot&) = delete;

  // Step B: puts pods that wait, by priority, then as they come, each on the first node that takes it, the
  // fullest node first, or on the node that it states; placeholders do not count. Appends the slots that are
  // fuller now, with repeats.
  void PlaceWaiting(std::vector<SlackPending> waiting, std::vector<size_t>* filled);

  // Keeps the copies of a pod where they still may be, and puts others onto nodes: where they were last, else
  // where they leave least. Returns how many found a node.
  int64_t PlaceMirrored(const MirroredPod& pod);

  // Asks for nodes for the copies that have none, each on the smallest class that takes it. `shapes`: what a
  // new node of a class is, by position in the sketch. Sets status and reason, and adds to `homes` how many
  // are asked of each class.
  void AskFor(const std::vector<NodeShape>& shapes, GrowthSketch* sketch, MirroredSlack* mirrored,
              absl::btree_map<std::string, int64_t>* homes);

 private:
  void Place(NodeIndex node, int32_t shape, const CpuMemory& size, std::vector<size_t>* filled);
  SearchPod Prepare(const MirroredPod& pod);
  std::optional<size_t> TightestFit(SearchPod pod, const CpuMemory& size);
  // The number of a node to come that takes the pod now, from `*first` on; adds one if need be. Those that
  // will not take the next copy either are left behind.
  std::optional<size_t> NodeToCome(PodFit* fit, const CpuMemory& size, const std::vector<NodeShape>& shapes,
                                   size_t* first, GrowthSketch* sketch);
  std::string WhyNot(PodFit* fit, const CpuMemory& size, const std::vector<NodeShape>& shapes,
                     const GrowthSketch& sketch, bool* fits_some);

  Snapshot& snapshot_;
  const SlackRooms& rooms_;
  PlaceholderSet& set_;
  std::optional<FitSearch> search_;
  absl::btree_map<std::string, SearchPod> prepared_;  // by key of the pod
  std::vector<NodeIndex> to_come_;                    // by number of the sketch
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_ON_SNAPSHOT_H_
