// Nodes and pods of a row, in the product's types.
#ifndef LOADLINE_TEST_VECTORS_FLEET_H_
#define LOADLINE_TEST_VECTORS_FLEET_H_

#include <cstdint>
#include <vector>

#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/pod_resources.h"
#include "core/score/limit_policy.h"
#include "core/score/limit_score.h"
#include "test/vectors/row.h"

namespace loadline::vectors {

class Fleet {
 public:
  // {"cpu": 8000, "memory": 1024}: millicores, the rest in its own unit.
  ResourceList List(const Json& amounts);
  // The other way.
  Json ToJson(const ResourceAmounts& amounts) const;

  // A pod as in pod_limits.jsonl; what is left out is empty.
  PodResources Pod(const Json& pod);
  // A pod with one container of these limits.
  PodResources PodWithLimits(const Json& limits);

  void AddNode(const Json& allocatable, const std::vector<PodResources>& pods);

  // The product's answers for `incoming` and all nodes, in the order in which they were added.
  RawScores Raw(const LimitPolicy& policy, const PodResources& incoming);
  std::vector<int32_t> Scores(const LimitPolicy& policy, const PodResources& incoming);
  std::vector<NodeExplanation> Explain(const LimitPolicy& policy, const PodResources& incoming);

  const ResourceNames& names() const { return names_; }

 private:
  PodShape Shape(const PodResources& pod, PodRole role) const;
  std::vector<Slot> AllSlots() const;

  ResourceNames names_;
  ClusterState cluster_;
};

// "weights" of a row.
std::vector<ResourceWeight> Weights(const Json& weights);

// The policies by which rows count: raw scores are weighted sums, no pod is clamped, and every pod without a
// limit counts as `missing`. Amounts are the row's own business, so both sides take effective limits.
LimitPolicy WholeNumbers(const std::vector<ResourceWeight>& resources, const MissingLimitRule& missing);
LimitPolicy FixedPoint(const std::vector<ResourceWeight>& resources, const MissingLimitRule& missing);

// Returns what each node counts as with the incoming pod on it: for one resource a number per node, for
// several an object per node.
Json LimitsAfterPlacing(const LimitPolicy& policy, const std::vector<NodeExplanation>& nodes);

}  // namespace loadline::vectors

#endif  // LOADLINE_TEST_VECTORS_FLEET_H_
