#include "core/fit/pod_fit.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

Verdict Unschedulable(FilterName filter, std::string reason) {
  return Refusal(filter, StatusClass::kUnschedulable, {std::move(reason)});
}

Verdict Unresolvable(FilterName filter, std::string reason) {
  return Refusal(filter, StatusClass::kUnschedulableAndUnresolvable, {std::move(reason)});
}

FitPod WithRules(const std::function<void(PodRules*)>& set) {
  FitPod pod;
  set(&pod.rules);
  return pod;
}

// One pod against the first node of a cluster.
struct FitCase {
  std::string name;
  std::vector<std::pair<FitNode, std::vector<FitPod>>> nodes;
  FitPod pod;
  Verdict verdict;
};

class PodFitTest : public ::testing::TestWithParam<FitCase> {};

TEST_P(PodFitTest, GivesTheVerdictOfTheFirstFilterThatRefuses) {
  FitCluster cluster;
  for (const auto& [node, pods] : GetParam().nodes) cluster.Add(node, pods);
  cluster.state().objects().SetComplete(ObjectKind::kNamespace);
  cluster.state().objects().SetComplete(ObjectKind::kDeviceClass);
  const IncomingPod pod = cluster.Incoming(GetParam().pod, "web-0", "uid-0");
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  PodFit fit(&snapshot, pod, &options);
  const Verdict verdict = fit.Judge(NodeIndex{0});
  EXPECT_EQ(verdict.judgement, GetParam().verdict.judgement);
  EXPECT_EQ(verdict.filter, GetParam().verdict.filter);
  EXPECT_EQ(verdict.status_class, GetParam().verdict.status_class);
  EXPECT_EQ(verdict.reasons, GetParam().verdict.reasons);
  EXPECT_EQ(fit.Fits(NodeIndex{0}), verdict.judgement == Judgement::kFits);
}

FitPod Requesting(std::vector<std::pair<std::string, int64_t>> requests) {
  return {.requests = std::move(requests)};
}

const FitNode kNode = {.name = "a", .labels = {{kZone, "east"}, {"cores", "16"}}};
const FitNode kOther = {.name = "b", .labels = {{kZone, "west"}}};

FitPod App(const std::string& app) { return {.labels = {{"app", app}}}; }

FitPod Anti(const std::string& app, const std::string& key) {
  FitPod pod = App(app);
  pod.rules.anti_affinity = {Term(Select("app", app), key)};
  return pod;
}

FitPod Company(const std::string& app, const std::string& own, const std::string& key) {
  FitPod pod = App(own);
  pod.rules.affinity = {Term(Select("app", app), key)};
  return pod;
}

FitPod Spread(int32_t max_skew, const std::string& key, int32_t min_domains = 1) {
  FitPod pod = App("web");
  pod.rules.has_spread = true;
  pod.rules.spread = {{.max_skew = max_skew,
                       .topology_key = key,
                       .selector = Select("app", "web"),
                       .min_domains = min_domains}};
  return pod;
}

NodeSelector Affinity(const std::string& key, SelectorOperator op, std::vector<std::string> values,
                      int64_t number = 0) {
  NodeSelectorTerm term;
  term.labels = {{key, op, std::move(values), number}};
  return {{term}};
}

const char kTaints[] = "node(s) had untolerated taint(s)";
const char kAffinity[] = "node(s) didn't match Pod's node affinity/selector";
const char kPorts[] = "node(s) didn't have free ports for the requested pod ports";
const char kSpread[] = "node(s) didn't match pod topology spread constraints";

const FitNode kTainted = {.name = "a",
                          .taints = {{"dedicated", "gpu", "NoSchedule"}, {"soft", "", "PreferNoSchedule"}}};
