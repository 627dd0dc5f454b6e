// The removal of one node: what is kept of it between two steps, what is seen, and what is to be done.
#ifndef LOADLINE_CORE_REMOVAL_REMOVAL_H_
#define LOADLINE_CORE_REMOVAL_REMOVAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline {

// How far the removal of a node has got.
enum class RemovalStage {
  kTainted,   // until the scheduler has seen the taint; then node and pods are looked at again
  kDraining,  // its pods are evicted, and end
  kDelayed,   // others may ask to wait before the node is deleted
  kReady,     // the others that go with it, or not at all, are not as far
  kMarking,   // it is noted on the node that the cloud is asked
  kMarked,    // that has yet to be noted on others that go with it
  kAsking,    // the cloud is asked
  kEnded,
};

// A pod that is to go before the node does.
struct PodRemoval {
  std::string uid;
  std::string name;             // namespace/name
  int64_t grace_s = 0;          // what it is given to end
  int32_t group = 0;            // of the priority groups; 0 where there are none
  bool best_effort = false;     // that it is not evicted is no failure, and nobody waits for its end
  bool accepted = false;        // its eviction; or it ends already
  bool despite_budget = false;  // it is to be deleted
  int64_t attempts = 0;         // to evict it
  int64_t until_ms = 0;         // how long it is tried, since the first one
  int64_t next_ms = 0;          // when it is tried again
};

// Kept from step to step.
struct Removal {
  RemovalStage stage = RemovalStage::kTainted;
  bool empty = false;    // no pod of it was to move
  int64_t since_ms = 0;  // of the stage: when the node was tainted, or its deletion first delayed
  // The pods that are left, by group.
  std::vector<PodRemoval> pods;
  // Since when all pods of the first group are accepted; -1: they are not. And how long after that it was
  // last looked whether they have ended.
  int64_t accepted_ms = -1;
  int64_t looked_ms = 0;
};

// The state of a node: whether it is still the one that was tainted, and ours.
enum class NodeStanding {
  kOurs,
  kGone,        // there is none of its name any more
  kReplaced,    // there is another one of its name
  kNotOurs,     // somebody else has taken it over, or the taint away
  kUnreadable,  // nobody knows
};

// The node, as the client has just observed it.
struct SeenNode {
  NodeStanding standing = NodeStanding::kOurs;
  std::string error;                // why it is not kOurs
  std::vector<std::string> delays;  // annotations that ask to wait before it is deleted
};

// The plan for one pod.
enum class PlannedPod {
  kMoves,
  kStays,
  kNew,      // it has come since then
  kChanged,  // what plans read of it has changed since then
};

// A pod on the node, as it is now.
struct RemovalPod {
  std::string uid;
  std::string name;  // namespace/name
  PlannedPod planned = PlannedPod::kMoves;
  int32_t priority = 0;
  int64_t grace_s = 30;              // that it states
  std::optional<int64_t> deleted_s;  // it ends since then
  bool finished = false;
  bool mirror = false;
  bool placeholder = false;  // it only keeps room free
  bool daemon_set = false;   // of a DaemonSet that exists, or says that it is like one
  // The pod's own annotation about being evicted as one of a DaemonSet.
  std::optional<bool> evict_daemon_set;
};

// The pods of the node, as the client has just observed them.
struct SeenPods {
  std::string error;  // why they cannot be read; empty: they can
  std::vector<RemovalPod> pods;
};

// The answer of the API server to an eviction, or to a deletion in its place.
struct EvictionAnswer {
  enum class Cause { kOther, kBudget, kNamespaceEnds };
  std::string uid;
  int32_t code = 200;  // of HTTP; 0: there was no answer
  Cause cause = Cause::kOther;
  int64_t retry_after_s = 0;  // asked for by the server
  std::string error;
};

// How the note on a node ended.
struct MarkOutcome {
  NodeStanding standing = NodeStanding::kOurs;  // kOurs: it was noted
  std::string error;
};

// How the cloud answered.
struct AskOutcome {
  enum class Result { kTaken, kRefused, kUnknown };
  Result result = Result::kTaken;
  std::string error;
};

// Others of its group that go with the node.
struct RemovalSiblings {
  bool atomic = false;     // or not at all
  int64_t not_ready = 0;   // they are before kReady
  int64_t not_marked = 0;  // they are before kMarked
  std::string failed;      // why one of them stays; empty: none does
  // The time since when the first one is kReady, where nodes that are not atomic are gathered for one call;
  // -1: not yet.
  int64_t gathered_since_ms = -1;
};

// The observations since the last step, and the outcomes of its orders.
struct RemovalFacts {
  std::optional<SeenNode> node;
  std::optional<SeenPods> pods;
  std::vector<EvictionAnswer> evictions;
  std::optional<MarkOutcome> marked;
  std::optional<AskOutcome> asked;
  RemovalSiblings siblings;
};

// The order to evict one pod.
struct EvictionOrder {
  std::string uid;
  int64_t grace_s = 0;
  bool first = false;           // it is tried for the first time
  bool best_effort = false;     // of a DaemonSet, or expendable: nothing needs a place elsewhere
  bool despite_budget = false;  // to be deleted in place of being evicted
};

// How a removal ends; the first one is the only success.
enum class RemovalResult { kDeleted, kFailedToEvict, kFailedToDelete, kInternal };

// The end of a removal, and what the client has to undo.
struct RemovalEnd {
  RemovalResult result = RemovalResult::kDeleted;
  std::string error;
  // Mark and taint are to be taken away again, unless somebody else has its machine deleted.
  bool give_back = false;
  // The nodes that are removed with it stay as well.
  bool fails_siblings = false;
};

// The orders of a step, to be carried out in this order; then the next step is taken, with what was seen. If
// an order is not for now, but for due_ms, something about its siblings may change before.
struct RemovalOrders {
  std::vector<EvictionOrder> evictions;
  bool mark = false;  // note on the node that the cloud is asked
  bool ask = false;   // ask the cloud, for all that go with it at once
  int64_t due_ms = 0;
  bool look_at_node = false;  // at due_ms
  bool look_at_pods = false;
  std::optional<RemovalEnd> end;
  // The label of each reported answer in a count: "accepted", or why not.
  std::vector<absl::string_view> counted;
  std::string note;  // for a log; empty: none
};

}  // namespace loadline

#endif  // LOADLINE_CORE_REMOVAL_REMOVAL_H_
