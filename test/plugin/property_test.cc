// The properties of every cluster, in every way in which it reached the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/plugin/messages.h"
#include "test/plugin/random_cluster.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

void MustSync(TypedEngine& engine, const ChangesBuilder& changes) {
  const absl::StatusOr<v1::SyncResponse> response = engine.Sync(changes);
  ASSERT_TRUE(response.ok()) << response.status();
}

void SyncAll(TypedEngine& engine, const std::vector<ChangesBuilder>& batches) {
  for (const ChangesBuilder& batch : batches) MustSync(engine, batch);
}

std::map<std::string, uint64_t> FingerprintsOf(TypedEngine& engine) {
  std::map<std::string, uint64_t> fingerprints;
  const v1::DescribeResponse response = engine.DescribeAll();
  for (const v1::NodeState& node : response.nodes()) fingerprints[node.name()] = node.fingerprint();
  return fingerprints;
}

uint64_t FingerprintOf(TypedEngine& engine) { return engine.DescribeAll().views(0).fingerprint(); }

v1::ScorePolicy RandomScorePolicy(Random& random) {
  v1::ScorePolicy policy = Preset(OneIn(random, 2) ? v1::ScorePolicy::STRICT : v1::ScorePolicy::KEP217);
  for (const char* const resource : {"cpu", "memory", "a.com/x", "b.com/y"}) {
    if (OneIn(random, 2)) continue;
    v1::ResourceWeight* const weight = policy.add_resources();
    weight->set_resource(resource);
    weight->set_weight(static_cast<int32_t>(1 + Below(random, 100)));
  }
  policy.set_normalization(OneIn(random, 2) ? v1::ScorePolicy::ABSOLUTE : v1::ScorePolicy::MIN_MAX);
  return policy;
}

std::map<std::string, int32_t> ScoresByName(TypedEngine& engine, const RandomClient& client,
                                            const v1::ScoreRequest& request) {
  std::map<int32_t, std::string> names;
  for (const auto& [name, slot] : client.slots()) names[slot] = name;
  const absl::StatusOr<v1::ScoreResponse> response = engine.Score(request);
  EXPECT_TRUE(response.ok()) << response.status();
  std::map<std::string, int32_t> scores;
  for (int i = 0; response.ok() && i < response->scores_size(); ++i) {
    EXPECT_GE(response->scores(i), 0);
    EXPECT_LE(response->scores(i), 100);
    scores[names[response->slots(i)]] = response->scores(i);
  }
  return scores;
}

// Sums that are counted here from what the cluster was made of.
void ExpectSums(const v1::NodeState& state, const ClusterNode& node, const RandomCluster& cluster) {
  AmountsByName requested;
  AmountsByName limits;
  int64_t unfinished = 0;
  for (const ClusterPod& pod : node.pods) {
    const PodKind& kind = cluster.kind(pod.kind);
    for (const auto& [name, amount] : kind.requests) requested[name] += amount;
    for (const auto& [name, amount] : kind.limits) limits[name] += amount;
    unfinished += kind.finished ? 0 : 1;
  }
  EXPECT_EQ(state.pod_count(), unfinished);
  std::set<std::string> expected;
  for (const auto& [name, amount] : node.allocatable) expected.insert(name);
  for (const auto& [name, amount] : requested)
    if (amount > 0) expected.insert(name);
  for (const auto& [name, amount] : limits)
    if (amount > 0) expected.insert(name);
  std::set<std::string> reported;
  for (const v1::ResourceSums& sums : state.resources()) {
    reported.insert(sums.resource());
    const auto allocatable = node.allocatable.find(sums.resource());
    EXPECT_EQ(sums.allocatable(), allocatable == node.allocatable.end() ? 0 : allocatable->second);
    EXPECT_EQ(sums.requested(), requested[sums.resource()]) << state.name() << " " << sums.resource();
    EXPECT_EQ(sums.limits(), limits[sums.resource()]) << state.name() << " " << sums.resource();
  }
  EXPECT_EQ(reported, expected) << state.name();
}

class PropertyTest : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, PropertyTest, ::testing::Range(uint64_t{0}, uint64_t{150}));

