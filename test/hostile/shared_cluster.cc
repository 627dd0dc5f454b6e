#include "test/hostile/shared_cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "loadline/v1/fit.pb.h"
#include "loadline/v1/loop.pb.h"
#include "test/hostile/hostile_objects.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

constexpr int64_t kNowSeconds = 1'800'000'000;
constexpr int32_t kGroups = 4;  // with 250 nodes each
constexpr int32_t kQuietNodes = 20;
constexpr int32_t kShapes = 21;  // the last one is that of pods on quiet nodes
constexpr int32_t kNakedShape = kShapes;
constexpr int kNodesPerChunk = 500;
// A question carries at most 4 MiB, and the innocents are among it.
constexpr int kMostFitPods = 1'000;
constexpr size_t kMostQuestionBytes = 4'100'000;

k8s::v1::Node SharedNode(const std::string& name, int32_t group, const Quantities& allocatable) {
  k8s::v1::Node node = MakeNode(name, allocatable);
  AddLabel("kubernetes.io/hostname", name, node.mutable_metadata());
  AddLabel("topology.kubernetes.io/zone", absl::StrCat("zone-", group % 3), node.mutable_metadata());
  k8s::v1::NodeCondition* const ready = node.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  return node;
}

k8s::v1::Pod ShopPod(const std::string& owner, const Quantities& requests) {
  k8s::v1::Pod pod = MakePod({}, requests);
  pod.mutable_metadata()->set_namespace_("shop");
  AddLabel("app", owner, pod.mutable_metadata());
  k8s::v1::OwnerReference* const reference = pod.mutable_metadata()->add_owner_references();
  reference->set_api_version("apps/v1");
  reference->set_kind("ReplicaSet");
  reference->set_name(owner);
  reference->set_uid(owner);
  reference->set_controller(true);
  return pod;
}

k8s::v1::Pod RunningPod(int32_t shape) {
  if (shape == kNakedShape) {
    k8s::v1::Pod naked = MakePod({}, {{"cpu", "4"}, {"memory", "1Gi"}});
    naked.mutable_metadata()->set_namespace_("shop");
    return naked;  // nobody owns it, so nothing may move it
  }
  if (shape + 1 == kShapes) return ShopPod("quiet", {{"cpu", "10m"}, {"memory", "16Mi"}});
  return ShopPod(absl::StrCat("app-", shape), {{"cpu", absl::StrCat(300 + 50 * shape, "m")},
                                               {"memory", absl::StrCat(256 + 64 * shape, "Mi")}});
}

v1::ClusterObject OwnerOf(const k8s::v1::Pod& pod) {
  k8s::v1::ReplicaSet owner;
  owner.mutable_metadata()->set_namespace_(pod.metadata().namespace_());
  owner.mutable_metadata()->set_name(pod.metadata().owner_references(0).name());
  owner.mutable_metadata()->set_uid(pod.metadata().owner_references(0).uid());
  owner.mutable_spec()->set_replicas(kSharedNodes);
  v1::ClusterObject object;
  object.set_kind(v1::REPLICA_SET);
  object.set_object(owner.SerializeAsString());
  return object;
}

v1::NodeRecord SharedRecord(int32_t slot) {
  const bool quiet = slot >= kSharedNodes - kQuietNodes;
  v1::NodeRecord record;
  record.set_slot(slot);
  record.set_node(SharedNode(absl::StrFormat("node-%04d", slot), slot % kGroups,
                             {{"cpu", "16"}, {"memory", "64Gi"}, {"pods", "110"}})
                      .SerializeAsString());
  for (int i = 0; i < kPodsPerSharedNode; ++i) {
    v1::PodRecord* const pod = record.add_pods();
    pod->set_shape(quiet ? kShapes - 1 : i);
    pod->set_name(absl::StrFormat("pod-%04d-%02d", slot, i));
    pod->set_uid(absl::StrFormat("uid-%04d-%02d", slot, i));
  }
  return record;
}

v1::Changes ChangesOf(int64_t base_revision, int64_t revision) {
  v1::Changes changes;
  changes.set_view("test");
  changes.set_epoch(1);
  changes.set_base_revision(base_revision);
  changes.set_revision(revision);
  return changes;
}

std::string SyncBytes(v1::Changes changes) {
  v1::SyncRequest request;
  *request.mutable_changes() = std::move(changes);
  return request.SerializeAsString();
}

