#include "core/consolidate/cost_bound.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "core/pack/fill.h"
#include "core/pack/packing.h"
#include "core/pack/price_bound.h"

namespace loadline {
namespace {

// Kinds times groups whose filters are asked; beyond, all kinds are taken to be allowed everywhere.
constexpr size_t kMostQuestions = 2'000'000;
// Of so few kinds the pattern relaxation is solved, which sees that pods are not divided.
constexpr size_t kFewKinds = 24;

// A type of nodes in the relaxation, and which kinds may go there.
struct BoundType {
  PackingType type;
  std::vector<bool> takes;  // by kind
};

class CostBounder {
 public:
  CostBounder(Board* board, WorkBudget* budget) : board_(*board), budget_(budget) {}

  CostBound Bound() {
    const size_t kinds = board_.kinds().size();
    for (size_t kind = 0; kind < kinds; ++kind) {
      if (!budget_->Spend(2)) return {};
      board_.Prepare(static_cast<int32_t>(kind));
    }
    AddFixedRoom();
    for (size_t group = 0; group < board_.problem().groups.size(); ++group) {
      if (!budget_->Spend(static_cast<int64_t>(1 + kinds / 2))) return {};
      AddGroup(group);
    }
    CostBound bound = BoundParts();
    bound.usd = (bound.usd + minima_) * (1 - 1e-9);
    return bound;
  }

 private:
  // What a node that may go offers without the pods that leave with it.
  std::vector<int64_t> EmptyRoom(NodeIndex node) const {
    std::vector<int64_t> free = board_.room().FreeOn(node);
    for (const int32_t mover : board_.node(node).movers) {
      const MoverKind& kind = KindOf(mover);
      for (size_t i = 0; i < free.size(); ++i) free[i] += kind.request[i];
    }
    return free;
  }

  const MoverKind& KindOf(int32_t mover) const {
    return board_.kinds()[static_cast<size_t>(board_.movers()[static_cast<size_t>(mover)].kind)];
  }

  // Room on nodes that stay costs nothing. As if it were one large node.
  void AddFixedRoom() {
    std::vector<int64_t> free(board_.room().width(), 0);
    bool any = false;
    const Snapshot& snapshot = board_.snapshot();
    for (int32_t i = 0; i < board_.node_end(); ++i) {
      const NodeIndex node{i};
      if (!snapshot.Placeable(node) || snapshot.node_shape(node).unschedulable || board_.node(node).may_go)
        continue;
      const std::vector<int64_t> room = board_.room().FreeOn(node);
      any = any || room.back() > 0;
      for (size_t r = 0; r < free.size(); ++r) {
        if (room[r] > 0) free[r] = std::min(kMostRoom, free[r] + room[r]);
      }
    }
    if (any) AddType(std::move(free), 0, 1, std::vector<bool>(board_.kinds().size(), true));
  }

  void AddGroup(size_t group) {
    const ConsolidationGroup& entry = board_.problem().groups[group];
    const BoardTemplate* const made = board_.node_template(group);
    std::vector<NodeIndex> nodes;
    for (int32_t i = 0; i < board_.node_end(); ++i) {
      if (board_.node(NodeIndex{i}).may_go &&
          board_.node(NodeIndex{i}).group == static_cast<int32_t>(group)) {
        nodes.push_back(NodeIndex{i});
      }
    }
    const int64_t staying = std::max<int64_t>(0, entry.current_nodes - static_cast<int64_t>(nodes.size()));
    const int64_t room = std::max<int64_t>(entry.max_nodes, entry.current_nodes) - staying;
    // What the nodes that are there offer at most, and cost at least.
    std::vector<int64_t> most;
    double least = 0;
    bool alike = made != nullptr;
    for (const NodeIndex node : nodes) {
      std::vector<int64_t> free = EmptyRoom(node);
      least = most.empty() ? board_.node(node).usd : std::min(least, board_.node(node).usd);
      if (most.empty()) most.assign(free.size(), 0);
      for (size_t r = 0; r < free.size(); ++r) most[r] = std::max(most[r], free[r]);
      const NodeShape& shape = board_.snapshot().node_shape(node);
      alike = alike && shape.labels == entry.node->labels && shape.taints == entry.node->taints;
    }
    std::vector<bool> takes(board_.kinds().size(), true);
    if (made != nullptr) takes = TakenByTemplate(group);
    const int64_t there = static_cast<int64_t>(nodes.size());
    if (there > 0) {
      bool covered = alike && least >= entry.usd_per_hour;
      for (size_t r = 0; covered && r < most.size(); ++r) covered = most[r] <= made->free[r];
      if (!covered) {
        AddType(most, least, there, alike ? takes : std::vector<bool>(takes.size(), true));
      }
    }
    if (made != nullptr && room > 0) AddType(made->free, entry.usd_per_hour, room, takes);
    AddMinimum(entry, staying, most, least, made);
  }

