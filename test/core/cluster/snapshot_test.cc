#include "core/cluster/snapshot.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

// Pods that tell everything which is counted apart.
std::vector<FitPod> Pods() {
  std::vector<FitPod> pods;
  for (int i = 0; i < 6; ++i) {
    FitPod& pod = pods.emplace_back();
    pod.requests = {{"cpu", 100 * i}, {"memory", i % 3}, {i % 2 == 0 ? "example.com/a" : "example.com/b", i}};
    pod.labels = {{"app", i % 2 == 0 ? "even" : "odd"}};
    if (i % 3 == 0) pod.rules.host_ports = {{80, "TCP", "0.0.0.0"}, {80 + i, "UDP", "10.0.0.1"}};
    if (i % 3 == 1)
      pod.rules.volumes = {{.kind = VolumeKind::kClaim, .name = "data-" + std::to_string(i % 2)}};
    if (i >= 4) pod.requests.push_back({"example.com/huge", kMaxAmount});
  }
  return pods;
}

// A cluster with two zones, a node without one, and some pods.
class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    const std::vector<FitPod> pods = Pods();
    cluster_.Add({.name = "c", .labels = {{kZone, "east"}}}, {pods[0], pods[1], pods[4]});
    cluster_.Add({.name = "a", .labels = {{kZone, "west"}}}, {pods[2], pods[5], pods[5]});
    cluster_.Add({.name = "b"}, {pods[3]});
    cluster_.Add({.name = "d", .labels = {{kZone, "east"}, {"eligible", "no"}}}, {pods[0]});
    snapshot_ = std::make_unique<Snapshot>(cluster_.state());
    for (const FitPod& pod : pods) shapes_.push_back(snapshot_->InternShape(cluster_.Shape(pod)));
    counts_ = snapshot_->Counts(Specs());
  }

  // Pods "odd" by zone everywhere, and all pods by host on nodes that are not labelled otherwise.
  std::vector<CountSpec> Specs() const {
    const auto odd = std::make_shared<const PodPredicate>(PodPredicate{[](const PodShape& shape) {
      const std::string* const app = shape.labels.Find("app");
      return app != nullptr && *app == "odd";
    }});
    const auto all = std::make_shared<const PodPredicate>(PodPredicate{[](const PodShape&) { return true; }});
    const auto eligible = [this](NodeIndex node) {
      return !snapshot_->Leaving(node) && snapshot_->labels(node).Find("eligible") == nullptr;
    };
    return {{"odd by zone", CountUse::kSpread, kZone, odd},
            {"all by host", CountUse::kSpread, kHostnameLabel, all, std::nullopt, eligible, true},
            {"where odd ones are", CountUse::kOccupancy, kZone, odd}};
  }

  // All that can be seen of the snapshot.
  std::string Observe() const {
    std::ostringstream out;
    for (int32_t i = 0; i < snapshot_->node_end(); ++i) {
      const NodeIndex node{i};
      out << i << ": " << snapshot_->Contains(node) << snapshot_->Placeable(node);
      if (!snapshot_->Contains(node)) continue;
      out << " " << snapshot_->name(node) << " slot " << static_cast<int32_t>(snapshot_->slot(node))
          << " found " << (snapshot_->FindSlot(snapshot_->slot(node)) == node);
      for (const SnapshotPod& pod : snapshot_->pods(node)) {
        out << " pod " << pod.shape << "/" << std::string(pod.name.data(), pod.name.size()) << "/"
            << std::string(pod.uid.data(), pod.uid.size());
      }
      for (const UsedPort& port : snapshot_->ports(node)) {
        out << " port " << port.port.ip << ":" << port.port.port << port.port.protocol << "x" << port.pods;
      }
      for (const NodeAmount& amount : snapshot_->amounts(node)) {
        out << " amount " << amount.allocatable << "-" << amount.requested << "=" << amount.free;
      }
      out << "\n";
    }
    for (const char* claim : {"data-0", "data-1"})
      out << claim << " " << snapshot_->ClaimUsers("default", claim) << "\n";
    for (const DomainCounts* counts : counts_) {
      out << counts->spec().identity << " total " << counts->total() << " domains " << counts->domains()
          << " lowest " << counts->lowest();
      for (int32_t i = 0; i < snapshot_->node_end(); ++i) {
        const int32_t domain = counts->domain(NodeIndex{i});
        if (domain != TopologyKey::kNone) out << " node " << i << " " << counts->count(domain);
      }
      out << "\n";
    }
    return out.str();
  }

  // Works out sums and counts from the pods anew and compares.
  void ExpectEqualsRecount() const {
    std::map<std::string, int32_t> users;
    for (int32_t i = 0; i < snapshot_->node_end(); ++i) {
      const NodeIndex node{i};
      if (!snapshot_->Contains(node)) continue;
      std::map<HostPort, int32_t> ports;
      for (const SnapshotPod& pod : snapshot_->pods(node)) {
        const PodShape& shape = snapshot_->pod_shape(pod.shape);
        if (shape.rules == nullptr) continue;
        for (const HostPort& port : shape.rules->host_ports) ++ports[port];
        for (const PodVolume& volume : shape.rules->volumes) ++users[volume.name];
      }
      std::vector<UsedPort> used;
      for (const auto& [port, pods] : ports) used.push_back({port, pods});
      ASSERT_THAT(snapshot_->ports(node), ::testing::ElementsAreArray(used));
      std::map<int32_t, absl::int128> requested;
      for (const SnapshotPod& pod : snapshot_->pods(node)) {
        for (const auto& [resource, amount] : snapshot_->pod_shape(pod.shape).requests) {
          requested[static_cast<int32_t>(resource)] += amount;
        }
      }
      for (size_t r = 0; r < cluster_.names().size(); ++r) {
        const ResourceId resource{static_cast<int32_t>(r)};
        const NodeAmount& amount = snapshot_->amount(node, resource);
        const bool kept = r < snapshot_->amounts(node).size() ||
                          snapshot_->node_shape(node).allocatable.Find(resource) != nullptr;
        ASSERT_EQ(amount.requested, kept ? requested[static_cast<int32_t>(r)] : 0);
        const absl::int128 free = absl::int128(amount.allocatable) - amount.requested;
        ASSERT_EQ(amount.free, free < -kMaxAmount ? -absl::int128(kMaxAmount) : free);
      }
    }
    for (const char* claim : {"data-0", "data-1"}) {
      ASSERT_EQ(snapshot_->ClaimUsers("default", claim), users[claim]);
    }
    for (const DomainCounts* counts : counts_) ExpectEqualsRecount(*counts);
  }

  void ExpectEqualsRecount(const DomainCounts& counts) const {
    std::map<int32_t, int32_t> by_domain;
    int64_t total = 0;
    for (int32_t i = 0; i < snapshot_->node_end(); ++i) {
      const NodeIndex node{i};
      if (!snapshot_->Contains(node)) continue;
      const std::string* const value = snapshot_->labels(node).Find(counts.spec().topology_key);
      ASSERT_EQ(value != nullptr, counts.domain(node) != TopologyKey::kNone);
      if (value == nullptr || (counts.spec().eligible && !counts.spec().eligible(node))) continue;
      int32_t& pods = by_domain[counts.domain(node)];
      for (const SnapshotPod& pod : snapshot_->pods(node)) {
        if (!counts.spec().counts->matches(snapshot_->pod_shape(pod.shape))) continue;
        ++pods;
        ++total;
      }
    }
    int32_t lowest = by_domain.empty() ? 0 : by_domain.begin()->second;
    for (const auto& [domain, pods] : by_domain) {
      ASSERT_EQ(counts.count(domain), pods);
      lowest = std::min(lowest, pods);
    }
    ASSERT_EQ(counts.total(), total);
    if (counts.spec().use == CountUse::kOccupancy) return;
    ASSERT_EQ(counts.domains(), static_cast<int32_t>(by_domain.size()));
    ASSERT_EQ(counts.lowest(), lowest);
  }

  FitCluster cluster_;
  std::unique_ptr<Snapshot> snapshot_;
  std::vector<int32_t> shapes_;
  std::vector<const DomainCounts*> counts_;
};