v1::LoopGroup SharedGroup(const std::string& name, const std::string& cpu, int32_t nodes, double usd) {
  v1::LoopGroup group;
  v1::ScalableGroup* const growth = group.mutable_growth();
  growth->set_node_group(name);
  growth->set_current_nodes(nodes);
  growth->set_max_nodes(nodes + 1'000);
  growth->set_node_usd_per_hour(usd);
  growth->set_template_node(
      SharedNode(name, 0, {{"cpu", cpu}, {"memory", "128Gi"}, {"pods", "110"}}).SerializeAsString());
  return group;
}

v1::ScaleUpProblem GrowthOf(const v1::PlanLoopRequest& loop) {
  v1::ScaleUpProblem problem;
  *problem.mutable_changes() = loop.changes();
  *problem.mutable_pods() = loop.pods();
  *problem.mutable_daemon_pods() = loop.daemon_pods();
  for (const v1::LoopGroup& group : loop.groups()) *problem.add_groups() = group.growth();
  problem.set_max_milliseconds(loop.max_milliseconds());
  return problem;
}

v1::PlanDrainRequest DrainOf(const v1::PlanLoopRequest& loop) {
  v1::PlanDrainRequest drain;
  *drain.mutable_changes() = loop.changes();
  drain.set_now_s(loop.now_s());
  *drain.mutable_options() = loop.drain();
  for (const v1::LoopGroup& group : loop.groups()) {
    *drain.add_groups() = group.scale_down();
    drain.mutable_groups(drain.groups_size() - 1)->set_node_group(group.growth().node_group());
  }
  drain.set_max_milliseconds(loop.max_milliseconds());
  return drain;
}

v1::PlanSlackRequest SlackOf(const v1::PlanLoopRequest& loop) {
  v1::PlanSlackRequest slack;
  *slack.mutable_changes() = loop.changes();
  *slack.mutable_pods() = loop.pods();
  *slack.mutable_daemon_pods() = loop.daemon_pods();
  slack.set_groups_known(true);
  for (const v1::LoopGroup& group : loop.groups()) *slack.add_groups() = group.growth();
  slack.set_now_seconds(loop.now_s());
  slack.set_want_state(true);
  return slack;
}

v1::FitRequest FitOf(const v1::PlanLoopRequest& loop) {
  v1::FitRequest fit;
  *fit.mutable_changes() = loop.changes();
  for (const v1::PendingPods& pods : loop.pods()) {
    if (fit.pods_size() < kMostFitPods) *fit.add_pods() = pods.pod();
  }
  for (int32_t slot = 0; slot < kSharedNodes; ++slot) fit.add_slots(slot);
  return fit;
}

v1::ScoreRequest ScorePodOf(const v1::PlanLoopRequest& loop, int pod) {
  v1::ScoreRequest score;
  *score.mutable_changes() = loop.changes();
  score.set_pod(loop.pods(pod).pod().pod());
  for (int32_t slot = 0; slot < kSharedNodes; ++slot) score.add_slots(slot);
  score.mutable_policy()->set_preset(v1::ScorePolicy::STRICT);
  return score;
}

SharedCluster::Question Ask(const char* method, const google::protobuf::MessageLite& request) {
  return {method, request.SerializeAsString()};
}

}  // namespace

