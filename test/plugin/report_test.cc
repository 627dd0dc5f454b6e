// The report of a loop for people. Expected texts and numbers are counted by hand from the messages below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "loadline/v1/loop.pb.h"
#include "loadline/v1/report.pb.h"
#include "plugin/report/loop_report.h"

namespace loadline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kReportedAtS = 1'800'000'000;  // 2027-01-15T08:00:00Z

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() {
    question_.set_now_s(kReportedAtS);
    question_.mutable_fleet()->set_acts(true);
  }

  // A group with what was found out about it. Its only machine is the node in `slot`.
  v1::GroupSight* AddGroup(const std::string& name, int32_t target, int32_t slot) {
    v1::LoopGroup* const group = question_.add_groups();
    group->mutable_growth()->set_node_group(name);
    group->mutable_growth()->set_max_nodes(10);
    group->mutable_cloud()->set_target(target);
    group->mutable_cloud()->add_machines()->set_slot(slot);
    v1::GroupSight* const findings = answer_.mutable_fleet()->add_groups();
    findings->set_node_group(name);
    return findings;
  }

  v1::NodeRemoval* AddCandidate(int32_t slot) {
    v1::NodeRemoval* const removal = answer_.mutable_scale_down()->add_remove();
    removal->set_slot(slot);
    removal->set_since_s(kReportedAtS - 90);
    return removal;
  }

  void AddStay(const std::string& reason, const std::string& advice, int32_t first, int count) {
    v1::StayReason* const stay = answer_.mutable_scale_down()->add_stay();
    stay->mutable_first()->set_reason(reason);
    stay->mutable_first()->set_advice(advice);
    stay->mutable_first()->set_slot(first);
    for (int i = 0; i < count; ++i) stay->add_slots(first + i);
  }

  v1::LoopReport Report() {
    return ReportOf({question_, answer_, [](int32_t slot) { return absl::StrCat("n", slot); }});
  }

  // "name{labels} value" of each metric.
  static std::vector<std::string> Metrics(const v1::LoopReport& report) {
    std::vector<std::string> metrics;
    for (const v1::MetricValue& metric : report.metrics()) {
      metrics.push_back(
          absl::StrCat(metric.name(), "{", absl::StrJoin(metric.labels(), ","), "} ", metric.value()));
    }
    return metrics;
  }

  static std::vector<std::string> Rows(const v1::PageTable& table) {
    std::vector<std::string> rows;
    for (const v1::PageRow& row : table.rows()) rows.push_back(absl::StrJoin(row.cells(), " | "));
    return rows;
  }

  v1::PlanLoopRequest question_;
  v1::PlanLoopResponse answer_;
};

// Three of 9 pods do not wait, and 2 of the others get no node; 4 are deferred and 1 is left out. A run
// behind the end of the question is of pods on nodes that are being deleted.
TEST_F(ReportTest, CountsPodsThatWait) {
  question_.add_pods()->set_count(6);
  question_.add_pods()->set_count(3);
  question_.set_deferred_pods(4);
  question_.set_left_out_pods(1);
  answer_.add_not_waiting()->set_pod(1);
  v1::PodRun* const run = answer_.mutable_scale_up()->add_unplaced();
  run->set_count(2);
  v1::PodRun* const drained = answer_.mutable_scale_up()->add_unplaced();
  drained->set_pod(2);
  drained->set_count(5);
  answer_.mutable_fleet()->set_why_no_growth("1 max node group size reached");
  const v1::LoopReport report = Report();
  const v1::ScaleUpStatus& up = report.status().cluster_wide().scale_up();
  EXPECT_EQ(up.pending_pods(), 11);
  EXPECT_EQ(up.placed(), 4);
  EXPECT_EQ(up.unplaced(), 2);
  EXPECT_EQ(up.deferred(), 4);
  EXPECT_EQ(up.why(), "1 max node group size reached");
  EXPECT_EQ(up.result(), "ScaleUpNoOptionsAvailable");
  EXPECT_THAT(report.warnings(),
              ElementsAre("2 of 11 pods that wait get no node: 1 max node group size reached"));
  EXPECT_THAT(Metrics(report), Contains("unschedulable_pods{} 11"));
}

