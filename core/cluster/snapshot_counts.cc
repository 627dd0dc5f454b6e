// Topology keys and counts of a snapshot: worked out when they are asked for first.
#include <algorithm>
#include <utility>

#include "core/cluster/snapshot.h"

namespace loadline {
namespace {

// About the memory of an entry of a table, beside its text.
constexpr int64_t kEntryBytes = 128;

}  // namespace

const TopologyKey& Snapshot::Topology(const std::string& key) {
  std::unique_ptr<TopologyKey>& topology = topologies_[key];
  if (topology == nullptr) {
    topology = std::make_unique<TopologyKey>(key);
    ReadTopology(topology.get());
    count_bytes_ += topology->bytes() + static_cast<int64_t>(key.size()) + kEntryBytes;
  }
  return *topology;
}

// The value of a label is looked up once per shape of nodes; only the hostname is different on each.
void Snapshot::ReadTopology(TopologyKey* topology) {
  const bool by_host = topology->key() == kHostnameLabel;
  int32_t first = 0;
  if (by_host) {
    topology->AddDistinct(named_by_host_);
    for (; first < named_by_host_; ++first) {
      if (!Contains(NodeIndex{first})) topology->Remove(NodeIndex{first});
    }
  } else if (!OnSomeNode(topology->key())) {
    return;
  }
  constexpr int32_t kUnknown = -2;
  std::vector<int32_t> domains(static_cast<size_t>(by_host ? 0 : node_shapes_.size()), kUnknown);
  for (int32_t i = first; i < node_end(); ++i) {
    const NodeIndex node{i};
    if (!Contains(node)) continue;
    if (by_host) {
      AddTo(topology, node, labels(node).hostname);
      continue;
    }
    int32_t& domain = domains[static_cast<size_t>(At(node).shape)];
    if (domain == kUnknown) {
      const std::string* const value = labels(node).Find(topology->key());
      domain = value == nullptr ? TopologyKey::kNone : topology->DomainOf(*value);
    }
    if (domain != TopologyKey::kNone) topology->Add(node, domain);
  }
}

// Returns whether some node carries the label, or did. The first few keys are looked up shape by shape; of a
// pod that brings thousands each costs one look-up.
bool Snapshot::OnSomeNode(const std::string& key) {
  constexpr size_t kFewKeys = 8;
  if (topologies_.size() <= kFewKeys) return true;
  for (; label_keys_read_ < node_shapes_.size(); ++label_keys_read_) {
    for (const Label& label : node_shapes_[label_keys_read_]->labels) label_keys_.insert(label.key);
  }
  return label_keys_.contains(key);
}

void Snapshot::AddTo(TopologyKey* topology, NodeIndex node, const std::string* value) {
  if (value == nullptr) return;
  if (topology->unindexed() > 0) {
    topology->Index([&](NodeIndex named) -> const std::string& { return At(named).name; });
  }
  topology->Add(node, topology->DomainOf(*value));
}

// Few topology keys are looked up among the labels of the node; with many keys it is the other way round.
void Snapshot::AddToTopologies(NodeIndex node) {
  const NodeLabels labels = this->labels(node);
  if (topologies_.size() <= labels.labels->size() + 1) {
    for (const auto& [key, topology] : topologies_) AddTo(topology.get(), node, labels.Find(key));
    return;
  }
  const auto add = [&](const std::string& key, const std::string* value) {
    const auto found = topologies_.find(key);
    if (found != topologies_.end()) AddTo(found->second.get(), node, value);
  };
  for (const Label& label : *labels.labels) {
    if (label.key != kHostnameLabel) add(label.key, &label.value);
  }
  add(kHostnameLabel, labels.hostname);
}

int64_t Snapshot::NumberOf(std::string text) {
  std::string key = std::move(text);
  const int64_t next = static_cast<int64_t>(numbers_.size());
  const int64_t bytes = static_cast<int64_t>(key.size()) + kEntryBytes;
  const auto [found, is_new] = numbers_.try_emplace(std::move(key), next);
  if (is_new) count_bytes_ += bytes;
  return found->second;
}

std::vector<const DomainCounts*> Snapshot::Counts(std::vector<CountSpec> specs) {
  WorkBudget unlimited;
  return *Counts(std::move(specs), &unlimited);
}

std::optional<std::vector<const DomainCounts*>> Snapshot::Counts(std::vector<CountSpec> specs,
                                                                 WorkBudget* budget) {
  const int64_t bytes_before = count_bytes_;
  const size_t counts_before = all_counts_.size();
  std::vector<const DomainCounts*> result;
  result.reserve(specs.size());
  for (CountSpec& spec : specs) {
    const TopologyKey& topology = Topology(spec.topology_key);
    std::unique_ptr<DomainCounts>& counts = counts_[spec.identity];
    if (counts == nullptr) {
      counts = std::make_unique<DomainCounts>(std::move(spec), &topology);
      all_counts_.push_back(counts.get());
    }
    result.push_back(counts.get());
  }
  const std::span<DomainCounts* const> added = std::span(all_counts_).subspan(counts_before);
  if (added.empty()) return result;
  const bool complete = ReadNodes(added, budget) && ReadPods(added, budget);
  int64_t bytes = count_bytes_ - bytes_before;  // of topology keys, which stay
  for (DomainCounts* counts : added) {
    counts->ForgetChanges();
    bytes += counts->bytes() + kEntryBytes;
  }
  // They stay until the snapshot ends.
  if (complete && budget->Keep(bytes)) {
    count_bytes_ = bytes_before + bytes;
    for (DomainCounts* counts : added) {
      if (counts->spec().use == CountUse::kSpread) spread_counts_.push_back(counts);
      if (counts->spec().sees_leaving) leaving_counts_.push_back(counts);
    }
    return result;
  }
  // Nobody has heard yet who counts what, so that nobody misses a removed count.
  for (const DomainCounts* counts : added) counts_.erase(std::string(counts->spec().identity));
  all_counts_.resize(counts_before);
  return std::nullopt;
}

bool Snapshot::ReadNodes(std::span<DomainCounts* const> added, WorkBudget* budget) {
  constexpr int64_t kNodesPerUnit = 8;
  for (DomainCounts* counts : added) {
    if (counts->spec().use != CountUse::kSpread || !counts->AnyDomain()) continue;
    if (!budget->Spend(1 + node_end() / kNodesPerUnit)) return false;
    for (int32_t i = 0; i < node_end(); ++i) {
      if (Contains(NodeIndex{i})) counts->AddNode(NodeIndex{i});
    }
  }
  return true;
}

bool Snapshot::ReadPods(std::span<DomainCounts* const> added, WorkBudget* budget) {
  constexpr size_t kPodsPerUnit = 32;
  std::vector<int32_t> shapes;
  const PodPredicate* asked = nullptr;
  for (DomainCounts* counts : added) {
    // Without a node that has the key there is nothing to count.
    if (!counts->AnyDomain()) continue;
    const CountSpec& spec = counts->spec();
    if (asked == nullptr || spec.counts.get() != asked) shapes = ShapesCountedBy(spec, budget);
    asked = spec.counts.get();
    for (const int32_t shape : shapes) {
      const PodsOfShape& pods = pods_of_[static_cast<size_t>(shape)];
      if (!pods.listed) ListPods();
      if (!budget->Spend(1 + static_cast<int64_t>(pods.nodes.size() / kPodsPerUnit))) return false;
      counts->Fill(pods.nodes);
    }
  }
  return !budget->ended();
}

// Only shapes that have pods are among them.
std::vector<int32_t> Snapshot::ShapesCountedBy(const CountSpec& spec, WorkBudget* budget) const {
  constexpr int64_t kCallsPerUnit = 4;
  std::vector<int32_t> counted;
  int64_t work = 0;
  const auto ask = [&](int32_t shape) {
    if (pods_of_[static_cast<size_t>(shape)].count == 0 || budget->ended()) return;
    if (Counted(spec, shape)) counted.push_back(shape);
    if (++work % kCallsPerUnit == 0) budget->Spend(spec.counts == nullptr ? 1 : spec.counts->work);
  };
  budget->Spend();
  if (spec.owners_of.has_value()) {
    for (const int32_t shape : anti_affinity_terms_.shapes(*spec.owners_of)) ask(shape);
  } else if (spec.counts->namespaces.empty()) {
    for (int32_t shape = 0; shape < pod_shapes_.size(); ++shape) ask(shape);
  } else {
    for (const std::string& name : spec.counts->namespaces) {
      const auto found = shapes_in_.find(name);
      if (found == shapes_in_.end()) continue;
      for (const int32_t shape : found->second) ask(shape);
    }
  }
  return counted;
}

bool Snapshot::Counted(const CountSpec& spec, int32_t shape) const {
  return spec.owners_of.has_value() ? anti_affinity_terms_.Has(shape, *spec.owners_of)
                                    : spec.counts->matches(*pod_shapes_[shape]);
}

// Asks each of the counts once per shape.
const std::vector<DomainCounts*>& Snapshot::CountsOf(int32_t shape) {
  const size_t i = static_cast<size_t>(shape);
  if (i >= counts_of_.size()) {
    counts_of_.resize(static_cast<size_t>(pod_shapes_.size()));
    counts_seen_.resize(counts_of_.size(), 0);
  }
  const PodPredicate* asked = nullptr;
  bool answer = false;
  for (size_t& seen = counts_seen_[i]; seen < all_counts_.size(); ++seen) {
    const CountSpec& spec = all_counts_[seen]->spec();
    if (asked == nullptr || spec.counts.get() != asked) answer = Counted(spec, shape);
    asked = spec.counts.get();
    if (answer) counts_of_[i].push_back(all_counts_[seen]);
  }
  return counts_of_[i];
}

// Lists the pods of all shapes that are not listed yet: once, however many shapes somebody asks for.
void Snapshot::ListPods() {
  std::vector<bool> wanted;
  for (PodsOfShape& pods : pods_of_) {
    wanted.push_back(!pods.listed);
    pods.listed = true;
  }
  for (int32_t i = 0; i < node_end(); ++i) {
    if (!Contains(NodeIndex{i})) continue;
    for (const SnapshotPod& pod : pods(NodeIndex{i})) {
      const size_t shape = static_cast<size_t>(pod.shape);
      if (wanted[shape]) pods_of_[shape].nodes.push_back(NodeIndex{i});
    }
  }
}

std::shared_ptr<const LimitSums> Snapshot::SumLimits(const LimitSumsSpec& spec) {
  constexpr size_t kMostUnused = 4;
  const auto known = std::find_if(limit_sums_.begin(), limit_sums_.end(),
                                  [&](const auto& sums) { return sums->spec() == spec; });
  if (known != limit_sums_.end()) {
    std::rotate(known, known + 1, limit_sums_.end());
    return limit_sums_.back();
  }
  // Whoever holds one keeps it; of the others a few may be asked for again.
  for (size_t i = 0; limit_sums_.size() >= kMostUnused && i < limit_sums_.size();) {
    if (limit_sums_[i].use_count() == 1) {
      limit_sums_.erase(limit_sums_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  auto sums = std::make_shared<LimitSums>(spec);
  for (int32_t i = 0; i < node_end(); ++i) {
    const NodeIndex node{i};
    for (const SnapshotPod& pod : pods(node)) {
      sums->Change(node, node_shape(node), pod.shape, pod_shape(pod.shape), +1);
    }
  }
  return limit_sums_.emplace_back(std::move(sums));
}

}  // namespace loadline
