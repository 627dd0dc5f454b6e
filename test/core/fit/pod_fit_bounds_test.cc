// The bounds on the cost of one pod with thousands of terms, keys or names.
#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/fit/fit_search.h"
#include "core/fit/pod_fit.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

// Bytes that are allocated now. The sanitizers' allocators say 0, and then nothing here is asserted.
int64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// A cluster of nodes that each hold a pod of app "web".
class BoundedCluster {
 public:
  explicit BoundedCluster(int32_t nodes, int32_t shapes = 1) {
    for (int32_t i = 0; i < nodes; ++i) {
      FitPod pod{.requests = {{"cpu", 1 + i % shapes}}, .labels = {{"app", "web"}}};
      cluster_.Add(
          {.name = "node-" + std::to_string(i), .labels = {{kZone, "zone-" + std::to_string(i % 3)}}},
          {std::move(pod)});
    }
    cluster_.state().objects().SetComplete(ObjectKind::kNamespace);
  }

  FitCluster& fit() { return cluster_; }

  // Returns the bytes that stay allocated after preparing the pod and asking about all nodes. The pod itself
  // is not counted.
  int64_t BytesOf(const FitPod& pod) {
    const IncomingPod incoming = cluster_.Incoming(pod);
    Snapshot snapshot(cluster_.state());
    const int64_t before = AllocatedBytes();
    FitSearch search(&snapshot, &options_);
    std::vector<NodeIndex> nodes;
    search.AllFits(search.Add(incoming), &nodes);
    return AllocatedBytes() - before;
  }

  // The least units of work within which the pod can be prepared.
  int64_t UnitsOf(const FitPod& pod) {
    const IncomingPod incoming = cluster_.Incoming(pod);
    int64_t too_few = -1;
    int64_t enough = int64_t{1} << 30;
    while (enough - too_few > 1) {
      const int64_t units = too_few + (enough - too_few) / 2;
      Snapshot snapshot(cluster_.state());
      WorkBudget budget(units);
      (PodFit(&snapshot, incoming, &options_, &budget).CutShort() ? too_few : enough) = units;
    }
    return enough;
  }

 private:
  FitCluster cluster_;
  FitOptions options_;
};

std::string LongKey(int i) { return "example.com/" + std::string(180, 'k') + std::to_string(i); }

// Affinity terms that match every pod of the namespace, each in its own words.
FitPod WithAffinityTerms(int terms, const std::function<std::string(int)>& key) {
  FitPod pod{.requests = {{"cpu", 1}}, .labels = {{"app", "web"}}};
  for (int i = 0; i < terms; ++i) {
    LabelSelector selector{false, {{"not-" + std::to_string(i), SelectorOperator::kDoesNotExist, {}}}};
    pod.rules.affinity.push_back(Term(std::move(selector), key(i)));
  }
  return pod;
}

// About twice as much for twice as many: tables double their room now and then.
void ExpectAboutTwice(int64_t once, int64_t twice) {
  if (once == 0) return;
  EXPECT_LE(twice, once * 5 / 2);
  EXPECT_GE(twice, once * 3 / 2);
}