// Three engines: one hears of each change, one of several at a time and of some twice, one only of the
// outcome, under numbers of its own.
TEST_P(PropertyTest, AFullListAndAnySequenceOfDeltasLeadToTheSame) {
  Random random(GetParam());
  RandomCluster cluster(GetParam());
  TypedEngine each;
  TypedEngine some;
  RandomClient client(cluster, GetParam() + 1);
  int64_t revision = 1;
  for (const ChangesBuilder& batch : client.FullList(1, revision)) {
    MustSync(each, batch);
    MustSync(some, batch);
  }
  std::vector<ChangesBuilder> withheld;
  for (int step = 0; step < 40; ++step) {
    const ChangesBuilder delta = client.Delta(1, revision, revision + 1, cluster.Change());
    client.Acknowledge();
    ++revision;
    MustSync(each, delta);
    withheld.push_back(delta);
    if (!OneIn(random, 3)) continue;
    SyncAll(some, withheld);
    if (OneIn(random, 2)) SyncAll(some, {withheld.back()});
    withheld.clear();
  }
  SyncAll(some, withheld);
  EXPECT_EQ(each.DescribeAll(true).SerializeAsString(), some.DescribeAll(true).SerializeAsString());

  TypedEngine whole;
  RandomClient other(cluster, GetParam() + 2);
  SyncAll(whole, other.FullList(9, 77));
  EXPECT_EQ(FingerprintOf(each), FingerprintOf(whole));
  EXPECT_EQ(FingerprintsOf(each), FingerprintsOf(whole));
  EXPECT_EQ(FingerprintsOf(each).size(), cluster.nodes().size());

  const v1::DescribeResponse response = each.DescribeAll();
  for (const v1::NodeState& state : response.nodes()) {
    ExpectSums(state, cluster.nodes().at(state.name()), cluster);
  }
  for (int i = 0; i < 10; ++i) {
    k8s::v1::Pod pod = cluster.kind(Below(random, cluster.kinds())).pod;
    if (pod.spec().containers().empty()) pod.mutable_spec()->add_containers();  // else it is refused
    const v1::ScorePolicy policy = RandomScorePolicy(random);
    const v1::ScoreRequest request = ScoreOf(ChangesBuilder::At(1, revision).changes(), pod, policy);
    EXPECT_EQ(each.Score(request)->SerializeAsString(), some.Score(request)->SerializeAsString());
    EXPECT_EQ(each.Explain(ExplainOf(request))->SerializeAsString(),
              some.Explain(ExplainOf(request))->SerializeAsString());
    EXPECT_EQ(ScoresByName(each, client, request),
              ScoresByName(whole, other, ScoreOf(ChangesBuilder::At(9, 77).changes(), pod, policy)));
  }
}

// A client that does not know whether its batches arrived sends all since the last known state again.
TEST_P(PropertyTest, LostAnswersAreMadeGoodByLargerBatches) {
  Random random(GetParam());
  RandomCluster cluster(GetParam());
  RandomClient client(cluster, GetParam() + 1);
  TypedEngine engine;
  SyncAll(engine, client.FullList(1, 1));
  int64_t known = 1;
  for (int64_t revision = 2; revision < 30; ++revision) {
    const ChangesBuilder delta = client.Delta(1, known, revision, cluster.Change());
    if (OneIn(random, 3)) continue;  // the batch is lost
    MustSync(engine, delta);
    if (OneIn(random, 3)) continue;  // the answer is lost
    client.Acknowledge();
    known = revision;
  }
  MustSync(engine, client.Delta(1, known, 30, {}));
  TypedEngine whole;
  SyncAll(whole, RandomClient(cluster, 5).FullList(1, 30));
  EXPECT_EQ(FingerprintOf(engine), FingerprintOf(whole));
}