TEST_F(ReportTest, TellsWhatGroupsGrowBy) {
  v1::LoopGrowth* const growth = answer_.add_growth();
  growth->set_node_group("g");
  growth->set_nodes_for_pods(3);
  growth->set_nodes_for_slack(1);
  growth->set_nodes_for_minimum(2);
  growth->set_usd_per_hour(0.4);
  const v1::LoopReport report = Report();
  EXPECT_EQ(report.status().cluster_wide().scale_up().result(), "ScaleUpSuccessful");
  EXPECT_THAT(report.lines(),
              ElementsAre("Grows: g: 3 for pods, 1 for slack, 2 for the minimum, 0.4000 USD per hour."));
  answer_.set_batch_wait_milliseconds(1);
  EXPECT_EQ(Report().status().cluster_wide().scale_up().result(), "ScaleUpInCooldown");
  question_.add_decisions(v1::PlanLoopRequest::SCALE_DOWN);
  EXPECT_EQ(Report().status().cluster_wide().scale_up().result(), "ScaleUpNotTried");
}

// One of three groups backs off, one has a node on its way and one that did not arrive, one loses a node.
TEST_F(ReportTest, TellsOfGroups) {
  v1::GroupSight* const failed = AddGroup("failed", 0, 0);
  failed->mutable_back_off()->set_reason(v1::GroupBackOff::OUT_OF_RESOURCES);
  failed->mutable_back_off()->set_text("no stock");
  failed->mutable_back_off()->set_until_milliseconds((kReportedAtS + 60) * 1000);
  failed->set_hold(v1::GroupSight::BACKS_OFF);
  v1::GroupSight* const grows = AddGroup("grows", 5, 1);
  grows->set_ready(2);
  grows->set_coming(2);
  grows->set_late(1);
  AddGroup("shrinks", 1, 2)->set_ready(1);
  v1::RemovalUnderWay* const removal = question_.mutable_fleet()->add_under_way();
  removal->set_slot(2);
  removal->set_node_group("shrinks");

  const v1::LoopReport report = Report();
  const auto& groups = report.status().node_groups();
  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(groups[0].scale_up().status(), "Backoff");
  EXPECT_EQ(groups[0].scale_up().backoff_info().error_code(), "outOfResources");
  EXPECT_EQ(groups[0].scale_up().backoff_info().until(), "2027-01-15T08:01:00Z");
  EXPECT_EQ(groups[1].scale_up().status(), "InProgress");
  EXPECT_EQ(groups[1].health().status(), "Unhealthy");
  EXPECT_EQ(groups[1].health().node_counts().unregistered(), 2);
  EXPECT_EQ(groups[1].health().node_counts().long_unregistered(), 1);
  EXPECT_EQ(groups[2].health().status(), "Healthy");
  EXPECT_EQ(report.status().cluster_wide().scale_up().status(), "InProgress");
  // Three nodes of "grows" are missing, one of "shrinks" is removed.
  std::vector<std::string> page;
  for (const v1::PageGroup& group : report.groups()) {
    page.push_back(absl::StrCat(group.name(), " ", group.going(), " ", group.note()));
  }
  EXPECT_THAT(
      page, ElementsAre("grows 0 ", "shrinks 1 ", "failed 0 backs off until 2027-01-15T08:01:00Z: no stock"));
  EXPECT_THAT(Metrics(report), Contains("node_groups{backoff} 1"));
  question_.add_decisions(v1::PlanLoopRequest::SCALE_DOWN);  // somebody else knows what holds groups
  EXPECT_THAT(Metrics(Report()), Not(Contains("node_groups{backoff} 1")));
  EXPECT_THAT(Metrics(report), Contains("nodes{longUnregistered} 1"));
}

