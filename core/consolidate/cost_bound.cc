#include "core/consolidate/cost_bound.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/pack/fill.h"
#include "core/pack/packing.h"
#include "core/pack/price_bound.h"

namespace loadline {
namespace {

// The most pairs of a kind and a group whose filters are asked. Beyond it, all kinds count as allowed
// everywhere, which only lowers the bound. Chosen: at about a microsecond each, two seconds.
constexpr size_t kMostQuestions = 2'000'000;
// The number of kinds up to which the pattern relaxation is solved. Its bound is tighter, because it divides
// no pod. Chosen: its time grows faster than the number of kinds.
constexpr size_t kFewKinds = 24;

using KindMarks = StrongVector<MoverKindIndex, bool>;

// A type of nodes in the relaxation, and which kinds may go there.
struct BoundType {
  PackingType type;
  KindMarks takes;
};

class CostBounder {
 public:
  CostBounder(TrialCluster* trial_cluster, WorkBudget* budget)
      : trial_cluster_(*trial_cluster), budget_(budget) {}

  CostBound Bound() {
    const size_t kinds = trial_cluster_.kinds().size();
    for (const MoverKindIndex kind : trial_cluster_.kinds().indices()) {
      if (!budget_->Spend(2)) return {};
      trial_cluster_.Prepare(kind);
    }
    AddFixedRoom();
    for (const GroupIndex group : trial_cluster_.problem().groups.indices()) {
      if (!budget_->Spend(static_cast<int64_t>(1 + kinds / 2))) return {};
      AddGroup(group);
    }
    CostBound bound = BoundParts();
    bound.usd = (bound.usd + minima_) * (1 - 1e-9);
    return bound;
  }

 private:
  // Returns what a node that may be removed offers without its leaving pods. A node that takes no pods offers
  // room to those that it has.
  std::vector<int64_t> EmptyRoom(NodeIndex node) const {
    std::vector<int64_t> free = trial_cluster_.room().FreeOn(node);
    if (!trial_cluster_.snapshot().Placeable(node)) free.assign(free.size(), 0);
    for (const MoverIndex mover : trial_cluster_.node(node).movers) {
      const MoverKind& kind = trial_cluster_.KindOf(mover);
      for (size_t i = 0; i < free.size(); ++i) free[i] += kind.request[i];
    }
    return free;
  }

  // Room on nodes that stay costs nothing. As if it were one large node.
  void AddFixedRoom() {
    std::vector<int64_t> free(trial_cluster_.room().width(), 0);
    bool any = false;
    const Snapshot& snapshot = trial_cluster_.snapshot();
    for (const NodeIndex node : trial_cluster_.nodes().indices()) {
      if (!snapshot.Placeable(node) || snapshot.node_shape(node).unschedulable ||
          trial_cluster_.node(node).may_go)
        continue;
      const std::vector<int64_t> room = trial_cluster_.room().FreeOn(node);
      any = any || room.back() > 0;
      for (size_t r = 0; r < free.size(); ++r) {
        if (room[r] > 0) free[r] = std::min(kMostRoom, free[r] + room[r]);
      }
    }
    if (any) AddType(std::move(free), 0, 1, AllKinds());
  }

  void AddGroup(GroupIndex group) {
    const NodeGroup& entry = trial_cluster_.problem().groups[group];
    const TrialTemplate* const made = trial_cluster_.node_template(group);
    std::vector<NodeIndex> nodes;
    for (const NodeIndex node : trial_cluster_.nodes().indices()) {
      if (trial_cluster_.node(node).may_go && trial_cluster_.node(node).group == group) nodes.push_back(node);
    }
    const int64_t staying = std::max<int64_t>(0, entry.target - static_cast<int64_t>(nodes.size()));
    const int64_t room = std::max<int64_t>(MostNodes(entry), entry.target) - staying;
    // The most that the present nodes offer, and the least that they cost.
    std::vector<int64_t> most;
    double least = 0;
    bool alike = made != nullptr;
    for (const NodeIndex node : nodes) {
      std::vector<int64_t> free = EmptyRoom(node);
      least = most.empty() ? trial_cluster_.node(node).usd : std::min(least, trial_cluster_.node(node).usd);
      if (most.empty()) most.assign(free.size(), 0);
      for (size_t r = 0; r < free.size(); ++r) most[r] = std::max(most[r], free[r]);
      const NodeShape& shape = trial_cluster_.snapshot().node_shape(node);
      alike = alike && shape.labels == entry.model->shape.labels && shape.taints == entry.model->shape.taints;
    }
    KindMarks takes = AllKinds();
    if (made != nullptr) takes = TakenByTemplate(group);
    const int64_t there = static_cast<int64_t>(nodes.size());
    if (there > 0) {
      bool covered = alike && least >= UsdOf(entry);
      for (size_t r = 0; covered && r < most.size(); ++r) covered = most[r] <= made->free[r];
      if (!covered) {
        AddType(most, least, there, alike ? takes : AllKinds());
      }
    }
    if (made != nullptr && room > 0) AddType(made->free, UsdOf(entry), room, takes);
    AddMinimum(entry, staying, most, least, made);
  }

