#include "core/slack/placeholder_set.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace loadline {

PushedOut PushOut(const SlackNode& node, std::span<const Placeholder* const> placeholders) {
  CpuMemory sum = node.real;
  int64_t slots = node.free_slots;
  std::vector<size_t> order;
  for (size_t i = 0; i < placeholders.size(); ++i) {
    sum = Plus(sum, placeholders[i]->size);
    --slots;
    order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool x = placeholders[a]->kind == PlaceholderKind::kStandard;
    const bool y = placeholders[b]->kind == PlaceholderKind::kStandard;
    return x != y ? x : placeholders[a]->id > placeholders[b]->id;
  });
  PushedOut out;
  for (const size_t i : order) {
    if (Within(sum, node.allocatable) && slots >= 0) break;
    sum = Minus(sum, placeholders[i]->size);
    ++slots;
    out.pushed.push_back(i);
  }
  out.over = !Within(node.real, node.allocatable);
  return out;
}

CpuMemory PlaceholderSet::Free(size_t node) const {
  const Node& at = nodes_[node];
  return Minus(at.content.allocatable, Plus(at.content.real, at.taken));
}

bool PlaceholderSet::FitsOn(size_t node, const CpuMemory& size) const {
  const Node& at = nodes_[node];
  return at.present && at.slots > 0 &&
         Within(Plus(size, Plus(at.content.real, at.taken)), at.content.allocatable);
}

size_t PlaceholderSet::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoNode : found->second;
}

PlaceholderSet::Room PlaceholderSet::RoomOf(size_t node) const {
  const CpuMemory free = Free(node);
  return {free.cpu, free.memory, nodes_[node].content.name, node};
}

// To be called around each change of what a node has left: it is out of the order meanwhile.
void PlaceholderSet::IndexRoom(size_t node, bool present) {
  if (nodes_[node].slots <= 0) return;
  const size_t at = static_cast<size_t>(nodes_[node].content.node_class);
  if (at >= by_room_.size()) by_room_.resize(at + 1);
  if (present) {
    by_room_[at].insert(RoomOf(node));
  } else {
    by_room_[at].erase(RoomOf(node));
  }
}

void PlaceholderSet::SetNode(size_t node, SlackNode content) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  Node& at = nodes_[node];
  if (at.present && (at.content.name != content.name || at.content.node_class != content.node_class)) {
    RemoveNode(node);
  }
  if (at.present) {
    if (at.content == content) return;
    IndexRoom(node, false);
    if (!Within(at.content.real, at.content.allocatable)) overcommitted_.erase(at.content.name);
  } else {
    by_name_[content.name] = node;
  }
  at.present = true;
  at.content = std::move(content);
  at.slots = at.content.free_slots - static_cast<int64_t>(at.placeholders.size());
  if (!Within(at.content.real, at.content.allocatable)) overcommitted_.insert(at.content.name);
  IndexRoom(node, true);
  touched_.push_back(node);
}

void PlaceholderSet::RemoveNode(size_t node) {
  if (!Has(node)) return;
  while (!nodes_[node].placeholders.empty()) Detach(nodes_[node].placeholders.back());
  IndexRoom(node, false);
  Node& at = nodes_[node];
  const auto named = by_name_.find(at.content.name);
  // The name may have gone to another number meanwhile.
  if (named != by_name_.end() && named->second == node) by_name_.erase(named);
  overcommitted_.erase(at.content.name);
  at = Node();
}

void PlaceholderSet::PushOutAll() {
  for (const size_t node : std::exchange(touched_, {})) {
    if (!Has(node) || nodes_[node].placeholders.empty()) continue;
    const std::vector<int64_t> ids = nodes_[node].placeholders;
    std::vector<const Placeholder*> there;
    for (const int64_t id : ids) there.push_back(&ItemOf(id).placeholder);
    for (const size_t i : PushOut(nodes_[node].content, there).pushed) Detach(ids[i]);
  }
}

