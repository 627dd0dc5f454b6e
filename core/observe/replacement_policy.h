// When nodes are replaced by cheaper ones, and what a loop tells and remembers of that.
#ifndef LOADLINE_CORE_OBSERVE_REPLACEMENT_POLICY_H_
#define LOADLINE_CORE_OBSERVE_REPLACEMENT_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/base/time_window.h"
#include "core/consolidate/consolidation.h"
#include "core/drain/disturbance.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// The options of replacement: limits, windows and waiting times.
struct ReplacementPolicy {
  // `max_nodes_at_once` and `max_pods_at_once` hold for all moves that are carried out. `payback_hours` is
  // the least time for which a saving is expected to last, see load_rest.h.
  ConsolidationOptions options;
  DisturbancePrices prices;
  // Moves begin only then. Those that have begun go on.
  TimeWindows windows;
  // New nodes that are not ready after so long do not come. Drains have failed if no pod has left its node
  // for `drain_wait_ms`, and in any case after `all_drains_ms`. Chosen: a budget of one pod at a time and
  // pods that start for an hour let 24 pods move in a day.
  int64_t node_wait_ms = int64_t{15} * 60 * 1000;
  int64_t drain_wait_ms = int64_t{60} * 60 * 1000;
  int64_t all_drains_ms = int64_t{24} * 3600 * 1000;
  // Nodes that came by a move, or took its pods, are not replaced for so long; those of a move that was given
  // up are not tried again either: twice as long each time, up to kMostGivenUpMs.
  int64_t rest_ms = int64_t{30} * 60 * 1000;
};

// The policy, and what the last loop remembered.
struct LoopReplacement : ReplacementPolicy {
  int64_t now_ms = 0;
  // The time for which old and new nodes exist side by side in a move, as far as it is known.
  int64_t surge_ms = 0;
  std::vector<MoveUnderWay> moves;
  absl::btree_map<uint64_t, int64_t> resting_since_ms;
  absl::btree_map<uint64_t, GivenUpMoves> given_up;
  std::optional<RestingLoad> load;
};

// A move that is over.
struct EndedMove {
  std::vector<uint64_t> remove;  // keys of its old nodes
  std::string why;               // why it was given up; empty: it is done
};

// The outcome of a loop as to moves.
struct ReplacementPlan {
  std::vector<MoveUnderWay> moves;  // in progress; to remember
  absl::btree_map<uint64_t, int64_t> resting_since_ms;
  absl::btree_map<uint64_t, GivenUpMoves> given_up;
  std::optional<RestingLoad> load;  // also to remember
  // The time for which a saving is expected to last, in hours. It replaces `options.payback_hours`.
  double saving_lasts_hours = 0;
  // How long the new nodes of a move took that are ready since this loop, and the old ones until they were
  // gone.
  std::optional<int64_t> nodes_took_ms;
  std::optional<int64_t> drains_took_ms;
  // Moves that begin now, as consolidation found them.
  std::vector<ConsolidationMove> begun;
  std::vector<EndedMove> ended;
  std::optional<ConsolidationBill> bill;  // of the loops that look for moves
  bool continues = false;                 // the budget ended before all moves were tried: the next loop does
};

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_REPLACEMENT_POLICY_H_
