// Finds nodes for pods without walking those that cannot take them.
#ifndef LOADLINE_CORE_FIT_FIT_SEARCH_H_
#define LOADLINE_CORE_FIT_FIT_SEARCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/cluster/snapshot.h"
#include "core/fit/domain_nodes.h"
#include "core/fit/occupied_nodes.h"
#include "core/fit/pod_fit.h"

namespace loadline {

// Number of a pod in a FitSearch.
enum class SearchPod : int32_t {};

// Keeps what it finds out as bits of nodes in search order, so that what is left over is found 64 nodes at a
// time:
//
// * for each count that pods demand to be empty or occupied, where it is: worked out once for all pods that
//   have the demand, also for those which are asked about for the first time;
// * for each pod the nodes that refused it for other reasons, until something happens that may change that: a
//   pod left the node, or DomainCounts::changed() named the domain that was out of balance;
// * per 64 nodes how much the freest of them has left.
//
// Cost of a question: O(events since the last one + (1 + demands) * nodes / 64 + nodes that fit or are
// refused for the first time). The answers are those of PodFit::Fits() for each node in order. Not
// thread-safe.
class FitSearch {
 public:
  // Searches in this order, in name order where it is empty; nodes that come later are searched last.
  // `snapshot` and `options` outlive the search. Cost: none until the first Add(), then O(nodes).
  FitSearch(Snapshot* snapshot, const FitOptions* options, std::vector<NodeIndex> order = {});
  // Searches only nodes that come later, in the order in which they come.
  static FitSearch OfNewNodes(Snapshot* snapshot, const FitOptions* options);

  // Forgets which nodes refused pods: cheaper than to follow how many pods and nodes went, after Revert().
  void StartOver();

  // Prepares a pod to be asked about, once for all pods like it. Cost: that of PodFit. Of each call `budget`,
  // nullptr for none, takes work and memory; where it ends, a question may find less than there is, so that
  // the caller has to ask the budget. Nothing is kept of a pod for which it does not suffice: it fits
  // nowhere.
  SearchPod Add(IncomingPod pod, WorkBudget* budget = nullptr);
  PodFit& fit(SearchPod pod) {
    Pod* const kept = At(pod);
    return kept != nullptr ? kept->fit : *not_kept_;
  }

  // The first node in search order where the pod fits.
  std::optional<NodeIndex> FirstFit(SearchPod pod, WorkBudget* budget = nullptr);
  // All nodes where it fits, in search order.
  void AllFits(SearchPod pod, std::vector<NodeIndex>* nodes, WorkBudget* budget = nullptr);

 private:
  // Resources whose free amounts are known per 64 nodes.
  static constexpr size_t kIndexed = 3;

  // Nodes that do not meet a demand kBalanced, all of a domain together.
  struct Block {
    const DomainCounts* counts;
    const DomainNodes* nodes;
    int64_t journal;            // how far changed() was read
    NodeBits refused;           // by position
    std::vector<bool> domains;  // refused as a whole
  };
  struct Pod {
    Pod(Snapshot* snapshot, IncomingPod pod, const FitOptions* options, WorkBudget* budget)
        : fit(snapshot, std::move(pod), options, budget) {}
    PodFit fit;
    int64_t journal = -1;   // how far Snapshot::freed() was read
    NodeBits open;          // by position: not known to be refused for itself
    size_t first_open = 0;  // no word before it has a bit
    std::array<int64_t, kIndexed> requests = {};
    // The sets of nodes that its demands are kept as; of the first `demands_seen`.
    size_t demands_seen = 0;
    std::vector<OccupiedNodes*> empty;
    std::vector<OccupiedNodes*> occupied;
    bool waives_occupied = false;
    std::vector<Block> blocks;
  };

  // nullptr: not kept.
  Pod* At(SearchPod pod) {
    return pods_[CheckedIndex("pod of the search", static_cast<size_t>(pod), pods_.size())].get();
  }

  struct OnlyNew {};
  FitSearch(Snapshot* snapshot, const FitOptions* options, OnlyNew);

  void Start();
  size_t words() const { return (order_.size() + 63) / 64; }
  // False: the budget has ended, and the pod is not to be asked about.
  bool CatchUp(Pod* pod, WorkBudget* budget);
  void CatchUpOrder();
  bool ReadDemands(Pod* pod, WorkBudget* budget);
  bool CatchUpDemands(Pod* pod, WorkBudget* budget);
  void CatchUpBlocks(Pod* pod);
  void Open(Pod* pod, size_t position);
  bool MayFit(const Pod& pod, size_t word) const;
  // The bits of nodes in a word that are to be asked; closes the word when none of them has enough left.
  uint64_t Candidates(Pod* pod, size_t word);
  // Asks one node, and remembers a refusal.
  bool Ask(Pod* pod, size_t position);
  void Remember(Pod* pod, size_t position, const std::optional<Blocked>& blocked);
  void RaiseFree(NodeIndex node);
  void RecomputeFree(size_t word);
  // Returns the position of a node in order_; kNowhere if it is not searched.
  size_t PositionOf(NodeIndex node) const {
    return IndexOf(node) < positions_.size() ? positions_[IndexOf(node)] : kNowhere;
  }

  Snapshot& snapshot_;
  const FitOptions& options_;
  std::vector<NodeIndex> order_;
  bool started_ = true;                                   // what follows is filled in
  std::vector<size_t> positions_;                         // by node; kNowhere: not searched
  std::vector<std::array<int64_t, kIndexed>> most_free_;  // by word: at least what its freest node has left
  int64_t free_journal_ = 0;
  absl::flat_hash_map<const TopologyKey*, std::unique_ptr<DomainNodes>> domain_nodes_;
  absl::flat_hash_map<const DomainCounts*, std::unique_ptr<OccupiedNodes>> occupied_;
  std::vector<std::unique_ptr<Pod>> pods_;  // nullptr: not kept
  std::unique_ptr<PodFit> not_kept_;        // for all of those
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_FIT_SEARCH_H_
