// price_terms.jsonl, price_ranking.jsonl, gce_price.jsonl, and what of expander.jsonl is not on the wire.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/expand/balance.h"
#include "core/expand/rank_options.h"
#include "core/price/preferred.h"
#include "core/price/price_model.h"
#include "core/price/rank_terms.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

constexpr double kNear = 1e-6;

// Numbers, one after the other: whole ones exactly, others to six places.
void Near(const std::string& key, const std::vector<double>& got, Answers* answers) {
  const Json* const wanted = answers->Wanted(key);
  if (wanted == nullptr) return;
  bool agrees = wanted->size() == got.size();
  for (size_t i = 0; agrees && i < got.size(); ++i) {
    const double number = wanted->at(i).get<double>();
    agrees = wanted->at(i).is_number_integer() ? got[i] == number : std::fabs(got[i] - number) <= kNear;
  }
  answers->Agrees(key, agrees, got);
}

void PreferredNode(const Json& in, Answers* answers) {
  Json mcpu = Json::array();
  Json memory = Json::array();
  for (const Json& nodes : in.at("cluster_nodes")) {
    const NodeCapacity node = TablePreferredNode(PreferredTable::kClusterAutoscaler, nodes.get<int64_t>());
    mcpu.push_back(node.milli_cpu);
    memory.push_back(node.memory_bytes);
  }
  answers->Equal("mcpu", mcpu);
  answers->Equal("memory_bytes", memory);
}

void UnfitnessOfNode(const Json& in, Answers* answers) {
  answers->Equal("unfitness",
                 Unfitness({in.at("preferred_mcpu").get<int64_t>(), 0},
                           {in.at("node_mcpu").get<int64_t>(), 0}, UnfitnessResources::kCpuOnly));
}

void Suppressed(const Json& in, Answers* answers) {
  std::vector<double> suppressed;
  for (const Json& nodes : in.at("nodes")) {
    suppressed.push_back(Suppress(in.at("unfitness").get<double>(), nodes.get<double>(), 15));
  }
  Near("suppressed", suppressed, answers);
}

// A number as rows write it.
Json AsRow(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return "+Inf";
  return value;
}

bool IsNear(const Json& wanted, double got, double near) {
  return wanted.is_number() ? std::fabs(got - wanted.get<double>()) <= near : wanted == AsRow(got);
}

// Numbers by name, within `near`; what one side lacks, the other has to lack.
void NearByName(const std::string& key, const std::map<std::string, double>& got, double near, bool all,
                Answers* answers) {
  const Json* const wanted = answers->Wanted(key);
  if (wanted == nullptr) return;
  bool agrees = !all || wanted->size() == got.size();
  Json shown = Json::object();
  for (const auto& [name, value] : got) shown[name] = AsRow(value);
  for (const auto& [name, value] : wanted->items()) {
    const auto found = got.find(name);
    agrees = agrees && found != got.end() && IsNear(value, found->second, near);
  }
  answers->Agrees(key, agrees, shown);
}

// The price expander over a list of options, whose prices the row states.
struct PriceCase {
  std::vector<PodRequests> pods;
  std::vector<double> pod_prices;
  std::vector<ExpansionOption> options;
  PriceModel prices = {.last_source = PriceSource::kGiven};
  RankPolicy policy = ClusterAutoscalerRanking();
  NodeCapacity preferred;

  explicit PriceCase(const Json& in) : preferred{in.at("preferred_mcpu").get<int64_t>(), 0} {
    const Json& damper = in.at("stabilise_price");
    policy.damper = damper.is_null() ? 0 : damper.get<double>();
    std::map<std::string, size_t> index;
    for (const auto& [name, price] : in.at("pod_prices").items()) {
      index[name] = pods.size();
      pods.emplace_back();
      pod_prices.push_back(price.is_null() ? std::numeric_limits<double>::quiet_NaN() : price.get<double>());
    }
    for (const Json& row : in.at("options")) {
      ExpansionOption& option = options.emplace_back();
      option.node_group = row.at("group").get<std::string>();
      option.node_count = row.at("nodes").get<int64_t>();
      option.node.milli_cpu = row.at("node_mcpu").get<int64_t>();
      if (!row.at("node_price").is_null()) option.node.given = row.at("node_price").get<double>();
      for (const Json& pod : row.at("pods")) option.pods.push_back({index.at(pod.get<std::string>()), 1});
      option.has_gpu = row.at("gpu").get<bool>();
      option.to_be_created = !row.at("exists").get<bool>();
    }
  }
};

void PriceScore(const Json& in, Answers* answers) {
  const PriceCase row(in);
  const RankQuestion question = {row.pods, row.options, row.prices, row.policy, row.preferred};
  std::map<std::string, double> scores;
  std::map<std::string, double> suppressed;
  const RankedOption* best = nullptr;
  std::vector<RankedOption> ranked;
  for (size_t i = 0; i < row.options.size(); ++i) ranked.push_back(ScoreOption(question, row.pod_prices, i));
  const auto is_dropped = [](const RankedOption& option) { return option.outcome == RankOutcome::kNoPrice; };
  for (const RankedOption& option : ranked) {
    if (is_dropped(option)) continue;
    scores[row.options[option.option].node_group] = option.score;
    suppressed[row.options[option.option].node_group] = option.suppressed_unfitness;
    if (best == nullptr || CompareScores(option.score, best->score) < 0) best = &option;
  }
  Json all_best = Json::array();
  for (const RankedOption& option : ranked) {
    if (is_dropped(option) || CompareScores(option.score, best->score) != 0) continue;
    all_best.push_back(row.options[option.option].node_group);
  }
  answers->Equal("best", all_best);
  NearByName("scores", scores, kNear, /*all=*/true, answers);
  NearByName("suppressed", suppressed, kNear, /*all=*/false, answers);
}

