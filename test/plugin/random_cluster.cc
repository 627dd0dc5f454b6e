#include "test/plugin/random_cluster.h"

#include <algorithm>
#include <utility>

namespace loadline {
namespace {

constexpr const char* kResources[] = {"cpu", "memory", "ephemeral-storage", "a.com/x", "b.com/y"};

AmountsByName RandomAmounts(Random& random, int64_t highest) {
  AmountsByName amounts;
  for (const char* const resource : kResources) {
    if (OneIn(random, 2)) amounts[resource] = static_cast<int64_t>(random() % static_cast<uint64_t>(highest));
  }
  return amounts;
}

Quantities AsQuantities(const AmountsByName& amounts) {
  Quantities quantities;
  for (const auto& [name, amount] : amounts) {
    quantities.emplace_back(name, std::to_string(amount) + (name == "cpu" ? "m" : ""));
  }
  return quantities;
}

void Add(const AmountsByName& addend, AmountsByName* sum) {
  for (const auto& [name, amount] : addend) (*sum)[name] += amount;
}

// Containers without anything in their way: the effective amounts are their sums.
PodKind RandomKind(Random& random) {
  PodKind kind;
  kind.pod.mutable_metadata()->set_namespace_(OneIn(random, 3) ? "kube-system" : "default");
  for (size_t containers = Below(random, 3); containers > 0; --containers) {
    const AmountsByName limits = RandomAmounts(random, 1000);
    const AmountsByName requests = RandomAmounts(random, 1000);
    Add(limits, &kind.limits);
    Add(requests, &kind.requests);
    const k8s::v1::Pod one = MakePod(AsQuantities(limits), AsQuantities(requests));
    *kind.pod.mutable_spec()->add_containers() = one.spec().containers(0);
  }
  if (OneIn(random, 8)) {
    kind.finished = true;
    kind.pod.mutable_status()->set_phase(OneIn(random, 2) ? "Succeeded" : "Failed");
    kind.limits.clear();
    kind.requests.clear();
  }
  return kind;
}

}  // namespace

RandomCluster::RandomCluster(uint64_t seed) : random_(seed) {
  for (size_t kinds = 1 + Below(random_, 12); kinds > 0; --kinds) kinds_.push_back(RandomKind(random_));
  for (size_t nodes = Below(random_, 12); nodes > 0; --nodes) {
    nodes_["node-" + std::to_string(nodes)] = RandomNode();
  }
}

ClusterNode RandomCluster::RandomNode() {
  ClusterNode node;
  node.allocatable = RandomAmounts(random_, 10'000);
  for (size_t pods = Below(random_, 6); pods > 0; --pods) {
    const std::string number = std::to_string(pods_made_++);
    node.pods.push_back(
        {Below(random_, kinds_.size()), "pod-" + number, OneIn(random_, 4) ? "" : "uid-" + number});
  }
  return node;
}

std::set<std::string> RandomCluster::Change() {
  std::set<std::string> changed;
  for (size_t changes = 1 + Below(random_, 4); changes > 0; --changes) {
    const std::string name = "node-" + std::to_string(Below(random_, 16));
    changed.insert(name);
    if (OneIn(random_, 4)) {
      nodes_.erase(name);
    } else if (OneIn(random_, 3) && !nodes_[name].pods.empty()) {
      nodes_[name].pods.pop_back();
    } else {
      nodes_[name] = RandomNode();
    }
  }
  return changed;
}

int32_t RandomClient::FreeSlot() {
  while (true) {
    const int32_t slot = static_cast<int32_t>(Below(random_, 64));
    const auto taken = [&](const auto& entry) { return entry.second == slot; };
    if (std::none_of(slots_.begin(), slots_.end(), taken)) return slot;
  }
}

void RandomClient::AddNode(const std::string& name, ChangesBuilder* changes) {
  const ClusterNode& node = cluster_.nodes().at(name);
  if (!slots_.contains(name)) {
    const int32_t slot = FreeSlot();
    slots_[name] = slot;
  }
  std::vector<PodOnNode> pods;
  for (const ClusterPod& pod : node.pods) {
    // Ids start anywhere; gaps are nothing special.
    if (!shapes_.contains(pod.kind)) {
      shapes_[pod.kind] = static_cast<int32_t>(pod.kind * 7 + Below(random_, 7));
    }
    pods.push_back({shapes_[pod.kind], pod.name, pod.uid});
    if (acknowledged_.contains(pod.kind) || !sent_.insert(pod.kind).second) continue;
    changes->Shape(shapes_[pod.kind], cluster_.kind(pod.kind).pod);
  }
  std::shuffle(pods.begin(), pods.end(), random_);
  changes->Node(slots_[name], MakeNode(name, AsQuantities(node.allocatable)), pods);
}

void RandomClient::Acknowledge() {
  changed_.clear();
  removed_.clear();
  acknowledged_.insert(sent_.begin(), sent_.end());
}

std::vector<ChangesBuilder> RandomClient::FullList(int64_t epoch, int64_t revision) {
  slots_.clear();
  shapes_.clear();
  acknowledged_.clear();
  sent_.clear();
  std::vector<std::string> names;
  for (const auto& [name, node] : cluster_.nodes()) names.push_back(name);
  std::shuffle(names.begin(), names.end(), random_);
  const int32_t chunks = static_cast<int32_t>(1 + Below(random_, 3));
  std::vector<ChangesBuilder> batches;
  for (int32_t i = 0; i < chunks; ++i) {
    batches.push_back(ChangesBuilder::Chunk(epoch, revision, i, i + 1 == chunks));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    AddNode(names[i], &batches[i * static_cast<size_t>(chunks) / names.size()]);
  }
  Acknowledge();
  return batches;
}

ChangesBuilder RandomClient::Delta(int64_t epoch, int64_t base_revision, int64_t revision,
                                   const std::set<std::string>& changed) {
  ChangesBuilder changes = ChangesBuilder::Delta(epoch, base_revision, revision);
  changed_.insert(changed.begin(), changed.end());
  for (const std::string& name : changed_) {
    if (cluster_.nodes().contains(name) || !slots_.contains(name)) continue;
    removed_.insert(slots_[name]);
    slots_.erase(name);
  }
  for (const int32_t slot : removed_) changes.Remove(slot);
  sent_.clear();
  for (const std::string& name : changed_) {
    if (cluster_.nodes().contains(name)) AddNode(name, &changes);
  }
  return changes;
}

}  // namespace loadline
