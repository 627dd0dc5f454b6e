// The report about room that is kept free.
#ifndef LOADLINE_PLUGIN_REPORT_SLACK_REPORT_H_
#define LOADLINE_PLUGIN_REPORT_SLACK_REPORT_H_

#include "loadline/v1/report.pb.h"
#include "loadline/v1/slack.pb.h"

namespace loadline {

// All but `keep`, `running` and `problem`. The status is the worst of all classes and copies.
v1::KeptSlackStatus SlackStatusOf(const v1::PlanSlackResponse& slack);

// Metrics and the classes of the page.
void TellSlack(const v1::PlanSlackResponse& slack, v1::LoopReport* report);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_SLACK_REPORT_H_
