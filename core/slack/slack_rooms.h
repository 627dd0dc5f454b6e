// The room that the nodes of a cluster have left for placeholders, and the sums of their classes: kept from
// one question to the next.
#ifndef LOADLINE_CORE_SLACK_SLACK_ROOMS_H_
#define LOADLINE_CORE_SLACK_SLACK_ROOMS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "core/base/amount.h"
#include "core/base/cpu_memory.h"
#include "core/base/fingerprint_index.h"
#include "core/cluster/cluster_state.h"
#include "core/slack/slack_class.h"

namespace loadline {

// The offer of an empty node of a class: allocatable less the pods that are on each node (of DaemonSets,
// static ones).
struct EmptyNode {
  CpuMemory room;
  int64_t slots = 0;
  friend auto operator<=>(const EmptyNode& a, const EmptyNode& b) {
    return std::tie(a.room.cpu, a.room.memory, a.slots) <=> std::tie(b.room.cpu, b.room.memory, b.slots);
  }
  friend bool operator==(const EmptyNode&, const EmptyNode&) = default;
};

// Pods that are one to all that slack looks at.
struct SlackPod {
  PodShape shape;
  CpuMemory requests;
  // See GivesWay(): it takes no room, and no slack is kept for it.
  bool gives_way = false;
  // It is being deleted: it holds its room, and slack is kept for the pod that takes its place.
  bool terminating = false;
  // It belongs to the node: a DaemonSet that is known runs it, or the kubelet by itself.
  bool overhead = false;
  // Its annotations ask for something, or cannot be read.
  bool wishes = false;
  LabelKeys selects;  // labels that it selects nodes by, but the hostname
  int64_t count = 0;  // on all nodes
};

// Amounts that can be taken off again.
struct ExactSum {
  absl::int128 cpu = 0;
  absl::int128 memory = 0;
  void Add(const CpuMemory& amount, int32_t sign) {
    cpu += absl::int128(amount.cpu) * sign;
    memory += absl::int128(amount.memory) * sign;
  }
  CpuMemory value() const {
    const absl::int128 most = kMaxAmount;
    return {static_cast<int64_t>(std::min(cpu, most)), static_cast<int64_t>(std::min(memory, most))};
  }
};

// The sums of the nodes of one slack class.
struct SlackClass {
  SlackClassKey key;
  int64_t nodes = 0;   // all
  int64_t usable = 0;  // those that take placeholders
  // The sum of what pods on all its nodes request, without those that give way, overhead and pods that
  // terminate: also a cordoned node has pods that need room.
  ExactSum requested;
  // The sum of what the nodes that take placeholders offer, less overhead.
  ExactSum capacity;
  absl::btree_map<EmptyNode, int64_t> empty;   // how many nodes would be such when empty
  absl::flat_hash_map<int32_t, int64_t> pods;  // by number of the SlackPod
  // Returns the offer that most of its nodes have when empty, of several the largest.
  EmptyNode TypicalEmpty() const;
};

// Follows the nodes of a cluster by slack class, with the room of each.
class SlackRooms {
 public:
  struct Node {
    bool present = false;
    // It is of a class. A node of the control plane or a virtual one keeps no slack; its pods count as they
    // do anywhere.
    bool machine = false;
    bool usable = false;
    std::string name;
    std::string class_name;
    CpuMemory allocatable;
    CpuMemory real;  // all pods but those that give way
    int64_t free_slots = 0;
    CpuMemory requested;  // without overhead and pods that terminate
    EmptyNode empty;
    std::vector<std::pair<int32_t, int32_t>> pods;  // SlackPod, count
    bool has_wishes = false;
  };

  // Reads what changed in the cluster, which is the same one each time, and appends the slots whose node may
  // be another one than before to `changed`, with repeats. Of `rules`, `selected` are labels that count as if
  // pods selected nodes by them; `named`: as SlackQuestion::named_machines. True: nodes may be of another
  // class than before, or all is new; then all slots are there. Cost: O(pods on changed nodes); O(nodes)
  // where pods select nodes by another set of labels than before.
  bool CatchUp(const ClusterState& cluster, const SlackClassRules& rules, std::span<const Slot> named,
               std::vector<size_t>* changed);

  const Node& node(size_t slot) const { return nodes_[slot]; }
  size_t node_end() const { return nodes_.size(); }
  // By name. A class without nodes is not there.
  const absl::btree_map<std::string, SlackClass>& classes() const { return classes_; }
  const SlackPod& pod(int32_t number) const { return pods_[static_cast<size_t>(number)]; }
  // Pods of an owner, by its UID, that are on nodes.
  int64_t PodsOf(const std::string& owner_uid) const;
  // The rules that tell classes apart, with the labels that pods select nodes by.
  const SlackClassRules& rules() const { return rules_; }
  // Slots of nodes with pods that wish something.
  const absl::btree_set<size_t>& with_wishes() const { return with_wishes_; }

 private:
  void Clear();
  void Read(const ClusterState& cluster, size_t slot);
  void ReadPods(const ClusterState& cluster, size_t slot, Node* node);
  void Drop(size_t slot);
  void Classify(const ClusterState& cluster, size_t slot);
  void Declassify(size_t slot);
  void CountPods(const Node& node, int32_t sign);
  int32_t PodNumber(const PodShape& shape, const ClusterObjects& objects);
  bool UpdateKeys(const SlackClassRules& rules);
  void Release();

  int64_t journal_ = -1;
  int64_t objects_version_ = -1;
  uint64_t daemon_sets_ = 0;  // hash of those that pods may belong to
  std::vector<Slot> named_;   // as given to CatchUp()
  std::vector<Node> nodes_;   // by slot
  absl::btree_map<std::string, SlackClass> classes_;
  std::vector<SlackPod> pods_;
  FingerprintIndex pod_index_;
  std::vector<int32_t> free_numbers_;
  std::vector<int32_t> unused_;                    // may have no pods left, with repeats
  absl::flat_hash_map<int32_t, int32_t> numbers_;  // by shape of the cluster; within one CatchUp()
  absl::flat_hash_map<std::string, int64_t> pods_of_owner_;
  absl::btree_map<std::string, int64_t> selecting_;  // by label: pods that select by it
  SlackClassRules rules_;
  absl::btree_set<size_t> with_wishes_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_ROOMS_H_
