// Lists the candidates in the order in which they are tried, and finds places for their pods.
#include <algorithm>
#include <tuple>

#include "core/drain/candidate_rounds.h"
#include "core/drain/node_load.h"

namespace loadline {
namespace {

// Reads the pods of the cluster: those of the trial cluster lack what only planners read.
int64_t DeletionCostOf(const ClusterState& cluster, Slot slot) {
  int64_t cost = 0;
  for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
    const PodShape& shape = cluster.pod_shapes()[pod.shape];
    if (!shape.finished) cost += TraitsOf(shape).deletion_cost;
  }
  return cost;
}

// Returns the size of a node in millicores: its CPU, and its memory where 4 GiB count as a core. Chosen as in
// drain_trial.cc.
double SizeOf(const CpuMemory& allocatable) {
  constexpr double kBytesPerMilliCpu = 4.0 * (int64_t{1} << 30) / 1000;
  return static_cast<double>(allocatable.cpu) + static_cast<double>(allocatable.memory) / kBytesPerMilliCpu;
}

bool HasPrice(const DrainCall& call, const Candidate& candidate) {
  const NodeGroup* const group = call.GroupOf(candidate.slot);
  return group != nullptr && SavedPrice(*group, candidate.slot).has_value();
}

}  // namespace

bool ArePriced(const DrainCall& call, std::span<const Candidate> candidates) {
  return std::all_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& candidate) { return HasPrice(call, candidate); });
}

std::vector<Candidate> Candidates(const DrainCall& call, const Snapshot& snapshot,
                                  std::span<const FormerNode> displaced) {
  std::vector<Candidate> candidates;
  const auto add = [&](Slot slot) {
    const JudgedNode& node = call.judged(slot);
    if (!node.eligible || node.planned) return;
    candidates.push_back({.slot = slot,
                          .moves_pods = snapshot.pods(node.node).size() > 0,
                          .load = LoadOf(snapshot, node.node),
                          .deletion_cost = DeletionCostOf(call.cluster(), slot)});
  };
  for (const Slot slot : call.problem().walk) {
    if (call.cluster().Occupied(slot)) add(slot);
  }
  if (call.problem().walk.empty()) {
    for (const Slot slot : call.nodes()) add(slot);
  }
  std::vector<const FormerNode*> displaced_in(call.all_judged().size(), nullptr);
  for (const FormerNode& former : displaced) {
    if (const std::optional<Slot> slot = call.cluster().Find(former.node)) {
      displaced_in[IndexOf(*slot)] = &former;
    }
  }
  const bool priced = ArePriced(call, candidates);
  for (Candidate& candidate : candidates) {
    candidate.displaced = displaced_in[IndexOf(candidate.slot)];
    candidate.value = priced ? *SavedPrice(*call.GroupOf(candidate.slot), candidate.slot)
                             : SizeOf(call.AllocatableOf(candidate.slot));
  }
  return candidates;
}

std::vector<Candidate> Ordered(const DrainCall& call, std::vector<Candidate> candidates, OrderBy by,
                               absl::string_view resume_at) {
  if (!call.problem().walk.empty()) return candidates;
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& candidate) {
      return std::make_tuple(candidate.displaced == nullptr, candidate.displaced, candidate.moves_pods);
    };
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    if (by == OrderBy::kValue && a.value != b.value) return a.value > b.value;
    if (by == OrderBy::kSmallest && a.value != b.value) return a.value < b.value;
    if (a.deletion_cost != b.deletion_cost) return a.deletion_cost < b.deletion_cost;
    if (a.load != b.load) return a.load < b.load;
    return call.name(a.slot) < call.name(b.slot);
  };
  std::sort(candidates.begin(), candidates.end(), before);
  if (!resume_at.empty()) {
    const auto first = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& candidate) {
      return candidate.displaced == nullptr;
    });
    const auto resume = std::find_if(first, candidates.end(), [&](const Candidate& candidate) {
      return call.name(candidate.slot) == resume_at;
    });
    if (resume != candidates.end()) std::rotate(first, resume, candidates.end());
  }
  return candidates;
}

std::vector<NodeIndex> Destinations(const DrainCall& call, std::span<const Candidate> order) {
  std::vector<bool> is_candidate(call.all_judged().size(), false);
  for (const Candidate& candidate : order) is_candidate[IndexOf(candidate.slot)] = true;
  std::vector<NodeIndex> result;
  const auto add_others = [&](bool former) {
    for (const Slot slot : call.nodes()) {
      if (is_candidate[IndexOf(slot)] || call.judged(slot).former != former) continue;
      result.push_back(call.judged(slot).node);
    }
  };
  add_others(/*former=*/false);
  for (auto candidate = order.rbegin(); candidate != order.rend(); ++candidate) {
    result.push_back(call.judged(candidate->slot).node);
  }
  add_others(/*former=*/true);
  return result;
}

}  // namespace loadline
