#include "core/drain/drain_call.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/node_kind.h"
#include "core/drain/being_deleted.h"

namespace loadline {
namespace {

// Evictions that nothing else tells of yet: a pod that is terminating or gone is no longer among the ready
// ones.
std::vector<AcceptedEviction> AcceptedEvictions(const ClusterState& cluster,
                                                std::span<const RecentEviction> recent) {
  std::vector<AcceptedEviction> evictions;
  for (const RecentEviction& eviction : recent) {
    const std::optional<Slot> slot = cluster.Find(eviction.node);
    if (!slot.has_value()) continue;
    const NodePods& pods = cluster.pods(*slot);
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      if (pods.name(i) != eviction.name || pods.uid(i) != eviction.uid) continue;
      const PodShape& shape = cluster.pod_shapes()[pods.pods()[i].shape];
      if (!TraitsOf(shape).deleted_s.has_value()) evictions.push_back({eviction.name, eviction.shape});
    }
  }
  return evictions;
}

std::vector<std::vector<PodRef>> PlaceholdersBySlot(const DrainProblem& problem) {
  std::vector<std::vector<PodRef>> on;
  if (problem.placeholders.empty()) return on;
  on.resize(static_cast<size_t>(problem.cluster->slot_end()));
  for (size_t i = 0; i < problem.placeholders.size(); ++i) {
    if (const std::optional<Slot> slot = problem.cluster->Find(problem.placeholders[i].node)) {
      on[IndexOf(*slot)].push_back(PodRef::Placeholder(i));
    }
  }
  return on;
}

}  // namespace

DrainCall::DrainCall(const DrainProblem& problem, const DrainOptions& options, const DrainState& state,
                     WorkBudget* work)
    : deleting(NodesBeingDeleted(*problem.cluster, state.deleting, problem.now_s)),
      budgets(*problem.cluster, AcceptedEvictions(*problem.cluster, state.recent_evictions), work),
      judge(*problem.cluster, budgets, options.rules, problem.now_s),
      limits(problem.groups, options.minimum),
      problem_(problem),
      options_(options),
      work_(work),
      has_recent_evictions_(!state.recent_evictions.empty()),
      placeholders_on_(PlaceholdersBySlot(problem)) {}

void DrainCall::SetNodes(const Snapshot& snapshot, std::span<const FormerEntry> formers,
                         std::span<const Slot> order) {
  nodes_.clear();
  judged_.assign(static_cast<size_t>(cluster().slot_end()), {});
  for (int32_t i = 0; i < snapshot.node_end(); ++i) {
    if (!snapshot.Contains(NodeIndex{i})) continue;
    const Slot slot = snapshot.slot(NodeIndex{i});
    nodes_.push_back(slot);
    JudgedNode& node = judged(slot);
    node.node = NodeIndex{i};
    node.group = problem_.group_of[slot];
    if (node.group.has_value() && !problem_.groups.Contains(*node.group)) node.group.reset();
  }
  for (const Slot slot : deleting) judged(slot).being_deleted = true;
  SortNodes(order);
  for (const FormerEntry& entry : formers) {
    const std::optional<Slot> slot =
        entry.intact.has_value() ? entry.intact->slot : cluster().Find(entry.former.node);
    if (slot.has_value()) judged(*slot).former = true;
  }
}

// The nodes that were there before keep their order, unless slots have other nodes now.
void DrainCall::SortNodes(std::span<const Slot> order) {
  std::vector<bool> left(static_cast<size_t>(cluster().slot_end()), false);
  for (const Slot slot : nodes_) left[IndexOf(slot)] = true;
  std::vector<Slot> sorted;
  sorted.reserve(nodes_.size());
  const auto take = [&](Slot slot) {
    if (IndexOf(slot) >= left.size() || !left[IndexOf(slot)]) return;
    left[IndexOf(slot)] = false;
    sorted.push_back(slot);
  };
  for (const Slot slot : order) take(slot);
  const auto known = static_cast<std::ptrdiff_t>(sorted.size());
  for (const Slot slot : nodes_) take(slot);
  const auto by_name = [&](Slot a, Slot b) { return name(a) < name(b); };
  const auto middle = std::is_sorted(sorted.begin(), sorted.begin() + known, by_name) ? sorted.begin() + known
                                                                                      : sorted.begin();
  if (!std::is_sorted(middle, sorted.end(), by_name)) std::sort(middle, sorted.end(), by_name);
  std::inplace_merge(sorted.begin(), middle, sorted.end(), by_name);
  nodes_ = std::move(sorted);
}