  // Nodes up to the minimum are there whatever they hold: paid for, and their room is for nothing.
  void AddMinimum(const NodeGroup& group, int64_t staying, std::vector<int64_t> most, double least,
                  const TrialTemplate* made) {
    const int64_t kept = std::min<int64_t>(group.min_nodes - staying, group.target - staying);
    if (kept <= 0 || most.empty()) return;
    if (made != nullptr) {
      least = std::min(least, UsdOf(group));
      for (size_t r = 0; r < most.size(); ++r) most[r] = std::max(most[r], made->free[r]);
    }
    minima_ += least * static_cast<double>(kept);
    AddType(std::move(most), 0, kept, AllKinds());
  }

  KindMarks AllKinds() const { return KindMarks(trial_cluster_.kinds().size(), true); }

  KindMarks TakenByTemplate(GroupIndex group) {
    KindMarks takes = AllKinds();
    if (takes.size() * trial_cluster_.problem().groups.size() > kMostQuestions) return takes;
    Snapshot& snapshot = trial_cluster_.snapshot();
    snapshot.Fork();
    const NodeIndex copy =
        AddNodeOf(*trial_cluster_.problem().groups[group].model, "consolidate-bound", &snapshot);
    for (const MoverKindIndex kind : takes.indices()) {
      takes[kind] = !trial_cluster_.kinds()[kind].hopeless && trial_cluster_.fit(kind).FitsByItself(copy);
    }
    snapshot.Revert();
    return takes;
  }

  void AddType(std::vector<int64_t> free, double cost, int64_t limit, KindMarks takes) {
    for (int64_t& amount : free) amount = std::max<int64_t>(0, amount);
    BoundType& type = types_.emplace_back();
    type.type.free = std::move(free);
    type.type.cost = cost;
    type.type.limit = limit;
    type.takes = std::move(takes);
  }

  // Kinds and types that have to do with each other, in parts by number.
  StrongVector<MoverKindIndex, size_t> Parts(size_t* count) const {
    StrongVector<MoverKindIndex, MoverKindIndex> parent;
    for (const MoverKindIndex kind : trial_cluster_.kinds().indices()) parent.push_back(kind);
    const auto root = [&](MoverKindIndex k) {
      while (parent[k] != k) k = parent[k] = parent[parent[k]];
      return k;
    };
    for (const BoundType& type : types_) {
      // Room for nothing is counted for each part, which is allowed in a lower bound.
      if (type.type.cost == 0) continue;
      std::optional<MoverKindIndex> first;
      for (const MoverKindIndex kind : parent.indices()) {
        if (!type.takes[kind]) continue;
        if (!first.has_value()) first = root(kind);
        parent[root(kind)] = *first;
      }
    }
    // Parts are numbered in the order of their first kinds.
    StrongVector<MoverKindIndex, std::optional<size_t>> part_of_root(parent.size());
    StrongVector<MoverKindIndex, size_t> part;
    *count = 0;
    for (const MoverKindIndex kind : parent.indices()) {
      std::optional<size_t>& number = part_of_root[root(kind)];
      if (!number.has_value()) number = (*count)++;
      part.push_back(*number);
    }
    return part;
  }

