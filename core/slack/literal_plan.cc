#include "core/slack/literal_plan.h"

#include <vector>

#include "core/base/amount.h"
#include "core/slack/slack_size.h"

namespace loadline {

LiteralSlackPlan LiteralPlan(const SlackRooms& rooms, const SlackOptions& options) {
  LiteralSlackPlan literal;
  std::vector<CpuMemory> pods;
  for (size_t slot = 0; slot < rooms.node_end(); ++slot) {
    const SlackRooms::Node& node = rooms.node(slot);
    if (!node.machine) continue;
    ++literal.nodes;
    literal.capacity = Plus(literal.capacity, node.allocatable);
    for (const auto& [number, count] : node.pods) pods.push_back(rooms.pod(number).requests);
  }
  literal.standard = LiteralStandard(literal.capacity, literal.nodes, options.granularity);
  const CpuMemory any{kMaxAmount, kMaxAmount};
  const std::vector<CpuMemory> biggest = ReserveFor(ReserveMode::kBiggest, pods, any);
  if (!biggest.empty()) {
    literal.most_cpu = biggest.front();
    literal.most_memory = biggest.back();
  }
  literal.after_biggest = LiteralRemaining(literal.capacity, options.rate,
                                           std::vector<CpuMemory>{literal.most_cpu, literal.most_memory});
  literal.after_hull = LiteralRemaining(
      literal.capacity, options.rate, std::vector<CpuMemory>{Larger(literal.most_cpu, literal.most_memory)});
  return literal;
}

}  // namespace loadline