constexpr double kNearPrice = 1e-8;

const PriceModel& GceModel() {
  static const auto* const kModel = [] {
    std::ifstream file(LOADLINE_SOURCE_DIR "/manifests/prices/gce-us-central1.csv", std::ios::binary);
    const std::string csv((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    absl::StatusOr<PriceCatalogue> catalogue = ParsePriceCatalogue("gce-us-central1.csv", csv);
    if (!catalogue.ok()) throw std::runtime_error(std::string(catalogue.status().message()));
    auto* model = new PriceModel;
    model->catalogues.push_back(std::make_shared<const PriceCatalogue>(*std::move(catalogue)));
    return model;
  }();
  return *kModel;
}

int64_t GibBytes(const Json& gib) { return static_cast<int64_t>(gib.get<double>() * (1 << 30)); }

PricedNode Machine(const Json& in) {
  PricedNode node;
  node.instance_type = in.at("machine_type").get<std::string>();
  node.milli_cpu = in.at("mcpu").get<int64_t>();
  node.memory_bytes = GibBytes(in.at("memory_gib"));
  node.gpus = in.at("gpu_count").get<int64_t>();
  if (!in.at("gpu_type").is_null()) node.gpu_type = in.at("gpu_type").get<std::string>();
  node.spot = in.at("provisioning") != "on-demand";
  node.local_ssds = in.at("local_ssd_count").get<double>();
  node.boot_disk_type = in.at("boot_disk_type").get<std::string>();
  node.boot_disk_gib = in.at("boot_disk_gb").get<int64_t>();
  return node;
}

void NodePricePair(const Json& in, Answers* answers) {
  for (const char* name : {"cheap", "dear"}) {
    const std::string key = std::string(name) + "_usd_h";
    const Json* const wanted = answers->Wanted(key);
    if (wanted == nullptr) continue;
    const double got = PriceNode(GceModel(), Machine(in.at(name))).price;
    answers->Agrees(key, IsNear(*wanted, got, kNearPrice), got);
  }
}

void PodPrices(const Json& in, Answers* answers) {
  const Json* const wanted = answers->Wanted("usd_h");
  if (wanted == nullptr) return;
  Json got = Json::array();
  for (const Json& pod : in.at("pods")) {
    got.push_back(PodPrice(ResourceRates{}, {.milli_cpu = pod.at("mcpu").get<int64_t>(),
                                             .memory_bytes = pod.at("memory_mib").get<int64_t>() << 20,
                                             .ephemeral_bytes = GibBytes(pod.at("ephemeral_gib")),
                                             .gpus = pod.at("gpus").get<int64_t>()}));
  }
  bool agrees = got.size() == wanted->size();
  for (size_t i = 0; agrees && i < got.size(); ++i)
    agrees = IsNear(wanted->at(i), got[i].get<double>(), kNearPrice);
  answers->Agrees("usd_h", agrees, got);
}

void Balance(const Json& in, Answers* answers) {
  std::vector<BalancedGroup> groups;
  for (const Json& group : in.at("groups")) {
    groups.push_back({group.at("id").get<std::string>(), group.at("current").get<int64_t>(),
                      group.at("max").get<int64_t>()});
  }
  const std::vector<int64_t> sizes = BalanceGrowth(groups, in.at("add").get<int64_t>());
  Json changed = Json::object();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (sizes[i] != groups[i].size) changed[groups[i].name] = sizes[i];
  }
  answers->Equal("new_sizes", changed);
}

void LeastWaste(const Json& in, Answers* answers) {
  const std::vector<PodRequests> pods = {
      {.milli_cpu = in.at("pod").at("mcpu").get<int64_t>(),
       .memory_bytes = in.at("pod").at("memory_mib").get<int64_t>() << 20}};
  RankPolicy policy = ClusterAutoscalerRanking();
  policy.strategies = {RankStrategy::kLeastWaste};
  const PriceModel prices;
  Json got = Json::array();
  const Json* const wanted = answers->Wanted("best_of");
  if (wanted == nullptr) return;
  for (const Json& choice : *wanted) {
    std::vector<ExpansionOption> options;
    for (const Json& name : choice.at("options")) {
      const Json& node = in.at("options").at(name.get<std::string>());
      ExpansionOption& option = options.emplace_back();
      option.node_group = name.get<std::string>();
      option.node_count = in.at("nodes").get<int64_t>();
      option.node.milli_cpu = node.at("node_mcpu").get<int64_t>();
      option.node.memory_bytes = node.at("node_memory_mib").get<int64_t>() << 20;
      option.pods = {{0, 1}};
    }
    const std::vector<RankedOption> ranked = RankOptions({pods, options, prices, policy, std::nullopt});
    got.push_back({{"options", choice.at("options")}, {"best", options[ranked.at(0).option].node_group}});
  }
  answers->Equal("best_of", got);
}

}  // namespace

void AddPriceHandlers(Handlers* handlers) {
  handlers->insert({{"preferred_node", PreferredNode},
                    {"unfitness", UnfitnessOfNode},
                    {"suppress", Suppressed},
                    {"price_score", PriceScore},
                    {"node_price_pair", NodePricePair},
                    {"pod_price", PodPrices},
                    {"balance", Balance},
                    {"least_waste", LeastWaste}});
}

}  // namespace loadline::vectors
