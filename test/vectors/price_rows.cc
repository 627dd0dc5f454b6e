// price_terms.jsonl: TablePreferredNode, Unfitness and Suppress.
#include <cmath>
#include <string>
#include <vector>

#include "core/expand/preferred.h"
#include "core/expand/rank_terms.h"
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
  answers->Equal("unfitness", Unfitness({in.at("preferred_mcpu").get<int64_t>(), 0},
                                        {in.at("node_mcpu").get<int64_t>(), 0}, UnfitnessResources::kCpu));
}

void Suppressed(const Json& in, Answers* answers) {
  std::vector<double> suppressed;
  for (const Json& nodes : in.at("nodes")) {
    suppressed.push_back(Suppress(in.at("unfitness").get<double>(), nodes.get<double>(), 15));
  }
  Near("suppressed", suppressed, answers);
}

}  // namespace

void AddPriceHandlers(Handlers* handlers) {
  handlers->insert(
      {{"preferred_node", PreferredNode}, {"unfitness", UnfitnessOfNode}, {"suppress", Suppressed}});
}

}  // namespace loadline::vectors
