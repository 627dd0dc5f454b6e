// Ranks the options to grow, and says why.
#ifndef LOADLINE_CORE_EXPAND_RANK_OPTIONS_H_
#define LOADLINE_CORE_EXPAND_RANK_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/price/preferred.h"
#include "core/price/price_model.h"

namespace loadline {

// The rule that decides between options; see message RankPolicy.
enum class RankStrategy { kPrice, kLeastWaste, kMostPods, kLeastNodes, kPriority, kJoint };

// A way to rank. See message RankPolicy for the meaning of each setting.
struct RankPolicy {
  std::vector<RankStrategy> strategies = {RankStrategy::kPrice};
  double damper = 0;
  ResourceRates pod_rates;
  double suppression_divisor = 15;
  double gpu_unfitness = 1000;  // 0: a node with GPUs is like others
  bool gpu_unfitness_if_unneeded = false;
  double creation_factor = 2;
  bool count_preferred_nodes = false;
  PreferredTable preferred_table = PreferredTable::kClusterAutoscaler;
  UnfitnessResources unfitness_resources = UnfitnessResources::kCpuOnly;
};

// Returns the policy that Cluster Autoscaler ships: X is the price of its stabilise pod, 0.5 CPU and 500 MiB.
// Source: expander/price/price.go at kubernetes/autoscaler f7bb0c36.
RankPolicy ClusterAutoscalerRanking();
// The cost-based ranking proposal: X is the price of 0.5 CPU.
RankPolicy ProposalRanking();

// X by the preset's own pod, at other rates.
double ClusterAutoscalerDamper(const ResourceRates& rates);
double ProposalDamper(const ResourceRates& rates);

// `count` pods of the shape `pod`, an index into the pods of the question.
struct PodRun {
  size_t pod = 0;
  int64_t count = 0;  // [0, 2^31)
  // The number of these pods that one node takes by rules other than their requests.
  int64_t most_on_node = std::numeric_limits<int64_t>::max();
};

// A number of nodes of a group, and the pods that they take.
struct ExpansionOption {
  std::string node_group;
  int64_t node_count = 0;  // [0, 2^31)
  PricedNode node;
  std::vector<PodRun> pods;  // added up in this order
  bool to_be_created = false;
  bool has_gpu = false;
  std::optional<int64_t> priority;
};

// Options and all that they are ranked by.
struct RankQuestion {
  std::span<const PodRequests> pods;
  std::span<const ExpansionOption> options;
  const PriceModel& prices;
  const RankPolicy& policy;
  // nullopt: the size of the cluster is not known, and every unfitness is 1.
  std::optional<NodeCapacity> preferred;
};

// The result for an option.
enum class RankOutcome { kScored = 1, kUndefinedScore, kNoPrice, kNoTemplate, kHelpsNoPod };

// One option and its terms; see message RankedOption.
struct RankedOption {
  size_t option = 0;  // index in the question
  RankOutcome outcome = RankOutcome::kScored;
  double score = 0;
  double suppressed_unfitness = 1;
  double cost_ratio = 0;
  double creation_factor = 1;
  double unfitness = 1;
  double cost = 0;
  double theoretical_cost = 0;
  double committed = 0;
  NodePrice node_price;
  int64_t pods = 0;
  int64_t requested_milli_cpu = 0;
  int64_t requested_memory_bytes = 0;
  bool gpu_unneeded = false;    // has GPUs, and no pod asks for one
  std::optional<double> waste;  // nullopt: no capacity is known, or there are no nodes
  // Under kJoint: what the cheapest mix of all options spends on this one.
  std::optional<double> joint_usd;
};

// Returns each option once, best first. The order is total: by outcome kHelpsNoPod or not, by the strategies
// in their order, without before with unneeded GPUs, by name of the group, by index. Under kPrice an option
// without a score follows all that have one, in the order of the outcomes; scores are ordered by
// CompareScores().
//
// Inputs: indices of runs are below pods.size(); sizes as stated above.
// Cost:   O(pods + runs * log(pods of a run) + options log(options)): each pod shape is priced once. Pure.
// Source: expander/{price,waste,mostpods,leastnodes,priority} and factory/chain.go of Cluster Autoscaler.
//         There ties end at random.
std::vector<RankedOption> RankOptions(const RankQuestion& question);

// The score of one option and its terms, without regard to others.
RankedOption ScoreOption(const RankQuestion& question, std::span<const double> pod_prices, size_t option);

// Returns the cost of pods of each shape on machines that suit them perfectly.
std::vector<double> PricePods(const RankPolicy& policy, std::span<const PodRequests> pods);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_RANK_OPTIONS_H_