// The removal of one of three nodes begins now, and one waits for its timer.
TEST_F(ReportTest, TellsWhatGoesAndWhatStays) {
  AddGroup("g", 3, 1);
  AddCandidate(0)->set_start(true);
  AddCandidate(1)->set_start(true);
  v1::NodeRemoval* const waits = AddCandidate(2);
  waits->set_waits("NotUnneededLongEnough");
  waits->set_ready_at_s(kReportedAtS + 30);
  waits->set_pods_to_move(4);
  AddStay("NotUnderutilized", "", 10, 1);
  AddStay("BlockedByPod", "a budget", 11, 2);
  answer_.mutable_scale_down()->set_status("ScaleDownNodeDeleteStarted");
  answer_.mutable_scale_down()->set_brake("ClusterUnhealthy");
  answer_.mutable_scale_down()->set_brake_text("4 of 9");
  answer_.mutable_fleet()->add_actions()->set_remove_slot(0);

  const v1::LoopReport report = Report();
  const v1::ScaleDownStatus& down = report.status().cluster_wide().scale_down();
  EXPECT_EQ(down.status(), "CandidatesPresent");
  EXPECT_EQ(down.result(), "ScaleDownNodeDeleteStarted");
  EXPECT_EQ(down.candidates(), 3);
  EXPECT_THAT(down.next(), ElementsAre("n0: now", "n1: now",
                                       "n2: NotUnneededLongEnough, timer ends 2027-01-15T08:00:30Z"));
  EXPECT_EQ(down.brake(), "ClusterUnhealthy 4 of 9");
  EXPECT_EQ(report.status().cluster_wide().health().status(), "Unhealthy");
  ASSERT_EQ(down.top_blockers_size(), 2);
  EXPECT_EQ(down.top_blockers(0).reason(), "BlockedByPod");
  EXPECT_EQ(down.top_blockers(0).nodes(), 2);
  EXPECT_THAT(down.why(), ElementsAre("n11: BlockedByPod: a budget"));
  EXPECT_EQ(report.status().node_groups(0).scale_down().candidates(), 1);
  // The removal of n0 is under way: the client tells it.
  question_.mutable_fleet()->add_under_way()->set_slot(0);
  EXPECT_THAT(Rows(Report().nodes_that_go()),
              ElementsAre("n1 | g | can go now | 1 min 30 s | 0",
                          "n2 |  | waits: NotUnneededLongEnough, timer ends in 30 s | 1 min 30 s | 4"));
  EXPECT_EQ(Report().nodes_that_go().rows_total(), 2);
  EXPECT_THAT(Rows(report.tables(0)),
              ElementsAre("BlockedByPod | 2 | n11 |  | a budget", "NotUnderutilized | 1 | n10 |  | "));
  EXPECT_THAT(Metrics(report), Contains("scale_down_brake{ClusterUnhealthy} 1"));
  EXPECT_THAT(Metrics(report), Contains("unremovable_nodes{BlockedByPod} 2"));
}

// Nodes might go, and something cools down: none does.
TEST_F(ReportTest, TellsOfCooldown) {
  AddCandidate(0)->set_start(true);
  answer_.mutable_scale_down()->set_status("ScaleDownNodeDeleteStarted");
  answer_.mutable_fleet()->set_cools_down(true);
  EXPECT_EQ(Report().status().cluster_wide().scale_down().result(), "ScaleDownInCooldown");
  question_.mutable_fleet()->set_acts(false);
  EXPECT_EQ(Report().status().cluster_wide().scale_down().result(), "ScaleDownNodeDeleteStarted");
  answer_.clear_scale_down();
  EXPECT_EQ(Report().status().cluster_wide().scale_down().result(), "ScaleDownNotTried");
}

// A table has 20 rows, and says how many there are; a page has 100 groups.
TEST_F(ReportTest, TablesAreBounded) {
  for (int32_t i = 0; i < 25; ++i) AddCandidate(i);
  for (int32_t i = 0; i < 101; ++i) AddGroup(absl::StrCat("g", i), 1, i);
  const v1::LoopReport report = Report();
  EXPECT_EQ(report.groups_size(), 100);
  EXPECT_EQ(report.groups_total(), 101);
  EXPECT_EQ(report.status().node_groups_size(), 101);
  EXPECT_EQ(report.nodes_that_go().rows_size(), 20);
  EXPECT_EQ(report.nodes_that_go().rows_total(), 25);
  EXPECT_EQ(report.notes_size(), 20);
  EXPECT_EQ(report.status().cluster_wide().scale_down().next_size(), 5);
}

