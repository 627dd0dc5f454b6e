#include "core/grow/small_groups.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/scoped_fork.h"
#include "core/fit/pod_fit.h"

namespace loadline {
namespace {

// The part of the work that judging daemons may take. Chosen, as for vain growth.
constexpr double kForDaemons = 0.1;

// Work in units of about 100 ns, as in core/size/new_node.cc: preparing a pod, and one judgement.
constexpr int64_t kPreparingDaemon = 100;
constexpr int64_t kJudgingDaemon = 10;

using DaemonFits = std::vector<std::unique_ptr<PodFit>>;

NodeIndex AddNewNodeOf(const NodeGroup& group, Snapshot* snapshot) {
  return AddNodeOf(*group.model, absl::StrCat(group.name, "/daemons"), snapshot);
}

std::string DaemonText(const IncomingPod& daemon) {
  const std::optional<PodOwner>& owner = TraitsOf(daemon.shape).owner;
  return absl::StrCat(daemon.shape.namespace_name, "/", owner.has_value() ? owner->name : daemon.name);
}

// Returns the first daemon that lacks nothing but room on a new node of the group; nullptr: there is none, or
// the budget has ended.
const IncomingPod* WithoutRoom(const NodeGroup& group, const DaemonFits& fits, Snapshot* snapshot,
                               WorkBudget* budget) {
  const ScopedFork supposed(snapshot);
  const NodeIndex node = AddNewNodeOf(group, snapshot);
  for (const std::unique_ptr<PodFit>& fit : fits) {
    if (!budget->Spend(kJudgingDaemon * fit->UnitsPerNode())) return nullptr;
    if (fit->Fits(node)) {
      snapshot->PlacePod(node, fit->shape());
      continue;
    }
    const Verdict verdict = fit->Judge(node);
    if (verdict.judgement == Judgement::kDoesNotFit && verdict.filter == FilterName::kNodeResourcesFit) {
      return &fit->pod();
    }
  }
  return nullptr;
}

}  // namespace

StrongVector<GroupIndex, std::string> HoldSmallGroups(Snapshot* snapshot, WorkBudget* budget,
                                                      LoopProblem* problem) {
  StrongVector<GroupIndex, std::string> held(problem->groups.size());
  const WorkPhase phase(budget, kForDaemons);
  DaemonFits fits;
  for (const IncomingPod& daemon : problem->daemons) {
    if (!budget->Spend(kPreparingDaemon)) return held;
    fits.push_back(std::make_unique<PodFit>(snapshot, daemon, &problem->scale_down.fit, budget));
  }
  for (const std::unique_ptr<PodFit>& fit : fits) fit->Refresh(budget);
  for (const GroupIndex index : problem->groups.indices()) {
    NodeGroup& group = problem->groups[index];
    if (!group.model.has_value()) continue;
    const IncomingPod* const daemon = WithoutRoom(group, fits, snapshot, budget);
    if (daemon == nullptr) continue;
    held[index] =
        absl::StrCat("a new node has no room for all pods of DaemonSets, such as ", DaemonText(*daemon));
    if (group.blocked_reason.empty()) group.blocked_reason = held[index];
  }
  return held;
}

}  // namespace loadline
