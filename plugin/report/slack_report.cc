#include "plugin/report/slack_report.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin/report/facts.h"
#include "plugin/report/metrics.h"
#include "plugin/report/words.h"

namespace loadline {
namespace {

absl::string_view StatusName(v1::SlackStatus status) {
  switch (status) {
    case v1::SLACK_READY:
      return "ready";
    case v1::SLACK_MISSING:
      return "missing";
    case v1::SLACK_LIMITED:
      return "limited";
    case v1::SLACK_UNPLACEABLE:
      return "unplaceable";
    default:
      return "none";
  }
}

// The values of the enumeration are the worse the larger.
class Reasons {
 public:
  void Note(absl::string_view name, v1::SlackStatus status, absl::string_view why) {
    worst_ = std::max(worst_, status);
    if (!why.empty() && reported_.size() < kMostStatusEntries) reported_.Add(absl::StrCat(name, ": ", why));
  }
  void Tell(std::string text) { reported_.Add(std::move(text)); }
  v1::SlackStatus worst() const { return worst_; }
  const Texts& reported() const { return reported_; }

 private:
  v1::SlackStatus worst_ = v1::SLACK_STATUS_UNSPECIFIED;
  Texts reported_;
};

Reasons ReasonsOf(const v1::PlanSlackResponse& slack) {
  Reasons reasons;
  for (const v1::ClassSlack& of : slack.classes()) reasons.Note(of.name(), of.status(), of.reason());
  for (const v1::MirroredSlack& of : slack.mirrored()) {
    reasons.Note(Listed(of.sources()), of.status(), of.reason());
  }
  for (const v1::SlackWishError& wrong : slack.errors()) {
    reasons.Note(wrong.source(), v1::SLACK_STATUS_UNSPECIFIED, wrong.text());
  }
  if (const int64_t further = slack.errors_total() - slack.errors_size(); further > 0) {
    reasons.Tell(absl::StrCat(Counted(further, "more wish", "es"), " for copies cannot be met"));
  }
  if (slack.classes_total() > slack.classes_size()) {
    reasons.Tell(absl::StrCat("the status is that of the first ", slack.classes_size(), " of ",
                              slack.classes_total(), " classes"));
  }
  return reasons;
}

int64_t MissingCpu(const v1::ClassSlack& of) { return of.sum().milli_cpu() - of.ready().milli_cpu(); }

void AddBar(absl::string_view resource, int64_t wanted, int64_t kept, int64_t ready, v1::PageSlack* slack) {
  v1::PageSlackBar* const bar = slack->add_bars();
  bar->set_resource(std::string(resource));
  bar->set_wanted(wanted);
  bar->set_kept(kept);
  bar->set_ready(ready);
}

void AddClasses(const v1::PlanSlackResponse& slack, v1::LoopReport* report) {
  absl::flat_hash_map<absl::string_view, int64_t> asked;
  for (const v1::SlackDemand& demand : slack.demands()) asked[demand.class_name()] += demand.nodes();
  std::vector<const v1::ClassSlack*> classes;
  for (const v1::ClassSlack& of : slack.classes()) classes.push_back(&of);
  std::stable_sort(classes.begin(), classes.end(), [](const v1::ClassSlack* a, const v1::ClassSlack* b) {
    return MissingCpu(*a) > MissingCpu(*b);
  });
  classes.resize(std::min<size_t>(classes.size(), kMostPageRows));
  for (const v1::ClassSlack* of : classes) {
    v1::PageSlack* const page = report->add_slack();
    page->set_name(of->name());
    page->set_note(Counted(of->nodes(), "node"));
    std::string reason = of->reason().empty() ? std::string(StatusName(of->status())) : of->reason();
    if (const int64_t more = asked[of->name()]; more > 0) {
      absl::StrAppend(&reason, "; asks for ", Counted(more, "more node"));
    }
    page->set_reason(std::move(reason));
    AddBar("cpu", of->extra().milli_cpu(), of->sum().milli_cpu(), of->ready().milli_cpu(), page);
    AddBar("memory", of->extra().memory_bytes(), of->sum().memory_bytes(), of->ready().memory_bytes(), page);
  }
}

}  // namespace

v1::KeptSlackStatus SlackStatusOf(const v1::PlanSlackResponse& slack) {
  v1::KeptSlackStatus status;
  int64_t wanted = 0, placed = 0, nodes = 0;
  for (const v1::ShapeSlack& shape : slack.shapes()) {
    wanted += shape.count();
    placed += shape.placed();
  }
  for (const v1::SlackDemand& demand : slack.demands()) nodes += demand.nodes();
  const Reasons reasons = ReasonsOf(slack);
  status.set_status(std::string(StatusName(wanted > 0 ? reasons.worst() : v1::SLACK_STATUS_UNSPECIFIED)));
  status.set_wanted(Clamped32(wanted));
  status.set_placed(Clamped32(placed));
  status.set_missing(Clamped32(wanted - placed));
  status.set_nodes(Clamped32(nodes));
  *status.mutable_why() = reasons.reported();
  return status;
}

void TellSlack(const v1::PlanSlackResponse& slack, v1::LoopReport* report) {
  double wanted_cpu = 0, wanted_bytes = 0, ready_cpu = 0, ready_bytes = 0;  // amounts are up to 2^62 each
  for (const v1::ClassSlack& of : slack.classes()) {
    wanted_cpu += static_cast<double>(of.sum().milli_cpu());
    wanted_bytes += static_cast<double>(of.sum().memory_bytes());
    ready_cpu += static_cast<double>(of.ready().milli_cpu());
    ready_bytes += static_cast<double>(of.ready().memory_bytes());
  }
  AddMetric("slack_target_cores", {}, wanted_cpu / 1000, report);
  AddMetric("slack_current_cores", {}, ready_cpu / 1000, report);
  AddMetric("slack_target_bytes", {}, wanted_bytes, report);
  AddMetric("slack_current_bytes", {}, ready_bytes, report);
  AddClasses(slack, report);
}

}  // namespace loadline
