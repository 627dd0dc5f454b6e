#include "core/expand/plan_problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/cluster/labels.h"
#include "core/expand/balance.h"
#include "core/expand/line_room.h"
#include "core/expand/room.h"
#include "core/expand/spread_growth.h"
#include "core/fit/trial_memory.h"
#include "core/pack/fill.h"

namespace loadline {
namespace {

// The place that an empty copy of a group's template has for one kind of pods.
struct Place {
  int64_t most = 0;     // pods that it takes by itself
  int32_t domain = -1;  // of the first spread constraint that is not over hosts; -1: none
  int64_t there = 0;    // pods counted in that domain
  int64_t lowest = 0;   // of all domains
  // The domain has no node yet; and the number of domains that have nodes.
  bool is_new_domain = false;
  int64_t present_domains = 0;
};

using AmountOfGroups = StrongVector<GrowableIndex, int64_t>;

class ProblemMaker {
 public:
  ProblemMaker(Estimator* estimator, Snapshot* snapshot, const GrowableGroups& groups, PlanView view,
               WorkBudget* budget)
      : estimator_(*estimator), snapshot_(*snapshot), groups_(groups), view_(view), budget_(budget) {}

  PlanProblem Make(const std::vector<int64_t>& counts, const AmountOfGroups& room, NodeLimit max_new_nodes) {
    problem_.memory = std::make_unique<ReservedMemory>(budget_, BytesFor(counts.size()));
    if (!problem_.memory->ok() || !estimator_.MakeColumns(budget_)) return Nothing();
    if (!AddLineColumns()) return Nothing();
    for (const NodeGroup& group : groups_) {
      if (!budget_->Spend(static_cast<int64_t>(1 + counts.size() / 4))) return Nothing();
      LookAt(group, counts);
    }
    is_only_kind_ = absl::c_count_if(counts, [](int64_t count) { return count > 0; }) == 1;
    for (size_t pods = 0; pods < counts.size(); ++pods) {
      if (counts[pods] == 0) continue;
      if (view_ == PlanView::kAsPlanned && SpreadOverDomains(pods)) {
        AddByDomain(pods, counts[pods], room);
      } else {
        AddItem(pods, counts[pods], MostOf(pods), /*may_merge=*/true);
      }
    }
    AddTypes(room);
    problem_.packing.limit = max_new_nodes;
    return std::move(problem_);
  }

 private:
  PlanProblem Nothing() {
    problem_ = PlanProblem();
    problem_.complete = false;
    return std::move(problem_);
  }

  // Adds the room that a load line leaves. False: the budget has not the memory.
  bool AddLineColumns() {
    const LineRoom* const line = estimator_.line_room();
    if (line == nullptr) return true;
    std::vector<const NodeShape*> shapes;
    for (const NodeGroup& group : groups_) shapes.push_back(&group.model->shape);
    line_ = line->ForNodes(estimator_.columns(), shapes, view_ == PlanView::kRelaxed, budget_);
    return line_.columns != nullptr;
  }

  const RoomColumns& columns() const {
    return line_.columns != nullptr ? *line_.columns : estimator_.columns();
  }

  // Returns the bytes of the tables that have an entry for each kind of pods and each group.
  int64_t BytesFor(size_t pods) const {
    constexpr size_t kBytes = sizeof(Place) + 3 * sizeof(int64_t);
    return static_cast<int64_t>(pods * groups_.size() * kBytes);
  }

  void LookAt(const NodeGroup& group, const std::vector<int64_t>& counts) {
    snapshot_.Fork();
    TrialMemory memory(budget_);
    const NodeIndex copy = estimator_.AddCopy(group, &memory);
    free_.push_back(columns().FreeOn(snapshot_, copy));
    if (line_.columns != nullptr) {
      estimator_.line_room()->AddFree(line_, free_.size() - 1, copy, &free_.back());
    }
    std::vector<Place>& places = places_.emplace_back(counts.size());
    for (size_t pods = 0; pods < counts.size(); ++pods) {
      if (counts[pods] == 0) continue;
      PodFit& fit = estimator_.fit(pods);
      if (fit.Hopeless() || !fit.FitsByItself(copy)) continue;
      Place& place = places[pods];
      place.most = std::min(counts[pods], CopiesThatFit(free_.back(), columns().request(pods)));
      if (estimator_.OnlyNeedsRoom(pods) || view_ == PlanView::kRelaxed) continue;
      place.most = TryOut(pods, copy, place.most);
      const int32_t key = SpreadKey(pods);
      if (key >= 0) ReadDomain(pods, static_cast<size_t>(key), copy, &place);
    }
    snapshot_.Revert();
  }

