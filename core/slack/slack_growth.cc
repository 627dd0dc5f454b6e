#include "core/slack/slack_growth.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace loadline {
namespace {

// The most placeholders of a size that fit into what is free.
int64_t MaxThatFit(const CpuMemory& free, int64_t slots, const CpuMemory& size) {
  int64_t count = std::max<int64_t>(0, slots);
  if (size.cpu > 0) count = std::min(count, free.cpu / size.cpu);
  if (size.memory > 0) count = std::min(count, free.memory / size.memory);
  return count;
}

// New nodes of one size, filled alike.
struct Bucket {
  CpuMemory free;
  int64_t slots;
  int64_t nodes;
};

// Returns the number of empty nodes that take all of these, the largest first; each size fits an empty node.
int64_t NodesFor(const EmptyNode& empty, std::span<const AskedPlaceholders> placeholders) {
  std::vector<Bucket> buckets;
  int64_t nodes = 0;
  for (const AskedPlaceholders& asked : placeholders) {
    int64_t left = asked.count;
    // Fills so many nodes with `each`, and one more with the rest.
    const auto fill = [&](const Bucket& from, int64_t each) {
      const int64_t taken = std::min(left, each * std::min(from.nodes, left / each + 1));
      const auto with = [&](int64_t count, int64_t of_nodes) {
        if (of_nodes == 0) return;
        buckets.push_back({Minus(from.free, Times(asked.group.size, count)), from.slots - count, of_nodes});
      };
      with(each, taken / each);
      with(taken % each, taken % each > 0 ? 1 : 0);
      left -= taken;
      return taken / each + (taken % each > 0 ? 1 : 0);
    };
    for (size_t i = 0, end = buckets.size(); i < end && left > 0; ++i) {
      const Bucket from = buckets[i];
      const int64_t each = MaxThatFit(from.free, from.slots, asked.group.size);
      if (each == 0) continue;
      const int64_t used = fill(from, each);
      buckets[i].nodes -= used;
    }
    if (left > 0) {
      const Bucket fresh{empty.room, empty.slots, std::numeric_limits<int64_t>::max()};
      nodes += fill(fresh, MaxThatFit(empty.room, empty.slots, asked.group.size));
    }
    std::erase_if(buckets, [](const Bucket& bucket) { return bucket.nodes <= 0; });
  }
  return nodes;
}

void DropEmpty(std::vector<AskedPlaceholders>* placeholders) {
  std::erase_if(*placeholders, [](const AskedPlaceholders& asked) { return asked.count == 0; });
}

}  // namespace

GrowthSketch::GrowthSketch(std::vector<GrowableNodes> growable, SlackRanking ranking,
                           std::optional<int64_t> max_new_nodes)
    : growable_(std::move(growable)), ranking_(std::move(ranking)), left_in_all_(max_new_nodes) {
  std::sort(growable_.begin(), growable_.end(), [](const GrowableNodes& a, const GrowableNodes& b) {
    return std::tie(a.empty.room.cpu, a.empty.room.memory, a.class_name, a.name, a.group) <
           std::tie(b.empty.room.cpu, b.empty.room.memory, b.class_name, b.name, b.group);
  });
  added_.resize(growable_.size(), 0);
  taken_.resize(growable_.size());
}

void GrowthSketch::AddComing(size_t position, const EmptyNode& room) {
  nodes_.push_back({position, room.room, room.slots});
  ++coming_;
}

size_t GrowthSketch::AddNode(size_t position) {
  ++added_[position];
  if (left_in_all_.has_value()) --*left_in_all_;
  nodes_.push_back({position, growable_[position].empty.room, growable_[position].empty.slots});
  return nodes_.size() - 1;
}

bool GrowthSketch::FitsOn(size_t node, const CpuMemory& size) const {
  return nodes_[node].slots > 0 && Within(size, nodes_[node].free);
}

void GrowthSketch::TakeRoom(size_t node, const CpuMemory& room, int64_t slots) {
  nodes_[node].free = Minus(nodes_[node].free, room);
  nodes_[node].slots -= slots;
}

void GrowthSketch::Take(size_t node, const PlaceholderGroup& group, int64_t count) {
  TakeRoom(node, Times(group.size, count), count);
  if (node >= coming_) taken_[nodes_[node].position][group] += count;
}

