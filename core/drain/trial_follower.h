// Updates the trial cluster to the cluster of the next call.
#ifndef LOADLINE_CORE_DRAIN_TRIAL_FOLLOWER_H_
#define LOADLINE_CORE_DRAIN_TRIAL_FOLLOWER_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/drain/drain_call.h"
#include "core/drain/drain_trial.h"
#include "core/drain/planned_node.h"

namespace loadline {

// Keeps the trial cluster, with the moves of the plan applied, and decides whether the next call can use it
// again.
//
// It can where pods ask for room only. Then the trial cluster is the same as if each node of the plan had
// been placed in its turn: leaving one out changes nothing for those after it, so that only what was touched
// has to be placed again. It cannot
//   * where pods look at each other, or at volumes: a pod that leaves may make the place of another one
//   unfit;
//   * where pods of nodes being deleted, or replacements of evicted ones, were placed before the plan, or are
//     to be;
//   * where a pod that was to move asks for something else now: it may need room that nodes behind its own in
//     the plan have taken.
// Then all moves are reverted, or the trial cluster is built anew where pods depend on others, and the plan
// is known by names. Not thread-safe.
class TrialFollower {
 public:
  // Slots of nodes that changed since the last call; nullopt: all may have.
  using Changes = std::optional<std::span<const Slot>>;
  struct Followed {
    // The state of each node of the plan, in its order.
    std::vector<FormerEntry> formers;
    Changes changes;
  };

  // Forgets the cluster. To be called where what `planned` was is no longer known.
  void Reset();
  // Updates the trial cluster to the cluster of the call. `planned`: the nodes whose moves are applied to it.
  // Cost: O(what changed); O(nodes + pods on nodes that moves touched) where moves are reverted; O(pods)
  // where it is built anew.
  Followed Follow(const DrainCall& call, std::vector<PlannedNode> planned);
  // Notes that the trial cluster has other moves than those of the plan: the next call builds it anew.
  void Spoil() { holds_plan_ = false; }

  // Checks the trial cluster, and that it has the moves of `planned`, unless Spoil() was called. For tests.
  void CheckConsistent(std::span<const PlannedNode> planned) const;

  // Returns about how much memory the counts of the trial cluster take.
  int64_t count_bytes() const {
    return trial_cluster_ == nullptr ? 0 : trial_cluster_->snapshot().count_bytes();
  }

  // After the first Follow().
  DrainTrial& trial() { return *trial_cluster_; }
  const DrainTrial& trial() const { return *trial_cluster_; }

  // Returns the kind of a pod in the trial cluster.
  int32_t KindOf(const DrainCall& call, Slot slot, PodRef pod);
  // Returns a node of the plan, with names in place of slots.
  FormerNode ByNames(const PlannedNode& planned) const;
  // Undoes the moves of nodes.
  void Withdraw(const DrainCall& call, std::span<const PlannedNode> nodes);

 private:
  // A placeholder as it is remembered.
  struct SeenPlaceholder {
    std::string node;
    std::string name;
    uint64_t shape = 0;  // its fingerprint
    friend auto operator<=>(const SeenPlaceholder&, const SeenPlaceholder&) = default;
  };

  static std::vector<SeenPlaceholder> Seen(std::span<const DrainPlaceholder> placeholders);
  bool CanFollow(const DrainCall& call) const;
  // Returns whether the result of Rebuild() can be had without reading all of the cluster.
  bool CanClear(const DrainCall& call) const;
  void Clear(const DrainCall& call, std::span<const Slot> changes);
  // The node of an occupied slot.
  NodeIndex NodeIn(Slot slot) const;
  std::vector<FormerEntry> Update(const DrainCall& call, std::vector<PlannedNode> planned,
                                  std::span<const Slot> changes);
  // Returns the slots of nodes whose placeholders differ from those in the trial cluster, and of those in the
  // plan that move placeholders of which the numbers are other ones.
  std::vector<Slot> WithOtherPlaceholders(const DrainCall& call, std::span<const PlannedNode> planned) const;
  bool AsksOtherwise(const DrainCall& call, const PlannedNode& planned);
  void Rebuild(const DrainCall& call);
  // Puts placeholders on nodes that were read anew, and keeps moved pods off those where nothing may go.
  void Prepare(const DrainCall& call, std::span<const Slot> slots);

  std::unique_ptr<FitOptions> fit_;
  std::unique_ptr<DrainTrial> trial_cluster_;
  const ClusterState* cluster_ = nullptr;
  int64_t journal_ = 0;      // ClusterState::change_count() of the last call
  bool holds_plan_ = false;  // the trial cluster has the moves of the plan and no others
  std::vector<SeenPlaceholder> placeholders_seen_;  // of the last call, in its order
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_TRIAL_FOLLOWER_H_
