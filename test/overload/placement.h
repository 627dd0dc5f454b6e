// Pods of a trace that arrive one after the other, each of which is placed on the node of the highest score.
#ifndef LOADLINE_TEST_OVERLOAD_PLACEMENT_H_
#define LOADLINE_TEST_OVERLOAD_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/expected_use.h"
#include "core/score/limit_policy.h"
#include "test/overload/trace.h"
#include "test/overload/upstream_scores.h"

namespace loadline {

// A pod of the experiment. `requests` are by one of the models of requests.
struct TracePod {
  const Machine* machine = nullptr;
  Load requests;
  Load limits;
  Load average;  // of the first week
};

// The size of all nodes.
struct NodeSize {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
};

// A score beside that of the default profile.
enum class Score { kDefaultAlone, kKep217, kStrict, kExpected, kExpectedHalf, kLowRisk, kLoadVariation };
inline constexpr Score kScores[] = {Score::kDefaultAlone, Score::kKep217,       Score::kStrict,
                                    Score::kExpected,     Score::kExpectedHalf, Score::kLowRisk,
                                    Score::kLoadVariation};
const char* Name(Score score);

// Nodes with pods, and the pods as our engine sees them.
class Placement {
 public:
  // `pods` outlives the object. With `known_every` n, only each nth pod has a profile.
  Placement(const std::vector<TracePod>* pods, NodeSize size, size_t nodes, size_t known_every);

  const ClusterState& cluster() const { return cluster_; }
  const std::shared_ptr<const ExpectedUse>& expected() const { return expected_; }
  const PodShape& shape(size_t pod) const { return shapes_[pod]; }
  const std::vector<std::vector<size_t>>& pods_on() const { return pods_on_; }
  const TrimaranNode& trimaran(size_t node) const { return nodes_[node]; }
  // Nodes whose requests leave room for the pod.
  std::vector<Slot> Feasible(size_t pod) const;
  void Place(size_t pod, size_t node);

 private:
  void PutNode(size_t node);

  const std::vector<TracePod>& pods_;
  const NodeSize size_;
  ClusterState cluster_;
  std::vector<PodShape> shapes_;  // by pod
  std::vector<std::vector<size_t>> pods_on_;
  std::vector<TrimaranNode> nodes_;
  std::vector<std::vector<double>> cpu_, memory_;  // by node: use in each hour of the first week
  std::shared_ptr<const ExpectedUse> expected_;
};

// Places all pods in the order given. Of nodes with the same highest score `seed` decides. Returns how many
// pods find no place.
size_t PlaceByScore(Score score, const std::vector<size_t>& order, uint64_t seed,
                    const std::vector<TracePod>& pods, Placement* placement);

}  // namespace loadline

#endif  // LOADLINE_TEST_OVERLOAD_PLACEMENT_H_