  // How many pods of a kind go onto a node one after the other. If none does because of pods elsewhere, one
  // is assumed: it may change when others are placed.
  int64_t TryOut(size_t pods, NodeIndex node, int64_t most) {
    PodFit& fit = estimator_.fit(pods);
    snapshot_.Fork();
    TrialMemory memory(budget_);
    int64_t placed = 0;
    while (placed < most && memory.Pod(fit.UnitsPerNode()) && fit.Fits(node)) {
      estimator_.Place(pods, node);
      ++placed;
    }
    snapshot_.Revert();
    return std::max<int64_t>(1, placed);
  }

  // Position of the first constraint that spreads over something larger than hosts; -1: none.
  int32_t SpreadKey(size_t pods) const {
    const IncomingPod& pod = estimator_.pods()[pods].pod;
    const bool own = pod.shape.rules != nullptr && pod.shape.rules->has_spread;
    const std::vector<SpreadConstraint>& constraints = own ? pod.shape.rules->spread : pod.default_spread;
    for (size_t i = 0; i < constraints.size(); ++i) {
      if (constraints[i].topology_key != kHostnameLabel) return static_cast<int32_t>(i);
    }
    return -1;
  }

  const SpreadConstraint& Constraint(size_t pods, size_t position) const {
    const IncomingPod& pod = estimator_.pods()[pods].pod;
    const bool own = pod.shape.rules != nullptr && pod.shape.rules->has_spread;
    return (own ? pod.shape.rules->spread : pod.default_spread)[position];
  }

  void ReadDomain(size_t pods, size_t position, NodeIndex copy, Place* place) {
    const SpreadConstraint& constraint = Constraint(pods, position);
    for (const Demand& demand : estimator_.fit(pods).demands()) {
      if (demand.kind != DemandKind::kBalanced) continue;
      const DomainCounts* const counts = demand.counts;
      if (counts->topology().key() != constraint.topology_key) continue;
      place->domain = counts->domain(copy);
      place->there = counts->count(place->domain);
      place->lowest = counts->lowest();
      place->is_new_domain = counts->eligible_nodes(place->domain) <= 1;
      place->present_domains = counts->domains() - (place->is_new_domain ? 1 : 0);
      // By itself a node may take only what the skew leaves; beside others it takes more.
      const int64_t room = CopiesThatFit(free_.back(), columns().request(pods));
      place->most = Alone(pods) ? 1 : room;
      return;
    }
  }

  // Returns whether pods of a kind keep their like off the same host.
  bool Alone(size_t pods) {
    const PodShape& shape = estimator_.pods()[pods].pod.shape;
    if (shape.rules == nullptr) return false;
    if (!shape.rules->host_ports.empty()) return true;
    return std::any_of(shape.rules->anti_affinity.begin(), shape.rules->anti_affinity.end(),
                       [&](const AffinityTerm& term) {
                         return term.topology_key == kHostnameLabel && term.selector.Matches(shape.labels);
                       });
  }

  bool SpreadOverDomains(size_t pods) const {
    return std::any_of(places_.begin(), places_.end(), [&](const std::vector<Place>& places) {
      return places[pods].most > 0 && places[pods].domain >= 0;
    });
  }

  AmountOfGroups MostOf(size_t pods) const {
    AmountOfGroups most;
    for (const std::vector<Place>& places : places_) most.push_back(places[pods].most);
    return most;
  }

  // A domain in which groups can grow.
  struct Domain {
    Place place;          // of any of these groups
    GrowingDomain nodes;  // of the group whose room costs least
  };

  std::map<int32_t, Domain> DomainsOf(size_t pods, int64_t count, const AmountOfGroups& room) const {
    std::map<int32_t, Domain> domains;
    for (const GrowableIndex group : places_.indices()) {
      const Place& place = places_[group][pods];
      if (place.most == 0 || place.domain < 0) continue;
      GrowingDomain nodes{place.there, place.most, UsdOf(groups_[group]),
                          std::min(count, std::min(count, room[group]) * place.most)};
      const auto [found, is_first] = domains.try_emplace(place.domain, Domain{place, nodes});
      GrowingDomain& least = found->second.nodes;
      if (is_first) continue;
      nodes.most += least.most;
      const bool is_cheaper =
          nodes.usd * static_cast<double>(least.per_node) < least.usd * static_cast<double>(nodes.per_node);
      if (is_cheaper) least = nodes;
      least.most = nodes.most;
    }
    return domains;
  }

