// The report about nodes that are replaced by cheaper ones.
#ifndef LOADLINE_PLUGIN_REPORT_MOVE_REPORT_H_
#define LOADLINE_PLUGIN_REPORT_MOVE_REPORT_H_

#include "plugin/report/loop_report.h"

namespace loadline {

v1::ReplacementStatus ReplacementStatusOf(const v1::LoopReplacement& replacement);

// Metrics, lines and a table of the page, and, where actions are carried out, events: on nodes that are to go
// when a move begins, and on those that stay when it is given up.
void TellMoves(const LoopReportInput& input, v1::LoopReport* report);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_MOVE_REPORT_H_
