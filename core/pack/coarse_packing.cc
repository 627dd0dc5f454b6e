#include "core/pack/coarse_packing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/amount.h"
#include "core/pack/exact_packing.h"
#include "core/pack/fill.h"
#include "core/pack/item_classes.h"
#include "core/pack/packing_rest.h"
#include "core/pack/price_bound.h"

namespace loadline {
namespace {

// The number of classes of the items that are left. Chosen: more give a better order, and cost more.
constexpr size_t kClasses = 512;
// The relaxation says how many nodes are needed. The packing makes this part (1 / kStep) of them before it
// solves the relaxation again. Chosen: nearly as good as after each node, at a fraction of the time.
constexpr double kStep = 8;
// The number of items beyond one that does not fit that a node looks at without a budget. Chosen.
constexpr size_t kLookAhead = 64;
using Content = std::vector<std::pair<int32_t, int64_t>>;

// The order in which a node takes items.
enum class FillOrder {
  kBalanced,      // most of what the node has most left of
  kLargestFirst,  // by what resources cost
  kSmallestFirst
};

// A node under way.
struct Filling {
  std::vector<int64_t> free;
  Content content;
  double value = 0;
};

class CoarsePacker {
 public:
  CoarsePacker(const PackingProblem& problem, int64_t last_items, WorkBudget* budget)
      : problem_(problem), budget_(budget), last_items_(last_items), prices_(problem.items.size(), 0) {
    rest_.limit = problem.limit;
    for (const PackingType& type : problem.types) rest_.limits.push_back(type.limit);
    for (size_t item = 0; item < problem.items.size(); ++item) {
      rest_.items.push_back(AnyTypeTakes(item) ? problem.items[item].count : 0);
    }
  }

  Packing Run() {
    const ReservedMemory memory(budget_, BytesFor(problem_.items.size()));
    if (!memory.ok()) return Result();
    const std::vector<int64_t> wanted = rest_.items;
    while (KindsLeft() > 0 && !FewAreLeft() && !budget_->ended() && Round()) {
    }
    if (FewAreLeft()) PackExactlyWhatIsLeft();
    if (budget_->ended()) FillOneAfterTheOther();
    Packing packing = Result();
    Bound(wanted, &packing);
    return packing;
  }

  PackingBound BoundAlone() {
    const ReservedMemory memory(budget_, BytesFor(problem_.items.size()));
    if (!memory.ok()) return {};
    classes_ = ClassesOf(problem_, rest_.items, kClasses, budget_);
    SampleClasses();
    const double bound = BoundFor(rest_.items);
    return {bound, !budget_->ended()};
  }

 private:
  bool AnyTypeTakes(size_t item) const {
    return std::any_of(problem_.types.begin(), problem_.types.end(), [&](const PackingType& type) {
      return type.limit != 0 && type.most[item] > 0 &&
             CopiesThatFit(type.free, problem_.items[item].request) > 0;
    });
  }

  size_t KindsLeft() const {
    return static_cast<size_t>(
        std::count_if(rest_.items.begin(), rest_.items.end(), [](int64_t count) { return count > 0; }));
  }

  bool FewAreLeft() const {
    int64_t items = 0;
    for (const int64_t count : rest_.items) items = SaturatingAdd(items, count);
    return items <= last_items_ && KindsLeft() <= kKindsForOneWay;
  }

  bool MayAdd(size_t type) const { return rest_.NodesWithinLimits(static_cast<int32_t>(type), 1) > 0; }

  int64_t UnitsPerNode() const { return static_cast<int64_t>(10 + 3 * classes_.size()); }

  // Returns the bytes of tables by item, and of nodes of one item each.
  static int64_t BytesFor(size_t items) { return static_cast<int64_t>(items * 384); }

  void SampleClasses() {
    for (const ItemClass& entry : classes_) sample_.push_back(entry.members[entry.members.size() / 2]);
  }

