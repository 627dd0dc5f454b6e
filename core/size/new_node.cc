#include "core/size/new_node.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/scoped_fork.h"
#include "core/fit/pod_fit.h"

namespace loadline {
namespace {

// The work of one judgement, in units of about 100 ns. Estimated: a microsecond.
constexpr int64_t kJudgement = 10;
// The work of preparing a pod to be judged, in the same units. Estimated.
constexpr int64_t kPreparation = 100;

NodeIndex AddNewNode(const std::string& group, const NodeShape& shape, Snapshot* snapshot) {
  NewNode node;
  node.name = absl::StrCat(group, "/sized");
  node.hostname = node.name;
  node.shape = shape;
  return snapshot->AddNode(std::move(node));
}

// A node has many pods of few shapes.
std::vector<bool> PlaceholderShapes(const Snapshot& snapshot) {
  std::vector<bool> placeholders(static_cast<size_t>(snapshot.pod_shape_end()));
  for (int32_t shape = 0; shape < snapshot.pod_shape_end(); ++shape) {
    placeholders[static_cast<size_t>(shape)] = TraitsOf(snapshot.pod_shape(shape)).placeholder;
  }
  return placeholders;
}

// Position of the newest node of a group that is untainted, and there.
std::optional<size_t> NewestAtWork(const GatheredGroup& gathered, const Snapshot& snapshot) {
  std::optional<size_t> newest;
  const std::vector<GroupNode>& nodes = gathered.facts.nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].node_class != NodeClass::kUntainted) continue;
    if (newest.has_value() && nodes[i].created_ms <= nodes[*newest].created_ms) continue;
    if (snapshot.FindSlot(gathered.slots[i]).has_value()) newest = i;
  }
  return newest;
}

// Finds out whether one of the pods starves; nullopt: work ended before it was known.
class Starving {
 public:
  Starving(Snapshot* snapshot, const FitOptions& options, const ResourceNames& names, WorkBudget* budget)
      : snapshot_(*snapshot),
        options_(options),
        names_(names),
        budget_(*budget),
        placeholders_(PlaceholderShapes(*snapshot)) {}

  std::optional<bool> Any(const SizedGroup& group, const GatheredGroup& gathered,
                          std::span<const WaitingPods> waiting) {
    const std::optional<size_t> newest = NewestAtWork(gathered, snapshot_);
    if (!newest.has_value()) return false;
    const ScopedFork supposed(&snapshot_);
    RemovePlaceholders(gathered.slots);
    for (const int32_t position : gathered.may_starve) {
      const PodShape& pod = waiting[static_cast<size_t>(position)].shape;
      const std::optional<bool> fits = FitsOneAtWork(pod, gathered);
      if (!fits.has_value()) return std::nullopt;
      if (!*fits && WouldFit(pod, group, *snapshot_.FindSlot(gathered.slots[*newest]))) return true;
      if (budget_.ended()) return std::nullopt;
    }
    return false;
  }

 private:
  std::unique_ptr<PodFit> Prepare(const PodShape& shape) {
    IncomingPod pod;
    pod.shape = shape;
    pod.names = names_;
    auto fit = std::make_unique<PodFit>(&snapshot_, std::move(pod), &options_, &budget_);
    fit->Refresh(&budget_);
    return fit;
  }

  void RemovePlaceholders(std::span<const Slot> slots) {
    if (std::find(placeholders_.begin(), placeholders_.end(), true) == placeholders_.end()) return;
    for (const Slot slot : slots) {
      const std::optional<NodeIndex> node = snapshot_.FindSlot(slot);
      if (!node.has_value()) continue;
      // From the end: the last pod takes the place of a removed one.
      for (size_t i = snapshot_.pods(*node).size(); i-- > 0;) {
        const size_t shape = static_cast<size_t>(snapshot_.pods(*node)[i].shape);
        if (shape < placeholders_.size() && placeholders_[shape]) snapshot_.RemovePod(*node, i);
      }
    }
  }

  std::optional<bool> FitsOneAtWork(const PodShape& shape, const GatheredGroup& gathered) {
    if (!budget_.Spend(kPreparation)) return std::nullopt;
    const std::unique_ptr<PodFit> fit = Prepare(shape);
    for (size_t i = 0; i < gathered.slots.size(); ++i) {
      if (gathered.facts.nodes[i].node_class != NodeClass::kUntainted) continue;
      const std::optional<NodeIndex> node = snapshot_.FindSlot(gathered.slots[i]);
      if (!node.has_value()) continue;
      if (!budget_.Spend(kJudgement * fit->UnitsPerNode())) return std::nullopt;
      if (fit->Fits(*node)) return true;
    }
    return false;
  }

  bool WouldFit(const PodShape& shape, const SizedGroup& group, NodeIndex newest) {
    const ScopedFork supposed(&snapshot_);
    // A copy: the new node may move the shapes.
    const NodeShape like = WithCsiNodeOf(snapshot_.node_shape(newest), snapshot_.name(newest));
    const NodeIndex node = AddNewNode(group.name, like, &snapshot_);
    const std::span<const SnapshotPod> there = snapshot_.pods(newest);
    const std::vector<SnapshotPod> pods(there.begin(), there.end());
    for (const SnapshotPod& pod : pods) {
      if (BelongsToNode(snapshot_.pod_shape(pod.shape), snapshot_.objects()))
        snapshot_.PlacePod(node, pod.shape);
    }
    return Prepare(shape)->Fits(node);
  }

  Snapshot& snapshot_;
  const FitOptions& options_;
  const ResourceNames& names_;
  WorkBudget& budget_;
  const std::vector<bool> placeholders_;  // by shape; none becomes known later
};

}  // namespace

void MeasureDaemons(Snapshot* snapshot, const FitOptions& options, std::span<const IncomingPod> daemons,
                    std::span<SizedGroup> groups, WorkBudget* budget) {
  if (daemons.empty()) return;
  const ScopedFork supposed(snapshot);
  std::vector<std::unique_ptr<PodFit>> fits;
  for (const IncomingPod& daemon : daemons) {
    if (!budget->Spend(kPreparation)) return;
    fits.push_back(std::make_unique<PodFit>(snapshot, daemon, &options, budget));
  }
  for (const std::unique_ptr<PodFit>& fit : fits) fit->Refresh(budget);
  for (SizedGroup& group : groups) {
    if (!group.new_node.has_value()) continue;
    const NodeIndex node = AddNewNode(group.name, *group.new_node, snapshot);
    for (const std::unique_ptr<PodFit>& fit : fits) {
      if (!budget->Spend(kJudgement)) return;
      if (!fit->Fits(node)) continue;
      snapshot->PlacePod(node, fit->shape());
      const ResourceAmounts& requests = fit->pod().shape.requests;
      group.new_node_daemons = Plus(group.new_node_daemons, {requests.Get(kCpu), requests.Get(kMemory)});
    }
  }
}

void FindStarving(Snapshot* snapshot, const FitOptions& options, std::span<const SizedGroup> groups,
                  std::span<const WaitingPods> waiting, const ResourceNames& names, WorkBudget* budget,
                  std::span<GatheredGroup> gathered) {
  Starving starving(snapshot, options, names, budget);
  for (size_t i = 0; i < groups.size(); ++i) {
    if (gathered[i].may_starve.empty()) continue;
    const std::optional<bool> any = starving.Any(groups[i], gathered[i], waiting);
    gathered[i].facts.starved = any.value_or(false);
    gathered[i].starving_unknown = !any.has_value();
  }
}

}  // namespace loadline