// Refused batches leave no trace, whatever part of them was fine.
TEST_P(PropertyTest, RefusedBatchesLeaveNoTrace) {
  Random random(GetParam());
  RandomCluster cluster(GetParam());
  RandomClient client(cluster, GetParam() + 1);
  TypedEngine engine;
  SyncAll(engine, client.FullList(1, 1));
  for (int64_t revision = 1; revision < 20; ++revision) {
    const std::string before = engine.DescribeAll(true).SerializeAsString();
    const std::set<std::string> changed = cluster.Change();
    const ChangesBuilder good = client.Delta(1, revision, revision + 1, changed);
    ChangesBuilder bad = good;
    switch (Below(random, 4)) {
      case 0:
        bad.Node(63, MakeNode("twin", {})).Node(62, MakeNode("twin", {}));
        break;
      case 1:
        bad.Node(63, MakeNode("bad", {{"new.com/resource", "1"}}), {{200'000, "p", ""}});
        break;
      case 2:
        bad.Shape(100'000, MakePod({{"new.com/resource", "1"}})).Shape(100'000, MakePod({{"cpu", "1"}}));
        break;
      default:
        bad.Remove(-1);
    }
    ASSERT_EQ(engine.Sync(bad).status().code(), absl::StatusCode::kInvalidArgument);
    ASSERT_EQ(engine.DescribeAll(true).SerializeAsString(), before);
    MustSync(engine, good);
    client.Acknowledge();
  }
}

// More limits on a node never raise its raw score, more allocatable never lowers it, and others do not
// notice.
TEST_P(PropertyTest, RawScoresAreMonotone) {
  Random random(GetParam());
  for (int i = 0; i < 20; ++i) {
    const v1::ScorePolicy policy = RandomScorePolicy(random);
    const k8s::v1::Pod incoming = MakePod({{"cpu", std::to_string(Below(random, 4000)) + "m"},
                                           {"memory", std::to_string(Below(random, 4000))}});
    const int64_t cpu = static_cast<int64_t>(1 + Below(random, 16'000));
    const int64_t limit = static_cast<int64_t>(1 + Below(random, 20'000));
    const int64_t more = static_cast<int64_t>(Below(random, 5'000));
    const auto raw_scores = [&](int64_t allocatable, int64_t pod_limit) {
      TypedEngine engine;
      const auto milli = [](int64_t amount) { return std::to_string(amount) + "m"; };
      const ChangesBuilder changes =
          ChangesBuilder::FullList(1, 1)
              .Shape(0, MakePod({{"cpu", milli(pod_limit)}, {"memory", "700"}}))
              .Shape(1, MakePod({{"cpu", "3"}, {"memory", "9"}}))
              .Node(0, MakeNode("a", {{"cpu", milli(allocatable)}, {"memory", "3000"}}), {{0, "p", ""}})
              .Node(1, MakeNode("b", {{"cpu", "4"}, {"memory", "1000"}}), {{1, "q", ""}});
      const absl::StatusOr<v1::ExplainResponse> response =
          engine.Explain(ExplainOf(ScoreOf(changes.changes(), incoming, policy)));
      EXPECT_TRUE(response.ok()) << response.status();
      return std::pair(response->nodes(0).raw_score(), response->nodes(1).raw_score());
    };
    const auto [raw, other] = raw_scores(cpu, limit);
    const auto [raw_of_more_limits, other_then] = raw_scores(cpu, limit + more);
    EXPECT_LE(raw_of_more_limits, raw);
    EXPECT_EQ(other_then, other);
    // A pod without a limit of its own counts as the allocatable: then its share does not grow with the node.
    const auto [raw_of_more_allocatable, other_again] = raw_scores(cpu + more, limit);
    EXPECT_GE(raw_of_more_allocatable, raw - 1e-6);
    EXPECT_EQ(other_again, other);
  }
}

struct FieldChange {
  std::string name;
  std::function<void(k8s::v1::Node*, k8s::v1::Pod*, PodOnNode*)> change;
};

class FingerprintTest : public ::testing::TestWithParam<FieldChange> {
 protected:
  // Every field is there, and each of them counts.
  FingerprintTest() : node_(MakeNode("node", {{"cpu", "8"}, {"memory", "1000"}})) {
    // The spec asks for the most of b.com/q, as long as the resize is not infeasible.
    pod_ = MakePod({{"cpu", "2"}}, {{"cpu", "1"}, {"b.com/q", "9"}});
    k8s::v1::Container* const sidecar = pod_.mutable_spec()->add_init_containers();
    sidecar->set_name("sidecar");
    sidecar->set_restart_policy("Always");
    AddEntries({{"cpu", "1"}}, sidecar->mutable_resources()->mutable_limits());
    k8s::v1::Container* const init = pod_.mutable_spec()->add_init_containers();
    init->set_name("init");
    AddEntries({{"ephemeral-storage", "100"}}, init->mutable_resources()->mutable_limits());
    AddEntries({{"a.com/x", "3"}}, init->mutable_resources()->mutable_requests());
    AddEntries({{"cpu", "10m"}}, pod_.mutable_spec()->mutable_overhead());
    AddEntries({{"memory", "500"}}, pod_.mutable_spec()->mutable_resources()->mutable_limits());
    AddEntries({{"memory", "30"}}, pod_.mutable_spec()->mutable_resources()->mutable_requests());
    k8s::v1::ContainerStatus* const status = pod_.mutable_status()->add_container_statuses();
    status->set_name("app");
    AddEntries({{"cpu", "3"}}, status->mutable_resources()->mutable_limits());
    AddEntries({{"cpu", "1500m"}, {"b.com/q", "5"}}, status->mutable_resources()->mutable_requests());
    AddEntries({{"cpu", "1600m"}, {"b.com/q", "5"}}, status->mutable_allocated_resources());
    k8s::v1::ContainerStatus* const sidecar_status = pod_.mutable_status()->add_init_container_statuses();
    sidecar_status->set_name("sidecar");
    AddEntries({{"cpu", "2"}}, sidecar_status->mutable_resources()->mutable_limits());
    AddEntries({{"a.com/y", "2"}}, sidecar_status->mutable_resources()->mutable_requests());
    AddEntries({{"a.com/z", "2"}}, sidecar_status->mutable_allocated_resources());
    AddEntries({{"memory", "600"}}, pod_.mutable_status()->mutable_resources()->mutable_limits());
    AddEntries({{"memory", "40"}}, pod_.mutable_status()->mutable_allocated_resources());
  }

  uint64_t Fingerprint() const {
    TypedEngine engine;
    MustSync(engine, ChangesBuilder::FullList(1, 1).Shape(0, pod_).Node(0, node_, {record_}));
    const v1::DescribeResponse response = engine.DescribeAll();
    EXPECT_EQ(response.nodes_size(), 1);
    return response.nodes(0).fingerprint();
  }

  k8s::v1::Node node_;
  k8s::v1::Pod pod_;
  PodOnNode record_{0, "name", "uid"};
};

TEST_P(FingerprintTest, ChangesWithTheField) {
  const uint64_t before = Fingerprint();
  EXPECT_EQ(Fingerprint(), before);
  GetParam().change(&node_, &pod_, &record_);
  EXPECT_NE(Fingerprint(), before);
}

using Node = k8s::v1::Node;
using Pod = k8s::v1::Pod;

void Raise(google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries) {
  entries->Mutable(0)->mutable_value()->set_string("2500");
}
template <typename Entries>
void AddLabel(const std::string& key, const std::string& value, Entries* entries) {
  auto* const entry = entries->Add();
  entry->set_key(key);
  entry->set_value(value);
}
k8s::v1::Container* App(Pod* pod) { return pod->mutable_spec()->mutable_containers(0); }
k8s::v1::ContainerStatus* AppStatus(Pod* pod) { return pod->mutable_status()->mutable_container_statuses(0); }

INSTANTIATE_TEST_SUITE_P(
    Fields, FingerprintTest,
    ::testing::ValuesIn(std::vector<FieldChange>{
        {"NodeName", [](Node* n, Pod*, PodOnNode*) { n->mutable_metadata()->set_name("other"); }},
        {"Allocatable", [](Node* n, Pod*, PodOnNode*) { Raise(n->mutable_status()->mutable_allocatable()); }},
        {"AllocatableGone",
         [](Node* n, Pod*, PodOnNode*) { n->mutable_status()->mutable_allocatable()->RemoveLast(); }},
        {"AllocatableMore",
         [](Node* n, Pod*, PodOnNode*) {
           AddEntries({{"a.com/x", "1"}}, n->mutable_status()->mutable_allocatable());
         }},
        {"Capacity",
         [](Node* n, Pod*, PodOnNode*) {
           n->mutable_status()->clear_allocatable();
           AddEntries({{"cpu", "7"}}, n->mutable_status()->mutable_capacity());
         }},
        {"PodName", [](Node*, Pod*, PodOnNode* r) { r->name = "other"; }},
        {"PodUid", [](Node*, Pod*, PodOnNode* r) { r->uid = "other"; }},
        {"PodNameAndUidBorder", [](Node*, Pod*, PodOnNode* r) { r->name = "nameu", r->uid = "id"; }},
        {"Namespace", [](Node*, Pod* p, PodOnNode*) { p->mutable_metadata()->set_namespace_("other"); }},
        {"Limit", [](Node*, Pod* p, PodOnNode*) { Raise(App(p)->mutable_resources()->mutable_limits()); }},
        {"LimitOfAnotherResource",
         [](Node*, Pod* p, PodOnNode*) {
           AddEntries({{"a.com/x", "1"}}, App(p)->mutable_resources()->mutable_limits());
         }},
        {"ResourceName",
         [](Node*, Pod* p, PodOnNode*) {
           p->mutable_spec()->mutable_init_containers(1)->mutable_resources()->mutable_limits(0)->set_key("b.com/y");
         }},
        {"Request", [](Node*, Pod* p, PodOnNode*) { Raise(App(p)->mutable_resources()->mutable_requests()); }},
        {"ContainerMore",
         [](Node*, Pod* p, PodOnNode*) { *p->mutable_spec()->add_containers() = p->spec().containers(0); }},
        {"ContainerName", [](Node*, Pod* p, PodOnNode*) { App(p)->set_name("other"); }},
        {"Sidecar",
         [](Node*, Pod* p, PodOnNode*) { p->mutable_spec()->mutable_init_containers(0)->clear_restart_policy(); }},
        {"InitLimit",
         [](Node*, Pod* p, PodOnNode*) {
           Raise(p->mutable_spec()->mutable_init_containers(1)->mutable_resources()->mutable_limits());
         }},
        {"InitRequest",
         [](Node*, Pod* p, PodOnNode*) {
           Raise(p->mutable_spec()->mutable_init_containers(1)->mutable_resources()->mutable_requests());
         }},
        {"Overhead", [](Node*, Pod* p, PodOnNode*) { Raise(p->mutable_spec()->mutable_overhead()); }},
        {"PodLevelLimit",
         [](Node*, Pod* p, PodOnNode*) { Raise(p->mutable_spec()->mutable_resources()->mutable_limits()); }},
        {"PodLevelRequest",
         [](Node*, Pod* p, PodOnNode*) { Raise(p->mutable_spec()->mutable_resources()->mutable_requests()); }},
        {"PodLevelGone", [](Node*, Pod* p, PodOnNode*) { p->mutable_spec()->clear_resources(); }},
        {"Succeeded", [](Node*, Pod* p, PodOnNode*) { p->mutable_status()->set_phase("Succeeded"); }},
        {"Failed", [](Node*, Pod* p, PodOnNode*) { p->mutable_status()->set_phase("Failed"); }},
        {"StatusLimit",
         [](Node*, Pod* p, PodOnNode*) { Raise(AppStatus(p)->mutable_resources()->mutable_limits()); }},
        {"StatusRequest",
         [](Node*, Pod* p, PodOnNode*) { Raise(AppStatus(p)->mutable_resources()->mutable_requests()); }},
        {"StatusAllocated",
         [](Node*, Pod* p, PodOnNode*) { Raise(AppStatus(p)->mutable_allocated_resources()); }},
        {"StatusGone", [](Node*, Pod* p, PodOnNode*) { AppStatus(p)->clear_resources(); }},
        {"SidecarStatus",
         [](Node*, Pod* p, PodOnNode*) {
           Raise(p->mutable_status()->mutable_init_container_statuses(0)->mutable_resources()->mutable_limits());
         }},
        {"SidecarStatusRequest",
         [](Node*, Pod* p, PodOnNode*) {
           Raise(p->mutable_status()->mutable_init_container_statuses(0)->mutable_resources()->mutable_requests());
         }},
        {"SidecarStatusAllocated",
         [](Node*, Pod* p, PodOnNode*) {
           Raise(p->mutable_status()->mutable_init_container_statuses(0)->mutable_allocated_resources());
         }},
        {"ResizeInfeasible",
         [](Node*, Pod* p, PodOnNode*) {
           k8s::v1::PodCondition* const condition = p->mutable_status()->add_conditions();
           condition->set_type("PodResizePending");
           condition->set_reason("Infeasible");
         }},
        {"PodLevelStatus",
         [](Node*, Pod* p, PodOnNode*) { Raise(p->mutable_status()->mutable_resources()->mutable_limits()); }},
        {"PodLevelAllocated",
         [](Node*, Pod* p, PodOnNode*) { Raise(p->mutable_status()->mutable_allocated_resources()); }},
        {"PodLabels",
         [](Node*, Pod* p, PodOnNode*) { AddLabel("app", "other", p->mutable_metadata()->mutable_labels()); }},
        {"Deletion", [](Node*, Pod* p, PodOnNode*) { p->mutable_metadata()->mutable_deletion_timestamp(); }},
        {"NodeSelector",
         [](Node*, Pod* p, PodOnNode*) { AddLabel("disk", "ssd", p->mutable_spec()->mutable_node_selector()); }},
        {"Toleration",
         [](Node*, Pod* p, PodOnNode*) { p->mutable_spec()->add_tolerations()->set_key("dedicated"); }},
        {"AntiAffinity",
         [](Node*, Pod* p, PodOnNode*) {
           p->mutable_spec()
               ->mutable_affinity()
               ->mutable_pod_anti_affinity()
               ->add_required()
               ->set_topology_key("zone");
         }},
        {"HostPort",
         [](Node*, Pod* p, PodOnNode*) { App(p)->add_ports()->set_host_port(8080); }},
        {"NodeLabels",
         [](Node* n, Pod*, PodOnNode*) { AddLabel("disk", "ssd", n->mutable_metadata()->mutable_labels()); }},
        {"Hostname",
         [](Node* n, Pod*, PodOnNode*) {
           AddLabel("kubernetes.io/hostname", "other", n->mutable_metadata()->mutable_labels());
         }},
        {"Taint",
         [](Node* n, Pod*, PodOnNode*) {
           k8s::v1::Taint* const taint = n->mutable_spec()->add_taints();
           taint->set_key("dedicated");
           taint->set_effect("NoSchedule");
         }},
        {"Unschedulable", [](Node* n, Pod*, PodOnNode*) { n->mutable_spec()->set_unschedulable(true); }},
    }),
    [](const auto& info) { return info.param.name; });

TEST(FingerprintTest, ChangesWithTheNumberOfEqualPods) {
  const auto fingerprint = [](size_t pods) {
    TypedEngine engine;
    MustSync(engine, ChangesBuilder::FullList(1, 1)
                         .Shape(0, k8s::v1::Pod())
                         .Node(0, MakeNode("a", {}), std::vector<PodOnNode>(pods, {0, "", ""})));
    return std::pair(engine.DescribeAll().nodes(0).fingerprint(), FingerprintOf(engine));
  };
  EXPECT_NE(fingerprint(0), fingerprint(1));
  EXPECT_NE(fingerprint(1).first, fingerprint(2).first);
  EXPECT_NE(fingerprint(1).second, fingerprint(2).second);
}

// F6: same name, new UID is another pod; the shape is the same.
TEST(FingerprintTest, ChangesWhenAPodIsReplacedUnderItsName) {
  TypedEngine engine;
  MustSync(engine, ChangesBuilder::FullList(1, 1)
                       .Shape(0, k8s::v1::Pod())
                       .Node(0, MakeNode("a", {}), {{0, "web-0", "first"}}));
  const uint64_t before = FingerprintOf(engine);
  MustSync(engine, ChangesBuilder::Delta(1, 1, 2).Node(0, MakeNode("a", {}), {{0, "web-0", "second"}}));
  EXPECT_NE(FingerprintOf(engine), before);
  MustSync(engine, ChangesBuilder::Delta(1, 2, 3).Node(0, MakeNode("a", {}), {{0, "web-0", "first"}}));
  EXPECT_EQ(FingerprintOf(engine), before);
}

}  // namespace
}  // namespace loadline
