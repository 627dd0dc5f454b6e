#include "plugin/report/loop_report.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/fleet/texts.h"
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
void LogFailures(const LoopTold& told, v1::LoopReport* report) {
  const v1::LoopFleetAnswer& fleet = told.answer.fleet();
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

v1::LoopReport ReportOf(const LoopTold& told) {
  v1::LoopReport report;
  const GroupOfSlot group_of = GroupsOfCandidates(told.question, told.answer);
  const std::vector<v1::NodeGroupSizeStatus> sizes = SizeStatuses(told);
  *report.mutable_status() = StatusOf(told, group_of, sizes);
  TellMetrics(told, &report);
  TellPage(told, group_of, &report);
  if (Decides(told.question, v1::PlanLoopRequest::SLACK)) TellSlack(told.answer.slack(), &report);
  TellSizes(told, sizes, &report);
  if (Decides(told.question, v1::PlanLoopRequest::REPLACE)) TellMoves(told, &report);
  for (const std::string& note : told.answer.price_sources().notes()) report.add_lines(note);
  LogFailures(told, &report);
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
