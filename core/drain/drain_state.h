// The memory of scale-down between two loops.
#ifndef LOADLINE_CORE_DRAIN_DRAIN_STATE_H_
#define LOADLINE_CORE_DRAIN_DRAIN_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/resource_names.h"
#include "core/cluster/shapes.h"
#include "core/drain/vanished_pods.h"

namespace loadline {

enum class NodeReason;  // see node_reason.h

// The planned target of a pod of a node that is to be removed. Pods are known by their UID; by
// "namespace/name" where they have none, placeholders by "placeholder/", their name, and what they
// ask for: rooms are numbered anew in each loop.
struct DestinationHint {
  std::string pod;
  std::string node;
  friend bool operator==(const DestinationHint&, const DestinationHint&) = default;
};

// A node that may go, in the order in which nodes were accepted.
struct UnneededNode {
  std::string node;
  std::string uid;  // of the node; a new node of the same name is another one. Empty: not known
  int64_t since_s = 0;
  // One for each pod that moves.
  std::vector<DestinationHint> hints = {};
  // Its budgets did not allow all of its pods at once.
  bool risky = false;
  // The engine said that it is to be removed at once.
  bool start = false;
  friend bool operator==(const UnneededNode&, const UnneededNode&) = default;
};

// A node whose deletion was started: it is neither source nor destination.
struct DeletingNode {
  std::string node;
  std::string uid;
  int64_t since_s = 0;
  // It has, or had, pods to move.
  bool drain = false;
  std::vector<DestinationHint> hints = {};
  // It was risky when it was planned: no other drain starts until it is gone.
  bool risky = false;
  // The counts of the last loop are without it and its pods.
  bool left_out = false;
  friend bool operator==(const DeletingNode&, const DeletingNode&) = default;
};

// A node for which a drain was tried in vain.
struct FailedNode {
  std::string node;
  std::string uid;
  NodeReason reason{};  // kNone
  // The pod that keeps it there: "namespace/name".
  std::string pod;
  int64_t since_s = 0;  // when it failed for this reason first
  friend bool operator==(const FailedNode&, const FailedNode&) = default;
};

// A pod whose eviction was accepted; a replacement may still be missing.
struct RecentEviction {
  PodShape shape;  // with labels and traits
  std::string name;
  std::string uid;
  std::string node;  // where it was
  int64_t at_s = 0;
  // The names that the resource ids of the shape refer to: the cluster may have got other names since.
  ResourceNames names = {};
};

// All of it may be empty. Times in seconds since 1970.
struct DrainState {
  std::vector<UnneededNode> unneeded;
  std::vector<DeletingNode> deleting;
  std::vector<FailedNode> failed;
  std::vector<RecentEviction> recent_evictions;
  // The first node that was not evaluated for want of time; empty: all were.
  std::string resume_at;
  // When the last loop was; -1: there was none.
  int64_t at_s = -1;
  // Nodes that were there and were not about to go, and their pods.
  int64_t nodes = -1;
  std::vector<OwnerPods> pods;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DRAIN_STATE_H_