void PlaceholderSet::Attach(int64_t id, size_t node) {
  Item& item = ItemOf(id);
  LOADLINE_CHECK(Has(node) && item.node == kNoNode)
      << "placeholder " << id << " is attached to node " << node;
  IndexRoom(node, false);
  Node& at = nodes_[node];
  item.node = node;
  item.placeholder.node = item.placeholder.last_node = at.content.name;
  at.taken = Plus(at.taken, item.placeholder.size);
  --at.slots;
  at.placeholders.push_back(id);
  IndexRoom(node, true);
  groups_[GroupOf(item.placeholder)].unplaced.erase(id);
}

void PlaceholderSet::Detach(int64_t id) {
  Item& item = ItemOf(id);
  if (item.node == kNoNode) return;
  IndexRoom(item.node, false);
  Node& at = nodes_[item.node];
  std::erase(at.placeholders, id);
  ++at.slots;
  // Anew: what saturated cannot be taken off again.
  at.taken = {};
  for (const int64_t other : at.placeholders) at.taken = Plus(at.taken, ItemOf(other).placeholder.size);
  IndexRoom(item.node, true);
  item.node = kNoNode;
  item.placeholder.node.clear();
  ++lost_;
  groups_[GroupOf(item.placeholder)].unplaced.insert(id);
}

void PlaceholderSet::Restore(const Placeholder& placeholder) {
  const int64_t id = placeholder.id;
  Add(GroupOf(placeholder), id);
  const size_t node = placeholder.node.empty() ? kNoNode : Find(placeholder.node);
  if (node != kNoNode) {
    Attach(id, node);
    touched_.push_back(node);
  }
  Expect(id, placeholder.last_node.empty() ? placeholder.node : placeholder.last_node);
}

void PlaceholderSet::Expect(int64_t id, const std::string& node) { ItemOf(id).placeholder.last_node = node; }

void PlaceholderSet::Add(const PlaceholderGroup& group, int64_t id) {
  LOADLINE_CHECK(!Has(id)) << "there are two placeholders " << id;
  Item& item = items_[id];
  item.placeholder.id = id;
  item.placeholder.kind = group.kind;
  item.placeholder.owner = group.owner;
  item.placeholder.size = group.size;
  Members& members = groups_[group];
  members.ids.insert(id);
  members.unplaced.insert(id);
}

const PlaceholderSet::Item& PlaceholderSet::ItemOf(int64_t id) const {
  const auto found = items_.find(id);
  LOADLINE_CHECK(found != items_.end()) << "there is no placeholder " << id;
  return found->second;
}

void PlaceholderSet::Remove(int64_t id) {
  if (ItemOf(id).node != kNoNode) {
    Detach(id);
    --lost_;
  }
  const auto item = items_.find(id);
  const auto group = groups_.find(GroupOf(item->second.placeholder));
  group->second.ids.erase(id);
  group->second.unplaced.erase(id);
  if (group->second.ids.empty()) groups_.erase(group);
  items_.erase(item);
}

void PlaceholderSet::Trim(const PlaceholderGroup& group, int64_t count) {
  const Members* const members = Find(group);
  if (members == nullptr || count <= 0) return;
  // By cpu and then memory of the real pods there, so that the emptiest nodes may drain.
  using Key = std::tuple<bool, int64_t, int64_t, absl::string_view, int64_t>;
  std::vector<Key> order;
  for (const int64_t id : members->ids) {
    const size_t node = ItemOf(id).node;
    const bool placed = node != kNoNode;
    const CpuMemory real = placed ? nodes_[node].content.real : CpuMemory{};
    order.emplace_back(placed, real.cpu, real.memory,
                       placed ? absl::string_view(nodes_[node].content.name) : "", -id);
  }
  const size_t trimmed = std::min(order.size(), static_cast<size_t>(count));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(trimmed), order.end());
  order.resize(trimmed);
  for (const Key& key : order) Remove(-std::get<4>(key));
}

size_t PlaceholderSet::BestFit(int32_t node_class, const CpuMemory& size) const {
  if (static_cast<size_t>(node_class) >= by_room_.size()) return kNoNode;
  const absl::btree_set<Room>& rooms = by_room_[static_cast<size_t>(node_class)];
  for (auto at = rooms.lower_bound(Room(size.cpu, 0, "", 0)); at != rooms.end(); ++at) {
    if (FitsOn(std::get<3>(*at), size)) return std::get<3>(*at);
  }
  return kNoNode;
}