// The warnings of the engine, and parts of a plan that were cut short.
TEST_F(ReportTest, WarnsOfWhatIsMissing) {
  answer_.mutable_fleet()->add_warnings("node n1: no machine");
  answer_.mutable_slack()->set_cut_short("memory");
  answer_.mutable_scale_down()->set_cut_short_by("time");
  answer_.mutable_scale_up()->set_cut_short_by("work");
  const v1::LoopReport report = Report();
  EXPECT_THAT(
      report.status().warnings(),
      ElementsAre("node n1: no machine", "the plan is cut short by work: more might grow, or at less cost",
                  "the plan is cut short by memory: some slack may have no node, and no node is asked for it",
                  "the plan is cut short by time: not all nodes were looked at to see whether they can go"));
  EXPECT_THAT(Metrics(report), Contains("plans_cut_short_total{slack} 1"));
  answer_.mutable_slack()->clear_cut_short();
  EXPECT_THAT(Metrics(Report()), Contains("plans_cut_short_total{slack} 0"));
}

v1::ClassSlack* AddClass(const std::string& name, v1::SlackStatus status, int64_t sum, int64_t ready,
                         v1::PlanSlackResponse* slack) {
  v1::ClassSlack* const of = slack->add_classes();
  of->set_name(name);
  of->set_nodes(1);
  of->set_status(status);
  of->mutable_extra()->set_milli_cpu(sum);
  of->mutable_sum()->set_milli_cpu(sum);
  of->mutable_ready()->set_milli_cpu(ready);
  return of;
}

// The status is the worst of all, a shortened list says so, and the class that lacks most is first.
TEST_F(ReportTest, TellsOfSlack) {
  v1::PlanSlackResponse* const slack = answer_.mutable_slack();
  AddClass("a", v1::SLACK_READY, 400, 400, slack);
  AddClass("b", v1::SLACK_MISSING, 1000, 250, slack)->set_reason("no node");
  slack->set_classes_total(300);
  v1::SlackWishError* const wrong = slack->add_errors();
  wrong->set_source("Deployment shop/web");
  wrong->set_text("\"x\" is no number");
  slack->set_errors_total(1001);
  v1::ShapeSlack* const shape = slack->add_shapes();
  shape->set_count(14);
  shape->set_placed(6);
  v1::SlackDemand* const demand = slack->add_demands();
  demand->set_class_name("b");
  demand->set_nodes(2);
  const v1::LoopReport report = Report();
  const v1::KeptSlackStatus& status = report.status().cluster_wide().slack();
  EXPECT_EQ(status.status(), "missing");
  EXPECT_EQ(status.wanted(), 14);
  EXPECT_EQ(status.missing(), 8);
  EXPECT_EQ(status.nodes(), 2);
  EXPECT_THAT(status.why(), ElementsAre("b: no node", "Deployment shop/web: \"x\" is no number",
                                        "1000 more wishes for copies cannot be met",
                                        "the status is that of the first 2 of 300 classes"));
  ASSERT_EQ(report.slack_size(), 2);
  EXPECT_EQ(report.slack(0).name(), "b");
  EXPECT_EQ(report.slack(0).reason(), "no node; asks for 2 more nodes");
  EXPECT_EQ(report.slack(0).bars(0).ready(), 250);
  EXPECT_THAT(Metrics(report), Contains("slack_target_cores{} 1.4"));
  EXPECT_THAT(Metrics(report), Contains("slack_current_cores{} 0.65"));
  question_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
  EXPECT_FALSE(Report().status().cluster_wide().has_slack());
}

