#include "plugin/report/loop_report.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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

// Groups that have failed, and a memory that cannot be read.
void LogFailures(const LoopTold& told, v1::LoopReport* report) {
  const auto add = [](v1::LogLine* line, absl::string_view key, std::string value) {
    line->add_values(std::string(key));
    line->add_values(std::move(value));
  };
  const v1::LoopFleetAnswer& fleet = told.answer.fleet();
  if (!fleet.state_problem().empty()) {
    v1::LogLine* const line = report->add_log();
    line->set_message("What was remembered of machines and groups cannot be read: all times begin anew");
    add(line, "why", fleet.state_problem());
  }
  for (const v1::FleetFailure& failure : fleet.failures()) {
    v1::LogLine* const line = report->add_log();
    line->set_message("Node group backs off");
    add(line, "group", failure.node_group());
    add(line, "reason", std::string(ReasonName(failure.back_off().reason())));
    add(line, "text", failure.back_off().text());
    add(line, "until", TimeText(failure.back_off().until_milliseconds() / 1000));
  }
}

}  // namespace

v1::LoopReport ReportOf(const LoopTold& told) {
  v1::LoopReport report;
  const GroupOfSlot group_of = GroupsOfCandidates(told.question, told.answer);
  const std::vector<v1::NodeGroupSizeStatus> sizes = SizeStatuses(told);
  const std::vector<GoingNode> going = GoingNodes(told, group_of);
  *report.mutable_status() = StatusOf(told, group_of, going, sizes);
  TellMetrics(told, going, &report);
  TellPage(told, group_of, going, &report);
  if (Decides(told.question, v1::PlanLoopRequest::SLACK)) TellSlack(told.answer.slack(), &report);
  TellSizes(told, sizes, &report);
  if (Decides(told.question, v1::PlanLoopRequest::REPLACE)) TellMoves(told, &report);
  LogFailures(told, &report);
  return report;
}

}  // namespace loadline