FitNode Cordoned() {
  FitNode node = kNode;
  node.unschedulable = true;
  return node;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PodFitTest,
    ::testing::ValuesIn(std::vector<FitCase>{
        {"APlainPodFits", {{kNode, {}}}, {}, {}},
        {"Cordoned",
         {{Cordoned(), {}}},
         {},
         Unresolvable(FilterName::kNodeUnschedulable, "node(s) were unschedulable")},
        {"CordonedButTolerated",
         {{Cordoned(), {}}},
         WithRules([](PodRules* r) {
           r->tolerations = {{"node.kubernetes.io/unschedulable", "Exists", "", ""}};
         }),
         {}},
        {"OtherNodeName",
         {{kNode, {}}},
         WithRules([](PodRules* r) { r->node_name = "b"; }),
         Unresolvable(FilterName::kNodeName, "node(s) didn't match the requested node name")},
        {"Tainted", {{kTainted, {}}}, {}, Unresolvable(FilterName::kTaintToleration, kTaints)},
        {"ToleratedByValue",
         {{kTainted, {}}},
         WithRules([](PodRules* r) {
           r->tolerations = {{"dedicated", "", "gpu", "NoSchedule"}};
         }),
         {}},
        {"ToleratedByEmptyKey",
         {{kTainted, {}}},
         WithRules([](PodRules* r) {
           r->tolerations = {{"", "Exists", "", ""}};
         }),
         {}},
        {"OtherValueIsNotTolerated",
         {{kTainted, {}}},
         WithRules([](PodRules* r) {
           r->tolerations = {{"dedicated", "Equal", "cpu", ""}};
         }),
         Unresolvable(FilterName::kTaintToleration, kTaints)},
        {"GtTolerationsAreOff",
         {{kTainted, {}}},
         WithRules([](PodRules* r) {
           r->tolerations = {{"dedicated", "Gt", "1", ""}};
         }),
         Unresolvable(FilterName::kTaintToleration, kTaints)},
        {"NodeSelector",
         {{kNode, {}}},
         WithRules([](PodRules* r) {
           r->node_selector = MakeLabels({{kZone, "west"}});
         }),
         Unresolvable(FilterName::kNodeAffinity, kAffinity)},
        {"NodeSelectorByHostname",
         {{kNode, {}}},
         WithRules([](PodRules* r) {
           r->node_selector = MakeLabels({{kHostnameLabel, "a"}});
         }),
         {}},
        {"GreaterThan",
         {{kNode, {}}},
         WithRules([](PodRules* r) {
           r->node_affinity = Affinity("cores", SelectorOperator::kGreaterThan, {"15"}, 15);
         }),
         {}},
        {"NotGreaterThanItself",
         {{kNode, {}}},
         WithRules([](PodRules* r) {
           r->node_affinity = Affinity("cores", SelectorOperator::kGreaterThan, {"16"}, 16);
         }),
         Unresolvable(FilterName::kNodeAffinity, kAffinity)},
        {"GreaterThanOfNoNumber",
         {{kNode, {}}},
         WithRules([](PodRules* r) {
           r->node_affinity = Affinity(kZone, SelectorOperator::kLessThan, {"5"}, 5);
         }),
         Unresolvable(FilterName::kNodeAffinity, kAffinity)},
        {"NotInMatchesAbsent",
         {{kNode, {}}},
         WithRules([](PodRules* r) {
           r->node_affinity = Affinity("missing", SelectorOperator::kNotIn, {"x"});
         }),
         {}},
        {"NoTermsMatchNothing",
         {{kNode, {}}},
         WithRules([](PodRules* r) { r->node_affinity = NodeSelector(); }),
         Unresolvable(FilterName::kNodeAffinity, kAffinity)},
        {"PortTaken",
         {{kNode, {WithRules([](PodRules* r) {
             r->host_ports = {{80, "TCP", "10.0.0.1"}};
           })}}},
         WithRules([](PodRules* r) {
           r->host_ports = {{80, "TCP", "0.0.0.0"}};
         }),
         Unschedulable(FilterName::kNodePorts, kPorts)},
        {"PortOfOtherAddress",
         {{kNode, {WithRules([](PodRules* r) {
             r->host_ports = {{80, "TCP", "10.0.0.1"}};
           })}}},
         WithRules([](PodRules* r) {
           r->host_ports = {{80, "TCP", "10.0.0.2"}, {80, "UDP", "10.0.0.1"}};
         }),
         {}},
        {"ExactlyFits",
         {{kNode, {Requesting({{"cpu", 3000}})}}},
         Requesting({{"cpu", 1000}, {"memory", 16}}),
         {}},
        {"OneMilliCpuShort",
         {{kNode, {Requesting({{"cpu", 3000}})}}},
         Requesting({{"cpu", 1001}}),
         Unschedulable(FilterName::kNodeResourcesFit, "Insufficient cpu")},
        {"MoreThanTheNodeHas",
         {{kNode, {}}},
         Requesting({{"cpu", 4001}}),
         Unresolvable(FilterName::kNodeResourcesFit, "Insufficient cpu")},
        {"EveryShortageIsNamed",
         {{{.name = "a", .allocatable = {{"cpu", 1000}, {"pods", 0}}}, {}}},
         Requesting({{"cpu", 1001}, {"memory", 1}, {"example.com/gpu", 1}, {"ephemeral-storage", 0}}),
         Refusal(FilterName::kNodeResourcesFit, StatusClass::kUnschedulableAndUnresolvable,
                 {"Insufficient cpu", "Insufficient example.com/gpu", "Insufficient memory",
                  "Too many pods"})},
        {"TooManyPods",
         {{{.name = "a", .allocatable = {{"pods", 1}}}, {App("x")}}},
         {},
         Unschedulable(FilterName::kNodeResourcesFit, "Too many pods")},
        {"AZeroRequestFitsAnOverfullNode",
         {{{.name = "a", .allocatable = {{"cpu", 1}, {"pods", 9}}}, {Requesting({{"cpu", 5}})}}},
         Requesting({{"cpu", 0}}),
         {}},
        {"SameDisk",
         {{kNode, {WithRules([](PodRules* r) {
             r->volumes = {{VolumeKind::kGcePersistentDisk, "pd"}};
           })}}},
         WithRules([](PodRules* r) {
           r->volumes = {{VolumeKind::kGcePersistentDisk, "pd", "", {}, true}};
         }),
         Unschedulable(FilterName::kVolumeRestrictions, "node(s) had no available disk")},
        {"AntiAffinityOnTheNode",
         {{kNode, {App("web")}}},
         Anti("web", kHostnameLabel),
         Unschedulable(FilterName::kInterPodAffinity, "node(s) didn't match pod anti-affinity rules")},
        {"AntiAffinityElsewhere", {{kNode, {}}, {kOther, {App("web")}}}, Anti("web", kHostnameLabel), {}},
        {"AntiAffinityInTheZone",
         {{kNode, {}}, {{.name = "c", .labels = {{kZone, "east"}}}, {App("web")}}},
         Anti("web", kZone),
         Unschedulable(FilterName::kInterPodAffinity, "node(s) didn't match pod anti-affinity rules")},
        {"AntiAffinityWithoutTheKey", {{{.name = "a"}, {App("web")}}}, Anti("web", kZone), {}},
        {"AntiAffinityOfTheOther",
         {{kNode, {Anti("web", kHostnameLabel)}}},
         App("web"),
         Unschedulable(FilterName::kInterPodAffinity,
                       "node(s) didn't satisfy existing pods anti-affinity rules")},
        {"AntiAffinityOfAnotherNamespace",
         {{kNode, {Anti("web", kHostnameLabel)}}},
         {.namespace_name = "other", .labels = {{"app", "web"}}},
         {}},
        {"NoCompany",
         {{kNode, {}}, {kOther, {App("db")}}},
         Company("db", "web", kZone),
         Unresolvable(FilterName::kInterPodAffinity, "node(s) didn't match pod affinity rules")},
        {"CompanyInTheZone",
         {{kNode, {}}, {{.name = "c", .labels = {{kZone, "east"}}}, {App("db")}}},
         Company("db", "web", kZone),
         {}},
        {"TheFirstOfAKind", {{kNode, {}}}, Company("web", "web", kZone), {}},
        {"TheFirstOfAKindNeedsTheKey",
         {{{.name = "a"}, {}}},
         Company("web", "web", kZone),
         Unresolvable(FilterName::kInterPodAffinity, "node(s) didn't match pod affinity rules")},
        {"SpreadAtMaxSkew",
         {{kNode, {App("web")}}, {kOther, {}}},
         Spread(1, kZone),
         Unschedulable(FilterName::kPodTopologySpread, kSpread)},
        {"SpreadBelowMaxSkew", {{kNode, {App("web")}}, {kOther, {}}}, Spread(2, kZone), {}},
        {"SpreadEven", {{kNode, {App("web")}}, {kOther, {App("web")}}}, Spread(1, kZone), {}},
        {"SpreadMinDomains",
         {{kNode, {App("web")}}, {kOther, {App("web")}}},
         Spread(1, kZone, 3),
         Unschedulable(FilterName::kPodTopologySpread, kSpread)},
        {"SpreadWithoutTheKey",
         {{{.name = "a"}, {}}},
         Spread(1, kZone),
         Unresolvable(FilterName::kPodTopologySpread, std::string(kSpread) + " (missing required label)")},
        {"ResourceClaims",
         {{kNode, {}}},
         WithRules([](PodRules* r) { r->claims_resources = true; }),
         CannotJudge(FilterName::kDynamicResources, "the pod has resource claims")},
        {"ResourceClaimsOnATaintedNode",
         {{kTainted, {}}},
         WithRules([](PodRules* r) { r->claims_resources = true; }),
         Unresolvable(FilterName::kTaintToleration, kTaints)},
    }),
    [](const auto& info) { return info.param.name; });

