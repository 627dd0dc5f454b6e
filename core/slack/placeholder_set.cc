#include "core/slack/placeholder_set.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace loadline {

PushedOut PushOut(const SlackNode& node, std::span<const Placeholder> placeholders,
                  std::span<const size_t> on_node) {
  CpuMemory sum = node.real;
  int64_t slots = node.free_slots;
  for (const size_t i : on_node) {
    sum = Plus(sum, placeholders[i].size);
    --slots;
  }
  std::vector<size_t> order(on_node.begin(), on_node.end());
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Placeholder &x = placeholders[a], &y = placeholders[b];
    return x.mirrored != y.mirrored ? y.mirrored : x.id > y.id;
  });
  PushedOut out;
  for (const size_t i : order) {
    if (Within(sum, node.allocatable) && slots >= 0) break;
    sum = Minus(sum, placeholders[i].size);
    ++slots;
    out.pushed.push_back(i);
  }
  out.over = !Within(node.real, node.allocatable);
  return out;
}

std::optional<size_t> PlaceReal(const CpuMemory& pod, std::vector<SlackNode>* nodes) {
  std::optional<size_t> best;
  CpuMemory best_left;
  for (size_t i = 0; i < nodes->size(); ++i) {
    const SlackNode& node = (*nodes)[i];
    const CpuMemory sum = Plus(node.real, pod);
    if (node.free_slots <= 0 || !Within(sum, node.allocatable)) continue;
    const CpuMemory left = Minus(node.allocatable, sum);
    if (best.has_value() && std::tie(left.cpu, left.memory) >= std::tie(best_left.cpu, best_left.memory))
      continue;
    best = i;
    best_left = left;
  }
  if (best.has_value()) {
    (*nodes)[*best].real = Plus((*nodes)[*best].real, pod);
    --(*nodes)[*best].free_slots;
  }
  return best;
}

PlaceholderSet::PlaceholderSet(std::vector<SlackNode> nodes, std::vector<Placeholder> placeholders)
    : nodes_(std::move(nodes)), taken_(nodes_.size()), placeholders_(std::move(placeholders)) {
  std::sort(placeholders_.begin(), placeholders_.end(),
            [](const Placeholder& a, const Placeholder& b) { return a.id < b.id; });
  for (const SlackNode& node : nodes_) slots_.push_back(node.free_slots);
  node_of_.assign(placeholders_.size(), kNoNode);
  std::vector<std::vector<size_t>> on_node(nodes_.size());
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    if (placeholders_[i].node.empty()) continue;
    const size_t node = Find(placeholders_[i].node);
    if (node == kNoNode) {
      placeholders_[i].node.clear();
      continue;
    }
    Attach(i, node);
    on_node[node].push_back(i);
  }
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const PushedOut out = PushOut(nodes_[node], placeholders_, on_node[node]);
    for (const size_t i : out.pushed) Detach(i);
    if (out.over) overcommitted_.push_back(nodes_[node].name);
  }
}

size_t PlaceholderSet::Find(const std::string& node) const {
  const auto found =
      std::lower_bound(nodes_.begin(), nodes_.end(), node,
                       [](const SlackNode& a, const std::string& name) { return a.name < name; });
  return found != nodes_.end() && found->name == node ? static_cast<size_t>(found - nodes_.begin()) : kNoNode;
}

CpuMemory PlaceholderSet::Free(size_t node) const {
  return Minus(nodes_[node].allocatable, Plus(nodes_[node].real, taken_[node]));
}

bool PlaceholderSet::FitsOn(size_t node, const CpuMemory& size) const {
  return slots_[node] > 0 &&
         Within(Plus(size, Plus(nodes_[node].real, taken_[node])), nodes_[node].allocatable);
}

void PlaceholderSet::Attach(size_t position, size_t node) {
  Placeholder& placeholder = placeholders_[position];
  node_of_[position] = node;
  placeholder.node = placeholder.last_node = nodes_[node].name;
  taken_[node] = Plus(taken_[node], placeholder.size);
  --slots_[node];
}

void PlaceholderSet::Detach(size_t position) {
  const size_t node = node_of_[position];
  taken_[node] = Minus(taken_[node], placeholders_[position].size);
  ++slots_[node];
  node_of_[position] = kNoNode;
  placeholders_[position].node.clear();
}

