#include "core/slack/slack_rooms.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/cluster/node_kind.h"
#include "core/cluster/pod_role.h"

namespace loadline {
namespace {

void Change(size_t slot, bool has, absl::btree_set<size_t>* slots) {
  if (has) {
    slots->insert(slot);
  } else {
    slots->erase(slot);
  }
}

// Hash of all that BelongsToNode() reads of the objects.
uint64_t HashOfDaemonSets(const ClusterObjects& objects) {
  FingerprintBuilder builder;
  builder.Add(objects.complete(ObjectKind::kDaemonSet) ? 1 : 0);
  const auto add = [&](const ObjectKey& key) {
    builder.Add(absl::string_view(key.namespace_name));
    builder.Add(absl::string_view(key.name));
  };
  for (const auto& [key, object] : objects.of(ObjectKind::kDaemonSet)) {
    add(key);
    if (const auto* const workload = std::get_if<Workload>(&object.content)) {
      builder.Add(absl::string_view(workload->uid));
    }
  }
  for (const auto& [key, reason] : objects.unreadable()) {
    if (key.kind == ObjectKind::kDaemonSet) add(key);
  }
  return builder.Finish();
}

SlackPod MakePod(const PodShape& shape, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(shape);
  SlackPod pod;
  pod.shape = shape;
  pod.requests = CpuMemoryOf(shape.requests);
  pod.gives_way = GivesWay(traits);
  pod.terminating = traits.deleted_s.has_value();
  pod.overhead = BelongsToNode(shape, objects);
  pod.wishes = !traits.placeholder && (traits.slack.copies.has_value() || !traits.slack.error.empty());
  if (!pod.gives_way && !pod.overhead && shape.rules != nullptr) pod.selects = shape.rules->NodeLabelKeys();
  return pod;
}

}  // namespace

EmptyNode SlackClass::TypicalEmpty() const {
  const std::pair<const EmptyNode, int64_t>* typical = nullptr;
  for (const auto& entry : empty) {
    if (typical == nullptr || entry.second >= typical->second) typical = &entry;
  }
  return typical == nullptr ? EmptyNode() : typical->first;
}

int64_t SlackRooms::PodsOf(const std::string& owner_uid) const {
  const auto found = pods_of_owner_.find(owner_uid);
  return found == pods_of_owner_.end() ? 0 : found->second;
}

void SlackRooms::Clear() {
  const int64_t objects_version = objects_version_;
  const uint64_t daemon_sets = daemon_sets_;
  std::vector<Slot> named = std::move(named_);
  *this = SlackRooms();
  objects_version_ = objects_version;
  daemon_sets_ = daemon_sets;
  named_ = std::move(named);
}

bool SlackRooms::CatchUp(const ClusterState& cluster, const SlackClassRules& rules,
                         std::span<const Slot> named, std::vector<size_t>* changed) {
  const auto events = cluster.changes(journal_);
  bool all = !events.has_value() || rules.startup_taints != rules_.startup_taints ||
             !std::equal(named.begin(), named.end(), named_.begin(), named_.end());
  named_.assign(named.begin(), named.end());
  if (all || cluster.objects().version() != objects_version_) {
    const uint64_t daemon_sets = HashOfDaemonSets(cluster.objects());
    all = all || daemon_sets != daemon_sets_;  // which pods come with their node is worked out anew
    daemon_sets_ = daemon_sets;
    objects_version_ = cluster.objects().version();
  }
  std::vector<size_t> slots;
  if (all) {
    const size_t before = nodes_.size();
    Clear();
    rules_.startup_taints = rules.startup_taints;
    slots.resize(std::max(before, static_cast<size_t>(cluster.slot_end())));
    for (size_t i = 0; i < slots.size(); ++i) slots[i] = i;
  } else {
    for (const Slot slot : *events) slots.push_back(IndexOf(slot));
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  }
  journal_ = cluster.change_count();
  for (const size_t slot : slots) Drop(slot);
  for (const size_t slot : slots) Read(cluster, slot);
  numbers_.clear();
  Release();
  if (UpdateKeys(rules) && !all) {
    all = true;
    slots.resize(nodes_.size());
    for (size_t i = 0; i < slots.size(); ++i) slots[i] = i;
    for (const size_t slot : slots) Declassify(slot);
  }
  for (const size_t slot : slots) Classify(cluster, slot);
  changed->insert(changed->end(), slots.begin(), slots.end());
  return all;
}

void SlackRooms::Drop(size_t slot) {
  if (slot >= nodes_.size() || !nodes_[slot].present) return;
  Declassify(slot);
  CountPods(nodes_[slot], -1);
  with_wishes_.erase(slot);
  nodes_[slot] = Node();
}

void SlackRooms::Read(const ClusterState& cluster, size_t slot) {
  const Slot at{static_cast<int32_t>(slot)};
  if (slot >= nodes_.size()) nodes_.resize(slot + 1);
  if (!cluster.Occupied(at)) return;
  const NodeShape& shape = cluster.node_shape(at);
  Node& node = nodes_[slot];
  node.present = true;
  node.name = std::string(cluster.name(at));
  node.machine =
      cluster.traits(at).kind == NodeKind::kMachine || std::binary_search(named_.begin(), named_.end(), at);
  node.usable = node.machine && TakesPlaceholders(shape, rules_.startup_taints) && cluster.traits(at).ready;
  node.allocatable = CpuMemoryOf(shape.allocatable);
  ReadPods(cluster, slot, &node);
  CountPods(node, 1);
  Change(slot, node.has_wishes, &with_wishes_);
}

void SlackRooms::ReadPods(const ClusterState& cluster, size_t slot, Node* node) {
  const Slot at{static_cast<int32_t>(slot)};
  int64_t slots = 0;
  // Nothing is said of how many pods a node takes: it takes none, as for kube-scheduler.
  if (const auto id = cluster.resource_names().Find("pods"); id.has_value()) {
    slots = cluster.node_shape(at).allocatable.Get(*id);
  }
  CpuMemory overhead;
  int64_t giving_way = 0, overheads = 0;
  for (const NodePods::Pod& entry : cluster.pods(at).pods()) {
    const PodShape& shape = cluster.pod_shapes()[entry.shape];
    if (shape.finished) continue;
    auto [number, added] = numbers_.try_emplace(entry.shape, 0);
    if (added) number->second = PodNumber(shape, cluster.objects());
    const SlackPod& pod = pods_[static_cast<size_t>(number->second)];
    node->has_wishes |= pod.wishes;
    if (pod.gives_way) {
      ++giving_way;
      continue;
    }
    node->pods.emplace_back(number->second, 1);
    node->real = Plus(node->real, pod.requests);
    if (pod.overhead) {
      overhead = Plus(overhead, pod.requests);
      ++overheads;
    } else if (!pod.terminating) {
      node->requested = Plus(node->requested, pod.requests);
    }
  }
  // Whatever is written into a pod: what runs on a node is no more than the node.
  node->requested = Smaller(node->requested, node->allocatable);
  node->free_slots = slots - (cluster.pod_count(at) - giving_way);
  node->empty = {Minus(node->allocatable, overhead), std::max<int64_t>(0, slots - overheads)};
  std::sort(node->pods.begin(), node->pods.end());
  size_t kept = 0;
  for (const auto& entry : node->pods) {
    if (kept > 0 && node->pods[kept - 1].first == entry.first) {
      ++node->pods[kept - 1].second;
    } else {
      node->pods[kept++] = entry;
    }
  }
  node->pods.resize(kept);
}

void SlackRooms::CountPods(const Node& node, int32_t sign) {
  for (const auto& [number, count] : node.pods) {
    SlackPod& pod = pods_[static_cast<size_t>(number)];
    const int64_t change = sign * int64_t{count};
    pod.count += change;
    if (pod.count == 0) unused_.push_back(number);
    if (const std::optional<PodOwner>& owner = TraitsOf(pod.shape).owner; owner.has_value()) {
      if ((pods_of_owner_[owner->uid] += change) == 0) pods_of_owner_.erase(owner->uid);
    }
    for (const std::string& key : pod.selects) {
      if ((selecting_[key] += change) == 0) selecting_.erase(key);
    }
  }
}

int32_t SlackRooms::PodNumber(const PodShape& shape, const ClusterObjects& objects) {
  const auto known = pod_index_.Find(
      shape.fingerprint, [&](int32_t number) { return pods_[static_cast<size_t>(number)].shape == shape; });
  if (known.has_value()) return *known;
  int32_t number = static_cast<int32_t>(pods_.size());
  if (free_numbers_.empty()) {
    pods_.push_back(MakePod(shape, objects));
  } else {
    number = free_numbers_.back();
    free_numbers_.pop_back();
    pods_[static_cast<size_t>(number)] = MakePod(shape, objects);
  }
  pod_index_.Add(shape.fingerprint, number);
  if (pods_[static_cast<size_t>(number)].gives_way) unused_.push_back(number);
  return number;
}

void SlackRooms::Release() {
  std::sort(unused_.begin(), unused_.end());
  unused_.erase(std::unique(unused_.begin(), unused_.end()), unused_.end());
  for (const int32_t number : unused_) {
    SlackPod& pod = pods_[static_cast<size_t>(number)];
    if (pod.count > 0) continue;
    pod_index_.Remove(pod.shape.fingerprint, number);
    pod = SlackPod();
    free_numbers_.push_back(number);
  }
  unused_.clear();
}

bool SlackRooms::UpdateKeys(const SlackClassRules& rules) {
  LabelKeys selected = rules.selected;
  for (const auto& [key, count] : selecting_) selected.push_back(key);
  std::sort(selected.begin(), selected.end());
  selected.erase(std::unique(selected.begin(), selected.end()), selected.end());
  LabelKeys keys = rules.label_keys;
  keys.insert(keys.end(), selected.begin(), selected.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys == rules_.label_keys && selected == rules_.selected) return false;
  rules_.label_keys = std::move(keys);
  rules_.selected = std::move(selected);
  return true;
}

void SlackRooms::Classify(const ClusterState& cluster, size_t slot) {
  Node& node = nodes_[slot];
  if (!node.machine) return;
  SlackClassKey key =
      ClassOf(cluster.node_shape(Slot{static_cast<int32_t>(slot)}), rules_, cluster.resource_names());
  node.class_name = key.name;
  SlackClass& of = classes_[node.class_name];
  if (of.nodes++ == 0) of.key = std::move(key);
  ++of.empty[node.empty];
  of.requested.Add(node.requested, 1);
  if (node.usable) {
    ++of.usable;
    of.capacity.Add(node.empty.room, 1);
  }
  for (const auto& [number, count] : node.pods) of.pods[number] += count;
}

void SlackRooms::Declassify(size_t slot) {
  Node& node = nodes_[slot];
  if (!node.present || node.class_name.empty()) return;
  const auto found = classes_.find(node.class_name);
  SlackClass& of = found->second;
  node.class_name.clear();
  if (--of.nodes == 0) {
    classes_.erase(found);
    return;
  }
  const auto empty = of.empty.find(node.empty);
  if (--empty->second == 0) of.empty.erase(empty);
  of.requested.Add(node.requested, -1);
  if (node.usable) {
    --of.usable;
    of.capacity.Add(node.empty.room, -1);
  }
  for (const auto& [number, count] : node.pods) {
    const auto pods = of.pods.find(number);
    if ((pods->second -= count) == 0) of.pods.erase(pods);
  }
}

}  // namespace loadline
