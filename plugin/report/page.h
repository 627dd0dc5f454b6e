// The part of a page about a loop, beside slack, sizes and moves.
#ifndef LOADLINE_PLUGIN_REPORT_PAGE_H_
#define LOADLINE_PLUGIN_REPORT_PAGE_H_

#include "plugin/report/facts.h"
#include "plugin/report/loop_report.h"

namespace loadline {

// Groups, tables of nodes with notes, lines and warnings. report->status is whole. The client puts nodes
// whose removal is under way before those that could go.
void TellPage(const LoopReportInput& input, const GroupOfSlot& group_of, v1::LoopReport* report);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_PAGE_H_
