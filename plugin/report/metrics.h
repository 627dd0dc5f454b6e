// Values of metrics that the answer of a loop tells.
#ifndef LOADLINE_PLUGIN_REPORT_METRICS_H_
#define LOADLINE_PLUGIN_REPORT_METRICS_H_

#include <initializer_list>

#include "absl/strings/string_view.h"
#include "plugin/report/loop_report.h"

namespace loadline {

void AddMetric(absl::string_view name, std::initializer_list<absl::string_view> labels, double value,
               v1::LoopReport* report);

// All but those of slack, of groups that are sized, and of moves.
void TellMetrics(const LoopReportInput& input, v1::LoopReport* report);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_METRICS_H_