SharedCluster::SharedCluster() {
  std::vector<v1::Changes> chunks(1, ChangesOf(0, 1));
  for (int32_t id = 0; id <= kNakedShape; ++id) {
    v1::PodShape* const shape = chunks[0].add_pod_shapes();
    shape->set_id(id);
    shape->set_pod(RunningPod(id).SerializeAsString());
    if (id != kNakedShape) *chunks[0].add_objects() = OwnerOf(RunningPod(id));
  }
  for (int32_t slot = 0; slot < kSharedNodes; ++slot) {
    if (chunks.back().nodes_size() == kNodesPerChunk) chunks.push_back(ChangesOf(0, 1));
    *chunks.back().add_nodes() = SharedRecord(slot);
  }
  victim_.set_slot(kSharedNodes);
  victim_.set_node(
      SharedNode("victim", 0, {{"cpu", "4"}, {"memory", "4Gi"}, {"pods", "5000"}}).SerializeAsString());
  v1::PodRecord* const naked = victim_.add_pods();
  naked->set_shape(kNakedShape);
  naked->set_name("naked");
  naked->set_uid("naked");
  *chunks.back().add_nodes() = victim_;
  for (const v1::ObjectKind kind : {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET,
                                    v1::DAEMON_SET, v1::JOB, v1::DEPLOYMENT, v1::NAMESPACE}) {
    chunks.back().add_complete_kinds(kind);
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].mutable_full_list()->set_index(static_cast<int32_t>(i));
    chunks[i].mutable_full_list()->set_last(i + 1 == chunks.size());
    full_list_.push_back(SyncBytes(std::move(chunks[i])));
  }

  loop_.set_now_s(kNowSeconds);
  loop_.set_max_milliseconds(kMaxMilliseconds);
  loop_.mutable_drain()->set_scale_down_unneeded_time_s(0);
  for (const v1::ObjectKind kind : {v1::PERSISTENT_VOLUME, v1::PERSISTENT_VOLUME_CLAIM, v1::STORAGE_CLASS,
                                    v1::CSI_NODE, v1::REPLICATION_CONTROLLER}) {
    loop_.mutable_drain()->add_may_be_incomplete(kind);
  }
  for (int32_t group = 0; group < kGroups; ++group) {
    v1::LoopGroup* const message = loop_.add_groups();
    *message = SharedGroup(absl::StrCat("workers-", group), "16", kSharedNodes / kGroups, 0.8);
    for (int32_t slot = group; slot < kSharedNodes; slot += kGroups) {
      message->mutable_scale_down()->add_slots(slot);
    }
  }
  *loop_.add_groups() = SharedGroup("big", "32", 0, 1.6);
  for (int i = 0; i < kInnocents; ++i) {
    const int64_t milli_cpu = i % 5 == 0 ? 20'000 + i : 200 + 20 * i;
    k8s::v1::Pod pod =
        ShopPod(absl::StrCat("new-", i), {{"cpu", absl::StrCat(milli_cpu, "m")}, {"memory", "1Gi"}});
    pod.mutable_metadata()->set_name(absl::StrCat("innocent-", i));
    v1::PendingPods* const pods = loop_.add_pods();
    pods->mutable_pod()->set_pod(pod.SerializeAsString());
    pods->set_count(1);
  }
}

std::vector<std::string> SharedCluster::Deltas(const Mischief& mischief, int64_t revision) const {
  constexpr int32_t kMostBound = 10'000;  // at a time
  std::vector<std::string> deltas;
  const int32_t first_shape = kNakedShape + 1 + static_cast<int32_t>(revision - 1) * kMostBound;
  for (v1::Changes& batch : mischief.Batches(victim_, first_shape, kSharedNodes + 1)) {
    v1::Changes changes = ChangesOf(revision, revision + 1);
    changes.MergeFrom(batch);
    deltas.push_back(SyncBytes(std::move(changes)));
    ++revision;
  }
  return deltas;
}

std::vector<SharedCluster::Question> SharedCluster::Questions(const Mischief& mischief,
                                                              int64_t revision) const {
  v1::PlanLoopRequest loop = loop_;
  *loop.mutable_changes() = ChangesOf(revision, revision);
  size_t bytes = loop.ByteSizeLong();
  for (const v1::PendingPods& pods : mischief.pending()) {
    bytes += pods.ByteSizeLong() + 8;
    if (bytes <= kMostQuestionBytes) *loop.add_pods() = pods;
  }
  for (const std::string& pod : mischief.daemon_pods()) loop.add_daemon_pods(pod);
  for (const v1::ScalableGroup& group : mischief.groups()) *loop.add_groups()->mutable_growth() = group;

  v1::PlanScaleUpRequest grow;
  *grow.mutable_problem() = GrowthOf(loop);
  v1::EstimateScaleUpRequest estimate;
  *estimate.mutable_problem() = grow.problem();
  return {Ask("/loadline.v1.SchedulerExtender/Score", ScorePodOf(loop, 1)),
          Ask("/loadline.v1.SchedulerExtender/Fit", FitOf(loop)),
          Ask("/loadline.v1.Autoscaler/EstimateScaleUp", estimate),
          Ask("/loadline.v1.Autoscaler/PlanScaleUp", grow),
          Ask("/loadline.v1.Autoscaler/PlanSlack", SlackOf(loop)),
          Ask("/loadline.v1.Autoscaler/PlanDrain", DrainOf(loop)),
          Ask("/loadline.v1.Autoscaler/PlanLoop", loop)};
}

std::vector<SharedCluster::Question> SharedCluster::OwnQuestions(const Mischief& mischief,
                                                                 int64_t revision) const {
  if (mischief.pending().empty()) return {};
  v1::PlanLoopRequest loop;
  *loop.mutable_changes() = ChangesOf(revision, revision);
  *loop.add_pods() = mischief.pending().front();
  const v1::ScoreRequest score = ScorePodOf(loop, 0);
  return {Ask("/loadline.v1.SchedulerExtender/Score", score),
          Ask("/loadline.v1.SchedulerExtender/Explain", ExplainOf(score, {0, 1}))};
}

}  // namespace loadline
