// One move, applied to the trial cluster if it pays.
#ifndef LOADLINE_CORE_CONSOLIDATE_TRIAL_H_
#define LOADLINE_CORE_CONSOLIDATE_TRIAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/consolidate/trial_cluster.h"
#include "core/pack/packing.h"

namespace loadline {

// The changes of a move, complete in itself after those before it.
struct MadeMove {
  std::vector<NodeIndex> removed;
  std::vector<NodeIndex> added;
  std::vector<std::pair<MoverIndex, NodeIndex>> moved;  // mover, and where it was before
};

// The outcome of the attempt to make a move.
enum class TrialEnd {
  kMade,
  kNoPlace,         // some pod has no other place within the limits
  kNotCheaper,      // what would have to come costs as much
  kSavesTooLittle,  // it would be cheaper, but by less than the options ask for
  kGroupAtMinimum,
  kClusterAtMinimum,
  kCutShort,          // the budget ended
  kTooFewSpotGroups,  // it could be made if spot nodes might come; see least_spot_groups
};

// Makes moves, one after the other. Not thread-safe.
class Trial {
 public:
  // `exact_work`: units of work that one packing may take to look for the best.
  Trial(TrialCluster* trial_cluster, int64_t exact_work)
      : trial_cluster_(*trial_cluster), exact_work_(exact_work) {}

  void set_exact_work(int64_t exact_work) { exact_work_ = exact_work; }

  // Removes nodes, each with pods that leave, and finds places for these: in room that is there, largest
  // first, and with `may_add` on the cheapest new nodes for the rest. All filters hold for each placement.
  // Unless the move saves what the options ask for, nothing has changed. Where parts of it have nothing to do
  // with each other, each is a move, and those are left out that do not pay by themselves. With `good_types`
  // only new nodes of the best types are added, where these take the pods: what is free on them is of use to
  // moves that follow. Cost: O(pods of the nodes) placements, and a packing.
  void UseGoodTypes(bool good_types) { good_types_ = good_types; }
  TrialEnd Make(const std::vector<NodeIndex>& go, bool may_add, std::vector<MadeMove>* made);

 private:
  struct Place {
    MoverIndex mover;
    NodeIndex to = kNoTarget;
  };

  // The nodes of the parts of a move, each part a list.
  using Parts = std::vector<std::vector<NodeIndex>>;

  TrialEnd MakeSome(std::vector<NodeIndex> go, bool may_add, std::vector<MadeMove>* made);
  TrialEnd MakeOnce(const std::vector<NodeIndex>& go, bool may_add, Parts* parts);
  TrialEnd Arrange(const std::vector<NodeIndex>& go, bool may_add);
  bool SpotMayCome() const;
  bool PaysWithSpot(const std::vector<NodeIndex>& go);
  void TakeOff(const std::vector<NodeIndex>& go);
  bool UseRoom();
  TrialEnd PutAsScheduled(const std::vector<NodeIndex>& go, bool may_add);
  void BringAgain(const std::vector<NodeIndex>& go, const std::vector<GroupIndex>& groups);
  std::optional<NodeIndex> FindRoom(MoverKindIndex kind);
  TrialEnd AddNodes(double most_cost);
  bool PackRest(double most_cost);
  std::vector<GroupIndex> GroupsFor(const std::vector<MoverKindIndex>& kinds, double most_cost);
  std::vector<GroupIndex> GroupsOfNodes(const Packing& packing,
                                        const std::vector<std::vector<GroupIndex>>& groups_of_type,
                                        const std::vector<MoverKindIndex>& kind_of_item);
  bool TryOut(const PackedNodes& run, const std::vector<MoverKindIndex>& kind_of_item, NodeIndex node);
  void PlacePacked(const Packing& packing, const std::vector<GroupIndex>& groups,
                   std::vector<std::vector<size_t>> places_of_item);
  bool AddForOne(Place* place, double most_cost);
  void Drop(NodeIndex node);
  void DropUnused();
  void Begin();
  NodeIndex Bring(GroupIndex group);
  void Put(Place* place, NodeIndex node);
  // The room of a group for new nodes while the old ones are there.
  int64_t RoomOf(GroupIndex group) const;
  int64_t MostOn(MoverKindIndex kind, GroupIndex group);
  double AddedCost() const;
  MoveTerms TermsOf(const std::vector<NodeIndex>& go) const;
  Parts PartsThatPay(const std::vector<NodeIndex>& go) const;
  void Undo(const std::vector<NodeIndex>& go);
  void Keep(const Parts& parts, std::vector<MadeMove>* made);

  TrialCluster& trial_cluster_;
  int64_t exact_work_;
  bool good_types_ = false;
  double spot_usd_ = 0;  // of the cheapest spot node that leaves
  bool spot_may_come_ = true;
  bool ignores_spot_rule_ = false;  // the attempt only finds out whether least_spot_groups decides
  std::vector<Place> places_;       // of the pods that leave, largest first
  std::vector<NodeIndex> added_;
  StrongVector<GroupIndex, int64_t> added_of_;
  // The highest priority of the groups that take pods of a kind, during one packing; see MostOn().
  absl::flat_hash_map<MoverKindIndex, std::optional<int64_t>> highest_;
  StrongVector<MoverKindIndex, size_t> from_;  // where the search for room continues
  NodeIndex stuck_ = kNoTarget;                // whose pod has no place
  NodeIndex first_new_{0};                     // nodes from here on are those of this move
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_TRIAL_H_
