// An input is choices: a cluster of Kubernetes objects, and questions of all methods about it. Whatever they
// are, each is answered or refused, in a time and with memory that its size justifies, and the engine works
// on.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "loadline/v1/drain.pb.h"
#include "loadline/v1/fit.pb.h"
#include "loadline/v1/loop.pb.h"
#include "loadline/v1/score.pb.h"
#include "loadline/v1/size.pb.h"
#include "loadline/v1/slack.pb.h"
#include "test/fuzz/choices.h"
#include "test/fuzz/fuzz_engine.h"
#include "test/fuzz/made_objects.h"
#include "test/fuzz/spent.h"

namespace loadline {
namespace {

constexpr int32_t kMaxMilliseconds = 200;
// The address sanitizer makes all of it up to ten times slower, and a question ends a while after its budget.
constexpr int64_t kMostMilliseconds = int64_t{30} * kMaxMilliseconds;
// A question may hold so much, and so many bytes for each of its own: messages, core types and the answer.
constexpr int64_t kMostBytes = 256 << 20;
constexpr int64_t kMostBytesPerByte = 64;
constexpr int64_t kNow = 1'800'000'000;
constexpr int kMostNodes = 8;
constexpr absl::string_view kSync = "/loadline.v1.ClusterState/Sync";

// The cluster and the questions of one input.
class Session {
 public:
  explicit Session(Choices* choices) : choices_(*choices), make_(choices) {}

  void Run() {
    for (int batches = 1 + choices_.Byte() % 2; batches > 0; --batches) Sync();
    for (int questions = 0; questions < 4 && !choices_.empty(); ++questions) Ask();
    engine_.CheckSums();
    engine_.CheckAlive();
  }

 private:
  v1::Changes Header(int64_t base_revision, int64_t revision) const {
    v1::Changes changes;
    changes.set_view("test");
    changes.set_epoch(1);
    changes.set_base_revision(base_revision);
    changes.set_revision(revision);
    return changes;
  }

  void Sync() {
    v1::SyncRequest request;
    v1::Changes* const changes = request.mutable_changes();
    *changes = Header(revision_, revision_ + 1);
    const int32_t shapes = 1 + choices_.Byte() % 3;
    for (int32_t id = 0; id < shapes; ++id) {
      changes->add_pod_shapes()->set_id(id);
      changes->mutable_pod_shapes(id)->set_pod(make_.Pod().SerializeAsString());
    }
    const int nodes = 1 + choices_.Byte() % kMostNodes;
    for (int i = 0; i < nodes; ++i) {
      v1::NodeRecord* const record = changes->add_nodes();
      record->set_slot(i + 2);  // two nodes are there from the beginning
      record->set_node(make_.Node("n" + std::to_string(i)).SerializeAsString());
      for (int pods = choices_.Byte() % 4; pods > 0; --pods) {
        v1::PodRecord* const pod = record->add_pods();
        pod->set_shape(pods % shapes);
        pod->set_name("p" + std::to_string(pods));
        pod->set_uid(pod->name());
      }
    }
    for (int objects = choices_.Byte() % 4; objects > 0; --objects) *changes->add_objects() = make_.Object();
    if (Call(kSync, request.SerializeAsString())) ++revision_;
  }

  // False: refused.
  bool Call(absl::string_view method, const std::string& request) {
    const Spent spent;
    const bool answered = engine_.Call(method, request).ok();
    if (method != kSync) NoteAnswer(answered);
    const int64_t most_bytes = kMostBytes + kMostBytesPerByte * static_cast<int64_t>(request.size());
    if (spent.milliseconds() > kMostMilliseconds || spent.most_bytes() > most_bytes) {
      std::fprintf(stderr, "%s of %zu bytes took %lld ms and %lld bytes\n", std::string(method).c_str(),
                   request.size(), static_cast<long long>(spent.milliseconds()),
                   static_cast<long long>(spent.most_bytes()));
    }
    Require(spent.milliseconds() <= kMostMilliseconds, "a question ends in time");
    Require(spent.most_bytes() <= most_bytes, "a question takes memory by its size");
    return answered;
  }

  void Waiting(google::protobuf::RepeatedPtrField<v1::PendingPods>* pods) {
    for (int i = choices_.Byte() % 4; i >= 0; --i) {
      v1::PendingPods* const entry = pods->Add();
      entry->mutable_pod()->set_pod(make_.Pod().SerializeAsString());
      entry->set_count(choices_.OneIn(8) ? choices_.Number32() : 1 + choices_.Byte() % 64);
    }
  }
  v1::ScalableGroup Group(int i) {
    v1::ScalableGroup group;
    group.set_node_group("g" + std::to_string(i));
    if (!choices_.OneIn(8)) group.set_template_node(make_.Node("template").SerializeAsString());
    group.set_current_nodes(choices_.Small());
    group.set_max_nodes(choices_.OneIn(4) ? choices_.Number32() : 100);
    group.set_node_usd_per_hour(1 + choices_.Byte());
    return group;
  }