TEST_F(ReportTest, TellsOfMoves) {
  for (const auto decision :
       {v1::PlanLoopRequest::SCALE_UP, v1::PlanLoopRequest::SCALE_DOWN, v1::PlanLoopRequest::REPLACE}) {
    question_.add_decisions(decision);
  }
  v1::LoopReplacement* const replacement = answer_.mutable_replacement();
  replacement->set_begun(1);
  v1::MoveUnderWay* const draining = replacement->add_moves();
  draining->set_phase("draining");
  draining->set_seconds(90);
  for (const char* const node : {"a", "b"}) draining->add_remove(node);
  draining->add_add("c");
  v1::MoveUnderWay* const ordered = replacement->add_moves();
  ordered->set_phase("ordered");
  ordered->add_remove("d");
  ordered->set_to_come(2);
  replacement->add_ended()->set_nodes(1);
  v1::EndedMove* const ended = replacement->add_ended();
  ended->set_why("its saving is gone");
  ended->add_remove("e");
  replacement->mutable_bill()->set_now(3);
  replacement->mutable_bill()->set_bound(1.5);

  const v1::LoopReport report = Report();
  const v1::ReplacementStatus& status = report.status().cluster_wide().replacement();
  EXPECT_EQ(status.status(), "InProgress");
  EXPECT_THAT(status.moves(),
              ElementsAre("draining for 1 min 30 s: a, b by c", "ordered for 0 s: d by 2 new nodes"));
  EXPECT_THAT(status.ended(),
              ElementsAre("done: 1 node replaced", "given up: its saving is gone; nodes that stay: e"));
  EXPECT_EQ(status.bill().bound(), 1.5);
  EXPECT_THAT(Rows(report.tables(1)),
              ElementsAre("a, b | c | 0 | draining | 1 min 30 s", "d |  | 2 | ordered | 0 s"));
  for (const char* const metric : {"bill_usd_per_hour{now} 3", "replacement_moves{draining} 1",
                                   "replacement_moves{giving back} 0", "replacement_moves_total{begun} 1",
                                   "replacement_moves_total{done} 1", "replacement_moves_total{givenUp} 1"}) {
    EXPECT_THAT(Metrics(report), Contains(metric));
  }
  // The move that was under way before is not reported again.
  ASSERT_EQ(report.events_size(), 2);
  EXPECT_THAT(report.events(0).nodes(), ElementsAre("d"));
  EXPECT_EQ(report.events(0).message(), "to be replaced at lower cost: d by 2 new nodes");
  EXPECT_TRUE(report.events(1).warning());
  EXPECT_EQ(report.events(1).message(), "stays for now: its saving is gone");
  question_.mutable_fleet()->set_acts(false);
  EXPECT_THAT(Report().events(), IsEmpty());
}

// 75.04 % of the cpu is requested; the group grows by a node, and would not in a dry run.
TEST_F(ReportTest, TellsOfSizes) {
  AddGroup("n", 2, 0)->set_held("backs off");
  question_.add_sized()->set_dry_run(true);
  v1::GroupSize* const size = answer_.mutable_size()->add_groups();
  size->set_node_group("n");
  size->set_action(v1::GroupSize::SCALE_UP);
  size->set_delta(1);
  size->set_tainted_nodes(1);
  size->set_reason_text("above the scale-up threshold");
  size->mutable_utilization()->set_kind(v1::Utilization::PERCENT);
  size->mutable_utilization()->set_cpu_percent(75.04);
  const v1::LoopReport report = Report();
  EXPECT_THAT(report.lines(),
              ElementsAre("Sized: n: cpu 75.0 %, memory 0.0 %, scale-up, +1: above the scale-up threshold; 1 "
                          "tainted; asks for nothing: backs off; dry mode, nothing is done."));
  EXPECT_EQ(report.status().node_groups(0).size().delta(), 1);
  EXPECT_EQ(report.groups(0).note(), "sized: above the scale-up threshold");
  EXPECT_THAT(Metrics(report), Contains("sized_group_utilization_percent{n,cpu} 75.04"));
  // Without nodes there is no percentage.
  size->mutable_utilization()->set_kind(v1::Utilization::FROM_ZERO);
  EXPECT_EQ(Report().status().node_groups(0).size().cpu(), "from zero");
  EXPECT_THAT(Metrics(Report()), Not(Contains("sized_group_utilization_percent{n,cpu} 75.04")));
}

