#include "core/consolidate/node_room.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace loadline {
namespace {

// The number of nodes that share one maximum of free room. Chosen: a search passes over 64 nodes by one
// comparison, and a change looks at 64 at most.
constexpr size_t kBlock = 64;
constexpr int64_t kNothing = std::numeric_limits<int64_t>::min();

size_t BlocksFor(size_t nodes) { return (nodes + kBlock - 1) / kBlock; }

}  // namespace

NodeRoom::NodeRoom(const Snapshot& snapshot, std::vector<ResourceId> resources,
                   std::optional<ResourceId> pods)
    : snapshot_(snapshot), resources_(std::move(resources)), pods_(pods) {}

std::vector<int64_t> NodeRoom::FreeOn(NodeIndex node) const {
  std::vector<int64_t> row(width());
  ReadInto(node, row.data());
  return row;
}

void NodeRoom::ReadInto(NodeIndex node, int64_t* row) const {
  if (!snapshot_.Placeable(node)) {
    std::fill(row, row + width(), kNothing);
    return;
  }
  for (size_t i = 0; i < resources_.size(); ++i) row[i] = snapshot_.amount(node, resources_[i]).free;
  const int64_t slots = pods_.has_value() ? snapshot_.amount(node, *pods_).allocatable : 0;
  row[resources_.size()] = slots - static_cast<int64_t>(snapshot_.pods(node).size());
}

void NodeRoom::SetOrder(std::vector<NodeIndex> order) {
  order_ = std::move(order);
  position_.assign(static_cast<size_t>(snapshot_.node_end()), 0);
  hidden_.assign(position_.size(), false);
  free_.assign(order_.size() * width(), 0);
  changed_.assign(BlocksFor(order_.size()), false);
  most_.assign(changed_.size() * width(), kNothing);
  for (size_t i = 0; i < order_.size(); ++i) {
    position_[order_[i]] = i;
    ReadInto(order_[i], &free_[i * width()]);
  }
  for (size_t block = 0; block * kBlock < order_.size(); ++block) Recompute(block);
}

void NodeRoom::Read(NodeIndex node) {
  if (!position_.Contains(node)) {
    position_.push_back(order_.size());
    hidden_.push_back(false);
    order_.push_back(node);
    free_.resize(order_.size() * width());
    changed_.resize(BlocksFor(order_.size()));
    most_.resize(changed_.size() * width(), kNothing);
  }
  const size_t at = position_[node];
  int64_t* const row = &free_[at * width()];
  ReadInto(node, row);
  if (hidden_[node]) std::fill(row, row + width(), kNothing);
  changed_[at / kBlock] = true;
  int64_t* const most = &most_[at / kBlock * width()];
  for (size_t i = 0; i < width(); ++i) most[i] = std::max(most[i], row[i]);
}

void NodeRoom::Hide(NodeIndex node) {
  hidden_[node] = true;
  Read(node);
}

void NodeRoom::Forget(NodeIndex node_end) {
  const size_t end = IndexOf(node_end);
  if (position_.size() <= end) return;
  order_.resize(order_.size() - (position_.size() - end));
  position_.resize(end);
  hidden_.resize(end);
  free_.resize(order_.size() * width());
  changed_.resize(BlocksFor(order_.size()));
  if (!changed_.empty()) changed_.back() = true;
  most_.resize(changed_.size() * width());
}

size_t NodeRoom::Next(std::span<const int64_t> request, size_t from) {
  for (size_t position = from; position < order_.size();) {
    const size_t block = position / kBlock;
    const size_t block_end = std::min(order_.size(), (block + 1) * kBlock);
    if (!MayHave(block, request)) {
      position = block_end;
      continue;
    }
    for (size_t i = position; i < block_end; ++i) {
      if (HasRoom(i, request)) return i;
    }
    if (position == block * kBlock && changed_[block]) Recompute(block);
    position = block_end;
  }
  return order_.size();
}

bool NodeRoom::HasRoom(size_t position, std::span<const int64_t> request) const {
  const int64_t* const row = &free_[position * width()];
  for (size_t i = 0; i < width(); ++i) {
    // A request of 0 is not checked: nodes that are overfull in that resource take it.
    if (request[i] > 0 ? row[i] < request[i] : row[i] == kNothing) return false;
  }
  return true;
}

bool NodeRoom::MayHave(size_t block, std::span<const int64_t> request) const {
  const int64_t* const most = &most_[block * width()];
  for (size_t i = 0; i < width(); ++i) {
    if (request[i] > 0 && most[i] < request[i]) return false;
  }
  return true;
}

void NodeRoom::Recompute(size_t block) {
  changed_[block] = false;
  int64_t* const most = &most_[block * width()];
  std::fill(most, most + width(), kNothing);
  const size_t end = std::min(order_.size(), (block + 1) * kBlock);
  for (size_t position = block * kBlock; position < end; ++position) {
    for (size_t i = 0; i < width(); ++i) most[i] = std::max(most[i], free_[position * width() + i]);
  }
}

}  // namespace loadline
