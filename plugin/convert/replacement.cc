#include "plugin/convert/replacement.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/observe/price_sums.h"
#include "core/replace/replacement.h"
#include "plugin/convert/consolidate.h"

namespace loadline {
namespace {

absl::string_view PhaseName(MoveUnderWay::Phase phase) {
  switch (phase) {
    case MoveUnderWay::Phase::kOrdered:
      return "ordered";
    case MoveUnderWay::Phase::kDraining:
      return "draining";
    case MoveUnderWay::Phase::kGivingBack:
      return "giving back";
  }
  return "invalid phase";
}

class NodeNames {
 public:
  explicit NodeNames(const ClusterState& cluster) {
    for (int32_t i = 0; i < cluster.slot_end(); ++i) {
      if (cluster.Occupied(Slot{i})) names_.emplace(KeyOfNode(cluster, Slot{i}), cluster.name(Slot{i}));
    }
  }

  // Adds the names of the nodes that are there.
  void Tell(const std::vector<uint64_t>& keys, google::protobuf::RepeatedPtrField<std::string>* names) const {
    for (const uint64_t key : keys) {
      if (const auto found = names_.find(key); found != names_.end()) names->Add(std::string(found->second));
    }
  }

 private:
  absl::flat_hash_map<uint64_t, absl::string_view> names_;
};

}  // namespace

void UseConsolidationPolicy(const DecodedConsolidationPolicy& policy, ReplacementPolicy* replacement) {
  replacement->options = policy.options;
  replacement->prices = policy.prices;
  replacement->windows = policy.windows;
  replacement->rest_ms = policy.rest_s * 1000;
}

v1::LoopReplacement EncodeReplacement(const LoopPlan& plan, const LoopProblem& problem) {
  v1::LoopReplacement message;
  const ReplacementPlan& replacement = plan.replacement;
  if (replacement.bill.has_value()) {
    *message.mutable_bill() = EncodeBill(
        *replacement.bill, TallyPrices(problem.groups, problem.drain.group_of, *problem.drain.cluster));
  }
  message.set_begun(static_cast<int64_t>(replacement.begun.size()));
  for (const ConsolidationMove& move : replacement.begun) {
    message.set_saves(message.saves() + move.saves);
    message.set_disrupted(message.disrupted() + move.disrupted);
  }
  if (replacement.moves.empty() && replacement.ended.empty()) return message;
  const NodeNames names(*problem.drain.cluster);
  for (const MoveUnderWay& move : replacement.moves) {
    v1::MoveUnderWay* const reported = message.add_moves();
    reported->set_phase(std::string(PhaseName(move.phase)));
    reported->set_seconds((problem.replacement.now_ms - move.at_ms) / 1000);
    names.Tell(move.remove, reported->mutable_remove());
    names.Tell(move.came, reported->mutable_add());
    reported->set_to_come(std::count(move.came.begin(), move.came.end(), uint64_t{0}));
  }
  for (const EndedMove& move : replacement.ended) {
    v1::EndedMove* const reported = message.add_ended();
    reported->set_why(move.why);
    reported->set_nodes(static_cast<int64_t>(move.remove.size()));
    names.Tell(move.remove, reported->mutable_remove());
  }
  return message;
}

}  // namespace loadline
