#include "core/fit/fit_search.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

// Pods whose filters look at all that the search remembers by.
std::vector<FitPod> Shapes() {
  std::vector<FitPod> shapes;
  for (int i = 0; i < 12; ++i) {
    FitPod& pod = shapes.emplace_back();
    const std::string app = "app-" + std::to_string(i % 4);
    pod.requests = {{"cpu", 100 + 200 * (i % 5)}, {"memory", i % 3}};
    pod.labels = {{"app", app}};
    const LabelSelector own = Select("app", app);
    switch (i % 6) {
      case 0:
        pod.rules.anti_affinity = {Term(own, kHostnameLabel)};
        break;
      case 1:
        pod.rules.anti_affinity = {Term(own, kZone)};
        break;
      case 2:
        pod.rules.affinity = {Term(own, kZone)};
        break;
      case 3:
        pod.rules.has_spread = true;
        pod.rules.spread = {{.max_skew = 1, .topology_key = kZone, .selector = own, .min_domains = 1 + i % 4},
                            {.max_skew = 2, .topology_key = kHostnameLabel, .selector = own}};
        break;
      case 4:
        pod.rules.host_ports = {{80, "TCP", "0.0.0.0"}};
        break;
      default:
        pod.rules.node_selector = MakeLabels({{kZone, "zone-1"}});
        break;
    }
  }
  return shapes;
}

// A pod with terms that no other pod had before.
FitPod Newcomer(int i) {
  FitPod pod;
  pod.requests = {{"cpu", 100 + i}};
  pod.labels = {{"app", "app-" + std::to_string(i % 4)}, {"version", std::to_string(i)}};
  const LabelSelector versions = {
      false, {{"version", SelectorOperator::kIn, {std::to_string(i), std::to_string(i + 1)}}}};
  pod.rules.anti_affinity = {Term(versions, i % 2 == 0 ? kZone : kHostnameLabel)};
  if (i % 3 == 0) pod.rules.anti_affinity.push_back(Term(Select("app", "app-1"), kHostnameLabel));
  if (i % 5 == 0) pod.rules.affinity = {Term(versions, kZone)};
  return pod;
}

FitNode Node(int i) {
  FitNode node{.name = "node-" + std::to_string(1000 + i),
               .allocatable = {{"cpu", 2000}, {"memory", 8}, {"pods", 8}}};
  if (i % 7 != 0) node.labels = {{kZone, "zone-" + std::to_string(i % 3)}};
  return node;
}

// After random moves, forks and reverts a search that remembers gives what asking each node anew gives.
TEST(FitSearchTest, RemembersNothingThatIsNotTrueAnyMore) {
  FitCluster cluster;
  const std::vector<FitPod> shapes = Shapes();
  for (int i = 0; i < 150; ++i) cluster.Add(Node(i), {shapes[static_cast<size_t>(i) % shapes.size()]});
  std::vector<IncomingPod> pods;
  for (const FitPod& shape : shapes) pods.push_back(cluster.Incoming(shape));
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  std::vector<NodeIndex> order;
  for (int32_t i = 0; i < snapshot.node_end(); ++i) order.push_back(NodeIndex{i});
  std::mt19937_64 random(11);
  std::shuffle(order.begin(), order.end(), random);
  FitSearch search(&snapshot, &options, order);
  std::vector<SearchPod> handles;
  for (const IncomingPod& pod : pods) handles.push_back(search.Add(pod));

  const auto pick = [&](size_t end) { return static_cast<size_t>(random() % end); };
  int fits = 0, refusals = 0;
  int32_t next_slot = 1000;
  for (int step = 0; step < 4000; ++step) {
    if (step % 100 == 0) {
      pods.push_back(cluster.Incoming(Newcomer(step / 100)));
      handles.push_back(search.Add(pods.back()));
    }
    const size_t which = pick(handles.size());
    // A fresh object remembers nothing; nodes that came later are searched in the order of their coming.
    PodFit fresh(&snapshot, pods[which], &options);
    std::vector<NodeIndex> expected;
    for (size_t i = 0; i < static_cast<size_t>(snapshot.node_end()); ++i) {
      const NodeIndex node = i < order.size() ? order[i] : NodeIndex{static_cast<int32_t>(i)};
      if (snapshot.Placeable(node) && fresh.Fits(node)) expected.push_back(node);
    }
    if (pick(2) == 0) {
      std::vector<NodeIndex> nodes;
      search.AllFits(handles[which], &nodes);
      ASSERT_EQ(nodes, expected) << "step " << step << " shape " << which;
    }
    const std::optional<NodeIndex> first = search.FirstFit(handles[which]);
    ASSERT_EQ(first, expected.empty() ? std::nullopt : std::optional(expected.front()))
        << "step " << step << " shape " << which;
    ++(first.has_value() ? fits : refusals);

    const size_t dice = pick(100);
    const NodeIndex any{static_cast<int32_t>(pick(static_cast<size_t>(snapshot.node_end())))};
    if (dice < 60) {
      if (first.has_value()) snapshot.PlacePod(*first, search.fit(handles[which]).shape());
    } else if (dice < 70) {
      if (snapshot.Contains(any)) snapshot.PlacePod(any, search.fit(handles[pick(handles.size())]).shape());
    } else if (dice < 80) {
      if (snapshot.Contains(any) && !snapshot.pods(any).empty())
        snapshot.RemovePod(any, pick(snapshot.pods(any).size()));
    } else if (dice < 87) {
      snapshot.Fork();
    } else if (dice < 93) {
      snapshot.Revert();
    } else if (dice < 94) {
      snapshot.Commit();
    } else if (dice < 96) {
      NewNode added{"late-" + std::to_string(step),
                    MakeNodeShape({}, cluster.state().resource_names(),
                                  MakeLabels({{kZone, "zone-" + std::to_string(pick(5))}})),
                    "late-" + std::to_string(step), Slot{next_slot++}};
      added.shape.allocatable = snapshot.node_shape(NodeIndex{0}).allocatable;
      snapshot.AddNode(std::move(added));
    } else if (dice < 98) {
      if (snapshot.Contains(any)) snapshot.RemoveNode(any);
    } else if (snapshot.Contains(any)) {
      snapshot.CloseNode(any);
    }
  }
  EXPECT_GT(fits, 400);
  EXPECT_GT(refusals, 400);
}

TEST(FitSearchTest, SearchesInTheOrderGiven) {
  FitCluster cluster;
  for (const char* name : {"a", "b", "c"}) cluster.Add({.name = name});
  const IncomingPod pod = cluster.Incoming({.requests = {{"cpu", 4000}}});
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  FitSearch search(&snapshot, &options, {NodeIndex{2}, NodeIndex{0}});
  const SearchPod asked = search.Add(pod);
  for (const NodeIndex expected :
       {NodeIndex{2}, NodeIndex{0}, NodeIndex{1}}) {  // what the order leaves out is last
    ASSERT_EQ(search.FirstFit(asked), expected);
    snapshot.PlacePod(expected, search.fit(asked).shape());
  }
  EXPECT_EQ(search.FirstFit(asked), std::nullopt);
  snapshot.RemovePod(NodeIndex{0}, 0);
  EXPECT_EQ(search.FirstFit(asked), NodeIndex{0});
}

TEST(FitSearchTest, WithoutNodesNothingFits) {
  FitCluster cluster;
  const IncomingPod pod = cluster.Incoming({});
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  FitSearch search(&snapshot, &options);
  EXPECT_EQ(search.FirstFit(search.Add(pod)), std::nullopt);
}

}  // namespace
}  // namespace loadline
