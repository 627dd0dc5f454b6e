#include "core/expand/joint_spending.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "core/pack/packing.h"

namespace loadline {
namespace {

// The most pairs of a kind of pods and a type of nodes; beyond it nothing is packed. Chosen: their table
// takes 32 MB.
constexpr size_t kMostPairs = 4'000'000;
// The units of work of the packing, some 100 ms. Chosen: the answer is only compared with others.
constexpr int64_t kJointWork = 1'000'000;

// The number of equal pods that an option lists, and the number that one of its nodes takes.
struct Listing {
  size_t type = 0;
  int64_t count = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
  friend auto operator<=>(const Listing&, const Listing&) = default;
};
using Listed = std::vector<Listing>;

bool CanGrow(const RankQuestion& question, const ExpansionOption& option) {
  return option.node.has_template && option.node_count > 0 &&
         PriceNode(question.prices, option.node).source != PriceSource::kNone;
}

}  // namespace

std::vector<double> SpendJointly(const RankQuestion& question) {
  std::vector<double> spent(question.options.size(), 0);
  std::vector<Listed> listed(question.pods.size());
  PackingProblem problem;
  std::vector<size_t> option_of_type;
  for (size_t i = 0; i < question.options.size(); ++i) {
    const ExpansionOption& option = question.options[i];
    if (!CanGrow(question, option)) continue;
    const double cost = PriceNode(question.prices, option.node).price;
    problem.types.push_back(
        {{option.node.milli_cpu, option.node.memory_bytes, option.node.gpus}, cost, std::nullopt, {}});
    option_of_type.push_back(i);
    std::map<size_t, Listing> listings;
    for (const PodRun& run : option.pods) {
      Listing& listing = listings[run.pod];
      listing.count += run.count;
      listing.most = std::min(listing.most, run.most_on_node);
    }
    for (auto& [pod, listing] : listings) {
      listing.type = problem.types.size() - 1;
      if (listing.count > 0) listed[pod].push_back(listing);
    }
  }
  // Pods that request the same, and that the same options list as often, are one kind.
  std::map<std::pair<std::vector<int64_t>, Listed>, int64_t> kinds;
  for (size_t pod = 0; pod < listed.size(); ++pod) {
    if (listed[pod].empty()) continue;
    const PodRequests& requests = question.pods[pod];
    ++kinds[{{requests.milli_cpu, requests.memory_bytes, requests.gpus}, listed[pod]}];
  }
  if (kinds.empty() || kinds.size() * problem.types.size() > kMostPairs) return spent;
  for (const auto& [kind, shapes] : kinds) {
    PackingItem& item = problem.items.emplace_back();
    item.request = kind.first;
    for (PackingType& type : problem.types) type.most.push_back(0);
    int64_t count = 0;
    for (const Listing& listing : kind.second) {
      count = std::max(count, listing.count);
      problem.types[listing.type].most.back() = std::min(listing.count * shapes, listing.most);
    }
    item.count = count * shapes;
  }
  WorkBudget budget(kJointWork);
  const Packing packing = Pack(problem, &budget);
  for (const PackedNodes& nodes : packing.nodes) {
    const size_t type = static_cast<size_t>(nodes.type);
    spent[option_of_type[type]] += problem.types[type].cost * static_cast<double>(nodes.nodes);
  }
  return spent;
}

}  // namespace loadline