// Verdicts follow the moves of the snapshot.
TEST(PodFitMovesTest, CountsAndSumsFollowMoves) {
  FitCluster cluster;
  cluster.Add(kNode);
  cluster.Add(kOther);
  const FitPod web = Anti("web", kZone);
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  PodFit fit(&snapshot, cluster.Incoming(web), &options);
  EXPECT_TRUE(fit.Fits(NodeIndex{0}));
  snapshot.Fork();
  snapshot.PlacePod(NodeIndex{0}, fit.shape());
  fit.Refresh();
  EXPECT_FALSE(fit.Fits(NodeIndex{0}));
  EXPECT_TRUE(fit.Fits(NodeIndex{1}));
  snapshot.Revert();
  EXPECT_TRUE(fit.Fits(NodeIndex{0}));
}

// Terms of a later pod count as well.
TEST(PodFitMovesTest, AnUnseenAntiAffinityTermCounts) {
  FitCluster cluster;
  cluster.Add(kNode);
  const IncomingPod pod = cluster.Incoming(App("web"));
  const PodShape lonely = cluster.Shape(Anti("web", kZone));
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  PodFit fit(&snapshot, pod, &options);
  EXPECT_TRUE(fit.Fits(NodeIndex{0}));
  snapshot.PlacePod(NodeIndex{0}, snapshot.InternShape(lonely));
  fit.Refresh();
  EXPECT_EQ(fit.Judge(NodeIndex{0}),
            Unschedulable(FilterName::kInterPodAffinity,
                          "node(s) didn't satisfy existing pods anti-affinity rules"));
}

