#include "core/consolidate/trial_cluster.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/labels.h"
#include "core/cluster/leaving.h"
#include "core/cluster/pod_role.h"
#include "core/cluster/pod_rules.h"
#include "core/fit/filters.h"
#include "core/pack/fill.h"

namespace loadline {
namespace {

bool HasEphemeralVolume(const PodShape& shape) {
  return shape.rules != nullptr &&
         std::any_of(shape.rules->volumes.begin(), shape.rules->volumes.end(),
                     [](const PodVolume& volume) { return volume.kind == VolumeKind::kEphemeral; });
}

}  // namespace

TrialCluster::TrialCluster(Snapshot* snapshot, const ConsolidationProblem& problem,
                           const ConsolidationOptions& options, WorkBudget* budget)
    : snapshot_(*snapshot),
      problem_(problem),
      options_(options),
      budget_(budget),
      sizes_(SizesBeforeMoves()) {
  RemoveExpendablePods(&snapshot_);
  nodes_.resize(static_cast<size_t>(snapshot_.node_end()));
  dearer_.resize(problem_.groups.size());
  for (size_t i = 0; i < problem_.nodes.size(); ++i) {
    const ConsolidationNode& entry = problem_.nodes[i];
    const std::optional<NodeIndex> node = snapshot_.FindSlot(entry.slot);
    if (!node.has_value()) continue;
    TrialNode& known = nodes_[*node];
    known.group = entry.group;
    known.usd = entry.usd_per_hour.value_or(0);
    if (entry.group.has_value()) AddKind(*entry.group, entry.slot, &known);
    known.age_hours = entry.age_hours;
    known.may_go = entry.may_go && entry.group.has_value() && entry.usd_per_hour.has_value();
    known.problem = i;
    AddMovers(*node, entry);
    if (entry.leaving) {
      snapshot_.MarkLeaving(*node);
    } else if (!entry.takes_pods) {
      snapshot_.CloseNode(*node);
    }
  }
  for (const NodeGroup& group : problem_.groups) group_nodes_.push_back(group.target);
  node_count_ = problem_.cluster->node_count();
  search_ = std::make_unique<FitSearch>(&snapshot_, &options_.fit);
  MakeColumns();
  MakeTemplates();
}

void TrialCluster::AddKind(GroupIndex group, Slot slot, TrialNode* node) {
  const NodeGroup& of = problem_.groups[group];
  const PricedKind* const other = OtherKindOf(of, slot);
  if (other != nullptr ? other->node.spot : of.priced.spot) node->spot_usd = node->usd;
  const bool dearer = other != nullptr && other->price.source != PriceSource::kNodeAnnotation &&
                      other->price.price > UsdOf(of);
  dearer_[group] += dearer ? 1 : -1;
}

MinimumSizes TrialCluster::SizesBeforeMoves() const {
  MinimumSizes sizes(problem_.groups, problem_.minimum);
  for (const ConsolidationNode& node : problem_.nodes) {
    const std::optional<GroupIndex> group = node.started ? node.group : std::nullopt;
    const bool counts = node.group.has_value() || node.kind != NodeKind::kVirtual;
    if (!counts || !problem_.cluster->Occupied(node.slot)) continue;
    sizes.AddNode(group, OfferOf(problem_.cluster->node_shape(node.slot)), node.leaving);
  }
  return sizes;
}

NodeOffer TrialCluster::OfferOf(const NodeShape& shape) const {
  const ClusterMinimum& minimum = problem_.minimum;
  if (minimum.amounts.cpu <= 0 && minimum.amounts.memory <= 0 && minimum.gpus.empty()) return {};
  return loadline::OfferOf(shape, problem_.cluster->resource_names(), problem_.gpu_labels);
}

NodeOffer TrialCluster::OfferOf(NodeIndex node) const {
  const TrialNode& known = nodes_[node];
  if (known.is_new) return OfferOf(*known.group);
  return OfferOf(problem_.cluster->node_shape(problem_.nodes[*known.problem].slot));
}

void TrialCluster::CountRemoved(NodeIndex node) {
  --group_nodes_[*nodes_[node].group];
  sizes_.Remove(*nodes_[node].group, OfferOf(node));
}

void TrialCluster::CountAdded(NodeIndex node) {
  ++group_nodes_[*nodes_[node].group];
  sizes_.Restore(*nodes_[node].group, OfferOf(node));
}

MinimumReached TrialCluster::MinimumReachedBy(const std::vector<NodeIndex>& removed,
                                              const std::vector<NodeIndex>& added) {
  MinimumReached reached = MinimumReached::kNone;
  for (const NodeIndex node : added) sizes_.Restore(*nodes_[node].group, OfferOf(node));
  for (const NodeIndex node : removed) {
    reached = std::max(reached, sizes_.Reached(*nodes_[node].group, OfferOf(node)));
    sizes_.Remove(*nodes_[node].group, OfferOf(node));
  }
  for (const NodeIndex node : removed) sizes_.Restore(*nodes_[node].group, OfferOf(node));
  for (const NodeIndex node : added) sizes_.Remove(*nodes_[node].group, OfferOf(node));
  return reached;
}

void TrialCluster::AddMovers(NodeIndex node, const ConsolidationNode& entry) {
  const NodePods& pods = problem_.cluster->pods(entry.slot);
  TrialNode& known = nodes_[node];
  for (const LeavingPod& pod : entry.pods) {
    if (!known.may_go) {
      // Room that is kept on a node that stays is taken from it.
      if (!pod.placeholder) continue;
      const KeptRoom& kept = problem_.placeholders[static_cast<size_t>(pod.position)];
      snapshot_.PlacePod(node, snapshot_.InternShape(kept.pod.shape));
      continue;
    }
    const MoverIndex number = movers_.end_index();
    Mover& mover = movers_.emplace_back();
    const size_t position = static_cast<size_t>(pod.position);
    int32_t shape = 0;
    if (pod.placeholder) {
      const KeptRoom& kept = problem_.placeholders[position];
      shape = snapshot_.InternShape(kept.pod.shape);
      mover.name = kept.name;
      snapshot_.PlacePod(node, shape);
    } else {
      shape = snapshot_.ShapeOf(pods.pods()[position].shape);
      mover.name = pods.name(position);
      mover.uid = pods.uid(position);
    }
    mover.kind = KindOf(shape, HasEphemeralVolume(snapshot_.pod_shape(shape)));
    mover.home = mover.node = node;
    mover.pod = pod;
    known.movers.push_back(number);
    MoverKind& kind = kinds_[mover.kind];
    if (kind.count++ == 0) kind.first_mover = number;
  }
}

MoverKindIndex TrialCluster::KindOf(int32_t shape, bool by_name) {
  if (static_cast<size_t>(shape) >= kind_of_shape_.size()) {
    kind_of_shape_.resize(static_cast<size_t>(snapshot_.pod_shape_end()));
  }
  std::optional<MoverKindIndex>& known = kind_of_shape_[static_cast<size_t>(shape)];
  if (known.has_value() && !by_name) return *known;
  known = kinds_.end_index();
  MoverKind& kind = kinds_.emplace_back();
  kind.shape = shape;
  kind.by_name = by_name;
  return *known;
}

IncomingPod TrialCluster::PodOf(const MoverKind& kind) const {
  IncomingPod pod;
  pod.shape = snapshot_.pod_shape(kind.shape);
  pod.names = problem_.cluster->resource_names();
  return pod;
}

void TrialCluster::MakeColumns() {
  std::set<ResourceId> resources;
  std::vector<std::vector<CheckedRequest>> checked;
  for (const MoverKind& kind : kinds_) {
    if (!budget_->Spend()) break;
    for (const CheckedRequest& entry : checked.emplace_back(CheckedRequests(PodOf(kind), options_.fit))) {
      resources.insert(entry.id);
    }
  }
  std::vector<ResourceId> columns(resources.begin(), resources.end());
  const size_t width = columns.size() + 1;
  for (const MoverKindIndex k : kinds_.indices()) {
    MoverKind& kind = kinds_[k];
    kind.request.assign(width, 0);
    kind.request.back() = 1;
    if (IndexOf(k) >= checked.size()) {
      kind.hopeless = true;
      continue;
    }
    for (const CheckedRequest& entry : checked[IndexOf(k)]) {
      const auto at = std::lower_bound(columns.begin(), columns.end(), entry.id);
      kind.request[static_cast<size_t>(at - columns.begin())] = entry.value;
    }
  }
  room_ = std::make_unique<NodeRoom>(snapshot_, std::move(columns),
                                     problem_.cluster->resource_names().Find("pods"));
}

void TrialCluster::MakeTemplates() {
  templates_.resize(problem_.groups.size());
  std::vector<std::unique_ptr<PodFit>> daemons;
  for (const IncomingPod& pod : problem_.daemons) {
    if (!budget_->Spend(10)) break;
    daemons.push_back(std::make_unique<PodFit>(&snapshot_, pod, &options_.fit, budget_));
  }
  for (const GroupIndex group : templates_.indices()) {
    if (!HasNewNodes(problem_.groups[group])) continue;
    if (!budget_->Spend(static_cast<int64_t>(10 + daemons.size()))) return;
    auto made = std::make_unique<TrialTemplate>();
    snapshot_.Fork();
    const std::string name = absl::StrCat("consolidate-", IndexOf(group));
    const NodeIndex copy = AddNodeOf(*problem_.groups[group].model, name, &snapshot_);
    for (const std::unique_ptr<PodFit>& daemon : daemons) {
      daemon->Refresh(budget_);
      if (daemon->Hopeless() || !daemon->FitsByItself(copy)) continue;
      snapshot_.PlacePod(copy, daemon->shape());
      made->daemons.push_back(daemon->shape());
    }
    made->free = room_->FreeOn(copy);
    snapshot_.Revert();
    templates_[group] = std::move(made);
  }
}

double TrialCluster::WorthOf(NodeIndex node) const {
  double worth = 0;
  for (const MoverIndex mover : nodes_[node].movers) worth += KindOf(mover).worth;
  return worth;
}

double TrialCluster::WorthOfRoom(std::span<const int64_t> free) const {
  double worth = 0;
  for (size_t i = 0; i < prices_.size(); ++i) {
    worth += prices_[i] * static_cast<double>(std::max<int64_t>(0, free[i]));
  }
  return worth;
}

double TrialCluster::EfficiencyOf(GroupIndex group) const {
  const double usd = UsdOf(problem_.groups[group]);
  if (templates_[group] == nullptr) return 0;
  return usd > 0 ? WorthOfRoom(templates_[group]->free) / usd : 1;
}

double TrialCluster::EfficiencyOf(NodeIndex node) const {
  const double usd = nodes_[node].usd;
  return usd > 0 ? (WorthOfRoom(room_->FreeOn(node)) + WorthOf(node)) / usd : 1;
}

bool TrialCluster::Prepare(MoverKindIndex number) {
  MoverKind& kind = kinds_[number];
  if (kind.hopeless) return false;
  if (!kind.handle.has_value()) {
    IncomingPod pod = PodOf(kind);
    if (kind.by_name) {
      const Mover& mover = movers_[kind.first_mover];
      pod.name.assign(mover.name.data(), mover.name.size());
      pod.uid.assign(mover.uid.data(), mover.uid.size());
    }
    kind.handle = search_->Add(std::move(pod), budget_);
  }
  PodFit& fit = search_->fit(*kind.handle);
  fit.Refresh(budget_);
  kind.only_room = fit.OnlyNeedsRoom();
  if (fit.Hopeless()) kind.hopeless = true;
  return !kind.hopeless;
}

NodeIndex TrialCluster::AddToSnapshot(GroupIndex group) {
  const NodeGroup& of = problem_.groups[group];
  // A node of the cluster may have any name: one that no node can have keeps them apart.
  const std::string name = absl::StrCat(of.name, "#", ++added_);
  const NodeIndex node = AddNodeOf(*of.model, name, &snapshot_);
  for (const int32_t shape : templates_[group]->daemons) snapshot_.PlacePod(node, shape);
  return node;
}

NodeIndex TrialCluster::AddNode(GroupIndex group) {
  const NodeGroup& of = problem_.groups[group];
  const NodeIndex node = AddToSnapshot(group);
  TrialNode& known = nodes_.emplace_back();
  known.group = group;
  known.usd = UsdOf(of);
  if (of.priced.spot) known.spot_usd = known.usd;
  known.may_go = true;
  known.is_new = true;
  room_->Read(node);
  return node;
}

void TrialCluster::ForgetNodes(NodeIndex node_end) {
  nodes_.resize(IndexOf(node_end));
  room_->Forget(node_end);
}

void TrialCluster::Place(MoverIndex number, NodeIndex node) {
  const Mover& mover = movers_[number];
  const MoverKind& kind = kinds_[mover.kind];
  if (kind.by_name) {
    snapshot_.PlacePod(node, kind.shape, mover.name, mover.uid);
  } else {
    snapshot_.PlacePod(node, kind.shape);
  }
  room_->Read(node);
}

void TrialCluster::Leave(NodeIndex node) {
  if (nodes_[node].is_new) {
    snapshot_.RemoveNode(node);
  } else {
    std::vector<int32_t> shapes;
    for (const MoverIndex mover : nodes_[node].movers) shapes.push_back(KindOf(mover).shape);
    Vacate(node, shapes, &snapshot_);
  }
  room_->Read(node);
}

std::vector<GroupIndex> TrialCluster::PreferredGroups(MoverKindIndex kind) {
  std::vector<GroupIndex> groups;
  for (const GroupIndex group : templates_.indices()) {
    if (MostOn(kind, group) > 0) groups.push_back(group);
  }
  std::stable_sort(groups.begin(), groups.end(), [&](GroupIndex a, GroupIndex b) {
    return UsdOf(problem_.groups[a]) < UsdOf(problem_.groups[b]);
  });
  if (options_.by_priority) {
    std::stable_sort(groups.begin(), groups.end(), [&](GroupIndex a, GroupIndex b) {
      return problem_.groups[a].priority > problem_.groups[b].priority;
    });
  }
  return groups;
}

// Returns the filters that say how many pods of a kind one node takes. Rules over domains of several nodes,
// such as zones, play no part: how much of a zone is left changes with each move.
PodFit& TrialCluster::FitOnOneNode(MoverKindIndex number) {
  MoverKind& kind = kinds_[number];
  const std::shared_ptr<const PodRules>& rules = snapshot_.pod_shape(kind.shape).rules;
  const auto wider = [](const SpreadConstraint& spread) { return spread.topology_key != kHostnameLabel; };
  if (rules == nullptr || (rules->affinity.empty() && absl::c_none_of(rules->spread, wider)))
    return fit(number);
  if (kind.on_one_node == nullptr) {
    PodRules alone = *rules;
    std::erase_if(alone.spread, wider);
    alone.affinity.clear();
    IncomingPod pod = PodOf(kind);
    pod.shape.rules = std::make_shared<const PodRules>(std::move(alone));
    kind.on_one_node = std::make_unique<PodFit>(&snapshot_, std::move(pod), &options_.fit, budget_);
  }
  return *kind.on_one_node;
}

int64_t TrialCluster::MostOn(MoverKindIndex number, GroupIndex group) {
  const auto [known, is_new] = most_on_.try_emplace({number, group}, 0);
  if (!is_new) return known->second;
  const TrialTemplate* const made = templates_[group].get();
  const MoverKind& kind = kinds_[number];
  if (made == nullptr) return 0;
  const int64_t room = CopiesThatFit(made->free, kind.request);
  if (room == 0) return 0;
  PodFit& pod = FitOnOneNode(number);
  snapshot_.Fork();
  const std::string name = absl::StrCat("consolidate-", IndexOf(group));
  const NodeIndex copy = AddNodeOf(*problem_.groups[group].model, name, &snapshot_);
  int64_t most = 0;
  if (pod.FitsByItself(copy)) {
    most = room;
    if (!kind.only_room) {
      // Pods are placed one after the other. If none fits because of pods elsewhere, one is assumed: that may
      // change.
      pod.Refresh(budget_);
      int64_t placed = 0;
      while (placed < room && budget_->Spend(pod.UnitsPerNode()) && pod.Fits(copy)) {
        snapshot_.PlacePod(copy, kind.shape);
        ++placed;
      }
      most = std::max<int64_t>(1, placed);
    }
  }
  snapshot_.Revert();
  return most_on_[{number, group}] = most;
}

}  // namespace loadline
