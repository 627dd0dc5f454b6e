#include "plugin/report/loop_report.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/texts.h"
#include "plugin/report/facts.h"
#include "plugin/report/metrics.h"
#include "plugin/report/move_report.h"
#include "plugin/report/page.h"
#include "plugin/report/size_report.h"
#include "plugin/report/slack_report.h"
#include "plugin/report/status.h"
#include "plugin/report/words.h"

namespace loadline {
namespace {

void AddValue(absl::string_view key, std::string value, v1::LogLine* line) {
  line->add_values(std::string(key));
  line->add_values(std::move(value));
}

// A memory that cannot be read, and groups that have failed.
void LogFailures(const LoopReportInput& input, v1::LoopReport* report) {
  const v1::LoopFleetAnswer& fleet = input.answer.fleet();
  if (!fleet.state_problem().empty()) {
    v1::LogLine* const line = report->add_log();
    line->set_message("The stored state of machines and groups cannot be read: all timers restart");
    AddValue("why", fleet.state_problem(), line);
  }
  for (const v1::FleetFailure& failure : fleet.failures()) {
    if (report->log_size() == kMostLines) break;
    v1::LogLine* const line = report->add_log();
    line->set_message("Node group backs off");
    AddValue("group", failure.node_group(), line);
    AddValue("reason", std::string(ReasonName(failure.back_off().reason())), line);
    AddValue("text", CutText(failure.back_off().text(), kMostCloudText), line);
    AddValue("until", TimeText(failure.back_off().until_milliseconds() / 1000), line);
  }
}

}  // namespace

v1::LoopReport ReportOf(const LoopReportInput& input) {
  v1::LoopReport report;
  const GroupOfSlot group_of = GroupsOfCandidates(input.question, input.answer);
  const std::vector<v1::NodeGroupSizeStatus> sizes = SizeStatuses(input);
  *report.mutable_status() = StatusOf(input, group_of, sizes);
  TellMetrics(input, &report);
  TellPage(input, group_of, &report);
  if (Decides(input.question, v1::PlanLoopRequest::SLACK)) TellSlack(input.answer.slack(), &report);
  TellSizes(input, sizes, &report);
  if (Decides(input.question, v1::PlanLoopRequest::REPLACE)) TellMoves(input, &report);
  for (const std::string& note : input.answer.price_sources().notes()) report.add_lines(note);
  LogFailures(input, &report);
  return report;
}

void Shorten(v1::LoopReport* report) {
  v1::LoopReport shorter;
  *shorter.mutable_status() = std::move(*report->mutable_status());
  shorter.mutable_status()->clear_node_groups();
  shorter.mutable_status()->clear_warnings();
  shorter.mutable_status()->add_warnings("the answer of the loop is so large that it leaves out the groups");
  *shorter.mutable_metrics() = std::move(*report->mutable_metrics());
  *report = std::move(shorter);
}

}  // namespace loadline