  v1::PlanLoopRequest Loop() {
    v1::PlanLoopRequest loop;
    *loop.mutable_changes() = Header(revision_, revision_);
    loop.set_now_s(choices_.OneIn(16) ? choices_.Number() : kNow);
    loop.set_max_milliseconds(kMaxMilliseconds);
    Waiting(loop.mutable_pods());
    for (int i = choices_.Byte() % 3; i >= 0; --i) {
      v1::LoopGroup* const group = loop.add_groups();
      *group->mutable_growth() = Group(i);
      group->mutable_scale_down()->set_min_nodes(choices_.Small());
      if (i == 0) group->mutable_scale_down()->add_slots(2);
    }
    for (int i = choices_.OneIn(4) ? choices_.Byte() % 4 : 0; i > 0; --i) {
      loop.add_daemon_pods(make_.Pod().SerializeAsString());
    }
    if (choices_.OneIn(4)) Slack(loop.mutable_slack());
    if (choices_.OneIn(4)) loop.mutable_drain()->set_scale_down_unneeded_time_s(0);
    if (choices_.OneIn(4)) loop.set_max_new_nodes(choices_.Number32());
    for (int kind = 1; kind <= 12; ++kind) {
      loop.mutable_drain()->add_may_be_incomplete(static_cast<v1::ObjectKind>(kind));
    }
    if (choices_.OneIn(4)) WhoWaits(&loop);
    return loop;
  }
  void WhoWaits(v1::PlanLoopRequest* loop) {
    v1::WaitingRules* const rules = loop->mutable_waiting();
    rules->set_expendable_priority_cutoff(choices_.Small());
    rules->set_scale_up_delay_milliseconds(choices_.Small());
    if (choices_.Yes()) rules->add_bypassed_schedulers("default-scheduler");
    for (v1::PendingPods& pods : *loop->mutable_pods()) {
      pods.set_unschedulable(choices_.Yes());
      if (choices_.OneIn(4)) pods.set_scale_up_delay_milliseconds(choices_.Number());
      if (choices_.OneIn(4)) pods.set_youngest_age_milliseconds(choices_.Number());
    }
  }
  void Slack(v1::SlackPolicy* policy) {
    policy->set_extra_capacity_min_rate(choices_.Byte() / 100.0);
    policy->set_reserve(static_cast<v1::SlackPolicy::Reserve>(choices_.Byte() % 5));
    policy->set_granularity(choices_.Small());
    policy->set_max_placeholders(choices_.Small());
  }
  v1::ScaleUpProblem Problem() {
    const v1::PlanLoopRequest loop = Loop();
    v1::ScaleUpProblem problem;
    *problem.mutable_changes() = loop.changes();
    *problem.mutable_pods() = loop.pods();
    *problem.mutable_daemon_pods() = loop.daemon_pods();
    for (const v1::LoopGroup& group : loop.groups()) *problem.add_groups() = group.growth();
    problem.set_max_milliseconds(kMaxMilliseconds);
    return problem;
  }
  v1::ScoreRequest Score() {
    v1::ScoreRequest score;
    *score.mutable_changes() = Header(revision_, revision_);
    score.set_pod(make_.Pod().SerializeAsString());
    score.mutable_policy()->set_preset(choices_.Yes() ? v1::ScorePolicy::STRICT : v1::ScorePolicy::KEP217);
    return score;
  }
  v1::FitRequest Fit() {
    v1::FitRequest fit;
    *fit.mutable_changes() = Header(revision_, revision_);
    for (int i = choices_.Byte() % 3; i >= 0; --i) fit.add_pods()->set_pod(make_.Pod().SerializeAsString());
    for (int i = choices_.Byte() % 3; i > 0; --i) {
      v1::Move* const move = fit.add_moves();
      switch (choices_.Byte() % 4) {
        case 0:
          move->mutable_place_pod()->set_pod(make_.Pod().SerializeAsString());
          move->mutable_place_pod()->set_slot(choices_.Small());
          break;
        case 1:
          move->mutable_add_node()->set_slot(100 + i);
          move->mutable_add_node()->set_node(make_.Node("moved").SerializeAsString());
          break;
        case 2:
          move->mutable_remove_node()->set_slot(choices_.Small());
          break;
        default:
          move->mutable_fork();
      }
    }
    return fit;
  }
  v1::RankOptionsRequest Rank() {
    v1::RankOptionsRequest rank;
    for (int i = choices_.Byte() % 3; i >= 0; --i) rank.add_pods(make_.Pod().SerializeAsString());
    for (int i = choices_.Byte() % 3; i >= 0; --i) {
      v1::ExpansionOption* const option = rank.add_options();
      option->set_node_group("g" + std::to_string(i));
      option->set_node_count(choices_.Small());
      option->set_template_node(make_.Node("template").SerializeAsString());
      option->add_pods()->set_count(choices_.Small());
    }
    rank.mutable_policy()->set_preset(v1::RankPolicy::PROPOSAL);
    rank.set_cluster_nodes(choices_.Small());
    return rank;
  }
  v1::MeasureUtilizationRequest Size() {
    v1::MeasureUtilizationRequest size;
    *size.mutable_changes() = Header(revision_, revision_);
    size.set_now_milliseconds(kNow * 1'000);
    v1::SizedGroup* const group = size.add_groups();
    group->set_node_group("g");
    group->set_catch_all(true);
    group->set_template_node(make_.Node("template").SerializeAsString());
    group->mutable_options()->set_min_nodes(choices_.Small());
    group->mutable_options()->set_max_nodes(choices_.Small() + 100);
    group->mutable_options()->set_scale_up_percent(70);
    group->mutable_options()->set_taint_upper_percent(40);
    group->mutable_options()->set_taint_lower_percent(10);
    v1::WaitingPods* const pods = size.add_pods();
    pods->set_pod(make_.Pod().SerializeAsString());
    pods->set_count(choices_.Small());
    return size;
  }

  v1::ExplainRequest Explain() {
    const v1::ScoreRequest score = Score();
    v1::ExplainRequest explain;
    *explain.mutable_changes() = score.changes();
    explain.set_pod(score.pod());
    *explain.mutable_policy() = score.policy();
    return explain;
  }
  v1::EstimateScaleUpRequest Estimate() {
    v1::EstimateScaleUpRequest estimate;
    *estimate.mutable_problem() = Problem();
    estimate.set_mode(static_cast<v1::EstimateScaleUpRequest::Mode>(choices_.Byte() % 3));
    return estimate;
  }
  v1::PlanScaleUpRequest Grow() {
    v1::PlanScaleUpRequest grow;
    *grow.mutable_problem() = Problem();
    return grow;
  }
  v1::PlanSlackRequest SlackQuestion() {
    const v1::PlanLoopRequest loop = Loop();
    v1::PlanSlackRequest slack;
    *slack.mutable_changes() = loop.changes();
    *slack.mutable_policy() = loop.slack();
    *slack.mutable_pods() = loop.pods();
    *slack.mutable_daemon_pods() = loop.daemon_pods();
    slack.set_groups_known(true);
    for (const v1::LoopGroup& group : loop.groups()) *slack.add_groups() = group.growth();
    slack.set_now_seconds(kNow);
    slack.set_literal(choices_.Yes());
    slack.set_want_state(true);
    return slack;
  }
  v1::PlanDrainRequest Drain() {
    const v1::PlanLoopRequest loop = Loop();
    v1::PlanDrainRequest drain;
    *drain.mutable_changes() = loop.changes();
    drain.set_now_s(loop.now_s());
    *drain.mutable_options() = loop.drain();
    drain.set_max_milliseconds(kMaxMilliseconds);
    v1::DrainGroup* const group = drain.add_groups();
    group->set_node_group("g");
    for (int32_t slot = 0; slot < 2; ++slot) group->add_slots(slot);
    return drain;
  }
  v1::DescribeRequest Describe() {
    v1::DescribeRequest describe;
    describe.set_view("test");
    describe.set_include_pods(choices_.Yes());
    describe.set_first_slot(choices_.Small());
    return describe;
  }

  void Ask() {
    switch (choices_.Byte() % 11) {
      case 0:
        Call("/loadline.v1.SchedulerExtender/Score", Score().SerializeAsString());
        break;
      case 1:
        Call("/loadline.v1.SchedulerExtender/Explain", Explain().SerializeAsString());
        break;
      case 2:
        Call("/loadline.v1.SchedulerExtender/Fit", Fit().SerializeAsString());
        break;
      case 3:
        Call("/loadline.v1.Autoscaler/EstimateScaleUp", Estimate().SerializeAsString());
        break;
      case 4:
        Call("/loadline.v1.Autoscaler/PlanScaleUp", Grow().SerializeAsString());
        break;
      case 5:
        Call("/loadline.v1.Autoscaler/RankOptions", Rank().SerializeAsString());
        break;
      case 6:
        Call("/loadline.v1.Autoscaler/MeasureUtilization", Size().SerializeAsString());
        break;
      case 7:
        Call("/loadline.v1.Autoscaler/PlanSlack", SlackQuestion().SerializeAsString());
        break;
      case 8:
        Call("/loadline.v1.Autoscaler/PlanDrain", Drain().SerializeAsString());
        break;
      case 9:
        Call("/loadline.v1.ClusterState/Describe", Describe().SerializeAsString());
        break;
      default:
        Call("/loadline.v1.Autoscaler/PlanLoop", Loop().SerializeAsString());
    }
  }

  Choices& choices_;
  ObjectMaker make_;
  FuzzEngine engine_;
  int64_t revision_ = 1;
};

}  // namespace
}  // namespace loadline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  loadline::Choices choices(data, size);
  loadline::Session(&choices).Run();
  return 0;
}
