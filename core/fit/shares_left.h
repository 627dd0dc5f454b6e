// Places pods one after the other by kube-scheduler's default score.
#ifndef LOADLINE_CORE_FIT_SHARES_LEFT_H_
#define LOADLINE_CORE_FIT_SHARES_LEFT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/cluster/pod_rules.h"
#include "core/cluster/shapes.h"
#include "core/cluster/snapshot.h"
#include "core/fit/pod_fit.h"

namespace loadline {

// The CPU and memory that are left on each node. LeastAllocated, the default of kube-scheduler, takes the
// node that a pod leaves most of, as a share of what the node has, and MostAllocated the one that it leaves
// least of; TaintToleration, whose weight is three times as large, prefers nodes with fewer soft taints that
// the pod does not tolerate. Nodes of about the same size are in the order of what is left of them, which a
// pod hardly changes, so that few have to be looked at. A node that has less CPU or memory than a pod
// requests never takes it, as a kubelet would not, also where NodeResourcesFit is disabled. The amounts are a
// copy: later placements in the snapshot do not change them.
class SharesLeft {
 public:
  // Nodes that take no pods, or leave, are not among them. `leaves`: by node; those beyond its end stay.
  // Cost: O(nodes * log nodes).
  SharesLeft(const Snapshot& snapshot, const std::vector<bool>& leaves);

  // Takes the amounts of a pod off the node where it is placed, and returns that; nullopt: it fits nowhere.
  // A pod is placed on a node with the fewest soft taints; if several are equal, on the first by the strategy
  // of FitOptions. Cost: O(sizes of nodes + nodes that are looked at), the filters of few of them, and
  // O(nodes of a size) to keep their order. Nodes are looked at that have more left than the answer, or less.
  std::optional<NodeIndex> Take(const PodShape& shape, PodFit* fit);

 private:
  struct Amounts {
    double cpu = 0, memory = 0;          // free
    double per_cpu = 0, per_memory = 0;  // 1 / allocatable; 0: nothing is
    bool Lack(double of_cpu, double of_memory) const;
    double Left(double of_cpu, double of_memory) const;
  };
  struct Place {
    double left = 0;  // of both together, before a pod is placed
    NodeIndex node{-1};
    bool operator<(const Place& other) const;
  };
  // Nodes of about the same size, with soft taints of the same keys.
  struct Alike {
    double least_per_cpu = 0, least_per_memory = 0;
    double most_per_cpu = 0, most_per_memory = 0;
    std::vector<Taint> soft;    // of one of them
    std::vector<Place> places;  // what has most left first
  };
  struct Best {
    Alike* alike = nullptr;
    size_t soft = 0;  // taints
    size_t at = 0;
    double score =
        -std::numeric_limits<double>::infinity();  // what is left, or with MostAllocated minus that
    NodeIndex node{-1};
  };

  // Returns how many soft taints the pod does not tolerate.
  static size_t SoftTaints(const PodShape& shape, const Alike& alike);
  void LookAt(Alike* alike, double cpu, double memory, PodFit* fit, Best* best) const;

  std::vector<Amounts> amounts_;  // by node
  std::vector<Alike> alike_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_SHARES_LEFT_H_