  // Makes nodes for what is left until half of the kinds have found a place. False: none were made.
  bool Round() {
    classes_ = ClassesOf(problem_, rest_.items, kClasses, budget_);
    if (sample_.empty()) {
      SampleClasses();
      bound_of_all_ = BoundFor(rest_.items);
    }
    const size_t goal = KindsLeft() / 2;
    bool any = false;
    while (KindsLeft() > goal && !budget_->ended()) {
      const std::vector<bool> types = ScarcestTypes();
      std::vector<PackingType> rest = TypesLeft(problem_, rest_);
      std::vector<int64_t> counts = rest_.items;
      for (size_t t = 0; t < types.size(); ++t) {
        if (!types[t]) rest[t].limit = 0;
      }
      for (size_t item = 0; item < counts.size(); ++item) {
        if (counts[item] > 0 && TakenElsewhere(item, types)) counts[item] = 0;
      }
      const ResourceRelaxation relaxed = RelaxResources(problem_.items, rest, rest_.limit, counts, budget_);
      for (size_t item = 0; item < counts.size(); ++item) prices_[item] = relaxed.prices.items[item];
      const int64_t made = MakeNodes(relaxed);
      if (made == 0) break;
      any = true;
    }
    return any;
  }

  // The types that take the class which the fewest types take: its items have least choice, and come first.
  std::vector<bool> ScarcestTypes() const {
    std::vector<bool> best;
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const ItemClass& entry : classes_) {
      const auto left = std::find_if(entry.members.begin(), entry.members.end(), [&](int32_t item) {
        return rest_.items[static_cast<size_t>(item)] > 0;
      });
      if (left == entry.members.end()) continue;
      std::vector<bool> types;
      for (size_t t = 0; t < problem_.types.size(); ++t) {
        types.push_back(MayAdd(t) && FitsAlone(static_cast<size_t>(*left), t));
      }
      const int64_t count = std::count(types.begin(), types.end(), true);
      if (count == 0 || count >= fewest) continue;
      fewest = count;
      best = std::move(types);
    }
    if (best.empty()) best.assign(problem_.types.size(), false);
    return best;
  }

  bool TakenElsewhere(size_t item, const std::vector<bool>& types) const {
    for (size_t t = 0; t < types.size(); ++t) {
      if (!types[t] && MayAdd(t) && FitsAlone(item, t)) return true;
    }
    return false;
  }

  bool FitsAlone(size_t item, size_t type) const {
    const PackingType& node = problem_.types[type];
    return node.most[item] > 0 && CopiesThatFit(node.free, problem_.items[item].request) > 0;
  }

  // Makes a part of the nodes that a relaxation wants of each type. Returns how many it made.
  int64_t MakeNodes(const ResourceRelaxation& relaxed) {
    std::vector<size_t> order(relaxed.nodes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return relaxed.nodes[a] > relaxed.nodes[b]; });
    int64_t made = 0;
    for (const size_t type : order) {
      // Nodes of one type only once the others have none left to make.
      if (relaxed.nodes[type] <= 1e-6 || (made > 0 && relaxed.nodes[type] < 1)) continue;
      const double share = std::ceil(std::min(relaxed.nodes[type] / kStep, 1e15));
      made += MakeNodesOfType(type, static_cast<int64_t>(share), relaxed.covers);
      if (budget_->ended()) break;
    }
    return made;
  }

  int64_t MakeNodesOfType(size_t type, int64_t wanted, bool covers) {
    int64_t made = 0;
    while (made < wanted && MayAdd(type) && budget_->Spend(UnitsPerNode())) {
      // If not all find a place, many small items are more than a few large ones.
      Filling best = Fill(type, covers ? FillOrder::kBalanced : FillOrder::kSmallestFirst);
      if (covers) {
        Filling other = Fill(type, FillOrder::kLargestFirst);
        if (other.value > best.value) best = std::move(other);
      }
      if (best.content.empty()) break;
      made += Commit(type, wanted - made, std::move(best.content));
    }
    return made;
  }

