#include "plugin/report/size_report.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "plugin/report/facts.h"
#include "plugin/report/metrics.h"
#include "plugin/report/words.h"

namespace loadline {
namespace {

absl::string_view ActionName(v1::GroupSize::Action action) {
  switch (action) {
    case v1::GroupSize::SCALE_UP:
      return "scale-up";
    case v1::GroupSize::REMOVE_SLOWLY:
      return "remove-slowly";
    case v1::GroupSize::REMOVE_FAST:
      return "remove-fast";
    default:
      return "nothing";
  }
}

std::string PercentText(const v1::Utilization& of, double percent) {
  if (of.kind() == v1::Utilization::FROM_ZERO) return "from zero";
  if (of.kind() == v1::Utilization::NO_CAPACITY) return "no capacity";
  return absl::StrFormat("%.1f %%", percent);
}

// In a line.
std::string SizeText(const v1::NodeGroupSizeStatus& status) {
  std::string text = absl::StrFormat("cpu %s, memory %s, %s, %+d: %s", status.cpu(), status.memory(),
                                     status.action(), status.delta(), status.reason());
  if (status.tainted() > 0) absl::StrAppend(&text, "; ", status.tainted(), " tainted");
  if (!status.held().empty()) absl::StrAppend(&text, "; asks for nothing: ", status.held());
  if (status.dry_mode()) absl::StrAppend(&text, "; dry mode, nothing is done");
  return text;
}

v1::NodeGroupSizeStatus StatusOf(const v1::GroupSize& group, std::string held, bool dry_run) {
  v1::NodeGroupSizeStatus status;
  const v1::Utilization& of = group.utilization();
  status.set_cpu(PercentText(of, of.cpu_percent()));
  status.set_memory(PercentText(of, of.memory_percent()));
  status.set_action(std::string(ActionName(group.action())));
  status.set_delta(Clamped32(group.delta()));
  status.set_reason(group.reason_text());
  status.set_tainted(Clamped32(group.tainted_nodes()));
  status.set_held(std::move(held));
  status.set_dry_mode(dry_run);
  return status;
}

void AddMetrics(const v1::GroupSize& group, v1::LoopReport* report) {
  const std::string& name = group.node_group();
  if (const v1::Utilization& of = group.utilization(); of.kind() == v1::Utilization::PERCENT) {
    AddMetric("sized_group_utilization_percent", {name, "cpu"}, of.cpu_percent(), report);
    AddMetric("sized_group_utilization_percent", {name, "memory"}, of.memory_percent(), report);
  }
  AddMetric("sized_group_delta_nodes", {name}, static_cast<double>(group.delta()), report);
  AddMetric("sized_group_tainted_nodes", {name}, static_cast<double>(group.tainted_nodes()), report);
  AddMetric("sized_group_locked", {name}, group.reason() == v1::GroupSize::LOCKED ? 1 : 0, report);
}

}  // namespace

std::vector<v1::NodeGroupSizeStatus> SizeStatuses(const LoopReportInput& input) {
  absl::flat_hash_map<absl::string_view, absl::string_view> held;
  for (const v1::GroupSight& group : input.answer.fleet().groups()) held[group.node_group()] = group.held();
  const bool grows_here = Decides(input.question, v1::PlanLoopRequest::SCALE_UP);
  std::vector<v1::NodeGroupSizeStatus> statuses;
  for (int i = 0; i < input.answer.size().groups_size(); ++i) {
    const v1::GroupSize& group = input.answer.size().groups(i);
    std::string why(grows_here ? held[group.node_group()] : "growth is decided elsewhere");
    statuses.push_back(StatusOf(group, std::move(why), input.question.sized(i).dry_run()));
  }
  return statuses;
}

void TellSizes(const LoopReportInput& input, const std::vector<v1::NodeGroupSizeStatus>& statuses,
               v1::LoopReport* report) {
  for (size_t i = 0; i < statuses.size(); ++i) {
    const v1::GroupSize& group = input.answer.size().groups(static_cast<int>(i));
    report->add_lines(absl::StrCat("Sized: ", group.node_group(), ": ", SizeText(statuses[i]), "."));
    AddMetrics(group, report);
  }
}

}  // namespace loadline
