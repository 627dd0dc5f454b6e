#include "core/expand/estimate.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/expand/estimate_by_count.h"
#include "core/expand/estimate_on_snapshot.h"
#include "core/expand/line_room.h"
#include "core/expand/room.h"
#include "core/fit/filters.h"
#include "core/fit/unmet_affinity.h"

namespace loadline {
namespace {

double Share(const ResourceAmounts& request, const ResourceAmounts& allocatable, ResourceId resource) {
  const int64_t offered = allocatable.Get(resource);
  if (offered <= 0) return 0;
  return static_cast<double>(request.Get(resource)) / static_cast<double>(offered);
}

// The shares of the work that the pods get before they are looked at.
class Portions {
 public:
  Portions(WorkBudget* budget, size_t turns) : budget_(budget), turns_(turns) {}

  // Returns the portion of the next turn: an equal share of what is left, but at least a sixteenth of it.
  // Chosen: where groups are many, the first ones get enough to be finished.
  WorkPortion Next() {
    constexpr double kMost = 1.0 / 16;
    const double part = turns_ > 1 ? 1 / static_cast<double>(turns_--) : 1;
    return WorkPortion(budget_, std::max(part, kMost));
  }

 private:
  WorkBudget* budget_;
  size_t turns_;
};

// Positions of the pods in the order in which they are looked at. Those with many rules come last, so that
// they take nothing that others need; of all others those of a higher priority are first, and of one priority
// each namespace has its first one looked at, then its second.
std::vector<size_t> FairOrder(const std::vector<PendingPods>& pods) {
  constexpr size_t kFewRules = 32;
  absl::flat_hash_map<std::pair<int64_t, absl::string_view>, size_t> turns;
  std::vector<std::tuple<size_t, int64_t, size_t>> keys;  // rules if these are many, priority, turn
  std::vector<size_t> order;
  for (const PendingPods& entry : pods) {
    const PodShape& shape = entry.pod.shape;
    const size_t rules = shape.rules == nullptr ? 0 : shape.rules->CountTerms();
    const int64_t priority = TraitsOf(shape).priority;
    const size_t turn = entry.count > 0 ? turns[{priority, shape.namespace_name}]++ : 0;
    keys.emplace_back(rules <= kFewRules ? 0 : rules, -priority, turn);
    order.push_back(order.size());
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace

std::vector<size_t> EstimationOrder(const ResourceAmounts& allocatable,
                                    const std::vector<PendingPods>& pods) {
  std::vector<double> size;
  std::vector<size_t> order;
  for (const PendingPods& entry : pods) {
    const ResourceAmounts& requests = entry.pod.shape.requests;
    size.push_back(Share(requests, allocatable, kCpu) + Share(requests, allocatable, kMemory));
    order.push_back(order.size());
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (size[a] != size[b]) return size[a] > size[b];
    const PodShape& left = pods[a].pod.shape;
    const PodShape& right = pods[b].pod.shape;
    if (left.namespace_name != right.namespace_name) return left.namespace_name < right.namespace_name;
    if (left.fingerprint != right.fingerprint) return left.fingerprint < right.fingerprint;
    return a < b;
  });
  return order;
}

Estimator::Estimator(Snapshot* snapshot, const FitOptions* fit, std::vector<PendingPods> pods,
                     std::vector<IncomingPod> daemons, WorkBudget* budget, EstimateMode mode)
    : snapshot_(*snapshot),
      options_(*fit),
      pods_(std::move(pods)),
      mode_(mode),
      existing_(snapshot, fit),
      fresh_(FitSearch::OfNewNodes(snapshot, fit)) {
  WorkPortion half(budget, 0.5);
  Prepare(std::move(daemons), budget);
}

Estimator::~Estimator() = default;

void Estimator::Prepare(std::vector<IncomingPod> daemons, WorkBudget* budget) {
  const auto waits = [&](size_t pods) { return pods_[pods].count > 0; };
  std::vector<size_t> order = FairOrder(pods_);
  const auto first_without = std::stable_partition(order.begin(), order.end(), waits);
  searches_.resize(pods_.size());
  if (first_without != order.end()) {
    // Entries without a pod, such as those of others whose turn it is not, cost nothing: they share one
    // place.
    IncomingPod nothing;
    nothing.names = pods_[*first_without].pod.names;
    const Searches shared = {existing_.Add(nothing, budget), fresh_.Add(nothing, budget), true};
    for (auto pods = first_without; pods != order.end(); ++pods) searches_[*pods] = shared;
    order.erase(first_without, order.end());
  }
  Portions portions(budget, 2 * (daemons.size() + order.size()));
  for (IncomingPod& pod : daemons) {
    const WorkPortion portion = portions.Next();
    daemons_.push_back(std::make_unique<PodFit>(&snapshot_, std::move(pod), &options_, budget));
    Note(*daemons_.back(), *budget);
  }
  for (const size_t pods : order) {
    const WorkPortion portion = portions.Next();
    const IncomingPod& pod = pods_[pods].pod;
    Searches& search = searches_[pods];
    // Both share one portion: a pod that has a place is known to fresh_, by whose shape it is placed.
    search.fresh = fresh_.Add(pod, budget);
    search.existing = existing_.Add(pod, budget);
    Note(fit(pods), *budget);
  }
  // Only now the snapshot knows the affinity terms of all of them.
  for (const size_t pods : order) {
    const WorkPortion portion = portions.Next();
    Searches& search = searches_[pods];
    existing_.fit(search.existing).Refresh(budget);
    fit(pods).Refresh(budget);
    Note(fit(pods), *budget);
    search.only_needs_room = fit(pods).OnlyNeedsRoom();
    // A pod that is not looked at keeps nobody from being counted.
    all_only_need_room_ = all_only_need_room_ && (search.only_needs_room || fit(pods).CutShort());
    if (fit(pods).CutShort()) cut_off_.push_back(pods);
  }
  std::sort(cut_off_.begin(), cut_off_.end());
  for (const auto& daemon : daemons_) {
    const WorkPortion portion = portions.Next();
    daemon->Refresh(budget);
    Note(*daemon, *budget);
  }
}

// To be called while the portion of the pod holds.
void Estimator::Note(const PodFit& fit, const WorkBudget& budget) {
  if (fit.CutShort() && cut_short_by_ == BudgetEnd::kNotEnded) cut_short_by_ = budget.end();
}

// Nodes of trials that ended leave their names to those of the next: counts keep an entry for each hostname
// that there ever was, which for many trials would be more than for the cluster.
NodeIndex Estimator::AddBareCopy(const NodeGroup& group) {
  while (!copies_.empty() && !snapshot_.Contains(copies_.back())) copies_.pop_back();
  const std::string name = absl::StrCat(group.name, "/new-", copies_.size() + 1);
  return copies_.emplace_back(AddNodeOf(*group.model, name, &snapshot_));
}

NodeIndex Estimator::AddCopy(const NodeGroup& group, TrialMemory* memory) {
  const NodeIndex index = AddBareCopy(group);
  for (size_t i = 0; i < group.model->static_pods.size(); ++i) memory->Pod(1);
  for (const auto& daemon : daemons_) {
    if (!memory->Pod(daemon->UnitsPerNode())) break;
    if (daemon->Fits(index)) snapshot_.PlacePod(index, daemon->shape());
  }
  return index;
}

void Estimator::Place(size_t pods, NodeIndex node) { snapshot_.PlacePod(node, fit(pods).shape()); }

std::vector<ExistingUse> Estimator::UseExistingRoom(WorkBudget* budget) {
  // The whole cluster replaces a template: only the order of pods by size counts.
  ResourceAmounts sum;
  for (const PendingPods& entry : pods_) AddTo(sum, entry.pod.shape.requests);
  std::vector<size_t> order = EstimationOrder(sum, pods_);
  // kube-scheduler gives this room to pods of a higher priority first.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return TraitsOf(pods_[a].pod.shape).priority > TraitsOf(pods_[b].pod.shape).priority;
  });
  std::vector<ExistingUse> uses;
  for (const size_t pods : order) {
    PodFit& fit = existing_.fit(searches_[pods].existing);
    const bool only_needs_room = OnlyNeedsRoom(pods);
    int64_t& left = pods_[pods].count;
    while (left > 0 && budget->Spend() && budget->Reserve(TrialMemory::kPodBytes)) {
      const std::optional<NodeIndex> node = existing_.FirstFit(searches_[pods].existing, budget);
      if (!node.has_value()) break;
      ExistingUse use{*node, {static_cast<int32_t>(pods), 0}};
      do {
        Place(pods, *node);
        ++use.pods.count;
        --left;
      } while (left > 0 && only_needs_room && fit.FitsByItself(*node) && budget->Spend() &&
               budget->Reserve(TrialMemory::kPodBytes));
      uses.push_back(use);
    }
  }
  return uses;
}

bool Estimator::MakeColumns(WorkBudget* budget) {
  if (columns_ != nullptr) return true;
  std::vector<const IncomingPod*> pods;
  for (const PendingPods& entry : pods_) pods.push_back(&entry.pod);
  columns_ = RoomColumns::Make(pods, options_, budget);
  if (!options_.load_line.empty() && columns_ != nullptr)
    line_room_ = std::make_unique<LineRoom>(&snapshot_, &options_, &pods_);
  return columns_ != nullptr;
}

NodeEstimate Estimator::EstimateCounted(const NodeGroup& group, std::vector<size_t> order,
                                        NodeLimiter limiter, WorkBudget* budget) {
  CountedEstimateInput input;
  TrialMemory memory(budget);
  const NodeIndex copy = AddCopy(group, &memory);
  input.columns = &columns();
  input.free = columns().FreeOn(snapshot_, copy);
  LineRoom::Columns with_line;
  if (line_room_ != nullptr) {
    with_line = line_room_->ForNode(columns(), group.model->shape, budget);
    if (with_line.columns == nullptr) {
      NodeEstimate nothing;
      nothing.placed.resize(pods_.size());
      nothing.end = EstimateEnd::kBudget;
      return nothing;
    }
    input.columns = with_line.columns.get();
    line_room_->AddFree(copy, &input.free);
  }
  for (size_t i = 0; i < pods_.size(); ++i) {
    input.admitted.push_back(fit(i).Fits(copy));
    input.counts.push_back(pods_[i].count);
  }
  input.order = std::move(order);
  input.mode = mode_;
  return EstimateByCount(input, limiter, budget);
}

std::string TextOf(const PodRefusal& refusal) {
  const std::string reasons = absl::StrJoin(refusal.verdict.reasons, "; ");
  if (refusal.verdict.judgement == Judgement::kCannotJudge)
    return absl::StrCat("cannot be judged: ", reasons);
  if (!refusal.unmet.empty()) return absl::StrCat(reasons, ": ", refusal.unmet);
  if (!refusal.daemons_in_the_way) return reasons;
  // A client may leave out the name.
  const bool named = !refusal.daemon.empty() && !refusal.daemon.ends_with('/');
  return absl::StrCat(reasons, " beside the pods of DaemonSets that each new node has",
                      named ? absl::StrCat(", such as ", refusal.daemon) : "");
}

std::vector<PodRefusal> Estimator::Refusals(const NodeGroup& group, const std::vector<int64_t>& placed,
                                            WorkBudget* budget) {
  std::vector<PodRefusal> refusals;
  TrialMemory memory(budget);
  if (!memory.Node(snapshot_)) return refusals;
  snapshot_.Fork();
  const NodeIndex node = AddCopy(group, &memory);
  for (size_t pods = 0; pods < pods_.size(); ++pods) {
    if (placed[pods] >= pods_[pods].count) continue;
    if (!budget->Spend(2 * fit(pods).UnitsPerNode())) break;
    Verdict verdict = fit(pods).Judge(node);
    if (verdict.judgement == Judgement::kFits) continue;
    PodRefusal& refusal = refusals.emplace_back(PodRefusal{pods, std::move(verdict)});
    const PodShape& shape = pods_[pods].pod.shape;
    if (refusal.verdict.filter == FilterName::kTaintToleration)
      refusal.unmet = UntoleratedTaint(shape, snapshot_.node_shape(node));
    if (refusal.verdict.filter == FilterName::kNodeAffinity && shape.rules != nullptr)
      refusal.unmet = UnmetAffinity(*shape.rules, snapshot_.labels(node));
  }
  snapshot_.Revert();
  NameDaemons(group, budget, &refusals);
  return refusals;
}

// Adds daemons to a new node one by one, until the filters refuse the pods that refuse them beside all
// daemons and not without any. Another filter may refuse them either way.
void Estimator::NameDaemons(const NodeGroup& group, WorkBudget* budget, std::vector<PodRefusal>* refusals) {
  if (daemons_.empty() || refusals->empty()) return;
  snapshot_.Fork();
  const NodeIndex bare = AddBareCopy(group);
  const auto refuses = [&](const PodRefusal& refusal) {
    const Verdict verdict = fit(refusal.pods).Judge(bare);
    return verdict.judgement != Judgement::kFits && verdict.filter == refusal.verdict.filter;
  };
  std::vector<PodRefusal*> open;
  for (PodRefusal& refusal : *refusals) {
    refusal.daemons_in_the_way = !refuses(refusal);
    if (refusal.daemons_in_the_way) open.push_back(&refusal);
  }
  for (size_t i = 0; i < daemons_.size() && !open.empty(); ++i) {
    int64_t units = daemons_[i]->UnitsPerNode();
    for (const PodRefusal* const refusal : open) units += fit(refusal->pods).UnitsPerNode();
    if (!budget->Spend(units)) break;
    if (!daemons_[i]->Fits(bare)) continue;
    snapshot_.PlacePod(bare, daemons_[i]->shape());
    const IncomingPod& daemon = daemons_[i]->pod();
    std::erase_if(open, [&](PodRefusal* refusal) {
      if (!refuses(*refusal)) return false;
      refusal->daemon = absl::StrCat(daemon.shape.namespace_name, "/", daemon.name);
      return true;
    });
  }
  snapshot_.Revert();
}

NodeEstimate Estimator::Estimate(const NodeGroup& group, NodeLimiter limiter, WorkBudget* budget,
                                 std::vector<PodRefusal>* refusals) {
  NodeEstimate estimate;
  // The pods are ordered, and each is looked at.
  constexpr size_t kPodsPerUnit = 4;
  if (!budget->Spend(1 + static_cast<int64_t>(pods_.size() / kPodsPerUnit)) ||
      (all_only_need_room_ && !MakeColumns(budget))) {
    estimate.placed.resize(pods_.size());
    estimate.end = EstimateEnd::kBudget;
    return estimate;
  }
  const std::vector<size_t> order = EstimationOrder(group.model->shape.allocatable, pods_);
  snapshot_.Fork();
  if (all_only_need_room_) {
    estimate = EstimateCounted(group, order, limiter, budget);
  } else {
    SnapshotEstimate by_placement(this, &snapshot_, group, limiter, budget);
    estimate =
        mode_ == EstimateMode::kExact ? by_placement.Exact(order) : by_placement.ClusterAutoscaler(order);
  }
  if (refusals != nullptr) *refusals = Refusals(group, estimate.placed, budget);
  snapshot_.Revert();
  fresh_.StartOver();
  if (mode_ == EstimateMode::kClusterAutoscaler) {
    std::vector<NodeIndex> used;
    for (const ExistingUse& use : estimate.existing) used.push_back(use.node);
    std::sort(used.begin(), used.end());
    estimate.nodes += std::unique(used.begin(), used.end()) - used.begin();
  }
  return estimate;
}

}  // namespace loadline