  // Nodes up to the minimum are there whatever they hold: paid for, and their room is for nothing.
  void AddMinimum(const ConsolidationGroup& group, int64_t staying, std::vector<int64_t> most, double least,
                  const BoardTemplate* made) {
    const int64_t kept = std::min<int64_t>(group.min_nodes - staying, group.current_nodes - staying);
    if (kept <= 0 || most.empty()) return;
    if (made != nullptr) {
      least = std::min(least, group.usd_per_hour);
      for (size_t r = 0; r < most.size(); ++r) most[r] = std::max(most[r], made->free[r]);
    }
    minima_ += least * static_cast<double>(kept);
    AddType(std::move(most), 0, kept, std::vector<bool>(board_.kinds().size(), true));
  }

  std::vector<bool> TakenByTemplate(size_t group) {
    const size_t kinds = board_.kinds().size();
    std::vector<bool> takes(kinds, true);
    if (kinds * board_.problem().groups.size() > kMostQuestions) return takes;
    Snapshot& snapshot = board_.snapshot();
    snapshot.Fork();
    const NodeIndex copy =
        snapshot.AddNode({"consolidate-bound", *board_.problem().groups[group].node, "consolidate-bound"});
    for (size_t kind = 0; kind < kinds; ++kind) {
      takes[kind] =
          !board_.kinds()[kind].hopeless && board_.fit(static_cast<int32_t>(kind)).FitsByItself(copy);
    }
    snapshot.Revert();
    return takes;
  }

  void AddType(std::vector<int64_t> free, double cost, int64_t limit, std::vector<bool> takes) {
    for (int64_t& amount : free) amount = std::max<int64_t>(0, amount);
    BoundType& type = types_.emplace_back();
    type.type.free = std::move(free);
    type.type.cost = cost;
    type.type.limit = limit;
    type.takes = std::move(takes);
  }

  // Kinds and types that have to do with each other, in parts by number.
  std::vector<int32_t> Parts(size_t* count) const {
    const size_t kinds = board_.kinds().size();
    std::vector<int32_t> parent(kinds);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int32_t k) {
      while (parent[static_cast<size_t>(k)] != k)
        k = parent[static_cast<size_t>(k)] = parent[static_cast<size_t>(parent[static_cast<size_t>(k)])];
      return k;
    };
    for (const BoundType& type : types_) {
      // Room for nothing is counted for each part, which is allowed in a lower bound.
      if (type.type.cost == 0) continue;
      int32_t first = -1;
      for (size_t kind = 0; kind < kinds; ++kind) {
        if (!type.takes[kind]) continue;
        if (first < 0) first = root(static_cast<int32_t>(kind));
        parent[static_cast<size_t>(root(static_cast<int32_t>(kind)))] = first;
      }
    }
    std::vector<int32_t> part(kinds, -1);
    *count = 0;
    for (size_t kind = 0; kind < kinds; ++kind) {
      const size_t top = static_cast<size_t>(root(static_cast<int32_t>(kind)));
      if (part[top] < 0) part[top] = static_cast<int32_t>((*count)++);
      part[kind] = part[top];
    }
    return part;
  }