std::vector<size_t> GrowthSketch::Ranked(const Allowed& allowed,
                                         std::span<const AskedPlaceholders> placeholders) const {
  std::vector<size_t> positions;
  std::vector<SlackOption> options;
  for (size_t i = 0; i < growable_.size(); ++i) {
    const EmptyNode& empty = growable_[i].empty;
    if (!allowed[i] || !MayAdd(i)) continue;
    if (!std::all_of(placeholders.begin(), placeholders.end(), [&](const AskedPlaceholders& asked) {
          return MaxThatFit(empty.room, empty.slots, asked.group.size) > 0;
        })) {
      continue;
    }
    positions.push_back(i);
    options.push_back({growable_[i].group, NodesFor(empty, placeholders),
                       std::vector<AskedPlaceholders>(placeholders.begin(), placeholders.end())});
  }
  std::vector<size_t> order(options.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (ranking_ != nullptr && !options.empty()) {
    order = ranking_(options);
  } else {
    const auto cost = [&](size_t i) {
      const std::optional<double>& price = growable_[positions[i]].usd_per_hour;
      return std::make_tuple(!price.has_value(), price.value_or(0) * static_cast<double>(options[i].nodes),
                             i);
    };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const std::optional<int64_t>& left = growable_[positions[a]].priority;
      const std::optional<int64_t>& right = growable_[positions[b]].priority;
      return left != right ? left > right : cost(a) < cost(b);
    });
  }
  std::vector<size_t> ranked;
  for (const size_t i : order) ranked.push_back(positions[i]);
  return ranked;
}

void GrowthSketch::FillPlanned(const Allowed& allowed, AskedPlaceholders* asked, WorkBudget* budget) {
  constexpr size_t kNodesPerUnit = 32;
  if (!budget->Spend(static_cast<int64_t>(1 + nodes_.size() / kNodesPerUnit))) return;
  for (size_t node = 0; node < nodes_.size() && asked->count > 0; ++node) {
    if (!allowed[nodes_[node].position]) continue;
    const int64_t count =
        std::min(asked->count, MaxThatFit(nodes_[node].free, nodes_[node].slots, asked->group.size));
    if (count == 0) continue;
    Take(node, asked->group, count);
    asked->count -= count;
  }
}

void GrowthSketch::FillNew(size_t position, AskedPlaceholders* asked, WorkBudget* budget) {
  while (asked->count > 0 && MayAdd(position) && budget->Spend()) {
    const size_t node = AddNode(position);
    const int64_t count =
        std::min(asked->count, MaxThatFit(nodes_[node].free, nodes_[node].slots, asked->group.size));
    Take(node, asked->group, count);
    asked->count -= count;
  }
}

int64_t GrowthSketch::Ask(const Allowed& allowed, std::vector<AskedPlaceholders> placeholders,
                          WorkBudget* budget) {
  // The largest first: a late one gets what is left over.
  std::sort(placeholders.begin(), placeholders.end(),
            [](const AskedPlaceholders& a, const AskedPlaceholders& b) {
              const CpuMemory &x = a.group.size, &y = b.group.size;
              return std::tie(y.cpu, y.memory, a.group) < std::tie(x.cpu, x.memory, b.group);
            });
  const auto rank = [&](std::span<const AskedPlaceholders> asked) -> std::optional<size_t> {
    if (!budget->Spend(static_cast<int64_t>(growable_.size() + nodes_.size()) + 1)) return std::nullopt;
    const std::vector<size_t> ranked = Ranked(allowed, asked);
    return ranked.empty() ? std::nullopt : std::optional<size_t>(ranked.front());
  };
  for (AskedPlaceholders& asked : placeholders) FillPlanned(allowed, &asked, budget);
  DropEmpty(&placeholders);
  // Each turn an option is used up, or all have found a node.
  while (!placeholders.empty()) {
    const std::optional<size_t> position = rank(placeholders);
    if (!position.has_value()) break;
    GrowthSketch::Allowed only(growable_.size(), false);
    only[*position] = true;
    for (AskedPlaceholders& asked : placeholders) {
      FillPlanned(only, &asked, budget);
      FillNew(*position, &asked, budget);
    }
    DropEmpty(&placeholders);
  }
  int64_t left = 0;
  for (AskedPlaceholders& asked : placeholders) {
    FillPlanned(allowed, &asked, budget);
    while (asked.count > 0) {
      const std::optional<size_t> position = rank(std::span(&asked, 1));
      if (!position.has_value()) break;
      FillNew(*position, &asked, budget);
    }
    left += asked.count;
  }
  return left;
}

std::vector<SlackDemand> GrowthSketch::demands() const {
  absl::btree_map<std::string, SlackDemand> by_class;
  absl::btree_map<std::string, absl::btree_map<PlaceholderGroup, int64_t>> taken;
  for (size_t i = 0; i < growable_.size(); ++i) {
    if (added_[i] == 0) continue;
    SlackDemand& demand = by_class[growable_[i].class_name];
    demand.class_name = growable_[i].class_name;
    demand.nodes += added_[i];
    if (growable_[i].group.has_value()) demand.groups.push_back({*growable_[i].group, added_[i]});
    for (const auto& [group, count] : taken_[i]) taken[demand.class_name][group] += count;
  }
  std::vector<SlackDemand> demands;
  for (auto& [name, demand] : by_class) {
    for (const auto& [group, count] : taken[name]) demand.placeholders.push_back({group, count});
    std::sort(demand.groups.begin(), demand.groups.end(),
              [](const NewNodesOfGroup& a, const NewNodesOfGroup& b) { return a.group < b.group; });
    demands.push_back(std::move(demand));
  }
  return demands;
}

}  // namespace loadline