TEST_F(SnapshotTest, NodesAreInNameOrder) {
  ASSERT_EQ(snapshot_->node_end(), 4);
  EXPECT_EQ(snapshot_->name(NodeIndex{0}), "a");
  EXPECT_EQ(snapshot_->name(NodeIndex{3}), "d");
  EXPECT_EQ(snapshot_->FindSlot(Slot{0}), NodeIndex{2});
  EXPECT_EQ(snapshot_->FindSlot(Slot{9}), std::nullopt);
}

TEST_F(SnapshotTest, SumsStartWithThePodsOfTheCluster) {
  EXPECT_EQ(snapshot_->amount(NodeIndex{1}, kCpu).requested, 300);
  EXPECT_EQ(snapshot_->amount(NodeIndex{1}, kCpu).free, 3700);
  EXPECT_EQ(snapshot_->ClaimUsers("default", "data-1"), 1);
  EXPECT_EQ(snapshot_->ClaimUsers("other", "data-1"), 0);
  ExpectEqualsRecount();
}

TEST_F(SnapshotTest, WithoutForkThereIsNothingToEnd) {
  EXPECT_FALSE(snapshot_->Commit());
  EXPECT_FALSE(snapshot_->Revert());
}

TEST_F(SnapshotTest, ACommittedForkIsUndoneWithTheOneBelow) {
  const std::string before = Observe();
  snapshot_->Fork();
  snapshot_->Fork();
  snapshot_->PlacePod(NodeIndex{0}, shapes_[1], "web", "uid-1");
  EXPECT_TRUE(snapshot_->Commit());
  EXPECT_NE(Observe(), before);
  EXPECT_TRUE(snapshot_->Revert());
  EXPECT_EQ(Observe(), before);
}