TEST(PodFitOptionsTest, IgnoredResourcesDoNotCount) {
  FitCluster cluster;
  cluster.Add(kNode);
  const IncomingPod pod = cluster.Incoming(Requesting({{"example.com/gpu", 1}, {"example.org/fpga", 1}}));
  Snapshot open(cluster.state());
  FitOptions all;
  all.ignored_resources = {"example.com/gpu", "example.org/fpga"};
  EXPECT_TRUE(PodFit(&open, pod, &all).Fits(NodeIndex{0})) << "whether or not device classes are known";
  cluster.state().objects().SetComplete(ObjectKind::kDeviceClass);
  Snapshot snapshot(cluster.state());
  FitOptions options;
  options.ignored_resources = {"example.com/gpu"};
  EXPECT_THAT(PodFit(&snapshot, pod, &options).Judge(NodeIndex{0}).reasons,
              ElementsAre("Insufficient example.org/fpga"));
  options.ignored_resource_groups = {"example.org"};
  EXPECT_TRUE(PodFit(&snapshot, pod, &options).Fits(NodeIndex{0}));
}

TEST(PodFitOptionsTest, ANamespaceSelectorThatSeesNoLabelsMatchesEverything) {
  FitCluster cluster;
  cluster.Add(kNode, {{.namespace_name = "other", .labels = {{"app", "web"}}}});
  FitPod web = App("web");
  web.rules.anti_affinity = {
      {Select("app", "web"), kHostnameLabel, {}, {false, {{"team", SelectorOperator::kNotIn, {"red"}}}}}};
  const IncomingPod pod = cluster.Incoming(web);
  ClusterObject other{{ObjectKind::kNamespace, "", "other"}, Namespace{MakeLabels({{"team", "red"}})}, 1};
  cluster.state().objects().Set(other);
  cluster.state().objects().SetComplete(ObjectKind::kNamespace);
  Snapshot snapshot(cluster.state());
  FitOptions options;
  EXPECT_TRUE(PodFit(&snapshot, pod, &options).Fits(NodeIndex{0}));
  options.namespace_selector_sees_no_labels = true;
  EXPECT_FALSE(PodFit(&snapshot, pod, &options).Fits(NodeIndex{0}));
}

TEST(PodFitVolumesTest, AClaimThatMayBeMissingIsNotJudged) {
  FitCluster cluster;
  cluster.Add(kNode);
  const IncomingPod pod = cluster.Incoming(WithRules([](PodRules* r) {
    r->volumes = {{VolumeKind::kClaim, "data"}};
  }));
  const FitOptions options;
  {
    Snapshot snapshot(cluster.state());
    EXPECT_EQ(PodFit(&snapshot, pod, &options).Judge(NodeIndex{0}).judgement, Judgement::kCannotJudge);
  }
  cluster.state().objects().SetComplete(ObjectKind::kPersistentVolumeClaim);
  Snapshot snapshot(cluster.state());
  Verdict missing = Unresolvable(FilterName::kVolumeRestrictions, "persistentvolumeclaim \"data\" not found");
  missing.before_nodes = true;
  EXPECT_EQ(PodFit(&snapshot, pod, &options).Judge(NodeIndex{0}), missing);
}

}  // namespace
}  // namespace loadline