  Filling Fill(size_t type, FillOrder order) {
    Filling node{problem_.types[type].free, {}, 0};
    std::vector<double> open(classes_.size());
    const auto rate = [&](size_t number) {
      ItemClass& entry = classes_[number];
      if (entry.members.empty() || CopiesThatFit(node.free, entry.least) == 0) return 0.0;
      return Rating(entry, type, node, order);
    };
    std::vector<size_t> candidates;
    for (size_t number = 0; number < classes_.size(); ++number) {
      open[number] = rate(number);
      if (open[number] > 0) candidates.push_back(number);
    }
    while (!candidates.empty()) {
      const auto best = std::max_element(candidates.begin(), candidates.end(),
                                         [&](size_t a, size_t b) { return open[a] < open[b]; });
      if (!TakeMember(*best, type, &node)) {
        candidates.erase(best);  // less is left from now on
        continue;
      }
      std::erase_if(candidates, [&](size_t number) { return (open[number] = rate(number)) <= 0; });
    }
    return node;
  }

  // Returns the priority of an item of a class for a node, > 0.
  double Rating(const ItemClass& entry, size_t type, const Filling& node, FillOrder order) const {
    double size = 1e-12, balanced = 1e-12;
    const std::vector<int64_t>& whole = problem_.types[type].free;
    for (size_t r = 0; r < whole.size(); ++r) {
      if (whole[r] <= 0) continue;
      const double part = static_cast<double>(entry.request[r]) / static_cast<double>(whole[r]);
      size += part;
      balanced += part * static_cast<double>(node.free[r]) / static_cast<double>(whole[r]);
    }
    if (order == FillOrder::kBalanced) return balanced;
    return order == FillOrder::kLargestFirst ? size : 1 / size;
  }

  // Puts the largest item of a class that fits onto a node. False: there is none.
  bool TakeMember(size_t number, size_t type, Filling* node) {
    std::vector<int32_t>& members = classes_[number].members;
    bool gone = false, taken = false;
    for (const int32_t item : members) {
      gone = gone || rest_.items[static_cast<size_t>(item)] == 0;
      taken = TakeItem(item, 1, type, &node->free, &node->content) > 0;
      if (!taken) continue;
      node->value += prices_[static_cast<size_t>(item)];
      break;
    }
    if (gone)
      std::erase_if(members, [&](int32_t item) { return rest_.items[static_cast<size_t>(item)] == 0; });
    return taken;
  }

  // Puts up to `wanted` copies of an item onto a node beside what is there. Returns how many.
  int64_t TakeItem(int32_t item, int64_t wanted, size_t type, std::vector<int64_t>* free, Content* content) {
    const size_t i = static_cast<size_t>(item);
    const auto there = std::find_if(content->begin(), content->end(),
                                    [&](const auto& entry) { return entry.first == item; });
    const int64_t already = there == content->end() ? 0 : there->second;
    const PackingItem& of = problem_.items[i];
    const int64_t count = std::min({wanted, rest_.items[i] - already, problem_.types[type].most[i] - already,
                                    CopiesThatFit(*free, of.request)});
    if (count <= 0) return 0;
    TakeCopies(of.request, count, free);
    if (already > 0) {
      there->second += count;
    } else {
      content->emplace_back(item, count);
    }
    return count;
  }

  // Makes up to `wanted` nodes with this content, as many as there are items for. Returns how many.
  int64_t Commit(size_t type, int64_t wanted, Content content) {
    int64_t nodes = rest_.NodesWithinLimits(static_cast<int32_t>(type), wanted);
    for (const auto& [item, count] : content)
      nodes = std::min(nodes, rest_.items[static_cast<size_t>(item)] / count);
    for (const auto& [item, count] : content) rest_.items[static_cast<size_t>(item)] -= count * nodes;
    rest_.TakeFromLimits(static_cast<int32_t>(type), nodes);
    std::sort(content.begin(), content.end());
    nodes_[{static_cast<int32_t>(type), std::move(content)}] += nodes;
    return nodes;
  }

