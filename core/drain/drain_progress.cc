#include "core/drain/drain_progress.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"

namespace loadline {

bool IsDeleting(const DrainState& state, absl::string_view node) {
  return std::any_of(state.deleting.begin(), state.deleting.end(),
                     [&](const DeletingNode& deleting) { return deleting.node == node; });
}

void NoteStarted(absl::string_view node, int64_t now_s, const ClusterState& cluster, DrainState* state) {
  const std::optional<Slot> slot = cluster.Find(node);
  if (!slot.has_value() || IsDeleting(*state, node)) return;
  DeletingNode deleting = {std::string(node), cluster.traits(*slot).uid, now_s, /*drain=*/true, {}};
  const auto found = std::find_if(state->unneeded.begin(), state->unneeded.end(),
                                  [&](const UnneededNode& unneeded) { return unneeded.node == node; });
  if (found != state->unneeded.end()) {
    deleting.risky = found->risky;
    deleting.left_out = found->start;
    deleting.drain = std::any_of(found->hints.begin(), found->hints.end(), [](const DestinationHint& hint) {
      return !absl::StartsWith(hint.pod, "placeholder/");
    });
    deleting.hints = std::move(found->hints);
    state->unneeded.erase(found);
  }
  state->deleting.push_back(std::move(deleting));
}

void NoteFailed(absl::string_view node, DrainState* state) {
  std::erase_if(state->deleting, [&](const DeletingNode& deleting) { return deleting.node == node; });
}

DrainState StateFromTimers(const ClusterState& cluster, const TimerOptions& options, int64_t now_s,
                           std::span<const TimedNode> known) {
  std::vector<TimedNode> nodes(known.begin(), known.end());
  absl::flat_hash_set<Slot> slots;
  for (const TimedNode& node : nodes) slots.insert(node.slot);
  for (const TimedNode& node : RestoreTimers(cluster, options, now_s).unneeded) {
    if (!slots.contains(node.slot)) nodes.push_back(node);
  }
  DrainState state;
  for (const TimedNode& node : nodes) {
    state.unneeded.push_back(
        {std::string(cluster.name(node.slot)), cluster.traits(node.slot).uid, node.since_s, {}});
  }
  return state;
}

}  // namespace loadline
