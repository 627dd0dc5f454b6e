// The rounds of a plan that try nodes which are not in it yet.
#ifndef LOADLINE_CORE_DRAIN_CANDIDATE_ROUNDS_H_
#define LOADLINE_CORE_DRAIN_CANDIDATE_ROUNDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/drain/drain_call.h"
#include "core/drain/drain_memory.h"
#include "core/drain/planned_node.h"
#include "core/drain/trial_follower.h"

namespace loadline {

// A node to be tried, with the values that the order compares.
struct Candidate {
  Slot slot;
  const FormerNode* displaced = nullptr;  // among those of the former plan that were not kept; nullptr: none
  bool moves_pods = false;                // the node has pods
  int64_t load = 0;  // the larger share of cpu and memory that is requested, in millionths
  double value = 0;  // what it costs; where any candidate has no price, how large it is
  // The deletion costs that its pods state, together: what is lost when they go. Below 2^31 pods.
  int64_t deletion_cost = 0;
};

// Eligible nodes that are not planned, in the order of `walk` where the problem has one, else by name. They
// refer to `displaced`.
std::vector<Candidate> Candidates(const DrainCall& call, const Snapshot& snapshot,
                                  std::span<const FormerNode> displaced);

// Returns whether all of them have a price.
bool ArePriced(const DrainCall& call, std::span<const Candidate> candidates);

enum class OrderBy { kLoad, kValue, kSmallest };
// Returns the candidates in the order in which they are tried. First come those of the former plan, in its
// order, for their timers run; then nodes without pods; then by what is asked, by deletion cost (the least
// first; 0 where no pod states any), by load, and by name. Where the last call was cut short, the nodes that
// it did not reach are before the others: `resume_at` is the first of them, or empty. In a walk the order is
// given.
std::vector<Candidate> Ordered(const DrainCall& call, std::vector<Candidate> candidates, OrderBy by,
                               absl::string_view resume_at);

// The order in which places are looked for: nodes that stay for sure, then candidates from the last one back,
// since those that are tried late are most likely to stay, then the rest of the former plan.
std::vector<NodeIndex> Destinations(const DrainCall& call, std::span<const Candidate> order);

// Plans candidates: each once, those that are risky at the end; all pods of a node find a place, or none
// moves. A node that has taken pods is no candidate any more. Where pods look at each other, those that
// failed are tried again. `anew`: there is no former plan; then another order competes, by value, and the one
// by which more nodes go wins. Returns the name of the first node that was not evaluated for want of work,
// where the next call resumes; empty: all were. Cost: O(pods of candidates * log) as far as room decides.
std::string PlanCandidates(std::span<const FormerNode> displaced, bool anew, DrainCall* call,
                           TrialFollower* follower, DrainMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_CANDIDATE_ROUNDS_H_