TEST(PodFitBoundsTest, AffinityTermsTakeMemoryOnce) {
  BoundedCluster cluster(3);
  const int64_t half = cluster.BytesOf(WithAffinityTerms(2'000, LongKey));
  const int64_t all = cluster.BytesOf(WithAffinityTerms(4'000, LongKey));
  ExpectAboutTwice(half, all);
  EXPECT_LT(all, 64 * kMebibyte);
}

TEST(PodFitBoundsTest, AffinityTermsTakeWorkOncePerShape) {
  BoundedCluster cluster(300, 300);
  const auto by_zone = [](int) { return std::string(kZone); };
  const int64_t half = cluster.UnitsOf(WithAffinityTerms(500, by_zone));
  const int64_t all = cluster.UnitsOf(WithAffinityTerms(1'000, by_zone));
  ExpectAboutTwice(half, all);
  // Each of 300 shapes is matched with each term, four terms to a unit, and each term is read for 10.
  EXPECT_LE(all, 300 * 1'000 / 4 + 1'000 * 10 + 1'000);
}

// With keys that nodes have each term is a count of its own; the shapes are still asked once for all of them.
TEST(PodFitBoundsTest, TermsOfManyKeysAskEachShapeOnce) {
  FitCluster cluster;
  std::vector<Label> labels;
  for (int i = 0; i < 200; ++i) labels.push_back({LongKey(i), "value"});
  for (int i = 0; i < 100; ++i) {
    cluster.Add({.name = "node-" + std::to_string(i), .labels = labels},
                {{.requests = {{"cpu", i + 1}}, .labels = {{"app", "web"}}}});
  }
  const IncomingPod pod = cluster.Incoming(WithAffinityTerms(200, LongKey));
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  WorkBudget budget(200 * 10 + 100 * 200 / 4 + 200 * 100 +
                    1'000);  // terms, shapes by terms, counts by shapes
  PodFit fit(&snapshot, pod, &options, &budget);
  EXPECT_FALSE(fit.CutShort());
  EXPECT_TRUE(fit.Fits(NodeIndex{7}));
}

TEST(PodFitBoundsTest, AntiAffinityTermsTakeMemoryOnce) {
  BoundedCluster cluster(1'000);
  const auto with = [](int terms) {
    FitPod pod{.requests = {{"cpu", 1}}, .labels = {{"app", "web"}}};
    for (int i = 0; i < terms; ++i) {
      pod.rules.anti_affinity.push_back(Term(Select("app", "other-" + std::to_string(i)), LongKey(i)));
    }
    return pod;
  };
  const int64_t half = cluster.BytesOf(with(2'000));
  const int64_t all = cluster.BytesOf(with(4'000));
  ExpectAboutTwice(half, all);
  EXPECT_LT(all, 64 * kMebibyte);
}

TEST(PodFitBoundsTest, SpreadKeysTakeMemoryOnce) {
  BoundedCluster cluster(5'000);
  const auto with = [](int keys) {
    FitPod pod{.requests = {{"cpu", 1}}, .labels = {{"app", "web"}}};
    pod.rules.has_spread = true;
    for (int i = 0; i < keys; ++i) {
      pod.rules.spread.push_back({.topology_key = LongKey(i), .selector = Select("app", "web")});
    }
    return pod;
  };
  const int64_t half = cluster.BytesOf(with(2'000));
  const int64_t all = cluster.BytesOf(with(4'000));
  ExpectAboutTwice(half, all);
  EXPECT_LT(all, 64 * kMebibyte);
}

TEST(PodFitBoundsTest, NamespaceSelectorsKeepNothingPerNamespace) {
  BoundedCluster cluster(3);
  FitPod pod{.requests = {{"cpu", 1}}, .labels = {{"app", "web"}}};
  for (int i = 0; i < 100; ++i) {
    AffinityTerm term = Term(Select("app", "web"), LongKey(i), {});
    term.namespace_selector = {false, {{"no-" + std::to_string(i), SelectorOperator::kDoesNotExist, {}}}};
    pod.rules.affinity.push_back(std::move(term));
  }
  const int64_t without = cluster.BytesOf(pod);
  for (int i = 0; i < 1'000; ++i) {
    const std::string name = "a-namespace-with-a-name-of-some-length-" + std::to_string(i);
    cluster.fit().state().objects().Set({{ObjectKind::kNamespace, "", name}, Namespace{}, 1});
  }
  EXPECT_LE(cluster.BytesOf(pod), without + without / 4);
  EXPECT_LT(without, kMebibyte);
}

// The namespaces that a selector matches are those that have its labels, of pods that are there and of those
// that come.
TEST(PodFitBoundsTest, ANamespaceSelectorIsHeldAgainstTheNamespaceOfEachPod) {
  FitCluster cluster;
  FitPod red{.namespace_name = "red", .labels = {{"app", "web"}}};
  FitPod blue{.namespace_name = "blue", .labels = {{"app", "web"}}};
  cluster.Add({.name = "a"}, {red});
  cluster.Add({.name = "b"}, {blue});
  cluster.Add({.name = "c"});
  for (const std::string name : {"red", "blue"}) {
    cluster.state().objects().Set(
        {{ObjectKind::kNamespace, "", name}, Namespace{MakeLabels({{"team", name}})}, 1});
  }
  cluster.state().objects().SetComplete(ObjectKind::kNamespace);
  FitPod lonely{.labels = {{"app", "web"}}};
  lonely.rules.anti_affinity = {{Select("app", "web"), kHostnameLabel, {}, Select("team", "red")}};
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  PodFit fit(&snapshot, cluster.Incoming(lonely), &options);
  EXPECT_FALSE(fit.Fits(NodeIndex{0}));
  EXPECT_TRUE(fit.Fits(NodeIndex{1}));
  EXPECT_TRUE(fit.Fits(NodeIndex{2}));
  snapshot.PlacePod(NodeIndex{2}, snapshot.InternShape(cluster.Shape(red)));
  EXPECT_FALSE(fit.Fits(NodeIndex{2}));
}

TEST(PodFitBoundsTest, ResourceNamesOfAQuestionTakeNoColumns) {
  constexpr int kNames = 16'000;
  FitPod pod;
  for (int i = 0; i < kNames; ++i) pod.requests.push_back({"example.com/r" + std::to_string(100'000 + i), 1});
  for (const int32_t nodes : {1'000, 5'000}) {
    BoundedCluster cluster(nodes);
    EXPECT_LT(cluster.BytesOf(pod), 64 * kMebibyte);
    cluster.fit().state().objects().SetComplete(ObjectKind::kDeviceClass);
    Snapshot snapshot(cluster.fit().state());
    const FitOptions options;
    PodFit fit(&snapshot, cluster.fit().Incoming(pod), &options);
    snapshot.PlacePod(NodeIndex{1}, fit.shape());
    for (const NodeIndex node : {NodeIndex{0}, NodeIndex{1}}) {
      const Verdict verdict = fit.Judge(node);
      EXPECT_EQ(verdict.status_class, StatusClass::kUnschedulableAndUnresolvable);
      ASSERT_EQ(verdict.reasons.size(), size_t{kNames});
      EXPECT_EQ(verdict.reasons[0], "Insufficient example.com/r100000");
      EXPECT_EQ(verdict.reasons[1], "Insufficient example.com/r100001");
    }
  }
}

// A later node may offer what no node did.
TEST(PodFitBoundsTest, AResourceOfANewNodeIsCountedThere) {
  BoundedCluster cluster(2);
  const FitPod two{.requests = {{"example.com/foo", 2}}};
  Snapshot snapshot(cluster.fit().state());
  const FitOptions options;
  PodFit fit(&snapshot, cluster.fit().Incoming(two), &options);
  snapshot.PlacePod(NodeIndex{0}, fit.shape());
  snapshot.Fork();
  const FitNode offering{.name = "new", .allocatable = {{"example.com/foo", 5}, {"pods", 10}}};
  const NodeIndex node = snapshot.AddNode({"new", cluster.fit().Shape(offering), std::nullopt});
  const ResourceId foo = *cluster.fit().names().Find("example.com/foo");
  snapshot.PlacePod(node, fit.shape());
  EXPECT_EQ(snapshot.amount(node, foo).free, 3);
  EXPECT_TRUE(fit.Fits(node));
  snapshot.PlacePod(node, fit.shape());
  EXPECT_EQ(snapshot.amount(node, foo).free, 1);
  EXPECT_EQ(fit.Judge(node), Refusal(FilterName::kNodeResourcesFit, StatusClass::kUnschedulable,
                                     {"Insufficient example.com/foo"}));
  snapshot.RemovePod(NodeIndex{0}, 1);
  EXPECT_FALSE(fit.Fits(NodeIndex{0}));
  snapshot.Revert();
  EXPECT_EQ(snapshot.amount(NodeIndex{0}, foo), NodeAmount());
}

// One unit for the node, and one, some 100 ns, for four ports or terms of node affinity.
TEST(PodFitBoundsTest, ANodeTakesMoreWorkTheMorePortsAndTermsAreHeldAgainstIt) {
  BoundedCluster cluster(3);
  const FitOptions options;
  const auto units = [&](const FitPod& pod) {
    Snapshot snapshot(cluster.fit().state());
    return PodFit(&snapshot, cluster.fit().Incoming(pod), &options).UnitsPerNode();
  };
  FitPod pod{.requests = {{"cpu", 1}}};
  EXPECT_EQ(units(pod), 1);
  FitPod ports = pod;
  for (int32_t port = 1; port <= 1'000; ++port) ports.rules.host_ports.push_back({port, "TCP", "0.0.0.0"});
  EXPECT_EQ(units(ports), 1 + 1'000 / 4);
  FitPod terms = pod;
  terms.rules.node_affinity.emplace();
  terms.rules.node_affinity->terms.resize(1'000);
  EXPECT_EQ(units(terms), 1) << "asked once for each shape of nodes";
  terms.rules.node_affinity->terms[0].labels = {{kHostnameLabel, SelectorOperator::kIn, {"node-1"}}};
  EXPECT_EQ(units(terms), 1 + 1'000 / 4);
}

TEST(PodFitBoundsTest, APodThatWasCutShortFitsNowhereAndLeavesNothingBehind) {
  BoundedCluster cluster(10);
  const IncomingPod pod = cluster.fit().Incoming(
      WithAffinityTerms(100, [](int i) { return i % 2 == 0 ? std::string(kZone) : kHostnameLabel; }));
  Snapshot snapshot(cluster.fit().state());
  const FitOptions options;
  WorkBudget no_work(0);
  WorkBudget no_memory(1'000'000, nullptr, 1'000);
  for (WorkBudget* budget : {&no_work, &no_memory}) {
    PodFit fit(&snapshot, pod, &options, budget);
    EXPECT_TRUE(fit.CutShort());
    EXPECT_TRUE(fit.Hopeless());
    EXPECT_FALSE(fit.Fits(NodeIndex{0}));
    EXPECT_EQ(fit.Judge(NodeIndex{0}).judgement, Judgement::kCannotJudge);
    FitSearch search(&snapshot, &options);
    EXPECT_EQ(search.FirstFit(search.Add(pod, budget), budget), std::nullopt);
  }
  EXPECT_EQ(no_work.end(), BudgetEnd::kOutOfWork);
  EXPECT_EQ(no_memory.end(), BudgetEnd::kOutOfMemory);
  PodFit fit(&snapshot, pod, &options);
  EXPECT_FALSE(fit.CutShort());
  EXPECT_TRUE(fit.Fits(NodeIndex{0}));
  FitSearch search(&snapshot, &options);
  EXPECT_EQ(search.FirstFit(search.Add(pod)), NodeIndex{0});
}

// A term that came to be known within a budget that has ended is not forgotten.
TEST(PodFitBoundsTest, ARefreshThatWasCutShortIsMadeUpFor) {
  BoundedCluster cluster(2);
  FitPod lonely{.labels = {{"app", "web"}}};
  lonely.rules.anti_affinity = {Term(Select("app", "web"), kHostnameLabel)};
  const IncomingPod web = cluster.fit().Incoming({.labels = {{"app", "web"}}});
  Snapshot snapshot(cluster.fit().state());
  const FitOptions options;
  FitSearch search(&snapshot, &options);
  const SearchPod pod = search.Add(web);
  EXPECT_EQ(search.FirstFit(pod), NodeIndex{0});
  snapshot.PlacePod(NodeIndex{0}, snapshot.InternShape(cluster.fit().Shape(lonely)));
  WorkBudget no_work(0);
  EXPECT_EQ(search.FirstFit(pod, &no_work), std::nullopt);
  EXPECT_TRUE(search.fit(pod).CutShort());
  EXPECT_FALSE(search.fit(pod).Fits(NodeIndex{1}));
  EXPECT_EQ(search.FirstFit(pod), NodeIndex{1});
  EXPECT_FALSE(search.fit(pod).CutShort());
}

}  // namespace
}  // namespace loadline
