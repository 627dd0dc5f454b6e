// The status that an answer tells.
#ifndef LOADLINE_PLUGIN_REPORT_STATUS_H_
#define LOADLINE_PLUGIN_REPORT_STATUS_H_

#include <vector>

#include "plugin/report/facts.h"
#include "plugin/report/loop_report.h"

namespace loadline {

// All but what only the client knows: left_out, pods, what is under way, how slack is kept, and what came of
// actions. `sizes`: see SizeStatuses().
v1::AutoscalerStatus StatusOf(const LoopReportInput& input, const GroupOfSlot& group_of,
                              const std::vector<v1::NodeGroupSizeStatus>& sizes);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_STATUS_H_
