#include "core/loop/kept.h"

#include <algorithm>
#include <cstddef>

namespace loadline {

void NoteKept(NodeGroupSpan groups, std::span<const LoopSizing> sized, std::span<const SizeDecision> sizes,
              const SlackPlanner* slack, LoopMemory* memory) {
  absl::erase_if(memory->sizes, [&](const auto& size) {
    return std::none_of(groups.begin(), groups.end(),
                        [&](const NodeGroup& group) { return group.name == size.first; });
  });
  for (size_t i = 0; i < sized.size(); ++i) {
    memory->sizes[sized[i].of.name] = sizes[i].next;
  }
  memory->slack.reset();
  if (slack != nullptr) memory->slack = slack->Kept();
}

void UseKeptSlack(const LoopMemory& memory, const LoopDecisions& decisions, SlackPlanner* slack) {
  if (decisions.slack && memory.slack.has_value()) slack->Restore(*memory.slack);
}

}  // namespace loadline
