// The log of what the loop under test has done about nodes that are replaced by cheaper ones.
#ifndef LOADLINE_CORE_SIM_MOVE_LOG_H_
#define LOADLINE_CORE_SIM_MOVE_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/observe/replacement_policy.h"

namespace loadline {

// A move that began.
struct SimMove {
  int64_t at_ms = 0;
  double saves = 0;  // US dollars per hour, as planned
  int64_t pods = 0;  // that it disturbs
  int64_t removed = 0;
  int64_t added = 0;
};

// The cost of the cluster per hour when it was at rest, and the cost that the plan of that loop reaches: see
// ConsolidationBill.
struct SimBill {
  int64_t at_ms = 0;
  double now = 0;
  double bound = 0;
  double reachable = 0;
};

// The moves of a simulation, and the bills at rest.
struct SimMoves {
  int64_t begun = 0;
  int64_t done = 0;
  int64_t given_up = 0;
  std::vector<SimMove> log;               // the first kMostSimMoves
  std::vector<SimBill> bills;             // likewise; each that differs from the one before
  std::vector<std::string> why_given_up;  // likewise
};
inline constexpr size_t kMostSimMoves = 1'000;  // chosen: the answer stays small; all moves are counted

// Takes note of what one loop did. Cost: O(moves that began or ended).
void NoteInLog(const ReplacementPlan& plan, int64_t now_ms, SimMoves* moves);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_MOVE_LOG_H_
