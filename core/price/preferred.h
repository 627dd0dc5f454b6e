// The node that suits a cluster, and how far another one is from it.
#ifndef LOADLINE_CORE_PRICE_PREFERRED_H_
#define LOADLINE_CORE_PRICE_PREFERRED_H_

#include <cstdint>

namespace loadline {

// Capacity of a node. Memory 0 of a preferred node: memory does not matter.
struct NodeCapacity {
  int64_t milli_cpu = 0;     // [0, 2^62]
  int64_t memory_bytes = 0;  // [0, 2^62]
  friend bool operator==(const NodeCapacity&, const NodeCapacity&) = default;
};

// How the preferred node is found.
enum class PreferredTable {
  kClusterAutoscaler,  // up to 2 nodes 1 CPU, 6: 2, 20: 4, 60: 8, 200: 16, above: 32
  kProposal,           // up to 2 nodes 1 CPU, 6: 2, 20: 4, 80: 8, 300: 16, above: 32
  kLearned,            // from what pods request
};

// Returns the node of a fixed table for a cluster of so many nodes, with 3750 MiB per CPU.
// Source: expander/price/preferred.go of Cluster Autoscaler; the ranking proposal. Its bounds 20, 80 and 300
//         belong to two rows each. We take them to be inclusive, as the shipped ones are.
NodeCapacity TablePreferredNode(PreferredTable table, int64_t cluster_nodes);

// The sum of what pods request, and the most that one of them does.
struct PodDemand {
  NodeCapacity total;
  NodeCapacity largest;  // per resource
};

// Adds `count` pods of one shape; sums saturate at 2^62.
void AddDemand(NodeCapacity pod, int64_t count, PodDemand* demand);

// Returns a node of the size that the tables give a cluster with this demand, and of the demand's own
// proportions, in which the largest pod fits.
//
//   cpu    = largest power of two p from 1 CPU to 32 with p^5 <= (total CPUs)^2: the rows of Cluster
//            Autoscaler's table, by CPUs (7 nodes of 4, 21 of 8, 61 of 16, 201 of 32) instead of nodes
//   memory = cpu * total memory / total CPU, at most 2^62; without CPU requests 3750 MiB per CPU
//
// Then both are scaled by the same factor, up to where each of `largest` fits.
NodeCapacity LearnPreferredNode(const PodDemand& demand);

// The resources that unfitness looks at.
enum class UnfitnessResources { kCpuOnly, kCpuAndMemory };

// Returns how far a node is from the preferred one: max(preferred / node, node / preferred) over CPU, or the
// larger of that over CPU and over memory. >= 1; infinite where the node has none. `preferred` has CPU.
double Unfitness(NodeCapacity preferred, NodeCapacity node, UnfitnessResources resources);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_PREFERRED_H_
