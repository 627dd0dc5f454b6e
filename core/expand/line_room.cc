#include "core/expand/line_room.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/amount.h"

namespace loadline {

LineRoom::LineRoom(Snapshot* snapshot, const FitOptions* options, const std::vector<PendingPods>* pods)
    : snapshot_(*snapshot),
      line_(options->load_line),
      sums_(snapshot->SumLimits(options->load_line.sums)),
      pods_(pods->size()) {
  limits_.reserve(pods->size() * resources());
  for (const PendingPods& entry : *pods) {
    for (size_t r = 0; r < resources(); ++r) limits_.push_back(sums_->LimitOfPod(entry.pod.shape, r));
  }
}

int64_t LineRoom::FreeOn(NodeIndex node, size_t resource) const {
  const NodeShape& shape = snapshot_.node_shape(node);
  const int64_t ceiling = LimitCeiling(LineOn(line_, resource, shape.labels), AllocatableOf(shape, resource));
  // A pod that counts as nothing is placed also where nothing is left.
  return static_cast<int64_t>(std::max<absl::int128>(0, ceiling - sums_->sum(node, resource)));
}

LineRoom::Columns LineRoom::ForNode(const RoomColumns& base, const NodeShape& node,
                                    WorkBudget* budget) const {
  Columns result;
  result.memory = std::make_unique<ReservedMemory>(budget, base.BytesWith(resources()));
  if (!result.memory->ok()) return result;
  result.columns = base.With(resources(), [&](size_t pods, size_t column) {
    return Counted(pods, column, AllocatableOf(node, column));
  });
  return result;
}

void LineRoom::AddFree(NodeIndex node, std::vector<int64_t>* free) const {
  for (size_t r = 0; r < resources(); ++r) free->push_back(FreeOn(node, r));
}

// Returns amounts that nodes offer of the resource, those together that share a column, ascending.
std::vector<std::vector<int64_t>> LineRoom::GroupSizes(const std::vector<const NodeShape*>& nodes,
                                                       size_t resource) const {
  std::vector<int64_t> sizes;
  for (const NodeShape* const node : nodes) sizes.push_back(AllocatableOf(*node, resource));
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<std::vector<int64_t>> groups;
  const auto differ = [&](int64_t a, int64_t b) {
    for (size_t pods = 0; pods < pods_; ++pods) {
      if (Counted(pods, resource, a) != Counted(pods, resource, b)) return true;
    }
    return false;
  };
  for (const int64_t size : sizes) {
    if (groups.empty() || differ(groups.back().back(), size)) groups.emplace_back();
    groups.back().push_back(size);
  }
  while (groups.size() > kMostColumns) {
    // The two neighbours that are nearest to each other.
    size_t nearest = 1;
    const auto factor = [&](size_t i) {
      return static_cast<double>(groups[i].back()) /
             static_cast<double>(std::max<int64_t>(1, groups[i - 1][0]));
    };
    for (size_t i = 2; i < groups.size(); ++i) nearest = factor(i) < factor(nearest) ? i : nearest;
    groups[nearest - 1].insert(groups[nearest - 1].end(), groups[nearest].begin(), groups[nearest].end());
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(nearest));
  }
  return groups;
}

LineRoom::Shared LineRoom::ForNodes(const RoomColumns& base, const std::vector<const NodeShape*>& nodes,
                                    bool relaxed, WorkBudget* budget) const {
  Shared shared;
  shared.column_of.resize(nodes.size());
  std::vector<std::pair<size_t, std::vector<int64_t>>> columns;  // resource; amounts that nodes offer
  for (size_t r = 0; r < resources(); ++r) {
    const size_t first = columns.size();
    for (std::vector<int64_t>& sizes : GroupSizes(nodes, r)) columns.push_back({r, std::move(sizes)});
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int64_t size = AllocatableOf(*nodes[i], r);
      size_t column = first;
      while (columns[column].second.back() < size) ++column;
      shared.column_of[i].push_back(column);
    }
  }
  shared.further = columns.size();
  shared.memory = std::make_unique<ReservedMemory>(budget, base.BytesWith(columns.size()));
  if (!shared.memory->ok()) return shared;
  // The amount that a pod counts as does not fall where a node offers more.
  shared.columns = base.With(columns.size(), [&](size_t pods, size_t column) {
    const auto& [resource, sizes] = columns[column];
    return Counted(pods, resource, relaxed ? sizes.front() : sizes.back());
  });
  return shared;
}

void LineRoom::AddFree(const Shared& shared, size_t shape, NodeIndex node, std::vector<int64_t>* free) const {
  const size_t first = free->size();
  free->resize(first + shared.further, kMaxAmount);
  for (size_t r = 0; r < resources(); ++r) (*free)[first + shared.column_of[shape][r]] = FreeOn(node, r);
}

}  // namespace loadline