// Sums are as large as they can be reported, whatever the cloud says of single groups.
TEST_F(ReportTest, SumsDoNotOverflow) {
  for (int32_t i = 0; i < 3; ++i) {
    v1::GroupSight* const group = AddGroup(absl::StrCat("g", i), 1, i);
    group->set_coming(INT32_MAX);
    group->set_starting(INT32_MAX);
    group->set_late(INT32_MAX);
    AddClass(absl::StrCat("c", i), v1::SLACK_READY, int64_t{1} << 62, 0, answer_.mutable_slack());
  }
  const v1::LoopReport report = Report();
  const v1::NodeCounts& counts = report.status().cluster_wide().health().node_counts();
  EXPECT_EQ(counts.unregistered(), INT32_MAX);
  EXPECT_EQ(counts.long_unregistered(), INT32_MAX);
  EXPECT_EQ(counts.registered().not_started(), INT32_MAX);
  EXPECT_THAT(Metrics(report), Contains(absl::StrCat("slack_target_cores{} ", 3 * 0x1p62 / 1000)));
}

// A thousand groups that all fail with long texts, a long id and a problem: the report stays below 1 MiB, and
// in its shorter form below 20 KiB.
TEST_F(ReportTest, StaysSmall) {
  for (int32_t i = 0; i < 1000; ++i) {
    v1::GroupSight* const group = AddGroup(absl::StrCat(std::string(150, 'g'), i), 1, i);
    group->mutable_back_off()->set_text(std::string(512, 'x'));
    *answer_.mutable_fleet()->add_failures()->mutable_back_off() = group->back_off();
    answer_.mutable_fleet()->add_warnings(std::string(512, 'w'));
  }
  v1::LoopReport report = Report();
  EXPECT_LT(report.ByteSizeLong(), size_t{1} << 20);
  EXPECT_EQ(report.log_size(), 100);
  EXPECT_EQ(report.status().warnings_size(), 100);
  const int metrics = report.metrics_size();
  Shorten(&report);
  EXPECT_LT(report.ByteSizeLong(), size_t{20} << 10);
  EXPECT_EQ(report.metrics_size(), metrics);
  EXPECT_THAT(report.status().warnings(),
              ElementsAre("the answer of the loop is so large that it leaves out the groups"));
}

// Failures are counted and logged; taints that mode act alone takes off are reported in mode observe.
TEST_F(ReportTest, TellsOfFailures) {
  v1::LoopFleetAnswer* const fleet = answer_.mutable_fleet();
  fleet->set_state_problem("of a later version");
  v1::FleetFailure* const failure = fleet->add_failures();
  failure->set_node_group("g");
  failure->mutable_back_off()->set_reason(v1::GroupBackOff::TIMEOUT);
  v1::FailedCreations* const failed = fleet->add_failed_creations();
  failed->set_reason(v1::GroupBackOff::CREATION_FAILED);
  failed->set_machines(3);
  fleet->set_abandoned_nodes(2);
  v1::LoopReport report = Report();
  EXPECT_THAT(Metrics(report), Contains("errors_total{state} 1"));
  EXPECT_THAT(Metrics(report), Contains("failed_scale_ups_total{timeout} 1"));
  EXPECT_THAT(Metrics(report), Contains("failed_node_creations_total{creationFailed} 3"));
  ASSERT_EQ(report.log_size(), 2);
  EXPECT_THAT(report.log(0).values(), ElementsAre("why", "of a later version"));
  EXPECT_EQ(report.log(1).message(), "Node group backs off");
  EXPECT_EQ(report.status().message(), "");
  question_.mutable_fleet()->set_acts(false);
  EXPECT_EQ(Report().status().message(), "2 nodes carry taints of mode act, which alone takes them off");
}

}  // namespace
}  // namespace loadline
