#include "core/slack/slack_growth.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace loadline {
namespace {

// How many of a size fit into what is free.
int64_t HowMany(const CpuMemory& free, int64_t slots, const CpuMemory& size) {
  int64_t count = std::max<int64_t>(0, slots);
  if (size.cpu > 0) count = std::min(count, free.cpu / size.cpu);
  if (size.memory > 0) count = std::min(count, free.memory / size.memory);
  return count;
}

}  // namespace

GrowthSketch::GrowthSketch(std::vector<GrowableClass> classes) : classes_(std::move(classes)) {
  std::sort(classes_.begin(), classes_.end(), [](const GrowableClass& a, const GrowableClass& b) {
    return std::tie(a.empty.room.cpu, a.empty.room.memory, a.name) <
           std::tie(b.empty.room.cpu, b.empty.room.memory, b.name);
  });
  added_.resize(classes_.size(), 0);
  taken_.resize(classes_.size());
}

void GrowthSketch::AddComing(size_t position, const EmptyNode& room) {
  nodes_.push_back({position, room.room, room.slots});
  ++coming_;
}

size_t GrowthSketch::AddNode(size_t position) {
  ++added_[position];
  nodes_.push_back({position, classes_[position].empty.room, classes_[position].empty.slots});
  return nodes_.size() - 1;
}

bool GrowthSketch::FitsOn(size_t node, const CpuMemory& size) const {
  return nodes_[node].slots > 0 && Within(size, nodes_[node].free);
}

void GrowthSketch::Take(size_t node, const PlaceholderGroup& group, int64_t count) {
  nodes_[node].free = Minus(nodes_[node].free, Times(group.size, count));
  nodes_[node].slots -= count;
  if (node >= coming_) taken_[nodes_[node].position][group] += count;
}

std::optional<size_t> GrowthSketch::SmallestFor(const std::string& family,
                                                std::span<const AskedPlaceholders> placeholders) const {
  for (size_t i = 0; i < classes_.size(); ++i) {
    const EmptyNode& empty = classes_[i].empty;
    if (classes_[i].family != family || !MayAdd(i)) continue;
    if (std::all_of(placeholders.begin(), placeholders.end(), [&](const AskedPlaceholders& asked) {
          return HowMany(empty.room, empty.slots, asked.group.size) > 0;
        })) {
      return i;
    }
  }
  return std::nullopt;
}

void GrowthSketch::FillComing(const std::string& family, AskedPlaceholders* asked) {
  for (size_t node = 0; node < coming_ && asked->count > 0; ++node) {
    if (classes_[nodes_[node].position].family != family) continue;
    const int64_t count =
        std::min(asked->count, HowMany(nodes_[node].free, nodes_[node].slots, asked->group.size));
    Take(node, asked->group, count);
    asked->count -= count;
  }
}

void GrowthSketch::Fill(size_t position, AskedPlaceholders* asked) {
  for (size_t node = 0; asked->count > 0; ++node) {
    if (node == nodes_.size()) {
      if (!MayAdd(position)) return;
      AddNode(position);
    }
    if (nodes_[node].position != position) continue;
    const int64_t count =
        std::min(asked->count, HowMany(nodes_[node].free, nodes_[node].slots, asked->group.size));
    if (count == 0) continue;
    Take(node, asked->group, count);
    asked->count -= count;
  }
}

int64_t GrowthSketch::Ask(const std::string& family, std::vector<AskedPlaceholders> placeholders) {
  // The largest first: what comes late finds what is left over.
  std::sort(placeholders.begin(), placeholders.end(),
            [](const AskedPlaceholders& a, const AskedPlaceholders& b) {
              const CpuMemory &x = a.group.size, &y = b.group.size;
              return std::tie(y.cpu, y.memory, a.group) < std::tie(x.cpu, x.memory, b.group);
            });
  for (AskedPlaceholders& asked : placeholders) FillComing(family, &asked);
  std::erase_if(placeholders, [](const AskedPlaceholders& asked) { return asked.count == 0; });
  // Each turn a class is used up, or all have found a node.
  while (!placeholders.empty()) {
    const std::optional<size_t> position = SmallestFor(family, placeholders);
    if (!position.has_value()) break;
    for (AskedPlaceholders& asked : placeholders) Fill(*position, &asked);
    std::erase_if(placeholders, [](const AskedPlaceholders& asked) { return asked.count == 0; });
  }
  int64_t left = 0;
  for (AskedPlaceholders& asked : placeholders) {
    while (asked.count > 0) {
      const std::optional<size_t> position = SmallestFor(family, std::span(&asked, 1));
      if (!position.has_value()) break;
      Fill(*position, &asked);
    }
    left += asked.count;
  }
  return left;
}

std::vector<SlackDemand> GrowthSketch::demands() const {
  std::vector<SlackDemand> demands;
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (added_[i] == 0) continue;
    SlackDemand& demand = demands.emplace_back();
    demand.class_name = classes_[i].name;
    demand.nodes = added_[i];
    for (const auto& [group, count] : taken_[i]) demand.placeholders.push_back({group, count});
  }
  std::sort(demands.begin(), demands.end(),
            [](const SlackDemand& a, const SlackDemand& b) { return a.class_name < b.class_name; });
  return demands;
}

}  // namespace loadline
