// The traits that planners read of pods, nodes, budgets and workloads: bytes to core types.
#include "plugin/convert/traits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/cluster/node_annotations.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/pod.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

k8s::v1::Pod Annotated(const std::string& key, const std::string& value) {
  k8s::v1::Pod pod;
  Annotate(key, value, pod.mutable_metadata());
  return pod;
}

constexpr char kSafe[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";

TEST(PodTraitsTest, APodThatStatesNothingHasNone) {
  EXPECT_EQ(ReadPodTraits(MakePod({{"cpu", "1"}})), PodTraits());
  ResourceNames names;
  ResourceReader resources(&names);
  EXPECT_EQ(PodDecoder(&resources).Decode(MakePod({}).SerializeAsString(), PodRole::kExisting)->traits,
            nullptr);
}

TEST(PodTraitsTest, AnnotationsUnderTheNamesOfThoseWhoReadThem) {
  EXPECT_EQ(ReadPodTraits(Annotated(kSafe, "true")).safe_to_evict, SafeToEvict::kYes);
  EXPECT_EQ(ReadPodTraits(Annotated(kSafe, "false")).safe_to_evict, SafeToEvict::kNo);
  EXPECT_EQ(ReadPodTraits(Annotated(kSafe, "on-completion")).safe_to_evict, SafeToEvict::kOnCompletion);
  EXPECT_TRUE(ReadPodTraits(Annotated("kubernetes.io/config.mirror", "")).mirror);
  EXPECT_TRUE(ReadPodTraits(Annotated("kubernetes.io/config.source", "file")).static_pod);
  EXPECT_FALSE(ReadPodTraits(Annotated("kubernetes.io/config.source", "api")).static_pod);
  EXPECT_TRUE(
      IsDaemonPod(ReadPodTraits(Annotated("cluster-autoscaler.kubernetes.io/daemonset-pod", "true"))));
  EXPECT_TRUE(ReadPodTraits(Annotated("karpenter.sh/do-not-disrupt", "true")).do_not_disrupt);
  EXPECT_FALSE(ReadPodTraits(Annotated("karpenter.sh/do-not-disrupt", "false")).do_not_disrupt);
  constexpr char kCost[] = "controller.kubernetes.io/pod-deletion-cost";
  EXPECT_EQ(ReadPodTraits(Annotated(kCost, "-2147483648")).deletion_cost, INT32_MIN);
  EXPECT_EQ(ReadPodTraits(Annotated(kCost, "100")).deletion_cost, 100);
  for (const char* const none : {"2147483648", "+1", "01", "1.5", "", "many"}) {
    EXPECT_EQ(ReadPodTraits(Annotated(kCost, none)).deletion_cost, 0) << none;
  }
  constexpr char kEvictDaemon[] = "cluster-autoscaler.kubernetes.io/enable-ds-eviction";
  EXPECT_EQ(ReadPodTraits(Annotated(kEvictDaemon, "true")).evict_daemon, true);
  EXPECT_EQ(ReadPodTraits(Annotated(kEvictDaemon, "false")).evict_daemon, false);
  EXPECT_EQ(ReadPodTraits(Annotated(kEvictDaemon, "no")).evict_daemon, std::nullopt);
}

// A pod is not evicted over a value that nobody knows.
TEST(PodTraitsTest, AnUnknownValueProtectsAndIsTold) {
  const PodTraits safe = ReadPodTraits(Annotated(kSafe, "True"));
  EXPECT_EQ(safe.safe_to_evict, SafeToEvict::kNo);
  EXPECT_EQ(safe.unknown_protection, "cluster-autoscaler.kubernetes.io/safe-to-evict: \"True\"");
  for (const char* const key : {"karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict"}) {
    for (const char* const value : {"", "True", "1d", "-4h", "0s", "inf", "300y", "3000000h", "4h "}) {
      const PodTraits traits = ReadPodTraits(Annotated(key, value));
      EXPECT_TRUE(traits.do_not_disrupt) << value;
      EXPECT_EQ(traits.do_not_disrupt_until_s, std::nullopt) << value;
      EXPECT_EQ(traits.unknown_protection, std::string(key) + ": \"" + value + "\"");
    }
  }
  EXPECT_EQ(ReadPodTraits(Annotated("karpenter.sh/do-not-disrupt", "true")).unknown_protection, "");
}

PodTraits StartedAt(int64_t start_s, const std::vector<std::pair<std::string, std::string>>& annotations) {
  k8s::v1::Pod pod;
  for (const auto& [key, value] : annotations) Annotate(key, value, pod.mutable_metadata());
  pod.mutable_status()->mutable_start_time()->set_seconds(start_s);
  return ReadPodTraits(pod);
}

TEST(PodTraitsTest, AProtectionMayLastForSomeTimeFromTheStart) {
  constexpr char kDisrupt[] = "karpenter.sh/do-not-disrupt";
  constexpr char kEvict[] = "karpenter.sh/do-not-evict";
  constexpr int64_t kStart = 1'200'000'000;  // a full minute
  EXPECT_EQ(StartedAt(kStart, {{kDisrupt, "4h"}}).do_not_disrupt_until_s, kStart + 14'400);
  EXPECT_EQ(StartedAt(kStart, {{kDisrupt, "4h"}}).unknown_protection, "");
  EXPECT_EQ(StartedAt(kStart, {{kDisrupt, "1h30m0.5s"}}).do_not_disrupt_until_s, kStart + 5'460);
  EXPECT_EQ(StartedAt(kStart + 1, {{kDisrupt, "30m"}}).do_not_disrupt_until_s, kStart + 1'860);
  EXPECT_EQ(StartedAt(kStart, {{kDisrupt, "30m"}, {kEvict, "1h"}}).do_not_disrupt_until_s, kStart + 3'600);
  EXPECT_EQ(StartedAt(kStart, {{kDisrupt, "30m"}, {kEvict, "false"}}).do_not_disrupt_until_s, kStart + 1'800);
  for (const auto& [disrupt, evict] : {std::pair("30m", "true"), std::pair("true", "30m")}) {
    const PodTraits traits = StartedAt(kStart, {{kDisrupt, disrupt}, {kEvict, evict}});
    EXPECT_TRUE(traits.do_not_disrupt);
    EXPECT_EQ(traits.do_not_disrupt_until_s, std::nullopt);
  }
  // Nobody knows when it started: it may be at the beginning of its work.
  for (const PodTraits& traits :
       {ReadPodTraits(Annotated(kDisrupt, "4h")), StartedAt(INT64_MAX, {{kDisrupt, "4h"}}),
        StartedAt(INT64_MIN, {{kDisrupt, "4h"}})}) {
    EXPECT_TRUE(traits.do_not_disrupt);
    EXPECT_EQ(traits.do_not_disrupt_until_s, std::nullopt);
  }
  EXPECT_EQ(StartedAt(kStart, {}), PodTraits());
}

TEST(PodTraitsTest, TheControllerIsTheOwner) {
  k8s::v1::Pod pod;
  k8s::v1::OwnerReference* owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("Thing");
  EXPECT_EQ(ReadPodTraits(pod).owner, std::nullopt);
  owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("DaemonSet");
  owner->set_api_version("apps/v1");
  owner->set_name("ds");
  owner->set_uid("u");
  owner->set_controller(true);
  EXPECT_EQ(ReadPodTraits(pod).owner, (PodOwner{"DaemonSet", "apps/v1", "ds", "u"}));
  EXPECT_TRUE(IsDaemonPod(ReadPodTraits(pod)));
}

TEST(PodTraitsTest, StateAndSpec) {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("kube-system");
  pod.mutable_metadata()->mutable_creation_timestamp()->set_seconds(5);
  pod.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(7);
  pod.mutable_spec()->set_termination_grace_period_seconds(0);
  pod.mutable_spec()->set_priority(-10);
  pod.mutable_spec()->set_restart_policy("Never");
  pod.mutable_spec()->mutable_affinity();
  pod.mutable_status()->set_phase("Failed");
  k8s::v1::PodCondition* const ready = pod.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  PodTraits want;
  want.created_s = 5;
  want.deleted_s = 7;
  want.grace_s = 0;
  want.priority = -10;
  want.states_affinity = true;
  want.phase = PodPhase::kFailed;
  want.ready = true;
  EXPECT_EQ(ReadPodTraits(pod), want);
  pod.mutable_metadata()->set_namespace_("default");
  want.created_s.reset();
  EXPECT_EQ(ReadPodTraits(pod), want) << "the age of a pod counts in kube-system only";
}

TEST(PodTraitsTest, TheFirstVolumeOnTheNodeThatIsNotListedAsSafe) {
  k8s::v1::Pod pod;
  const auto add = [&](const std::string& name) {
    k8s::v1::Volume* const volume = pod.mutable_spec()->add_volumes();
    volume->set_name(name);
    return volume->mutable_volume_source();
  };
  add("secret");
  add("memory")->mutable_empty_dir()->set_medium("Memory");
  EXPECT_EQ(ReadPodTraits(pod).local_volume, "");
  add("scratch")->mutable_empty_dir();
  add("logs")->mutable_host_path();
  EXPECT_EQ(ReadPodTraits(pod).local_volume, "scratch");
  constexpr char kSafeVolumes[] = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
  Annotate(kSafeVolumes, "scratch, logs", pod.mutable_metadata());
  EXPECT_EQ(ReadPodTraits(pod).local_volume, "logs") << "names are not trimmed";
  Annotate(kSafeVolumes, "logs,scratch", pod.mutable_metadata());
  EXPECT_EQ(ReadPodTraits(pod).local_volume, "");
}

// Escalator's way of counting: a sidecar is one more init container, of which the largest counts if it is
// more than all containers together; overhead is added.
TEST(PodTraitsTest, ContainerRequestsWhereMoreIsAddedToThem) {
  ResourceNames names;
  ResourceReader resources(&names);
  PodDecoder decoder(&resources);
  k8s::v1::Pod pod = MakePod({}, {{"cpu", "1500m"}, {"memory", "1Ki"}});
  EXPECT_EQ(decoder.Decode(pod.SerializeAsString(), PodRole::kExisting)->traits, nullptr);
  AddEntries({{"cpu", "1"}}, pod.mutable_spec()->mutable_overhead());
  k8s::v1::Container* const sidecar = pod.mutable_spec()->add_init_containers();
  sidecar->set_restart_policy("Always");
  AddEntries({{"cpu", "2"}}, sidecar->mutable_resources()->mutable_requests());
  const absl::StatusOr<PodShape> shape = decoder.Decode(pod.SerializeAsString(), PodRole::kExisting);
  EXPECT_EQ(TraitsOf(*shape).container_requests, (CpuMemory{3000, 1024}));
  EXPECT_EQ(*shape->requests.Find(kCpu), 4500);
}

TEST(SlackWishTest, ReadsWhatParsesAndSaysWhatDoesNot) {
  const auto wish = [](const std::string& key, const std::string& value) {
    return ReadSlackWish(Annotated("loadline.dev/" + key, value).metadata().annotations());
  };
  EXPECT_EQ(wish("slack", "false"), (SlackWish{true, std::nullopt, ""}));
  EXPECT_EQ(wish("slack", "true"), SlackWish());
  EXPECT_EQ(wish("slack", "no").error, "loadline.dev/slack: \"no\" is neither true nor false");
  EXPECT_EQ(wish("slack-copies", "0").copies, 0);
  EXPECT_EQ(wish("slack-copies", "2147483647").copies, 2147483647);
  for (const char* const bad : {"-1", "2147483648", "two", "", "1.5"}) {
    EXPECT_EQ(wish("slack-copies", bad).copies, std::nullopt) << bad;
    EXPECT_EQ(wish("slack-copies", bad).error,
              "loadline.dev/slack-copies: \"" + std::string(bad) + "\" is not a number from 0 to 2147483647");
  }
}

TEST(NodeTraitsTest, ReadsThem) {
  k8s::v1::Node node = MakeNode("n", {});
  EXPECT_EQ(ReadNodeTraits(node), NodeTraits{.ready = false}) << "its kubelet has reported nothing";
  node.mutable_status()->add_conditions()->set_type("MemoryPressure");
  EXPECT_EQ(ReadNodeTraits(node), NodeTraits());
  node.mutable_metadata()->set_uid("u");
  node.mutable_metadata()->mutable_creation_timestamp()->set_seconds(5);
  node.mutable_spec()->set_provider_id("cloud://n");
  EXPECT_EQ(ReadNodeTraits(node), (NodeTraits{"u", "cloud://n", 5, true, std::nullopt, 0}));
}

// "false" takes it back, and an empty text does for Escalator's. Any other value counts; an unknown one is
// reported.
TEST(NodeTraitsTest, AnAnnotationHoldsUnlessItIsTakenBack) {
  for (const NodeAnnotationEntry& entry : NodeAnnotations()) {
    for (const char* const value : {"true", "", "false", "True", "why"}) {
      k8s::v1::Node node = MakeNode("n", {});
      Annotate(std::string(entry.key), value, node.mutable_metadata());
      const bool any_text = entry.annotation == NodeAnnotation::kNoDelete;
      const bool holds = value != std::string(any_text ? "" : "false");
      const NodeTraits traits = ReadNodeTraits(node);
      EXPECT_EQ(traits.annotations, holds ? BitOf(entry.annotation) : 0u) << entry.key << "=" << value;
      const bool known = any_text || !holds || value == std::string("true");
      EXPECT_EQ(traits.unknown_protection, known ? "" : std::string(entry.key) + ": \"" + value + "\"");
    }
  }
}

TEST(NodeTraitsTest, ConditionsThatMakeANodeUnready) {
  for (const auto& [type, status, ready] : std::vector<std::tuple<std::string, std::string, bool>>{
           {"Ready", "True", true},
           {"Ready", "False", false},
           {"Ready", "Unknown", false},
           {"DiskPressure", "True", false},
           {"DiskPressure", "False", true},
           {"NetworkUnavailable", "True", false},
           {"MemoryPressure", "True", true},
       }) {
    k8s::v1::Node node = MakeNode("n", {});
    k8s::v1::NodeCondition* const condition = node.mutable_status()->add_conditions();
    condition->set_type(type);
    condition->set_status(status);
    EXPECT_EQ(ReadNodeTraits(node).ready, ready) << type << " " << status;
  }
}

class ObjectsTest : public ::testing::Test {
 protected:
  template <typename Message>
  absl::StatusOr<ClusterObject> Decode(v1::ObjectKind kind, const Message& message) {
    v1::ClusterObject object;
    object.set_kind(kind);
    object.set_object(message.SerializeAsString());
    return DecodeObject(object, &resources_);
  }
  template <typename Message>
  Message Named() {
    Message message;
    message.mutable_metadata()->set_namespace_("shop");
    message.mutable_metadata()->set_name("x");
    message.mutable_metadata()->set_uid("u");
    return message;
  }
  template <typename Message>
  Workload MustDecode(v1::ObjectKind kind, const Message& message) {
    const absl::StatusOr<ClusterObject> object = Decode(kind, message);
    EXPECT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(object->key, (ObjectKey{*DecodeObjectKind(kind), "shop", "x"}));
    return std::get<Workload>(object->content);
  }

  ResourceNames names_;
  ResourceReader resources_{&names_};
};

TEST_F(ObjectsTest, BudgetsAsTheirStatusStatesThem) {
  auto message = Named<k8s::v1::PodDisruptionBudget>();
  message.mutable_metadata()->set_generation(4);
  k8s::v1::StringEntry* const label = message.mutable_spec()->mutable_selector()->add_match_labels();
  label->set_key("app");
  label->set_value("web");
  message.mutable_spec()->set_unhealthy_pod_eviction_policy("AlwaysAllow");
  k8s::v1::PodDisruptionBudgetStatus* const status = message.mutable_status();
  status->set_observed_generation(3);
  status->set_disruptions_allowed(-1);
  status->set_current_healthy(5);
  status->set_desired_healthy(6);
  status->set_expected_pods(7);
  for (const char* const name : {"b", "a"}) {
    k8s::v1::TimeEntry* const entry = status->add_disrupted_pods();
    entry->set_key(name);
    entry->mutable_value()->set_seconds(9);
  }
  const absl::StatusOr<ClusterObject> object = Decode(v1::POD_DISRUPTION_BUDGET, message);
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& budget = std::get<DisruptionBudget>(object->content);
  EXPECT_EQ(budget.selector.requirements[0].key, "app");
  EXPECT_EQ(budget.unhealthy_policy, DisruptionBudget::UnhealthyPolicy::kAlwaysAllow);
  EXPECT_EQ(budget.generation, 4);
  EXPECT_EQ(budget.observed_generation, 3);
  EXPECT_EQ(budget.disruptions_allowed, -1);
  EXPECT_EQ(budget.current_healthy, 5);
  EXPECT_EQ(budget.desired_healthy, 6);
  EXPECT_EQ(budget.expected_pods, 7);
  ASSERT_EQ(budget.disrupted_pods.size(), 2u);
  EXPECT_EQ(budget.disrupted_pods[0].name, "a");
  EXPECT_EQ(budget.disrupted_pods[0].since_s, 9);
}

TEST_F(ObjectsTest, ABudgetWithoutASelectorSelectsNothingAndOneThatDoesNotParseSaysSo) {
  auto message = Named<k8s::v1::PodDisruptionBudget>();
  EXPECT_TRUE(
      std::get<DisruptionBudget>(Decode(v1::POD_DISRUPTION_BUDGET, message)->content).selector.nothing);
  message.mutable_spec()->mutable_selector();
  EXPECT_TRUE(
      std::get<DisruptionBudget>(Decode(v1::POD_DISRUPTION_BUDGET, message)->content).selector.Everything());
  message.mutable_spec()->mutable_selector()->add_match_expressions()->set_operator_("Around");
  EXPECT_NE(std::get<DisruptionBudget>(Decode(v1::POD_DISRUPTION_BUDGET, message)->content).selector_error,
            "");
}

TEST_F(ObjectsTest, ReplicasPerKind) {
  auto set = Named<k8s::v1::ReplicaSet>();
  EXPECT_EQ(MustDecode(v1::REPLICA_SET, set).target_replicas, 1) << "where none are stated";
  set.mutable_spec()->set_replicas(0);
  set.mutable_status()->set_replicas(2);
  for (const v1::ObjectKind kind : {v1::REPLICA_SET, v1::REPLICATION_CONTROLLER}) {
    const Workload workload = MustDecode(kind, set);
    EXPECT_EQ(workload.uid, "u");
    EXPECT_EQ(workload.target_replicas, 0);
    EXPECT_EQ(workload.current_replicas, 2);
  }
  auto stateful = Named<k8s::v1::StatefulSet>();
  stateful.mutable_spec()->set_replicas(3);
  stateful.mutable_status()->set_replicas(3);
  stateful.mutable_status()->set_current_replicas(2);
  EXPECT_EQ(MustDecode(v1::STATEFUL_SET, stateful).current_replicas, 2);
  auto daemon = Named<k8s::v1::DaemonSet>();
  daemon.mutable_status()->set_desired_number_scheduled(7);
  daemon.mutable_status()->set_current_number_scheduled(6);
  EXPECT_EQ(MustDecode(v1::DAEMON_SET, daemon).target_replicas, 7);
  EXPECT_EQ(MustDecode(v1::DAEMON_SET, daemon).current_replicas, 6);
  auto job = Named<k8s::v1::Job>();
  job.mutable_spec()->set_parallelism(5);
  job.mutable_spec()->set_completions(10);
  job.mutable_status()->set_succeeded(7);
  job.mutable_status()->set_active(2);
  EXPECT_EQ(MustDecode(v1::JOB, job).target_replicas, 3) << "as many as are still to complete";
  EXPECT_EQ(MustDecode(v1::JOB, job).current_replicas, 2);
}

TEST_F(ObjectsTest, TheTemplateAndWhatIsWishedForIt) {
  auto deployment = Named<k8s::v1::Deployment>();
  EXPECT_EQ(MustDecode(v1::DEPLOYMENT, deployment).pod, std::nullopt);
  *deployment.mutable_spec()->mutable_template_() = MakePod({}, {{"cpu", "2"}});
  Annotate("loadline.dev/slack-copies", "3",
           deployment.mutable_spec()->mutable_template_()->mutable_metadata());
  Workload workload = MustDecode(v1::DEPLOYMENT, deployment);
  ASSERT_TRUE(workload.pod.has_value());
  EXPECT_EQ(workload.pod->namespace_name, "shop");
  EXPECT_EQ(*workload.pod->requests.Find(kCpu), 2000);
  EXPECT_EQ(workload.slack.copies, 3);
  Annotate("loadline.dev/slack-copies", "1", deployment.mutable_metadata());
  EXPECT_EQ(MustDecode(v1::DEPLOYMENT, deployment).slack.copies, 1) << "the workload's own annotation wins";
}

// The slack that a Job asked for which has ended is not kept any more; one whose last pod still runs asks for
// it.
TEST_F(ObjectsTest, AJobThatEndedAsksForNoSlack) {
  auto job = Named<k8s::v1::Job>();
  Annotate("loadline.dev/slack-copies", "3", job.mutable_metadata());
  *job.mutable_spec()->mutable_template_() = MakePod({}, {{"cpu", "2"}});
  Annotate("loadline.dev/slack-copies", "2", job.mutable_spec()->mutable_template_()->mutable_metadata());
  EXPECT_EQ(MustDecode(v1::JOB, job).slack.copies, 3);
  auto completed = job;
  completed.mutable_spec()->set_completions(2);
  completed.mutable_status()->set_succeeded(2);
  EXPECT_EQ(MustDecode(v1::JOB, completed).slack, SlackWish());
  completed.mutable_status()->set_active(1);
  EXPECT_EQ(MustDecode(v1::JOB, completed).slack.copies, 3);
  for (const char* const type : {"Complete", "Failed"}) {
    auto ended = job;
    k8s::v1::JobCondition* const condition = ended.mutable_status()->add_conditions();
    condition->set_type(type);
    condition->set_status("False");
    EXPECT_EQ(MustDecode(v1::JOB, ended).slack.copies, 3) << type;
    condition->set_status("True");
    EXPECT_EQ(MustDecode(v1::JOB, ended).slack, SlackWish()) << type;
  }
}

TEST_F(ObjectsTest, ErrorsNameTheObjectAndTheField) {
  auto deployment = Named<k8s::v1::Deployment>();
  *deployment.mutable_spec()->mutable_template_() = MakePod({}, {{"cpu", "2x"}});
  // Without a template it is a workload all the same.
  const absl::StatusOr<ClusterObject> decoded = Decode(v1::DEPLOYMENT, deployment);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(decoded->unreadable,
              ::testing::StartsWith("spec.template (namespace \"shop\"): spec.containers[0] \"app\": "
                                    "resources.requests[\"cpu\"]: \"2x\""));
  EXPECT_FALSE(std::get<Workload>(decoded->content).pod.has_value());
  EXPECT_EQ(Decode(v1::JOB, k8s::v1::Job()).status().message(), "has an empty metadata.name");
}

}  // namespace
}  // namespace loadline