TEST_F(SnapshotTest, AGhostCountsButTakesNoPods) {
  snapshot_->Fork();
  const std::string before = Observe();
  const int64_t total = counts_[0]->total();
  snapshot_->CloseNode(NodeIndex{0});
  EXPECT_TRUE(snapshot_->Contains(NodeIndex{0}));
  EXPECT_FALSE(snapshot_->Placeable(NodeIndex{0}));
  EXPECT_EQ(counts_[0]->total(), total);
  snapshot_->Revert();
  EXPECT_EQ(Observe(), before);
}

TEST_F(SnapshotTest, ARemovedNodeTakesItsDomainAlong) {
  EXPECT_EQ(counts_[0]->domains(), 2);
  snapshot_->RemoveNode(NodeIndex{0});  // the only one in the west
  EXPECT_EQ(counts_[0]->domains(), 1);
  EXPECT_FALSE(snapshot_->Contains(NodeIndex{0}));
  EXPECT_EQ(snapshot_->FindSlot(Slot{1}), std::nullopt);
}

// If nodes are named like their hosts, no value is looked up until another node is added.
TEST_F(SnapshotTest, AHostnameThatComesTwiceIsOneDomain) {
  const TopologyKey& hosts = snapshot_->Topology(kHostnameLabel);
  EXPECT_EQ(hosts.domain(NodeIndex{2}), 2);
  snapshot_->RemoveNode(NodeIndex{2});  // "c"
  EXPECT_EQ(hosts.domain(NodeIndex{2}), TopologyKey::kNone);
  const NodeShape shape = MakeNodeShape({}, cluster_.state().resource_names());
  const NodeIndex again = snapshot_->AddNode({"again", shape, "c"});
  const NodeIndex twin = snapshot_->AddNode({"twin", shape, "a"});
  const NodeIndex other = snapshot_->AddNode({"other", shape, "other"});
  EXPECT_EQ(hosts.domain(again), 2);
  EXPECT_EQ(hosts.domain(twin), hosts.domain(NodeIndex{0}));
  EXPECT_EQ(hosts.domain(other), 4);
  snapshot_->CheckConsistent();
  ExpectEqualsRecount();
}

// Thousands of keys are asked for, and a node is added that has one of them.
TEST_F(SnapshotTest, AKeyThatNoNodeHadFindsANewNode) {
  std::vector<const TopologyKey*> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(&snapshot_->Topology("key-" + std::to_string(i)));
  EXPECT_EQ(keys[50]->domain_end(), 0);
  const NodeIndex added = snapshot_->AddNode(
      {"z", MakeNodeShape({}, cluster_.state().resource_names(), MakeLabels({{"key-50", "x"}})), "z"});
  EXPECT_EQ(keys[50]->domain(added), 0);
  EXPECT_EQ(keys[49]->domain(added), TopologyKey::kNone);
  EXPECT_EQ(snapshot_->Topology(kHostnameLabel).domain(added), 4);
  EXPECT_EQ(snapshot_->Topology("key-50, late").domain(added), TopologyKey::kNone);
  ExpectEqualsRecount();
}

