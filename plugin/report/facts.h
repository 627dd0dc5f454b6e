// The facts that several parts of a report share.
#ifndef LOADLINE_PLUGIN_REPORT_FACTS_H_
#define LOADLINE_PLUGIN_REPORT_FACTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "loadline/v1/loop.pb.h"
#include "loadline/v1/report.pb.h"

namespace loadline {

// How many examples the status has of each kind at most, rows each table of the page, groups the page, and
// warnings and lines the status and the log.
inline constexpr int kMostStatusEntries = 5;
inline constexpr int kMostPageRows = 20;
inline constexpr int kMostPageGroups = 100;
inline constexpr int kMostLines = 100;
// Bytes of a text of the cloud: a thousand groups may fail at once.
inline constexpr size_t kMostCloudText = 256;

// Returns whether a decision is taken here.
bool Decides(const v1::PlanLoopRequest& question, v1::PlanLoopRequest::Decision decision);

// Pods of the question that wait for a node, and those of them that get none.
int64_t WaitingPodsOf(const v1::PlanLoopRequest& question, const v1::PlanLoopResponse& answer);
int64_t UnplacedPodsOf(const v1::PlanLoopRequest& question, const v1::PlanLoopResponse& answer);

// The label of metrics and the code of the status for why a group has failed.
absl::string_view ReasonName(v1::GroupBackOff::Reason reason);

// The nodes of a group, and of all groups and none.
v1::NodeCounts CountsOf(const v1::GroupSight& group);
v1::NodeCounts CountsOfAll(const v1::LoopFleetAnswer& fleet);

// Nodes on their way to a group.
inline int64_t Upcoming(const v1::GroupSight& group) { return group.starting() + group.coming(); }

// Position of the node group of each node that can go, by slot; a node of no group has none. Cost:
// O(machines).
using GroupOfSlot = absl::flat_hash_map<int32_t, int>;
GroupOfSlot GroupsOfCandidates(const v1::PlanLoopRequest& question, const v1::PlanLoopResponse& answer);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_FACTS_H_