std::vector<size_t> PlaceholderSet::TrimOrder() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    if (!placeholders_[i].mirrored) order.push_back(i);
  }
  // By cpu and then memory of the real pods there, so that the emptiest nodes may drain.
  const auto key = [&](size_t i) {
    const size_t node = node_of_[i];
    const bool placed = node != kNoNode;
    const CpuMemory real = placed ? nodes_[node].real : CpuMemory{};
    return std::make_tuple(placed, real.cpu, real.memory, placed ? node : 0, -placeholders_[i].id);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

void PlaceholderSet::Erase(std::vector<size_t> positions) {
  std::sort(positions.begin(), positions.end());
  for (const size_t i : positions) {
    if (node_of_[i] != kNoNode) Detach(i);
  }
  std::vector<Placeholder> kept;
  std::vector<size_t> nodes;
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    if (std::binary_search(positions.begin(), positions.end(), i)) continue;
    kept.push_back(std::move(placeholders_[i]));
    nodes.push_back(node_of_[i]);
  }
  placeholders_ = std::move(kept);
  node_of_ = std::move(nodes);
}

void PlaceholderSet::Remove(size_t position) { Erase({position}); }

void PlaceholderSet::TrimTo(int64_t count) {
  std::vector<size_t> order = TrimOrder();
  const int64_t excess = static_cast<int64_t>(order.size()) - count;
  if (excess <= 0) return;
  order.resize(static_cast<size_t>(excess));
  Erase(std::move(order));
}

void PlaceholderSet::TrimDown(const CpuMemory& most) {
  CpuMemory sum = StandardSum();
  std::vector<size_t> trimmed;
  if (Within(sum, most)) return;
  for (const size_t i : TrimOrder()) {
    if (Within(sum, most)) break;
    const CpuMemory& size = placeholders_[i].size;
    // One that has none of what is too much would be missed for nothing.
    if ((sum.cpu <= most.cpu || size.cpu == 0) && (sum.memory <= most.memory || size.memory == 0)) continue;
    sum = Minus(sum, size);
    trimmed.push_back(i);
  }
  Erase(std::move(trimmed));
}

void PlaceholderSet::Add(int64_t count, const CpuMemory& size, bool mirrored, int64_t* next_id) {
  for (int64_t i = 0; i < count; ++i) {
    Placeholder placeholder;
    placeholder.id = (*next_id)++;
    placeholder.size = size;
    placeholder.mirrored = mirrored;
    placeholders_.push_back(std::move(placeholder));
    node_of_.push_back(kNoNode);
  }
}

void PlaceholderSet::Place() {
  std::vector<size_t> waiting;
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    if (node_of_[i] != kNoNode) continue;
    waiting.push_back(i);
  }
  if (waiting.empty()) return;
  std::sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) {
    const Placeholder &x = placeholders_[a], &y = placeholders_[b];
    if (x.mirrored != y.mirrored) return x.mirrored;
    if (x.size.cpu != y.size.cpu) return x.size.cpu > y.size.cpu;
    if (x.size.memory != y.size.memory) return x.size.memory > y.size.memory;
    return x.id < y.id;
  });
  // Nodes by what is left: the tightest that is enough comes first.
  const auto key = [&](size_t node) {
    const CpuMemory free = Free(node);
    return std::make_tuple(free.cpu, free.memory, node);
  };
  std::set<std::tuple<int64_t, int64_t, size_t>> by_room;
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (slots_[node] > 0) by_room.insert(key(node));
  }
  const auto put = [&](size_t i, size_t node) {
    by_room.erase(key(node));
    Attach(i, node);
    if (slots_[node] > 0) by_room.insert(key(node));
  };
  const CpuMemory* refused = nullptr;  // what did not fit anywhere will not fit for its like either
  for (const size_t i : waiting) {
    const Placeholder& placeholder = placeholders_[i];
    const CpuMemory size = placeholder.size;
    const size_t last = placeholder.last_node.empty() ? kNoNode : Find(placeholder.last_node);
    if (last != kNoNode && FitsOn(last, size)) {
      put(i, last);
      continue;
    }
    if (refused != nullptr && *refused == size) continue;
    auto at = by_room.lower_bound(std::make_tuple(size.cpu, int64_t{0}, size_t{0}));
    while (at != by_room.end() && !FitsOn(std::get<2>(*at), size)) ++at;
    if (at == by_room.end()) {
      refused = &placeholder.size;
    } else {
      put(i, std::get<2>(*at));
    }
  }
}

CpuMemory PlaceholderSet::StandardSum() const {
  CpuMemory sum;
  for (const Placeholder& placeholder : placeholders_) {
    if (!placeholder.mirrored) sum = Plus(sum, placeholder.size);
  }
  return sum;
}

}  // namespace loadline
