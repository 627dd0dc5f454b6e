// The report of a loop for people, made of its question and its answer. Nothing is decided here.
#ifndef LOADLINE_PLUGIN_REPORT_LOOP_REPORT_H_
#define LOADLINE_PLUGIN_REPORT_LOOP_REPORT_H_

#include <functional>
#include <string>

#include "loadline/v1/loop.pb.h"
#include "loadline/v1/report.pb.h"

namespace loadline {

// The input for the report of one loop, with PlanLoopRequest.fleet. All of it outlives the call that it is
// given to.
struct LoopReportInput {
  const v1::PlanLoopRequest& question;
  const v1::PlanLoopResponse& answer;
  // The name of the node in a slot that the answer names.
  std::function<std::string(int32_t)> name_of;
};

// All but what only the client knows. `answer` is whole but for `report`.
// Cost: O(size of the question's groups and pods, and of the answer), with logarithms for what is sorted.
v1::LoopReport ReportOf(const LoopReportInput& input);

// Leaves the metrics and the status without groups and warnings, for an answer that has no room for more.
void Shorten(v1::LoopReport* report);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_LOOP_REPORT_H_
