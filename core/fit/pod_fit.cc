#include "core/fit/pod_fit.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "core/fit/filters.h"

namespace loadline {
namespace {

struct Filter {
  FilterName name;
  MadeFilter (*make)(const FitContext&);
};
constexpr Filter kKnownFields = {FilterName::kNone, MakeKnownFields};
constexpr Filter kNodeUnschedulable = {FilterName::kNodeUnschedulable, MakeNodeUnschedulable};
constexpr Filter kNodeName = {FilterName::kNodeName, MakeNodeName};
// Behind the three above.
constexpr Filter kFilters[] = {
    {FilterName::kTaintToleration, MakeTaintToleration},
    {FilterName::kNodeAffinity, MakeNodeAffinity},
    {FilterName::kNodePorts, MakeNodePorts},
    {FilterName::kNodeResourcesFit, MakeNodeResourcesFit},
    {FilterName::kVolumeRestrictions, MakeVolumeRestrictions},
    {FilterName::kNodeVolumeLimits, MakeNodeVolumeLimits},
    {FilterName::kVolumeBinding, MakeVolumeBinding},
    {FilterName::kVolumeZone, MakeVolumeZone},
    {FilterName::kPodTopologySpread, MakePodTopologySpread},
    {FilterName::kInterPodAffinity, MakeInterPodAffinity},
    {FilterName::kDynamicResources, MakeDynamicResources},
    {FilterName::kNodeDeclaredFeatures, MakeNodeDeclaredFeatures},
    {FilterName::kLoadLine, MakeLoadLine},
};
static_assert(std::size(kFilters) + 3 == kFilterNames);

// The order of the default profile: 1.37 looks at the name of a node first.
std::vector<Filter> FiltersOf(const FitOptions& options) {
  std::vector<Filter> filters = {kKnownFields, kNodeUnschedulable, kNodeName};
  if (options.minor >= 37) std::swap(filters[1], filters[2]);
  filters.insert(filters.end(), std::begin(kFilters), std::end(kFilters));
  std::erase_if(filters, [&](const Filter& filter) {
    return (options.disabled >> static_cast<int>(filter.name) & 1) != 0;
  });
  return filters;
}

// Returns whether the first `end` names have the same numbers in both.
[[maybe_unused]] bool SameNames(const ResourceNames& a, const ResourceNames& b, size_t end) {
  for (size_t i = 0; i < end; ++i) {
    const ResourceId resource{static_cast<int32_t>(i)};
    if (a.name(resource) != b.name(resource)) return false;
  }
  return true;
}

}  // namespace

PodFit::PodFit(Snapshot* snapshot, IncomingPod pod, const FitOptions* options, WorkBudget* budget)
    : pod_(std::move(pod)) {
  cut_short_ = budget != nullptr && budget->ended();
  if (cut_short_) return;
  LOADLINE_CHECK(Covers(pod_.names, pod_.shape.requests))
      << "pod " << pod_.name << " requests what its names lack";
  LOADLINE_CHECK(pod_.names.size() >= snapshot->amount_end())
      << "pod " << pod_.name << " has names of another cluster";
  LOADLINE_DCHECK(SameNames(pod_.names, snapshot->state().resource_names(), snapshot->amount_end()))
      << "pod " << pod_.name << " has names of another cluster";
  WorkBudget unlimited;
  const PodRules* const rules = pod_.shape.rules != nullptr ? pod_.shape.rules.get() : &no_rules_;
  context_ = {snapshot,
              &pod_,
              snapshot->InternShape(pod_.shape),
              rules,
              &options->Of(rules->scheduler_name),
              budget != nullptr ? budget : &unlimited,
              &cut_short_};
  for (const Filter& filter : FiltersOf(*context_.options)) {
    if (cut_short_) break;
    MadeFilter made = filter.make(context_);
    if (cut_short_) break;
    if (made.verdict.has_value()) {
      refused_ = std::move(made.verdict);
      refused_->before_nodes = true;
      filters_.clear();
      return;
    }
    if (made.doubt.has_value() && !doubt_.has_value()) doubt_ = std::move(made.doubt);
    if (made.filter != nullptr) filters_.push_back(std::move(made.filter));
  }
  context_.budget = nullptr;
  if (cut_short_) filters_.clear();
  CollectDemands();
}

void PodFit::Refresh(WorkBudget* budget) {
  WorkBudget unlimited;
  bool more = false;
  not_refreshed_ = false;
  for (const auto& filter : filters_) {
    const Refreshed refreshed = filter->Refresh(budget != nullptr ? budget : &unlimited);
    more = more || refreshed == Refreshed::kMoreDemands;
    not_refreshed_ = not_refreshed_ || refreshed == Refreshed::kCutShort;
  }
  if (more) CollectDemands();
}

void PodFit::CollectDemands() {
  constexpr size_t kDemandsPerUnit = 32;
  demands_.clear();
  for (const auto& filter : filters_) filter->AddDemands(&demands_);
  units_per_node_ = 1 + static_cast<int64_t>(demands_.size() / kDemandsPerUnit);
  for (const auto& filter : filters_) units_per_node_ += filter->UnitsPerNode();
}

bool PodFit::WaivesOccupied() const {
  return std::any_of(filters_.begin(), filters_.end(),
                     [](const auto& filter) { return filter->WaivesOccupied(); });
}

Verdict PodFit::Judge(NodeIndex node, FilterName known) {
  if (refused_.has_value()) return *refused_;
  if (CutShort()) {
    return CannotJudge(FilterName::kNone, "the budget of the question ended before the pod was looked at");
  }
  Verdict verdict;
  for (const auto& filter : filters_) {
    if (!filter->LooksAt(node, &verdict)) return verdict;
  }
  std::optional<Verdict> doubt = doubt_;
  for (const auto& filter : filters_) {
    const bool terse = filter->AsksForRoom() && filter->name() <= known;
    if (filter->Passes(node, terse ? nullptr : &verdict)) continue;
    if (terse) return Refusal(filter->name(), StatusClass::kNone, {});
    if (verdict.judgement != Judgement::kCannotJudge || verdict.final) return verdict;
    if (!doubt.has_value()) doubt = std::move(verdict);
  }
  return doubt.has_value() ? *std::move(doubt) : Verdict();
}

bool PodFit::Fits(NodeIndex node) { return !Hopeless() && FitsByItself(node) && FitsAmongOthers(node); }

bool PodFit::OnlyNeedsRoom() const {
  return !Hopeless() && demands_.empty() &&
         std::all_of(filters_.begin(), filters_.end(), [](const auto& filter) {
           switch (filter->scope()) {
             case Scope::kNodeShape:
               return true;
             case Scope::kNode:
               return filter->AsksForRoom();
             case Scope::kTopology:
               return true;  // it demands nothing
           }
           return false;
         });
}

bool PodFit::PassesByShape(NodeIndex node) {
  const size_t shape = static_cast<size_t>(context_.snapshot->node_shape_id(node));
  if (shape >= by_shape_.size()) by_shape_.resize(shape + 1, ShapeVerdict::kUnknown);
  if (by_shape_[shape] == ShapeVerdict::kUnknown) {
    by_shape_[shape] = ShapeVerdict::kPasses;
    for (const auto& filter : filters_) {
      if (filter->scope() != Scope::kNodeShape || filter->Passes(node, nullptr)) continue;
      by_shape_[shape] = ShapeVerdict::kFails;
      break;
    }
  }
  return by_shape_[shape] == ShapeVerdict::kPasses;
}

bool PodFit::FitsByItself(NodeIndex node) {
  if (!PassesByShape(node)) return false;
  for (const auto& filter : filters_) {
    if (filter->scope() == Scope::kNode &&
        !(filter->LooksAt(node, nullptr) && filter->Passes(node, nullptr))) {
      return false;
    }
  }
  return true;
}

bool PodFit::FitsAmongOthers(NodeIndex node) const {
  for (const auto& filter : filters_) {
    if (filter->scope() == Scope::kTopology && !filter->Passes(node, nullptr)) return false;
  }
  return true;
}

std::optional<Blocked> PodFit::BlockedBy(NodeIndex node) const {
  for (const auto& filter : filters_) {
    if (filter->scope() == Scope::kTopology && !filter->Passes(node, nullptr)) return filter->BlockedBy(node);
  }
  return std::nullopt;
}

}  // namespace loadline
