// The observation of a loop with PlanLoopRequest.fleet before it plans, and its memory after it.
#ifndef LOADLINE_PLUGIN_SERVICE_FLEET_TURN_H_
#define LOADLINE_PLUGIN_SERVICE_FLEET_TURN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/drain/timers.h"
#include "core/grow/vain_growth.h"
#include "core/observe/loop_findings.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/loop_fleet.h"
#include "plugin/service/question_cluster.h"

namespace loadline {

// The machines and groups of a loop, as they are observed, and the memory from loop to loop.
class FleetTurn {
 public:
  // Observes `cluster`, and shows its nodes as plans see them. `growth`: the groups of the request.
  // Errors: those of DecodeLoopFleet()
  static absl::StatusOr<std::unique_ptr<FleetTurn>> Begin(const v1::PlanLoopRequest& request,
                                                          const DecodedProblem& growth,
                                                          const LoopDecisions& decisions,
                                                          QuestionCluster* cluster);
  FleetTurn(const FleetTurn&) = delete;
  FleetTurn& operator=(const FleetTurn&) = delete;

  // Says of the groups what their nodes show, see DescribeByNodes(). `stated`: those that `decoded` was
  // decoded from.
  void Describe(const ScalableGroups& stated, DecodedProblem* decoded) const;
  // Groups and nodes of which something cannot be taken.
  const LeftOutList& left_out() const { return fleet_.left_out; }
  // Nodes that the drain planner is to forget as being deleted.
  void AddProgress(v1::PlanDrainRequest* drain) const;
  // Returns the timers of unneeded nodes of an earlier process.
  std::vector<TimedNode> Timers(int64_t now_s, int64_t ttl_s) const;
  // Returns what groups that are sized left, as requests have it; `of_view`: the part for which the memory
  // has no room.
  v1::SizeState Sizes(const v1::SizeState& of_view) const;
  // Gives a new planner the slack of an earlier process.
  void UseSlack(const LoopProblem& problem, SlackPlanner* slack) const;
  // Fills in what the plan reads of machines and groups, and of the batch.
  void Use(LoopProblem* problem) const;
  // Takes note of why groups do not grow, by group; empty: they may.
  void NoteHeld(const StrongVector<GroupIndex, std::string>& held);
  // Keeps groups from growing again for pods that nodes which came for them do not take.
  void HoldVainGrowth(Snapshot* snapshot, WorkBudget* budget, LoopProblem* problem);
  // Returns the answer, with the state from which the next loop starts.
  v1::LoopFleetAnswer Finish(const LoopProblem& problem, const LoopPlan& plan, const SlackPlanner& slack);
  // Adds to it why pods get no node. `entries` are those of the pods of the request; see RefusedByNewNodes().
  void TellWhyNoGrowth(const LoopProblem& problem, const LoopPlan& plan, const PodEntries& entries,
                       Snapshot* snapshot, WorkBudget* budget, v1::LoopFleetAnswer* answer) const;

 private:
  explicit FleetTurn(const View* view) : view_(*view) {}

  const View& view_;
  DecodedLoopFleet fleet_;
  LoopMemory memory_;
  std::string state_problem_;
  LoopFindings findings_;
  std::vector<VainGrowth> vain_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_FLEET_TURN_H_