// Snapshots refer to names of pods, which stay where they are when the table of nodes grows.
TEST(NodePodsTest, TextStaysWhereItIsWhenThePodsAreMoved) {
  const PodContent content[] = {{0, 0, "a", "b"}};
  NodePods pods(content);
  const char* const name = pods.name(0).data();
  const NodePods moved = std::move(pods);
  EXPECT_EQ(moved.name(0).data(), name);
  EXPECT_EQ(moved.name(0), "a");
  EXPECT_EQ(moved.uid(0), "b");
}

TEST_F(SnapshotTest, ASnapshotThatFollowsKeepsNamesOfPodsAsTheClusterGrows) {
  FitPod named = Pods()[0];
  named.name = "short";
  cluster_.Put(Slot{0}, {.name = "c"}, {named});
  snapshot_ = std::make_unique<Snapshot>(cluster_.state(), Snapshot::Source::kChanges);
  std::vector<Slot> slots;
  for (int32_t i = 4; i < 200; ++i) {
    cluster_.Put(Slot{i}, {.name = "new-" + std::to_string(i)}, {});
    slots.push_back(Slot{i});
  }
  snapshot_->Reload(slots);
  snapshot_->CheckConsistent();
  EXPECT_EQ(snapshot_->pods(*snapshot_->FindSlot(Slot{0}))[0].name, "short");
}

TEST_F(SnapshotTest, ANodeOfANewResourceFindsRoom) {
  NewNode node{"z", MakeNodeShape({}, cluster_.state().resource_names()), std::nullopt, Slot{7}};
  node.shape.allocatable[ResourceId{40}] = 5;
  const NodeIndex added = snapshot_->AddNode(node);
  EXPECT_EQ(added, NodeIndex{4});
  EXPECT_EQ(snapshot_->amount(added, ResourceId{40}).free, 5);
  snapshot_->CheckConsistent();
  EXPECT_EQ(snapshot_->amount(NodeIndex{0}, ResourceId{40}).free, 0);
  EXPECT_EQ(snapshot_->amount(NodeIndex{1}, kCpu).requested, 300);
}

// Random moves, forks, commits and reverts: what a level started with is there again after its Revert, and
// sums and counts are those of a recount after every move.
TEST_F(SnapshotTest, RevertRestoresWhatWasThere) {
  std::mt19937_64 random(4);
  const auto pick = [&](size_t end) { return static_cast<size_t>(random() % end); };
  std::vector<std::string> before;
  int32_t next_slot = 100;
  for (int step = 0; step < 20'000; ++step) {
    std::vector<NodeIndex> nodes;
    for (int32_t i = 0; i < snapshot_->node_end(); ++i) {
      if (snapshot_->Contains(NodeIndex{i})) nodes.push_back(NodeIndex{i});
    }
    const size_t dice = pick(100);
    const NodeIndex node = nodes.empty() ? NodeIndex{0} : nodes[pick(nodes.size())];
    if (dice < 30 && !nodes.empty()) {
      snapshot_->PlacePod(node, shapes_[pick(shapes_.size())], "pod-" + std::to_string(step),
                          dice < 10 ? "" : "uid");
    } else if (dice < 60 && !nodes.empty() && !snapshot_->pods(node).empty()) {
      snapshot_->RemovePod(node, pick(snapshot_->pods(node).size()));
    } else if (dice < 66 && nodes.size() < 12) {
      NewNode added{"node-" + std::to_string(step),
                    MakeNodeShape({}, cluster_.state().resource_names(),
                                  MakeLabels({{kZone, "zone-" + std::to_string(pick(4))}})),
                    std::nullopt, Slot{next_slot++}};
      if (dice % 2 == 0) added.hostname = added.name;
      added.shape.allocatable[kCpu] = 1000;
      snapshot_->AddNode(std::move(added));
    } else if (dice < 69 && nodes.size() > 2) {
      snapshot_->RemoveNode(node);
    } else if (dice < 70 && !nodes.empty()) {
      snapshot_->CloseNode(node);
    } else if (dice < 71 && !nodes.empty()) {
      snapshot_->MarkLeaving(node);
    } else if (dice < 82 && before.size() < 6) {
      before.push_back(Observe());
      snapshot_->Fork();
    } else if (dice < 86 && before.size() > 1) {
      before.pop_back();
      ASSERT_TRUE(snapshot_->Commit());
    } else if (dice < 96 && !before.empty()) {
      ASSERT_TRUE(snapshot_->Revert());
      ASSERT_EQ(Observe(), before.back()) << "step " << step;
      before.pop_back();
    }
    ASSERT_EQ(snapshot_->depth(), before.size());
    ASSERT_NO_FATAL_FAILURE(ExpectEqualsRecount()) << "step " << step;
    snapshot_->CheckConsistent();
  }
}

