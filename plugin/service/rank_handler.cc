#include "plugin/service/rank_handler.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/resource_names.h"
#include "core/expand/rank_options.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/rank.h"
#include "plugin/convert/text.h"
#include "plugin/service/scheduler_extender_handlers.h"

namespace loadline {
namespace {

// What ranking reads of a cluster.
struct ClusterSize {
  std::optional<int64_t> nodes;
  PodDemand running;
};

// What the pods request that a view holds. Cost: O(nodes + pods).
PodDemand RunningDemand(const ClusterState& cluster) {
  std::vector<int64_t> pods_of_shape;
  for (int32_t slot = 0; slot < cluster.slot_end(); ++slot) {
    if (!cluster.Occupied(Slot{slot})) continue;
    for (const NodePods::Pod& pod : cluster.pods(Slot{slot}).pods()) {
      const auto shape = static_cast<size_t>(pod.shape);
      if (shape >= pods_of_shape.size()) pods_of_shape.resize(shape + 1);
      ++pods_of_shape[shape];
    }
  }
  PodDemand demand;
  for (size_t i = 0; i < pods_of_shape.size(); ++i) {
    if (pods_of_shape[i] == 0) continue;
    const ResourceAmounts& requests = cluster.pod_shapes()[static_cast<int32_t>(i)].requests;
    AddDemand({requests.Get(kCpu), requests.Get(kMemory)}, pods_of_shape[i], &demand);
  }
  return demand;
}

absl::StatusOr<ClusterSize> SizeOf(const v1::RankOptionsRequest& request, bool with_demand,
                                   const Deadline& deadline, Views* views) {
  ClusterSize size;
  if (request.has_changes()) {
    if (request.has_cluster_nodes()) {
      return absl::InvalidArgumentError("cluster_nodes: the view tells the size of the cluster");
    }
    const absl::StatusOr<LockedView> locked = ApplyChanges(request.changes(), deadline, views);
    if (!locked.ok()) return locked.status();
    const ClusterState& cluster = (*locked)->view.cluster();
    size.nodes = cluster.node_count();
    if (with_demand) size.running = RunningDemand(cluster);
  } else if (request.has_cluster_nodes()) {
    if (request.cluster_nodes() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cluster_nodes: ", request.cluster_nodes(), " is negative"));
    }
    size.nodes = request.cluster_nodes();
  }
  return size;
}

std::optional<NodeCapacity> Preferred(const v1::RankPolicy& asked, const RankPolicy& policy,
                                      const ClusterSize& size, const std::vector<PodRequests>& pods,
                                      const std::vector<ExpansionOption>& options) {
  if (asked.has_preferred_node()) {
    return NodeCapacity{asked.preferred_node().milli_cpu(), asked.preferred_node().memory_bytes()};
  }
  if (policy.preferred_table == PreferredTable::kLearned) {
    PodDemand demand = size.running;
    const PodDemand pending = PendingDemand(pods, options);
    AddDemand(pending.total, 1, &demand);
    demand.largest = size.running.largest;
    demand.largest.milli_cpu = std::max(demand.largest.milli_cpu, pending.largest.milli_cpu);
    demand.largest.memory_bytes = std::max(demand.largest.memory_bytes, pending.largest.memory_bytes);
    return LearnPreferredNode(demand);
  }
  if (!size.nodes.has_value()) return std::nullopt;
  return TablePreferredNode(policy.preferred_table, *size.nodes);
}

// The order, into the response.
absl::Status Answer(const RankQuestion& question, v1::RankOptionsResponse* response) {
  size_t bytes = 0;
  for (const RankedOption& ranked : RankOptions(question)) {
    v1::RankedOption* const message = response->add_options();
    *message = EncodeRankedOption(ranked, question.options[ranked.option], question.policy.damper);
    bytes += message->ByteSizeLong() + kEntryOverhead;
  }
  // What is left is small and bounded.
  constexpr size_t kRest = 4096;
  if (bytes + kRest <= kMaxMessageBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the answer for ", question.options.size(),
                                                   " options outgrows ", kMaxMessageBytes,
                                                   " bytes; ask for fewer options"));
}

}  // namespace

absl::StatusOr<v1::RankOptionsResponse> AnswerRankOptions(const v1::RankOptionsRequest& request,
                                                          const Deadline& deadline, Views* views) {
  const absl::StatusOr<RankPolicy> policy = DecodeRankPolicy(request.policy());
  if (!policy.ok()) return Annotate(policy.status(), "policy");
  const absl::StatusOr<PriceModel> prices = DecodePriceModel(request.prices());
  if (!prices.ok()) return Annotate(prices.status(), "prices");
  ResourceNames names;
  ResourceReader resources(&names);
  const absl::StatusOr<std::vector<PodRequests>> pods = DecodePricedPods(request, &resources);
  if (!pods.ok()) return pods.status();
  const absl::StatusOr<std::vector<ExpansionOption>> options = DecodeExpansionOptions(request, &resources);
  if (!options.ok()) return options.status();
  const bool learned = policy->preferred_table == PreferredTable::kLearned;
  const absl::StatusOr<ClusterSize> size = SizeOf(request, learned, deadline, views);
  if (!size.ok()) return size.status();

  const std::optional<NodeCapacity> preferred = Preferred(request.policy(), *policy, *size, *pods, *options);
  v1::RankOptionsResponse response;
  if (absl::Status status = Answer({*pods, *options, *prices, *policy, preferred}, &response); !status.ok()) {
    return status;
  }
  *response.mutable_policy() = EncodeRankPolicy(*policy, request.policy());
  if (preferred.has_value()) {
    response.mutable_preferred_node()->set_milli_cpu(preferred->milli_cpu);
    response.mutable_preferred_node()->set_memory_bytes(preferred->memory_bytes);
  }
  response.set_cluster_nodes(static_cast<int32_t>(size->nodes.value_or(-1)));
  response.set_clamped_amounts(resources.clamped_amounts());
  return response;
}

}  // namespace loadline