  void PackExactlyWhatIsLeft() {
    std::vector<int32_t> items;
    const PackingProblem rest = ProblemOfRest(problem_, rest_, &items);
    if (!items.empty()) Add(PackExactly(rest, budget_), items);
  }

  void Add(const Packing& packing, const std::vector<int32_t>& items) {
    for (const PackedNodes& run : packing.nodes) {
      Content content;
      for (const auto& [item, count] : run.items) {
        const int32_t of = items[static_cast<size_t>(item)];
        content.emplace_back(of, count);
        rest_.items[static_cast<size_t>(of)] -= count * run.nodes;
      }
      rest_.TakeFromLimits(run.type, run.nodes);
      nodes_[{run.type, std::move(content)}] += run.nodes;
    }
  }

  // No more work: each node takes the next items. Cost: O(items * types) at most.
  void FillOneAfterTheOther() {
    std::vector<int32_t> items;
    for (size_t item = 0; item < rest_.items.size(); ++item) {
      if (rest_.items[item] > 0) items.push_back(static_cast<int32_t>(item));
    }
    for (size_t first = 0; first < items.size();) {
      const size_t item = static_cast<size_t>(items[first]);
      const std::optional<size_t> type =
          rest_.items[item] > 0 ? CheapestTypeFor(problem_, rest_, item) : std::nullopt;
      if (!type.has_value()) {
        ++first;
        continue;
      }
      Content content;
      std::vector<int64_t> free = problem_.types[*type].free;
      for (size_t i = first; i < std::min(items.size(), first + kLookAhead); ++i) {
        TakeItem(items[i], rest_.items[static_cast<size_t>(items[i])], *type, &free, &content);
      }
      Commit(*type, std::numeric_limits<int64_t>::max(), std::move(content));
    }
  }

  Packing Result() const {
    Packing packing;
    std::vector<int64_t> placed(problem_.items.size(), 0);
    for (const auto& [node, count] : nodes_) {
      packing.nodes.push_back({node.first, count, node.second});
      packing.cost += problem_.types[static_cast<size_t>(node.first)].cost * static_cast<double>(count);
      for (const auto& [item, each] : node.second) placed[static_cast<size_t>(item)] += each * count;
    }
    for (size_t item = 0; item < placed.size(); ++item) {
      packing.left.push_back(problem_.items[item].count - placed[item]);
    }
    return packing;
  }

  void Bound(const std::vector<int64_t>& wanted, Packing* packing) {
    if (sample_.empty()) return;
    std::vector<int64_t> placed;
    for (size_t item = 0; item < wanted.size(); ++item) {
      placed.push_back(problem_.items[item].count - packing->left[item]);
    }
    const double bound = placed == wanted ? bound_of_all_ : BoundFor(placed);
    packing->lower_bound = std::min(packing->cost, bound);
    packing->proven = !budget_->ended();
  }

  double BoundFor(const std::vector<int64_t>& counts) {
    const ResourceRelaxation relaxed =
        RelaxResources(problem_.items, problem_.types, problem_.limit, counts, budget_);
    return PriceBound(problem_, counts, relaxed.prices, sample_, budget_);
  }

  const PackingProblem& problem_;
  WorkBudget* budget_;
  int64_t last_items_;
  PackingRest rest_;
  std::map<std::pair<int32_t, Content>, int64_t> nodes_;
  std::vector<ItemClass> classes_;
  std::vector<double> prices_;   // by item: of the last relaxation
  std::vector<int32_t> sample_;  // one item of each class at first
  double bound_of_all_ = 0;
};

}  // namespace

Packing PackCoarsely(const PackingProblem& problem, int64_t last_items, WorkBudget* budget) {
  return CoarsePacker(problem, last_items, budget).Run();
}

PackingBound BoundCoarsely(const PackingProblem& problem, WorkBudget* budget) {
  return CoarsePacker(problem, 0, budget).BoundAlone();
}

}  // namespace loadline
