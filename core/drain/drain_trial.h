// The cluster that drains are tried out on.
#ifndef LOADLINE_CORE_DRAIN_DRAIN_TRIAL_H_
#define LOADLINE_CORE_DRAIN_DRAIN_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/drain/disruption_budgets.h"
#include "core/drain/pod_ref.h"
#include "core/fit/fit_search.h"

namespace loadline {

inline constexpr NodeIndex kNoNode{-1};

// A pod, or placeholder, that looks for a place.
struct MovingPod {
  PodRef pod = PodRef::Pod(0);  // of the node that it leaves, where it has one
  int32_t kind = -1;            // of DrainTrial
  NodeIndex to = kNoNode;       // where it was placed
  NodeIndex hint = kNoNode;     // where it is to go if it fits there
  uint64_t key = 0;             // tells pods of a node apart as long as the process lives
  BudgetUse use = {};
  // The priority of a pod of the cluster or of a placeholder.
  int32_t priority = 0;
  bool placeholder = false;
  absl::string_view namespace_name = {};
  absl::string_view name = {};
  absl::string_view uid = {};
};

// The verdicts of nodes that nearly take pods, as far as they are known for one placement of all pods.
struct NearestVerdicts {
  int64_t units = 0;  // left for looking
  absl::flat_hash_map<int32_t, Verdict> of_kind = {};
};

// A trial cluster: a snapshot with the moves of a plan, and a search for places in it.
//
// Pods differ only by what filters read of them: many owners whose pods ask for the same have one kind. A
// placed pod has no name, unless it has volumes that its name decides.
class DrainTrial {
 public:
  // `state` and `fit` outlive this.
  DrainTrial(const ClusterState& state, const FitOptions* fit);

  Snapshot& snapshot() { return snapshot_; }
  const Snapshot& snapshot() const { return snapshot_; }

  // The number of a shape for filters: of a pod of the state; or of a placeholder or a pod that was evicted,
  // whose resources are matched by name, those that the state does not have being left out.
  int32_t KindOf(int32_t state_shape);
  int32_t KindOf(const IncomingPod& pod);
  // A measure of what a pod asks for; a core counts as 4 GiB.
  int64_t size(int32_t kind) const { return At(kind).size; }
  // The number of its shape in the snapshot.
  int32_t shape(int32_t kind) const { return At(kind).shape_id; }
  // Returns whether what fits may depend on other pods or volumes, so that a pod which leaves may make the
  // place of another one unfit, as far as pods are known.
  bool pods_depend() const { return pods_depend_; }
  // Takes note of pods that are new.
  void NoteNewPods();

  // Places are looked for in this order; nodes that it leaves out come last.
  void SetOrder(std::vector<NodeIndex> order);

  // Puts a pod there for good, whether or not it fits, and not as one that moved.
  void AddPlaceholder(NodeIndex node, int32_t kind);

  // The order in which pods are placed. Placeholders give way to pods, and pods to those of higher priority.
  // Pods that have a place already keep it before others take it; a big pod placed late finds only fragments.
  // Then by name.
  void Sort(std::vector<MovingPod>* pods) const;

  // Places pods in their order, each on its node `hint` if it fits there, else where it fits first; with
  // `hints_only` nowhere else. Takes one unit of work per pod, more for each node that is looked at, and more
  // work and memory for the first pod of a kind, and gives up when the budget ends. Unless `may_stop` is
  // false: then only what the pods themselves cost is taken.
  enum class Outcome { kPlaced, kNoPlace, kStopped };
  struct Answer {
    Outcome outcome = Outcome::kPlaced;
    size_t pod = 0;  // kNoPlace: the one that fits nowhere
  };
  Answer Place(std::span<MovingPod> pods, bool hints_only, WorkBudget* budget, bool may_stop);
  // The pods of `node` go as far as they are in `pods`, and nothing may be placed on it; they are placed as
  // above. Nothing changed unless all were.
  Answer Drain(NodeIndex node, std::span<MovingPod> pods, bool hints_only, WorkBudget* budget, bool may_stop);
  // Returns the verdict about one pod of `node` on the node that is closest to taking it: of those that stay,
  // the one whose first filter to refuse is the last. One that fits: some node takes it. A refusal without a
  // filter: a node would, but takes no moved pods. nullopt: none stays, or the units of `known` do not
  // suffice, of which each look at a node takes some.
  std::optional<Verdict> Nearest(NodeIndex node, const MovingPod& pod, NearestVerdicts* known);
  // Same as Drain(), but each pod moves to its node `hint`, where it is known to fit.
  void Repeat(NodeIndex node, std::span<MovingPod> pods);
  // A pod of this kind that was placed on the node is gone again.
  void TakeBack(int32_t kind, NodeIndex node);
  // Makes the nodes what the cluster state says, without moved pods. Outside of forks.
  void Reload(std::span<const Slot> slots);
  // Slots of nodes that have taken moved pods, or are leaving.
  std::vector<Slot> Touched() const;
  // Forgets the order and what the search has found out.
  void ForgetSearch();

  // Checks the snapshot, the kinds, and that no node has taken more than it has. For tests.
  void CheckConsistent() const;

  // Moved pods that a node has taken.
  int32_t received(NodeIndex node) const {
    return IndexOf(node) < received_.size() ? received_[IndexOf(node)] : 0;
  }

 private:
  struct Kind {
    PodShape shape;
    int32_t shape_id;  // in the snapshot
    int64_t size;
    bool by_name;    // it has volumes that the name of the pod decides
    bool only_room;  // nothing but room decides, as far as the pod itself says
    std::optional<SearchPod> handle;
  };

  // Other nodes: open for moved pods, closed for them, or about to be deleted.
  enum class Standing { kOpen, kClosed, kLeaving };
  struct Near {
    NodeIndex node;
    Verdict verdict;
  };

  Kind& At(int32_t kind) { return kinds_[CheckedIndex("kind", static_cast<size_t>(kind), kinds_.size())]; }
  const Kind& At(int32_t kind) const {
    return kinds_[CheckedIndex("kind", static_cast<size_t>(kind), kinds_.size())];
  }
  int32_t KindOfSnapshotShape(int32_t shape);
  // Each call charges its search to `budget` (nullptr: no limit). Once the budget has ended, the answer
  // means nothing.
  std::optional<SearchPod> HandleOf(const MovingPod& pod, WorkBudget* budget);
  bool Pay(const MovingPod& pod, WorkBudget* budget) const;
  void Put(MovingPod* pod, NodeIndex node);
  void Unplace(std::span<MovingPod> pods);
  bool FitsOn(const MovingPod& pod, NodeIndex node, WorkBudget* budget);
  bool HasPlaceAlone(const MovingPod& pod, WorkBudget* budget);
  std::optional<Verdict> NearestOf(NodeIndex node, PodFit* fit);
  std::optional<Near> NearestOf(NodeIndex node, Standing standing, PodFit* fit);
  bool PlaceExactly(std::span<MovingPod> pods, int64_t* steps, WorkBudget* budget);
  void Leave(NodeIndex node, std::span<const MovingPod> pods);

  const ClusterState& state_;
  const FitOptions& fit_;
  Snapshot snapshot_;
  std::vector<NodeIndex> order_;
  std::unique_ptr<FitSearch> search_;
  std::vector<Kind> kinds_;
  std::vector<int32_t> kind_of_shape_;  // by shape of the snapshot; -1: not known yet
  bool pods_depend_ = false;
  int32_t shapes_seen_ = 0;
  std::vector<int32_t> received_;  // by node
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DRAIN_TRIAL_H_