  // Fills the emptiest domain first, up to what the skew permits over domains that no group can grow in;
  // where groups can grow in all domains and no other pods wait, otherwise if that takes fewer nodes.
  void AddByDomain(size_t pods, int64_t count, const AmountOfGroups& room) {
    const std::map<int32_t, Domain> domains = DomainsOf(pods, count, room);
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (const auto& [domain, of] : domains) lowest = std::min(lowest, of.place.lowest);
    const bool lowest_grows =
        absl::c_any_of(domains, [&](const auto& domain) { return domain.second.place.there <= lowest; });
    const int64_t present =
        absl::c_count_if(domains, [](const auto& domain) { return !domain.second.place.is_new_domain; });
    const int64_t skew = Constraint(pods, static_cast<size_t>(SpreadKey(pods))).max_skew;
    std::vector<BalancedGroup> sizes;
    std::vector<GrowingDomain> nodes;
    for (const auto& [domain, of] : domains) {
      const int64_t most = lowest_grows ? of.place.there + count : lowest + skew;
      sizes.push_back({"", of.place.there, std::max(most, of.place.there)});
      nodes.push_back(of.nodes);
    }
    std::vector<int64_t> add = BalanceGrowth(sizes, count);
    for (size_t i = 0; i < add.size(); ++i) add[i] -= sizes[i].size;
    if (is_only_kind_ && present == domains.begin()->second.place.present_domains) {
      add = ShareOverDomains(nodes, skew, std::move(add));
    }
    size_t i = 0;
    for (const auto& [domain, of] : domains) {
      AmountOfGroups most = MostOf(pods);
      for (const GrowableIndex group : most.indices()) {
        if (places_[group][pods].domain != domain) most[group] = 0;
      }
      AddItem(pods, add[i], std::move(most), /*may_merge=*/false);
      ++i;
    }
  }

  void AddItem(size_t pods, int64_t count, AmountOfGroups most, bool may_merge) {
    if (count == 0) return;
    const auto request = columns().request(pods);
    const PodCount entry{static_cast<int32_t>(pods), count};
    std::vector<int64_t> row(request.begin(), request.end());
    if (may_merge && (view_ == PlanView::kRelaxed || estimator_.OnlyNeedsRoom(pods))) {
      // The number that fits onto a node follows from the request; only whether a pod may be there can
      // differ.
      for (const GrowableIndex group : most.indices()) {
        if (most[group] > 0) most[group] = CopiesThatFit(free_[group], request);
      }
      const auto [found, is_new] = items_.try_emplace({row, most.values()}, problem_.packing.items.size());
      if (!is_new) {
        problem_.packing.items[found->second].count += count;
        problem_.pods[found->second].push_back(entry);
        return;
      }
    }
    problem_.packing.items.push_back({std::move(row), count});
    problem_.pods.push_back({entry});
    most_.push_back(std::move(most));
  }

  // Groups whose nodes cost the same and take the same are one type.
  void AddTypes(const AmountOfGroups& room) {
    using Key = std::tuple<double, std::vector<int64_t>, std::vector<int64_t>>;
    std::map<Key, size_t> types;
    std::vector<GrowableIndex> by_name(groups_.indices().begin(), groups_.indices().end());
    std::stable_sort(by_name.begin(), by_name.end(),
                     [&](GrowableIndex a, GrowableIndex b) { return groups_[a].name < groups_[b].name; });
    for (const GrowableIndex group : by_name) {
      std::vector<int64_t> most;
      for (const AmountOfGroups& entry : most_) most.push_back(entry[group]);
      const bool takes_any = std::any_of(most.begin(), most.end(), [](int64_t m) { return m > 0; });
      if (!takes_any || room[group] <= 0) continue;
      const double cost = UsdOf(groups_[group]);
      const auto [found, is_new] =
          types.try_emplace({cost, free_[group], most}, problem_.packing.types.size());
      if (is_new) {
        problem_.packing.types.push_back({free_[group], cost, room[group], std::move(most)});
        problem_.groups.push_back({group});
      } else {
        *problem_.packing.types[found->second].limit += room[group];
        problem_.groups[found->second].push_back(group);
      }
    }
    for (PackingType& type : problem_.packing.types) {
      // A limit that no packing reaches only makes the relaxation larger.
      int64_t pods = 0;
      for (size_t i = 0; i < type.most.size(); ++i) {
        if (type.most[i] > 0) pods += problem_.packing.items[i].count;
      }
      if (*type.limit >= pods) type.limit.reset();
    }
  }

  Estimator& estimator_;
  Snapshot& snapshot_;
  const GrowableGroups& groups_;
  PlanView view_;
  WorkBudget* budget_;
  LineRoom::Shared line_;
  StrongVector<GrowableIndex, std::vector<int64_t>> free_;
  StrongVector<GrowableIndex, std::vector<Place>> places_;  // by pods
  std::vector<AmountOfGroups> most_;                        // by item
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, size_t> items_;
  bool is_only_kind_ = false;  // pods of one kind wait
  PlanProblem problem_;
};

}  // namespace

PlanProblem MakePlanProblem(Estimator* estimator, Snapshot* snapshot, const GrowableGroups& groups,
                            const std::vector<int64_t>& counts, const AmountOfGroups& room,
                            NodeLimit max_new_nodes, PlanView view, WorkBudget* budget) {
  return ProblemMaker(estimator, snapshot, groups, view, budget).Make(counts, room, max_new_nodes);
}

}  // namespace loadline
