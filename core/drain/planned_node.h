// Nodes of a plan, as the planner keeps them from one call to the next.
#ifndef LOADLINE_CORE_DRAIN_PLANNED_NODE_H_
#define LOADLINE_CORE_DRAIN_PLANNED_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/drain/drain_question.h"
#include "core/drain/drain_trial.h"

namespace loadline {

// A pod that moved, as the trial cluster knows it.
struct PlacedPod {
  uint64_t key = 0;   // see DrainCall::KeyOf()
  int32_t kind = -1;  // of DrainTrial
  NodeIndex to = kNoNode;
};

// A node of the plan. Its moves are applied to the trial cluster.
struct PlannedNode {
  Slot slot = Slot{-1};
  NodeIndex node = kNoNode;
  std::string uid;
  int64_t since_s = 0;
  bool empty = false;
  bool risky = false;
  std::shared_ptr<const DrainRemoval::Moves> moves;  // as the plan tells them
  std::vector<PlacedPod> placed;                     // by move
  absl::InlinedVector<Slot, 4> destinations;         // of its moves, each once; few, and read in every call
  std::vector<PodRef> sources;                       // that move: pods in order of position, placeholders
  std::vector<int32_t> waits_for;                    // positions of pods
  // The answer of the rules for its pods does not change with time.
  bool settled = false;
  // The engine said that it is to be removed at once.
  bool start = false;
};

// A node of a former plan whose moves are not applied to the trial cluster: by names, which outlive changes.
struct FormerNode {
  std::string node;
  std::string uid;
  int64_t since_s = 0;
  std::vector<std::pair<uint64_t, std::string>> hints;  // key of a pod, and the node that it was to move to
};

// A node of the former plan, in its order: with its moves applied, or by names.
struct FormerEntry {
  std::optional<PlannedNode> intact;
  FormerNode former;
  bool replaced = false;  // by DrainProblem::replaced
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_PLANNED_NODE_H_
