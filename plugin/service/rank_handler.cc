#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/resource_names.h"
#include "core/expand/preferred_choice.h"
#include "core/expand/rank_options.h"
#include "loadline/v1/scale_up.pb.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/load_line.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/rank.h"
#include "plugin/convert/text.h"
#include "plugin/report/price_sources.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

absl::StatusOr<GrowingCluster> SizeOf(const v1::RankOptionsRequest& request, bool with_demand,
                                      const Deadline& deadline, Views* views) {
  GrowingCluster size;
  if (request.has_changes()) {
    if (request.has_cluster_nodes()) {
      return absl::InvalidArgumentError(
          "cluster_nodes: must be unset with a view, which states the size of the cluster");
    }
    const absl::StatusOr<ReadView> view = ReadChanges(request.changes(), deadline, views);
    if (!view.ok()) return view.status();
    const ClusterState& cluster = view->view().cluster();
    size.nodes = cluster.node_count();
    if (with_demand) size.running = RunningDemand(cluster);
  } else if (request.has_cluster_nodes()) {
    if (absl::Status status = CheckNotNegative("cluster_nodes", request.cluster_nodes()); !status.ok()) {
      return status;
    }
    size.nodes = request.cluster_nodes();
  }
  if (request.has_running()) {
    if (request.has_changes()) {
      return absl::InvalidArgumentError("running: must be unset with a view, which states what pods request");
    }
    absl::StatusOr<PodDemand> running = DecodeRunningDemand(request.running());
    if (!running.ok()) return running.status();
    size.running = *running;
  }
  return size;
}

std::optional<NodeCapacity> Preferred(const v1::RankPolicy& asked, const RankPolicy& policy,
                                      const GrowingCluster& size, const std::vector<PodRequests>& pods,
                                      const std::vector<ExpansionOption>& options) {
  if (asked.has_preferred_node()) {
    return NodeCapacity{asked.preferred_node().milli_cpu(), asked.preferred_node().memory_bytes()};
  }
  return ChoosePreferredNode(policy.preferred_table, size, pods, options);
}

absl::StatusOr<LoadLine> LineOf(const v1::RankOptionsRequest& request) {
  if (!request.has_load_line()) return LoadLine();
  absl::StatusOr<DecodedLoadLine> decoded = DecodeLoadLine(request.load_line());
  if (!decoded.ok()) return Annotate(decoded.status(), "load_line");
  return std::move(decoded->line);
}

std::vector<ExpansionOption> UnderLine(std::vector<OfferedOption> offered, const LoadLine& line,
                                       const std::vector<LinePod>& pods) {
  std::vector<ExpansionOption> options;
  options.reserve(offered.size());
  for (OfferedOption& entry : offered) {
    if (!line.empty() && entry.option.node.has_template) KeepToLine(line, entry.offer, pods, &entry.option);
    options.push_back(std::move(entry.option));
  }
  return options;
}

// The order, into the response.
absl::Status EncodeOrder(const RankQuestion& question, v1::RankOptionsResponse* response) {
  size_t bytes = 0;
  PriceTally tally;
  for (const RankedOption& ranked : RankOptions(question)) {
    const ExpansionOption& option = question.options[ranked.option];
    tally.Add(option.node_group, option.node, ranked.node_price, option.node_count);
    v1::RankedOption* const message = response->add_options();
    *message = EncodeRankedOption(ranked, option, question.policy.damper);
    bytes += message->ByteSizeLong() + kEntryOverhead;
  }
  *response->mutable_price_sources() = PriceSourcesOf(tally, question.prices);
  bytes += response->price_sources().ByteSizeLong();
  // The rest of the message is small and bounded.
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
  // The view is read before all else, so that it is seldom another one by then.
  const bool learned = policy->preferred_table == PreferredTable::kLearned;
  const absl::StatusOr<GrowingCluster> size = SizeOf(request, learned, deadline, views);
  if (!size.ok()) return size.status();
  ResourceNames names;
  ResourceReader resources(&names, OptionsOfQuestion(names, kDefaultSlackNamespace));
  LeftOutList left_out;
  const absl::StatusOr<LoadLine> line = LineOf(request);
  if (!line.ok()) return line.status();
  absl::StatusOr<std::vector<OfferedOption>> offered = DecodeExpansionOptions(request, &resources);
  if (!offered.ok()) return offered.status();
  const absl::StatusOr<RankedPods> ranked = DecodeRankedPods(request, *line, &resources, &left_out);
  if (!ranked.ok()) return ranked.status();
  const std::vector<PodRequests>& pods = ranked->priced;
  const std::vector<ExpansionOption> options = UnderLine(*std::move(offered), *line, ranked->lined);
  const std::optional<NodeCapacity> preferred = Preferred(request.policy(), *policy, *size, pods, options);
  v1::RankOptionsResponse response;
  if (absl::Status status = EncodeOrder({pods, options, *prices, *policy, preferred}, &response);
      !status.ok()) {
    return status;
  }
  *response.mutable_policy() = EncodeRankPolicy(*policy, request.policy());
  if (preferred.has_value()) {
    response.mutable_preferred_node()->set_milli_cpu(preferred->milli_cpu);
    response.mutable_preferred_node()->set_memory_bytes(preferred->memory_bytes);
  }
  response.set_cluster_nodes(static_cast<int32_t>(size->nodes.value_or(-1)));
  response.set_clamped_amounts(resources.clamped_amounts());
  TellLeftOut(left_out, &response);
  return response;
}

}  // namespace loadline
