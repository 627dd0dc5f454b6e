// The report about groups that are sized by how full they are.
#ifndef LOADLINE_PLUGIN_REPORT_SIZE_REPORT_H_
#define LOADLINE_PLUGIN_REPORT_SIZE_REPORT_H_

#include <vector>

#include "plugin/report/loop_report.h"

namespace loadline {

// In the order of the answer; all but the warnings, which name pods that only the client knows.
std::vector<v1::NodeGroupSizeStatus> SizeStatuses(const LoopReportInput& input);

// Metrics and lines of the page. `statuses`: those above.
void TellSizes(const LoopReportInput& input, const std::vector<v1::NodeGroupSizeStatus>& statuses,
               v1::LoopReport* report);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_SIZE_REPORT_H_