// Counts that are asked for late equal those that were kept all along.
// What a snapshot that followed the cluster has is what a new one of it has, whatever was moved.
TEST_F(SnapshotTest, ReloadFollowsTheCluster) {
  snapshot_ = std::make_unique<Snapshot>(cluster_.state(), Snapshot::Source::kChanges);
  counts_ = snapshot_->Counts(Specs());
  const std::vector<FitPod> pods = Pods();
  const int32_t moved = snapshot_->InternShape(cluster_.Shape(pods[1]));
  const auto content = [](const Snapshot& snapshot) {
    std::map<std::string, std::string> nodes;
    for (int32_t i = 0; i < snapshot.node_end(); ++i) {
      const NodeIndex node{i};
      if (!snapshot.Contains(node)) continue;
      std::ostringstream out;
      out << snapshot.Placeable(node) << snapshot.node_shape(node).fingerprint;
      for (const SnapshotPod& pod : snapshot.pods(node)) {
        out << " " << snapshot.pod_shape(pod.shape).fingerprint
            << std::string(pod.name.data(), pod.name.size());
      }
      nodes[snapshot.name(node)] = out.str();
    }
    return nodes;
  };
  snapshot_->PlacePod(NodeIndex{0}, moved);
  snapshot_->PlacePod(NodeIndex{1}, moved);
  snapshot_->RemovePod(NodeIndex{2}, 0);
  snapshot_->CloseNode(NodeIndex{2});
  // Slots: 0 "c", 1 "a", 2 "b", 3 "d". One gets other pods, of shapes that were there before and of new ones;
  // two change names; one stays as it was, and one is added.
  FitPod named = pods[2];
  named.name = "named";
  named.requests.push_back({"example.com/new", 7});
  cluster_.Put(Slot{1}, {.name = "a", .labels = {{kZone, "west"}}}, {named, pods[3]});
  cluster_.Put(Slot{0}, {.name = "e", .labels = {{kZone, "east"}}}, {pods[4]});
  cluster_.Put(Slot{3}, {.name = "c", .labels = {{kZone, "south"}}}, {pods[1]});
  cluster_.Put(Slot{4}, {.name = "f"}, {});
  const std::vector<Slot> slots = {Slot{0}, Slot{1}, Slot{2}, Slot{3}, Slot{4}};
  snapshot_->Reload(slots);
  EXPECT_EQ(content(*snapshot_), content(Snapshot(cluster_.state())));
  EXPECT_EQ(snapshot_->slot(*snapshot_->FindSlot(Slot{3})), Slot{3});
  ExpectEqualsRecount();
  cluster_.Remove(Slot{2});
  const Slot gone[] = {Slot{2}};
  snapshot_->Reload(gone);
  EXPECT_EQ(content(*snapshot_), content(Snapshot(cluster_.state())));
  ExpectEqualsRecount();
}

TEST_F(SnapshotTest, CountsMayBeAskedForAtAnyTime) {
  snapshot_->Fork();
  for (int i = 0; i < 10; ++i) snapshot_->PlacePod(NodeIndex{i % 4}, shapes_[static_cast<size_t>(i) % 6]);
  snapshot_->RemovePod(NodeIndex{0}, 1);
  std::vector<CountSpec> specs = Specs();
  for (CountSpec& spec : specs) spec.identity += ", late";
  const std::vector<const DomainCounts*> late = snapshot_->Counts(std::move(specs));
  for (size_t i = 0; i < late.size(); ++i) {
    ASSERT_NE(late[i], counts_[i]);
    for (int32_t domain = 0; domain < late[i]->topology().domain_end(); ++domain) {
      EXPECT_EQ(late[i]->count(domain), counts_[i]->count(domain));
    }
    EXPECT_EQ(late[i]->lowest(), counts_[i]->lowest());
  }
  snapshot_->Revert();
  counts_ = late;
  ExpectEqualsRecount();
}

}  // namespace
}  // namespace loadline
