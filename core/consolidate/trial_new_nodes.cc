// The new nodes of a move: the cheapest that take the pods for which there is no room.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "core/consolidate/trial.h"
#include "core/pack/coarse_packing.h"
#include "core/pack/fill.h"

namespace loadline {
namespace {

// The cheapest node that holds everything; nullopt: none does.
std::optional<Packing> OnOneNode(const PackingProblem& problem) {
  std::optional<Packing> best;
  for (size_t t = 0; t < problem.types.size(); ++t) {
    const PackingType& type = problem.types[t];
    if (best.has_value() && best->cost <= type.cost) continue;
    std::vector<int64_t> free = type.free;
    PackedNodes node{static_cast<int32_t>(t), 1, {}};
    for (size_t i = 0; i < problem.items.size(); ++i) {
      const PackingItem& item = problem.items[i];
      if (item.count > type.most[i] || item.count > CopiesThatFit(free, item.request)) break;
      TakeCopies(item.request, item.count, &free);
      node.items.emplace_back(static_cast<int32_t>(i), item.count);
    }
    if (node.items.size() < problem.items.size()) continue;
    best.emplace();
    best->nodes = {std::move(node)};
    best->left.assign(problem.items.size(), 0);
    best->cost = type.cost;
  }
  return best;
}

}  // namespace

TrialEnd Trial::AddNodes(double most_cost) {
  if (!PackRest(most_cost))
    return trial_cluster_.work()->ended() ? TrialEnd::kCutShort : TrialEnd::kNotCheaper;
  for (Place& place : places_) {
    if (place.to != kNoTarget) continue;
    const MoverKindIndex kind = trial_cluster_.movers()[place.mover].kind;
    if (!trial_cluster_.work()->Spend()) return TrialEnd::kCutShort;
    from_[kind] = 0;
    if (const std::optional<NodeIndex> node = FindRoom(kind)) {
      Put(&place, *node);
    } else if (!AddForOne(&place, most_cost)) {
      stuck_ = trial_cluster_.movers()[place.mover].node;
      return TrialEnd::kNoPlace;
    } else if (AddedCost() > most_cost) {
      return TrialEnd::kNotCheaper;
    }
  }
  DropUnused();
  return TrialEnd::kMade;
}

int64_t Trial::RoomOf(GroupIndex group) const {
  if (trial_cluster_.node_template(group) == nullptr) return 0;
  const NodeGroup& of = trial_cluster_.problem().groups[group];
  if (!spot_may_come_ && of.priced.spot) return 0;
  if (of.atomic) return 0;  // it would grow by all of its nodes
  if (trial_cluster_.MakesDearerNodes(group)) return 0;
  int64_t room = MostNodes(of) - trial_cluster_.group_nodes()[group] - added_of_[group];
  if (trial_cluster_.problem().max_nodes.has_value()) {
    room = std::min(room, *trial_cluster_.problem().max_nodes - trial_cluster_.node_count() -
                              static_cast<int64_t>(added_.size()));
  }
  return std::max<int64_t>(0, room);
}

// Returns how many pods of a kind a new node of the group may take: none if a group of a higher priority has
// room and takes such pods, or if such pods are on nodes of one, which may have no room for another node.
int64_t Trial::MostOn(MoverKindIndex kind, GroupIndex group) {
  const int64_t most = trial_cluster_.MostOn(kind, group);
  if (most == 0 || !trial_cluster_.options().by_priority) return most;
  const auto [known, is_new] = highest_.try_emplace(kind);  // nullopt, which is the lowest
  std::optional<int64_t>& highest = known->second;
  if (is_new) {
    const Mover& mover = trial_cluster_.movers()[trial_cluster_.kinds()[kind].first_mover];
    const std::optional<GroupIndex> home = trial_cluster_.node(mover.home).group;
    if (home.has_value()) highest = trial_cluster_.problem().groups[*home].priority;
  }
  for (const GroupIndex other : added_of_.indices()) {
    if (!is_new) break;
    const std::optional<int64_t>& priority = trial_cluster_.problem().groups[other].priority;
    if (priority > highest && RoomOf(other) > 0 && trial_cluster_.MostOn(kind, other) > 0) highest = priority;
  }
  return trial_cluster_.problem().groups[group].priority < highest ? 0 : most;
}

// Groups that may take part in a packing of these kinds.
std::vector<GroupIndex> Trial::GroupsFor(const std::vector<MoverKindIndex>& kinds, double most_cost) {
  // The part of the best efficiency from which on a type is good. Chosen: types that are nearly as efficient
  // stay in the packing, so that a smaller one can take the last pods.
  constexpr double kGood = 0.93;
  std::vector<GroupIndex> groups;
  double best = 0;
  for (const GroupIndex group : added_of_.indices()) {
    const double cost = UsdOf(trial_cluster_.problem().groups[group]);
    if (RoomOf(group) == 0 || cost > most_cost) continue;
    groups.push_back(group);
    best = std::max(best, trial_cluster_.EfficiencyOf(group));
  }
  if (!good_types_) return groups;
  const auto good = [&](GroupIndex group) { return trial_cluster_.EfficiencyOf(group) >= kGood * best; };
  // Pods that no good type takes need others.
  std::vector<MoverKindIndex> left;
  for (const MoverKindIndex kind : kinds) {
    const bool taken = std::any_of(groups.begin(), groups.end(),
                                   [&](GroupIndex group) { return good(group) && MostOn(kind, group) > 0; });
    if (!taken) left.push_back(kind);
  }
  std::erase_if(groups, [&](GroupIndex group) {
    return !good(group) &&
           std::none_of(left.begin(), left.end(), [&](MoverKindIndex k) { return MostOn(k, group) > 0; });
  });
  return groups;
}

// Packs what has no place yet onto new nodes, and makes them. False: not at this cost, or not at all.
bool Trial::PackRest(double most_cost) {
  highest_.clear();
  // The rest costs at least its worth, if the prices are right.
  PackingProblem problem;
  std::vector<std::vector<size_t>> places_of_item;
  std::vector<MoverKindIndex> kind_of_item;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].to != kNoTarget) continue;
    const MoverKindIndex kind = trial_cluster_.movers()[places_[i].mover].kind;
    if (kind_of_item.empty() || kind_of_item.back() != kind) {
      kind_of_item.push_back(kind);
      problem.items.push_back({trial_cluster_.kinds()[kind].request, 0});
      places_of_item.emplace_back();
    }
    ++problem.items.back().count;
    places_of_item.back().push_back(i);
  }
  std::vector<std::vector<GroupIndex>> groups_of_type;
  std::map<std::tuple<double, std::vector<int64_t>, std::vector<int64_t>>, size_t> types;
  for (const GroupIndex group : GroupsFor(kind_of_item, most_cost)) {
    const int64_t room = RoomOf(group);
    const double cost = UsdOf(trial_cluster_.problem().groups[group]);
    if (!trial_cluster_.work()->Spend(static_cast<int64_t>(1 + problem.items.size() / 4))) return false;
    std::vector<int64_t> most;
    for (size_t item = 0; item < problem.items.size(); ++item) {
      most.push_back(std::min(problem.items[item].count, MostOn(kind_of_item[item], group)));
    }
    if (std::all_of(most.begin(), most.end(), [](int64_t m) { return m == 0; })) continue;
    const std::vector<int64_t>& free = trial_cluster_.node_template(group)->free;
    const auto [found, is_new] = types.try_emplace({cost, free, most}, problem.types.size());
    if (is_new) {
      problem.types.push_back({free, cost, room, std::move(most)});
      groups_of_type.push_back({group});
    } else {
      *problem.types[found->second].limit += room;
      groups_of_type[found->second].push_back(group);
    }
  }
  if (problem.types.empty()) return false;
  if (trial_cluster_.problem().max_nodes.has_value()) {
    problem.limit = std::max<int64_t>(0, *trial_cluster_.problem().max_nodes - trial_cluster_.node_count());
  }
  constexpr int64_t kLastItems = 100;  // are packed exactly if there is work for it; chosen as in packing.cc
  Packing packing = PackCoarsely(problem, exact_work_ > 0 ? kLastItems : 0, trial_cluster_.work());
  if (exact_work_ > 0 && !trial_cluster_.work()->ended()) {
    WorkBudget local(std::min(trial_cluster_.work()->units(), exact_work_));
    Packing exact = Pack(problem, &local);
    trial_cluster_.work()->Spend(exact_work_ - std::max<int64_t>(0, local.units()));
    const auto remains = [](const Packing& p) {
      return std::accumulate(p.left.begin(), p.left.end(), int64_t{0});
    };
    if (std::pair(remains(exact), exact.cost) < std::pair(remains(packing), packing.cost))
      packing = std::move(exact);
  }
  if (std::optional<Packing> one = OnOneNode(problem); one.has_value()) {
    const bool all =
        std::all_of(packing.left.begin(), packing.left.end(), [](int64_t left) { return left == 0; });
    if (!all || one->cost < packing.cost) packing = *std::move(one);
  }
  if (packing.cost > most_cost) return false;
  PlacePacked(packing, GroupsOfNodes(packing, groups_of_type, kind_of_item), std::move(places_of_item));
  return true;
}

