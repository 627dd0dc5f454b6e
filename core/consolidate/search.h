// Looks for moves until none is left that pays.
#ifndef LOADLINE_CORE_CONSOLIDATE_SEARCH_H_
#define LOADLINE_CORE_CONSOLIDATE_SEARCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/consolidate/trial.h"
#include "core/consolidate/trial_cluster.h"

namespace loadline {

// The memory of a node that was tried in vain.
struct TriedNode {
  uint64_t fingerprint = 0;  // of the node with its pods
  int64_t at_s = 0;          // when it was tried
  int64_t until_s = 0;       // until when it is not tried again as it is
  double share = 0;          // its worth over its price
  KeepReason reason = KeepReason::kNoCheaperPlace;
};
using TriedNodes = absl::flat_hash_map<std::string, TriedNode>;  // by name

// Rounds over nodes whose pods are worth less than they cost, the emptiest first: each alone into room that
// is there; then, in blocks of several sizes, onto cheaper new nodes. A round removes no node that took pods
// or was added in it; the last round finds nothing, so that whoever follows the moves and asks again gets
// none. Nodes of `tried` that have not changed are not tried by themselves. Order is by pods and cost of
// nodes, and by names only between equals. Not thread-safe.
class Search {
 public:
  // `tried` is read, and gets what is tried in vain now.
  Search(TrialCluster* trial_cluster, TriedNodes* tried);

  // Returns the moves in the order in which they were made.
  std::vector<MadeMove> Run();
  // Returns the reason for which a node stays; nullopt: the node was not tried.
  std::optional<KeepReason> ReasonOf(NodeIndex node) const;

 private:
  struct Candidate {
    NodeIndex node;
    double share;      // worth / price
    uint64_t content;  // a hash of what it holds
    bool fresh;        // not tried in vain as it is
  };

  bool Round();
  std::vector<Candidate> Candidates();
  void SetOrder();
  bool ReplaceEmptiest(std::vector<Candidate>* candidates);
  void Touch(const MadeMove& move);
  bool RemoveEach(std::vector<Candidate>* candidates);
  bool ReplaceBlocks(std::vector<Candidate>* candidates, size_t size);
  bool ReplaceAll();
  bool Try(const std::vector<NodeIndex>& go, bool may_add);
  void Record(MadeMove move);
  bool SmallEnough(const std::vector<NodeIndex>& go);
  size_t RootOf(size_t move) const;
  bool MayGo(NodeIndex node) const;
  bool Promises(const std::vector<Candidate>& block) const;
  uint64_t ContentOf(NodeIndex node) const;
  bool IsFresh(NodeIndex node, double share) const;
  int64_t UntilWhen(NodeIndex node, KeepReason reason) const;
  void Remember();

  TrialCluster& trial_cluster_;
  TriedNodes& tried_;
  const bool large_;  // too many nodes to replace all at once
  Trial trial_;
  std::vector<MadeMove> moves_;
  StrongVector<NodeIndex, std::optional<KeepReason>> reasons_;
  StrongVector<NodeIndex, bool> touched_;  // took pods or came in this round
  // The moves that brought a node or put pods there. One that takes it off again becomes one with them.
  StrongVector<NodeIndex, std::vector<size_t>> users_;
  std::vector<size_t> parent_;  // by move: one that it is one with
  std::vector<int64_t> sizes_;  // of these: nodes of the cluster that go
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_SEARCH_H_