int64_t PlaceholderSet::PlaceBack(const PlaceholderGroup& group, std::span<const int32_t> classes) {
  const Members* const members = Find(group);
  if (members == nullptr) return 0;
  const std::vector<int64_t> waiting(members->unplaced.begin(), members->unplaced.end());
  int64_t placed = 0;
  for (const int64_t id : waiting) {
    const std::string& name = ItemOf(id).placeholder.last_node;
    const size_t last = name.empty() ? kNoNode : Find(name);
    if (last == kNoNode || !FitsOn(last, group.size)) continue;
    if (std::find(classes.begin(), classes.end(), nodes_[last].content.node_class) == classes.end()) continue;
    Attach(id, last);
    ++placed;
  }
  return placed;
}

int64_t PlaceholderSet::Place(const PlaceholderGroup& group, std::span<const int32_t> classes) {
  const Members* const members = Find(group);
  if (members == nullptr || members->unplaced.empty()) return 0;
  // Placeholders that have a place to return to are first, so that others do not take it.
  int64_t placed = PlaceBack(group, classes);
  const std::vector<int64_t> waiting(members->unplaced.begin(), members->unplaced.end());
  size_t from = 0;  // what no node of a class takes, none will take for the next one either
  for (const int64_t id : waiting) {
    size_t node = kNoNode;
    while (from < classes.size() && (node = BestFit(classes[from], group.size)) == kNoNode) ++from;
    if (node == kNoNode) break;
    Attach(id, node);
    ++placed;
  }
  return placed;
}

std::optional<int64_t> PlaceholderSet::RemovedFor(size_t node, const CpuMemory& size,
                                                  const CpuMemory& removed, int64_t there) const {
  const Node& at = nodes_[node];
  for (int64_t count = 0; count <= there; ++count) {
    const CpuMemory taken = Minus(at.taken, Times(removed, count));
    if (at.slots + count > 0 && Within(Plus(size, Plus(at.content.real, taken)), at.content.allocatable)) {
      return count;
    }
  }
  return std::nullopt;
}

PlaceholderSet::Replaced PlaceholderSet::PlaceInstead(const PlaceholderGroup& wanted,
                                                      const PlaceholderGroup& excess, int64_t most,
                                                      std::span<const int32_t> classes) {
  Replaced done;
  const Members* const there = Find(excess);
  if (there == nullptr) return done;
  absl::btree_map<size_t, std::vector<int64_t>> by_node;
  for (const int64_t id : there->ids) {
    const size_t node = ItemOf(id).node;
    if (node == kNoNode) continue;
    const int32_t node_class = nodes_[node].content.node_class;
    if (std::find(classes.begin(), classes.end(), node_class) != classes.end()) by_node[node].push_back(id);
  }
  absl::btree_set<std::tuple<int64_t, std::string, size_t>> order;  // how many have to be removed, name, node
  const auto add = [&](size_t node) {
    const std::optional<int64_t> count =
        RemovedFor(node, wanted.size, excess.size, std::ssize(by_node.at(node)));
    if (count.has_value()) order.emplace(*count, nodes_[node].content.name, node);
  };
  for (const auto& [node, ids] : by_node) add(node);
  while (!order.empty() && !Find(wanted)->unplaced.empty()) {
    const auto [count, name, node] = *order.begin();
    if (count > most - done.removed) break;
    order.erase(order.begin());
    std::vector<int64_t>& ids = by_node.at(node);
    for (int64_t i = 0; i < count; ++i) {
      Remove(ids.back());
      ids.pop_back();
    }
    Attach(*Find(wanted)->unplaced.begin(), node);
    done.removed += count;
    ++done.placed;
    add(node);
  }
  return done;
}

const PlaceholderSet::Members* PlaceholderSet::Find(const PlaceholderGroup& group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : &found->second;
}

std::vector<Placeholder> PlaceholderSet::Export() const {
  std::vector<Placeholder> all;
  all.reserve(items_.size());
  for (const auto& [id, item] : items_) all.push_back(item.placeholder);
  return all;
}

}  // namespace loadline