// Returns the group of each node of a packing, as far as there is room and work. A type may be that of
// several groups, such as one for each zone: if some pods depend on others, a node is of the first group that
// takes its first pod, given the nodes before.
std::vector<GroupIndex> Trial::GroupsOfNodes(const Packing& packing,
                                             const std::vector<std::vector<GroupIndex>>& groups_of_type,
                                             const std::vector<MoverKindIndex>& kind_of_item) {
  const bool try_out = std::any_of(kind_of_item.begin(), kind_of_item.end(), [&](MoverKindIndex kind) {
    return !trial_cluster_.kinds()[kind].only_room;
  });
  const StrongVector<GroupIndex, int64_t> added_before = added_of_;
  const NodeIndex end{trial_cluster_.snapshot().node_end()};
  std::vector<GroupIndex> chosen;
  int64_t asked = 0;
  trial_cluster_.snapshot().Fork();
  for (const PackedNodes& run : packing.nodes) {
    const std::vector<GroupIndex>& groups = groups_of_type[static_cast<size_t>(run.type)];
    for (int64_t i = 0; i < run.nodes; ++i) {
      std::optional<GroupIndex> group;
      for (const GroupIndex candidate : groups) {
        if (RoomOf(candidate) == 0) continue;
        if (!group.has_value()) group = candidate;
        if (!try_out || !trial_cluster_.work()->Spend(20)) break;
        const NodeIndex node = trial_cluster_.AddNode(candidate);
        if (TryOut(run, kind_of_item, node)) {
          group = candidate;
          break;
        }
        trial_cluster_.snapshot().RemoveNode(node);
      }
      if (!group.has_value()) break;
      ++added_of_[*group];
      chosen.push_back(*group);
    }
    asked += run.nodes;
    if (static_cast<int64_t>(chosen.size()) < asked) break;  // those of the next run would be taken for them
  }
  trial_cluster_.snapshot().Revert();
  trial_cluster_.ForgetNodes(end);
  added_of_ = added_before;
  return chosen;
}