  CostBound BoundParts() {
    size_t parts = 0;
    const StrongVector<MoverKindIndex, size_t> part = Parts(&parts);
    std::vector<std::vector<MoverKindIndex>> kinds_of(parts);
    for (const MoverKindIndex kind : part.indices()) {
      if (!trial_cluster_.kinds()[kind].hopeless) kinds_of[part[kind]].push_back(kind);
    }
    CostBound bound;
    bound.proven = true;
    int64_t most_pods = 0;
    for (const std::vector<MoverKindIndex>& kinds : kinds_of) {
      if (kinds.empty()) continue;
      int64_t pods = 0;
      for (const MoverKindIndex kind : kinds) pods += trial_cluster_.kinds()[kind].count;
      std::vector<ShadowPrice> prices;
      const PackingBound of_part = BoundPart(kinds, &prices);
      bound.usd += of_part.cost;
      bound.proven = bound.proven && of_part.proven;
      if (pods > most_pods) {
        most_pods = pods;
        bound.shadow_prices = std::move(prices);
      }
    }
    return bound;
  }

  PackingBound BoundPart(const std::vector<MoverKindIndex>& kinds, std::vector<ShadowPrice>* shadow) {
    PackingProblem problem;
    const std::vector<size_t> item_of = MakeItems(kinds, &problem);
    const size_t real = problem.items.size();
    std::vector<int64_t> counts;
    for (const PackingItem& item : problem.items) counts.push_back(item.count);
    // Items that nobody has tell what one unit of each resource is worth.
    const size_t width = trial_cluster_.room().width();
    std::vector<PackingItem> priced = problem.items;
    for (size_t r = 0; r < width; ++r) {
      PackingItem& unit = priced.emplace_back();
      unit.request.assign(width, 0);
      unit.request[r] = 1;
      counts.push_back(0);
    }
    ResourceRelaxation relaxed = RelaxResources(priced, problem.types, std::nullopt, counts, budget_);
    for (size_t i = 0; i < kinds.size(); ++i) {
      trial_cluster_.kinds()[kinds[i]].worth = relaxed.prices.items[item_of[i]];
    }
    for (size_t r = 0; r + 1 < width; ++r) {
      shadow->push_back({trial_cluster_.room().resources()[r], relaxed.prices.items[real + r]});
    }
    counts.resize(real);
    relaxed.prices.items.resize(real);
    std::vector<int32_t> sample;
    for (size_t i = 0; i < real; i += 1 + real / 256) sample.push_back(static_cast<int32_t>(i));
    PackingBound bound{PriceBound(problem, counts, relaxed.prices, sample, budget_), !budget_->ended()};
    if (real <= kFewKinds && !budget_->ended()) {
      const WorkPhase phase(budget_, 0.2);
      bound.cost = std::max(bound.cost, LowerBound(problem, budget_).cost);
    }
    return bound;
  }

  // Kinds that request the same and may go to the same types are one item. Returns the item of each kind.
  std::vector<size_t> MakeItems(const std::vector<MoverKindIndex>& kinds, PackingProblem* problem) {
    std::vector<size_t> types;
    for (size_t t = 0; t < types_.size(); ++t) {
      const bool used =
          std::any_of(kinds.begin(), kinds.end(), [&](MoverKindIndex k) { return types_[t].takes[k]; });
      if (used) types.push_back(t);
    }
    for (const size_t t : types) problem->types.push_back(types_[t].type);
    using Key = std::pair<std::vector<int64_t>, std::vector<bool>>;
    std::map<Key, size_t> items;
    std::vector<size_t> item_of;
    for (const MoverKindIndex k : kinds) {
      const MoverKind& kind = trial_cluster_.kinds()[k];
      std::vector<bool> takes;
      for (const size_t t : types) takes.push_back(types_[t].takes[k]);
      const auto [found, is_new] = items.try_emplace({kind.request, takes}, problem->items.size());
      item_of.push_back(found->second);
      if (is_new) {
        problem->items.push_back({kind.request, 0});
        for (size_t t = 0; t < types.size(); ++t) {
          const int64_t most = takes[t] ? CopiesThatFit(problem->types[t].free, kind.request) : 0;
          problem->types[t].most.push_back(most);
        }
      }
      problem->items[found->second].count += kind.count;
    }
    return item_of;
  }

  static constexpr int64_t kMostRoom = int64_t{1} << 61;  // the sum of two such amounts does not overflow

  TrialCluster& trial_cluster_;
  WorkBudget* budget_;
  std::vector<BoundType> types_;
  double minima_ = 0;
};

}  // namespace

CostBound BoundCost(TrialCluster* trial_cluster, WorkBudget* budget) {
  return CostBounder(trial_cluster, budget).Bound();
}

}  // namespace loadline