  CostBound BoundParts() {
    size_t parts = 0;
    const std::vector<int32_t> part = Parts(&parts);
    std::vector<std::vector<int32_t>> kinds_of(parts);
    for (size_t kind = 0; kind < part.size(); ++kind) {
      if (!board_.kinds()[kind].hopeless)
        kinds_of[static_cast<size_t>(part[kind])].push_back(static_cast<int32_t>(kind));
    }
    CostBound bound;
    bound.proven = true;
    int64_t most_pods = 0;
    for (const std::vector<int32_t>& kinds : kinds_of) {
      if (kinds.empty()) continue;
      int64_t pods = 0;
      for (const int32_t kind : kinds) pods += board_.kinds()[static_cast<size_t>(kind)].count;
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

  PackingBound BoundPart(const std::vector<int32_t>& kinds, std::vector<ShadowPrice>* shadow) {
    PackingProblem problem;
    std::vector<int32_t> item_of = MakeItems(kinds, &problem);
    const size_t real = problem.items.size();
    std::vector<int64_t> counts;
    for (const PackingItem& item : problem.items) counts.push_back(item.count);
    // Items that nobody has tell what one unit of each resource is worth.
    const size_t width = board_.room().width();
    std::vector<PackingItem> priced = problem.items;
    for (size_t r = 0; r < width; ++r) {
      PackingItem& unit = priced.emplace_back();
      unit.request.assign(width, 0);
      unit.request[r] = 1;
      counts.push_back(0);
    }
    ResourceRelaxation relaxed = RelaxResources(priced, problem.types, std::nullopt, counts, budget_);
    for (size_t i = 0; i < kinds.size(); ++i) {
      board_.kinds()[static_cast<size_t>(kinds[i])].worth =
          relaxed.prices.items[static_cast<size_t>(item_of[i])];
    }
    for (size_t r = 0; r + 1 < width; ++r) {
      shadow->push_back({board_.room().resources()[r], relaxed.prices.items[real + r]});
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
  std::vector<int32_t> MakeItems(const std::vector<int32_t>& kinds, PackingProblem* problem) {
    std::vector<size_t> types;
    for (size_t t = 0; t < types_.size(); ++t) {
      const bool used = std::any_of(kinds.begin(), kinds.end(),
                                    [&](int32_t k) { return types_[t].takes[static_cast<size_t>(k)]; });
      if (used) types.push_back(t);
    }
    for (const size_t t : types) problem->types.push_back(types_[t].type);
    using Key = std::pair<std::vector<int64_t>, std::vector<bool>>;
    std::map<Key, int32_t> items;
    std::vector<int32_t> item_of;
    for (const int32_t k : kinds) {
      const MoverKind& kind = board_.kinds()[static_cast<size_t>(k)];
      std::vector<bool> takes;
      for (const size_t t : types) takes.push_back(types_[t].takes[static_cast<size_t>(k)]);
      const auto [found, is_new] =
          items.try_emplace({kind.request, takes}, static_cast<int32_t>(problem->items.size()));
      item_of.push_back(found->second);
      if (is_new) {
        problem->items.push_back({kind.request, 0});
        for (size_t t = 0; t < types.size(); ++t) {
          const int64_t most = takes[t] ? CopiesThatFit(problem->types[t].free, kind.request) : 0;
          problem->types[t].most.push_back(most);
        }
      }
      problem->items[static_cast<size_t>(found->second)].count += kind.count;
    }
    return item_of;
  }

  static constexpr int64_t kMostRoom = int64_t{1} << 61;

  Board& board_;
  WorkBudget* budget_;
  std::vector<BoundType> types_;
  double minima_ = 0;
};

}  // namespace

CostBound BoundCost(Board* board, WorkBudget* budget) { return CostBounder(board, budget).Bound(); }

}  // namespace loadline
