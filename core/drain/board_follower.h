// How the board follows the cluster from one call to the next.
#ifndef LOADLINE_CORE_DRAIN_BOARD_FOLLOWER_H_
#define LOADLINE_CORE_DRAIN_BOARD_FOLLOWER_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/drain/drain_board.h"
#include "core/drain/drain_call.h"
#include "core/drain/planned_node.h"

namespace loadline {

// Keeps the board, with the moves of the plan on it, and decides whether the next call can use it again.
//
// It can where pods ask for room only. Then the board is as if each node of the plan had been placed in its
// turn: leaving one out changes nothing for those behind it, so that only what was touched has to be placed
// again. It cannot
//   * where pods look at each other, or at volumes: one that goes may take the place of another one away;
//   * where pods of nodes being deleted, or replacements of evicted ones, were placed before the plan, or are
//     to be;
//   * where a pod that was to move asks for something else now: it may need room that nodes behind its own in
//     the plan have taken.
// Then all moves are taken off the board, or it is built anew where pods depend on others, and the plan is
// known by names. Not thread-safe.
class BoardFollower {
 public:
  // Slots of nodes that changed since the last call; nullopt: all may have.
  using Changes = std::optional<std::span<const Slot>>;
  struct Followed {
    // What has become of the nodes of the plan, in its order.
    std::vector<FormerEntry> formers;
    Changes changes;
  };

  // Forgets the cluster. To be called where what `planned` was is no longer known.
  void Reset();
  // Brings the board up to the cluster of the call. `planned`: the nodes whose moves are on it.
  // Cost: O(what changed); O(nodes + pods on nodes that moves touched) where those are taken off; O(pods)
  // where it is built anew.
  Followed Follow(const DrainCall& call, std::vector<PlannedNode> planned);
  // The board holds something else than the moves of the plan: the next call builds it anew.
  void Spoil() { holds_plan_ = false; }

  // Checks the board, and that it has the moves of `planned`, unless it was spoiled. For tests.
  void CheckConsistent(std::span<const PlannedNode> planned) const;

  // After the first Follow().
  DrainBoard& board() { return *board_; }
  const DrainBoard& board() const { return *board_; }

  // The kind of a pod for the board.
  int32_t KindOf(const DrainCall& call, Slot slot, PodRef pod);
  // A node of the plan by names.
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
  // Whether the board can be made what Rebuild() makes of it without reading all of the cluster.
  bool CanClear(const DrainCall& call) const;
  void Clear(const DrainCall& call, std::span<const Slot> changes);
  // The node of an occupied slot.
  NodeIndex NodeIn(Slot slot) const;
  std::vector<FormerEntry> Update(const DrainCall& call, std::vector<PlannedNode> planned,
                                  std::span<const Slot> changes);
  // Slots of nodes that stand on the board with other placeholders than they have now, and of those in the
  // plan that move placeholders of which the numbers are other ones.
  std::vector<Slot> WithOtherPlaceholders(const DrainCall& call, std::span<const PlannedNode> planned) const;
  bool AsksOtherwise(const DrainCall& call, const PlannedNode& planned);
  void Rebuild(const DrainCall& call);
  // Puts placeholders on nodes that were read anew, and keeps moved pods off those where nothing may go.
  void Prepare(const DrainCall& call, std::span<const Slot> slots);

  std::unique_ptr<FitOptions> fit_;
  std::unique_ptr<DrainBoard> board_;
  const ClusterState* cluster_ = nullptr;
  int64_t journal_ = 0;                             // ClusterState::change_count() of the last call
  bool holds_plan_ = false;                         // the board has the moves of the plan and nothing else
  std::vector<SeenPlaceholder> placeholders_seen_;  // of the last call, in its order
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_BOARD_FOLLOWER_H_