void DrainCall::Note(Slot slot, NodeReason reason, std::optional<PodRef> pod) {
  JudgedNode& node = judged(slot);
  node.reason = reason;
  node.pod = pod;
  node.pod_reason = PodReason::kNone;
  node.budget = BudgetRefusal::kNone;
}

CpuMemory DrainCall::AllocatableOf(Slot slot) const {
  const ResourceAmounts& allocatable = cluster().node_shape(slot).allocatable;
  return {allocatable.Get(kCpu), allocatable.Get(kMemory)};
}

NodeOffer DrainCall::OfferOf(Slot slot) const {
  const ClusterMinimum& minimum = options_.minimum;
  if (minimum.amounts.cpu <= 0 && minimum.amounts.memory <= 0 && minimum.gpus.empty()) return {};
  const NodeShape& shape = cluster().node_shape(slot);
  if (minimum.gpus.empty()) return {shape.allocatable.Get(kCpu), shape.allocatable.Get(kMemory)};
  return loadline::OfferOf(shape, cluster().resource_names(), options_.eligibility.utilization.gpu_labels);
}

bool DrainCall::CountsForMinimum(Slot slot) const {
  return judged(slot).group.has_value() || cluster().traits(slot).kind != NodeKind::kVirtual;
}

const NodeGroup* DrainCall::GroupOf(Slot slot) const {
  const std::optional<GroupIndex> group = judged(slot).group;
  return group.has_value() ? &problem_.groups[*group] : nullptr;
}

std::optional<Slot> DrainCall::Find(const FormerNode& former) const {
  const std::optional<Slot> slot = cluster().Find(former.node);
  if (!slot.has_value()) return std::nullopt;
  const std::string& uid = cluster().traits(*slot).uid;
  if (!uid.empty() && !former.uid.empty() && uid != former.uid) return std::nullopt;
  return slot;
}

std::span<const PodRef> DrainCall::PlaceholdersOn(Slot slot) const {
  if (IndexOf(slot) >= placeholders_on_.size()) return {};
  return placeholders_on_[IndexOf(slot)];
}

std::string DrainCall::TextOf(Slot slot, PodRef pod) const {
  if (pod.is_placeholder()) {
    const DrainPlaceholder& of = placeholder(pod);
    return absl::StrCat("placeholder/", of.name, "/", absl::Hex(of.pod->shape.fingerprint));
  }
  const NodePods& pods = cluster().pods(slot);
  const absl::string_view uid = pods.uid(pod.position());
  if (!uid.empty()) return std::string(uid);
  const PodShape& shape = cluster().pod_shapes()[pods.pods()[pod.position()].shape];
  return absl::StrCat(shape.namespace_name, "/", pods.name(pod.position()));
}

uint64_t DrainCall::KeyOf(Slot slot, PodRef pod) const {
  if (!pod.is_placeholder()) {
    const absl::string_view uid = cluster().pods(slot).uid(pod.position());
    if (!uid.empty()) return KeyOfText(uid);
  }
  return KeyOfText(TextOf(slot, pod));
}

absl::flat_hash_map<uint64_t, PodRef> DrainCall::PodsByKey(Slot slot) const {
  absl::flat_hash_map<uint64_t, PodRef> pods;
  const auto add = [&](PodRef pod) { pods.try_emplace(KeyOf(slot, pod), pod); };
  const size_t end = cluster().pods(slot).pods().size();
  for (size_t i = 0; i < end; ++i) add(PodRef::Pod(i));
  for (const PodRef placeholder : PlaceholdersOn(slot)) add(placeholder);
  return pods;
}

uint64_t DrainCall::KeyOfText(absl::string_view text) { return absl::HashOf(text); }

}  // namespace loadline
