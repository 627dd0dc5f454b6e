// Compares what a snapshot keeps with what it would be if worked out anew from the pods of its nodes. Reads
// neither the cluster state nor text in it, which may have changed since.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/amount.h"
#include "core/cluster/snapshot.h"

namespace loadline {

template <typename Shape>
void Snapshot::Numbers<Shape>::CheckConsistent() const {
  for (int32_t id = 0; id < size(); ++id) {
    const auto is_id = [id](int32_t number) { return number == id; };
    LOADLINE_CHECK(index_.Find((*this)[id]->fingerprint, is_id).has_value()) << "shape " << id;
  }
  LOADLINE_CHECK(index_.size() == shapes_.size())
      << index_.size() << " numbers of " << shapes_.size() << " shapes";
}

void Snapshot::CheckConsistent() const {
  size_t in_slots = 0;
  for (int32_t i = 0; i < node_end(); ++i) {
    CheckNode(NodeIndex{i});
    CheckAmounts(NodeIndex{i});
    in_slots += Contains(NodeIndex{i}) && static_cast<int32_t>(slot(NodeIndex{i})) >= 0 ? 1 : 0;
  }
  LOADLINE_CHECK(by_slot_.size() == in_slots) << by_slot_.size() << " slots have " << in_slots << " nodes";
  CheckShapes();
  CheckCounts();
  CheckLimitSums();
  CheckMoves();
  anti_affinity_terms_.CheckConsistent();
  freed_.CheckConsistent();
}

void Snapshot::CheckNode(NodeIndex node) const {
  const Node& entry = At(node);
  const int32_t number = static_cast<int32_t>(node);
  LOADLINE_CHECK(!entry.leaving || entry.closed) << "node " << number << " leaves and takes pods";
  std::map<HostPort, int32_t> ports;
  for (const SnapshotPod& pod : entry.pods) {
    const PodShape& shape = *pod_shapes_[pod.shape];
    if (shape.rules == nullptr) continue;
    for (const HostPort& port : shape.rules->host_ports) ++ports[port];
  }
  const bool same_ports = std::equal(ports.begin(), ports.end(), entry.ports.begin(), entry.ports.end(),
                                     [](const auto& port, const UsedPort& used) {
                                       return used.port == port.first && used.pods == port.second;
                                     });
  LOADLINE_CHECK(same_ports) << "ports of node " << number;
  if (!entry.present) {
    LOADLINE_CHECK(entry.pods.empty()) << "node " << number << " is gone and has pods";
    return;
  }
  if (static_cast<int32_t>(entry.slot) < 0) return;
  LOADLINE_CHECK(FindSlot(entry.slot) == node) << "slot " << static_cast<int32_t>(entry.slot);
}

void Snapshot::CheckAmounts(NodeIndex node) const {
  const Node& entry = At(node);
  std::map<ResourceId, absl::int128> requested;
  for (const SnapshotPod& pod : entry.pods) {
    for (const auto& [resource, request] : pod_shapes_[pod.shape]->requests) requested[resource] += request;
  }
  const ResourceAmounts& allocatable = node_shapes_[entry.shape]->allocatable;
  const auto check = [&](ResourceId resource, const NodeAmount& amount) {
    const auto asked = requested.find(resource);
    LOADLINE_CHECK(amount.requested == (asked == requested.end() ? 0 : asked->second))
        << "requested of node " << static_cast<int32_t>(node) << ", resource "
        << static_cast<int32_t>(resource);
    LOADLINE_CHECK(amount.allocatable == allocatable.Get(resource)) << "node " << static_cast<int32_t>(node);
    const absl::int128 free = absl::int128(amount.allocatable) - amount.requested;
    LOADLINE_CHECK(amount.free == std::max<absl::int128>(free, -kMaxAmount)) << static_cast<int32_t>(node);
  };
  LOADLINE_CHECK(amounts_.size() == nodes_.size() * width_) << amounts_.size();
  for (size_t i = 0; i < width_; ++i) check(ResourceId{static_cast<int32_t>(i)}, amounts(node)[i]);
  if (entry.extra == nullptr) return;
  for (const ExtraAmount& extra : *entry.extra) {
    LOADLINE_CHECK(static_cast<size_t>(extra.resource) >= width_) << "a resource has two amounts";
    check(extra.resource, extra.amount);
  }
}

void Snapshot::CheckShapes() const {
  node_shapes_.CheckConsistent();
  pod_shapes_.CheckConsistent();
  LOADLINE_CHECK(pods_of_.size() == static_cast<size_t>(pod_shapes_.size())) << pods_of_.size();
  std::vector<std::vector<NodeIndex>> nodes_of(pods_of_.size());
  std::map<std::string, int32_t> users;
  int64_t volumes = 0;
  for (int32_t i = 0; i < node_end(); ++i) {
    for (const SnapshotPod& pod : At(NodeIndex{i}).pods) {
      nodes_of[static_cast<size_t>(pod.shape)].push_back(NodeIndex{i});
      const PodShape& shape = *pod_shapes_[pod.shape];
      if (shape.rules == nullptr) continue;
      volumes += static_cast<int64_t>(shape.rules->volumes.size());
      for (const PodVolume& volume : shape.rules->volumes) {
        if (volume.kind == VolumeKind::kClaim) ++users[absl::StrCat(shape.namespace_name, "/", volume.name)];
      }
    }
  }
  for (size_t i = 0; i < pods_of_.size(); ++i) {
    std::vector<NodeIndex> listed = pods_of_[i].nodes;
    std::sort(listed.begin(), listed.end());
    LOADLINE_CHECK(static_cast<size_t>(pods_of_[i].count) == nodes_of[i].size()) << "pods of shape " << i;
    LOADLINE_CHECK(pods_of_[i].listed ? listed == nodes_of[i] : listed.empty()) << "nodes of shape " << i;
  }
  LOADLINE_CHECK(volumes_ == volumes) << volumes_ << " volumes are counted, there are " << volumes;
  LOADLINE_CHECK(claim_users_.size() == users.size()) << claim_users_.size() << " claims are used";
  for (const auto& [claim, pods] : users) {
    const auto found = claim_users_.find(claim);
    LOADLINE_CHECK(found != claim_users_.end() && found->second == pods) << "users of claim " << claim;
  }
  size_t in_namespaces = 0;
  for (const auto& [name, shapes] : shapes_in_) {
    for (const int32_t shape : shapes) LOADLINE_CHECK(pod_shapes_[shape]->namespace_name == name) << name;
    in_namespaces += shapes.size();
  }
  LOADLINE_CHECK(in_namespaces == pods_of_.size()) << in_namespaces << " shapes are in a namespace";
}

void Snapshot::CheckCounts() const {
  for (const auto& [key, topology] : topologies_) {
    topology->CheckConsistent();
    std::map<std::string, int32_t> domains;
    for (int32_t i = 0; i < node_end(); ++i) {
      const int32_t domain = topology->domain(NodeIndex{i});
      const std::string* const value = Contains(NodeIndex{i}) ? labels(NodeIndex{i}).Find(key) : nullptr;
      LOADLINE_CHECK((value == nullptr) == (domain == TopologyKey::kNone))
          << "node " << i << ", label " << key;
      if (value == nullptr) continue;
      LOADLINE_CHECK(domains.emplace(*value, domain).first->second == domain) << "node " << i << ", " << key;
    }
  }
  LOADLINE_CHECK(counts_.size() == all_counts_.size()) << counts_.size() << " of " << all_counts_.size();
  for (const DomainCounts* const counts : all_counts_) {
    std::vector<bool> counted;
    for (int32_t shape = 0; shape < pod_shapes_.size(); ++shape)
      counted.push_back(Counted(counts->spec(), shape));
    std::vector<DomainCounts::Domain> domains(static_cast<size_t>(counts->topology().domain_end()));
    for (int32_t i = 0; i < node_end(); ++i) {
      const int32_t domain = counts->domain(NodeIndex{i});
      if (domain == TopologyKey::kNone || !counts->Eligible(NodeIndex{i})) continue;
      DomainCounts::Domain& entry = domains[static_cast<size_t>(domain)];
      ++entry.eligible_nodes;
      for (const SnapshotPod& pod : At(NodeIndex{i}).pods) {
        entry.pods += counted[static_cast<size_t>(pod.shape)] ? 1 : 0;
      }
    }
    counts->CheckConsistent(domains);
  }
  for (size_t i = 0; i < counts_of_.size(); ++i) {
    std::vector<DomainCounts*> expected;
    for (size_t j = 0; j < counts_seen_[i]; ++j) {
      if (Counted(all_counts_[j]->spec(), static_cast<int32_t>(i))) expected.push_back(all_counts_[j]);
    }
    LOADLINE_CHECK(counts_of_[i] == expected) << "counts of shape " << i;
  }
}

void Snapshot::CheckMoves() const {
  LOADLINE_CHECK(log_.empty() || !forks_.empty()) << log_.size() << " moves are kept that nobody undoes";
  Mark last{0, 0};
  for (const Mark& mark : forks_) {
    LOADLINE_CHECK(last.moves <= mark.moves && last.texts <= mark.texts) << "forks are out of order";
    last = mark;
  }
  LOADLINE_CHECK(last.moves <= log_.size() && last.texts <= texts_.size()) << "moves were lost";
  for (const Move& move : log_) CheckedIndex("node", IndexOf(move.node), nodes_.size());
}

void Snapshot::CheckLimitSums() const {
  for (const auto& sums : limit_sums_) {
    for (int32_t i = 0; i < node_end(); ++i) {
      const NodeIndex node{i};
      for (size_t r = 0; r < sums->spec().resources.size(); ++r) {
        absl::int128 sum = 0;
        for (const SnapshotPod& pod : pods(node)) {
          sum += sums->Counted(pod_shape(pod.shape), node_shape(node), r).amount;
        }
        LOADLINE_CHECK(sum == sums->sum(node, r)) << "limits of node " << i << ", resource " << r;
      }
    }
  }
}

}  // namespace loadline
