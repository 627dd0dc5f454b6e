#include "core/loop/kept.h"

#include <algorithm>
#include <cstddef>

namespace loadline {

void NoteKept(const LoopProblem& problem, const LoopPlan& plan, const SlackPlanner& slack,
              LoopMemory* memory) {
  absl::erase_if(memory->sizes, [&](const auto& size) {
    return std::none_of(problem.groups.begin(), problem.groups.end(),
                        [&](const NodeGroup& group) { return group.name == size.first; });
  });
  for (size_t i = 0; i < problem.sized.size(); ++i) {
    memory->sizes[problem.sized[i].of.name] = plan.sizes[i].next;
  }
  memory->slack.reset();
  if (problem.decisions.slack) memory->slack = slack.Kept();
}

void UseKeptSlack(const LoopMemory& memory, const LoopDecisions& decisions, SlackPlanner* slack) {
  if (decisions.slack && memory.slack.has_value()) slack->Restore(*memory.slack);
}

}  // namespace loadline