// Places the pods of a packed node on the snapshot, as far as they fit. Returns whether the first one did.
bool Trial::TryOut(const PackedNodes& run, const std::vector<MoverKindIndex>& kind_of_item, NodeIndex node) {
  bool any = false;
  for (const auto& [item, count] : run.items) {
    const MoverKindIndex kind = kind_of_item[static_cast<size_t>(item)];
    trial_cluster_.fit(kind).Refresh(trial_cluster_.work());
    for (int64_t i = 0; i < count && trial_cluster_.work()->Spend() && trial_cluster_.fit(kind).Fits(node);
         ++i) {
      trial_cluster_.snapshot().PlacePod(node, trial_cluster_.kinds()[kind].shape);
      any = true;
    }
    if (!any) return false;
  }
  return any;
}

void Trial::PlacePacked(const Packing& packing, const std::vector<GroupIndex>& groups,
                        std::vector<std::vector<size_t>> places_of_item) {
  // All nodes at once, as a scheduler sees them.
  std::vector<std::pair<NodeIndex, const PackedNodes*>> nodes;
  for (const PackedNodes& run : packing.nodes) {
    for (int64_t i = 0; i < run.nodes; ++i) {
      if (nodes.size() == groups.size() || !trial_cluster_.work()->Spend(20)) return;
      nodes.emplace_back(Bring(groups[nodes.size()]), &run);
    }
  }
  // Pods of the same node stay together where they can, so that parts of the move have less to do with each
  // other.
  for (std::vector<size_t>& places : places_of_item) std::reverse(places.begin(), places.end());
  for (const auto& [node, run] : nodes) {
    for (const auto& [item, count] : run->items) {
      std::vector<size_t>& places = places_of_item[static_cast<size_t>(item)];
      for (int64_t i = 0; i < count && !places.empty(); ++i) {
        Place& place = places_[places.back()];
        const MoverKindIndex kind = trial_cluster_.movers()[place.mover].kind;
        if (!trial_cluster_.work()->Spend() || !trial_cluster_.fit(kind).Fits(node)) break;
        Put(&place, node);
        places.pop_back();
      }
    }
  }
}

// The preferred new node for a pod that fits nowhere else: of the groups whose nodes may take it, the first
// that does, given all other pods.
// If the first does not, those that cost too much are not tried: a pod that fits nowhere would take the work
// of all others.
bool Trial::AddForOne(Place* place, double most_cost) {
  const MoverKindIndex kind = trial_cluster_.movers()[place->mover].kind;
  std::vector<GroupIndex> groups = trial_cluster_.PreferredGroups(kind);
  std::erase_if(groups, [&](GroupIndex group) { return RoomOf(group) == 0; });
  for (const GroupIndex group : groups) {
    const double usd = UsdOf(trial_cluster_.problem().groups[group]);
    const bool too_dear = group != groups.front() && AddedCost() + usd > most_cost;
    if (too_dear || !trial_cluster_.work()->Spend(20)) return false;
    const NodeIndex node = Bring(group);
    trial_cluster_.fit(kind).Refresh(trial_cluster_.work());
    if (trial_cluster_.fit(kind).Fits(node)) {
      Put(place, node);
      return true;
    }
    Drop(node);
    added_.pop_back();
  }
  return false;
}

// Takes back a new node that nothing came to. It is still in `added_`.
void Trial::Drop(NodeIndex node) {
  --added_of_[*trial_cluster_.node(node).group];
  trial_cluster_.snapshot().RemoveNode(node);
  trial_cluster_.room().Read(node);
}

// Nodes that nothing came to are not needed.
void Trial::DropUnused() {
  StrongVector<NodeIndex, bool> used(trial_cluster_.nodes().size(), false);
  for (const Place& place : places_) used[place.to] = true;
  std::erase_if(added_, [&](NodeIndex node) {
    if (used[node]) return false;
    Drop(node);
    return true;
  });
}

}  // namespace loadline
