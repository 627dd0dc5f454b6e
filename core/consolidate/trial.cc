#include "core/consolidate/trial.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/consolidate/as_scheduled.h"

namespace loadline {
namespace {

// An amount in US dollars per hour. A smaller difference is a rounding error of sums of prices.
constexpr double kCent = 1e-9;

// The number of times that a move is tried again without the nodes of a pod that has no place. Chosen: each
// time costs as much as the first.
constexpr int kMostRetries = 6;

bool Pays(const MoveTerms& terms, const ConsolidationOptions& options) {
  return terms.saves() > kCent && terms.saves() + kCent >= terms.Required(options);
}

NodeIndex RootOf(const StrongVector<NodeIndex, NodeIndex>& parent, NodeIndex node) {
  while (parent[node] != node) node = parent[node];
  return node;
}

}  // namespace

TrialEnd Trial::Make(const std::vector<NodeIndex>& go, bool may_add, std::vector<MadeMove>* made) {
  const TrialEnd end = MakeSome(go, may_add, made);
  const bool refused =
      end == TrialEnd::kNoPlace || end == TrialEnd::kNotCheaper || end == TrialEnd::kSavesTooLittle;
  return refused && may_add && !spot_may_come_ && PaysWithSpot(go) ? TrialEnd::kTooFewSpotGroups : end;
}

// Returns whether the move could be made if any number of spot groups sufficed. Changes nothing.
bool Trial::PaysWithSpot(const std::vector<NodeIndex>& go) {
  ignores_spot_rule_ = true;
  Begin();
  TakeOff(go);
  const bool pays = Arrange(go, /*may_add=*/true) == TrialEnd::kMade && !PartsThatPay(go).empty();
  Undo(go);
  ignores_spot_rule_ = false;
  return pays && !trial_cluster_.work()->ended();
}

TrialEnd Trial::MakeSome(std::vector<NodeIndex> go, bool may_add, std::vector<MadeMove>* made) {
  made->clear();
  int retries = kMostRetries;
  // Each retry leaves nodes out, which makes the rest smaller, so that this ends.
  for (;;) {
    Parts parts;
    const TrialEnd end = MakeOnce(go, may_add, &parts);
    if (end == TrialEnd::kNoPlace && may_add && go.size() > 1 && stuck_ != kNoTarget && retries-- > 0) {
      std::erase(go, stuck_);
      continue;
    }
    if (end != TrialEnd::kMade) return end;
    size_t nodes = 0;
    for (const std::vector<NodeIndex>& part : parts) nodes += part.size();
    if (nodes == go.size()) {
      Keep(parts, made);
      return TrialEnd::kMade;
    }
    if (nodes == 0) return TrialEnd::kSavesTooLittle;
    go.clear();
    for (const std::vector<NodeIndex>& part : parts) go.insert(go.end(), part.begin(), part.end());
  }
}

// Nothing has changed where some parts do not pay.
TrialEnd Trial::MakeOnce(const std::vector<NodeIndex>& go, bool may_add, Parts* parts) {
  // New nodes may keep the cluster at its minimum, but a group gives up no node for a new one of its own.
  const MinimumReached reached = trial_cluster_.MinimumReachedBy(go, {});
  if (reached == MinimumReached::kOfGroup) return TrialEnd::kGroupAtMinimum;
  if (reached == MinimumReached::kOfCluster && !may_add) return TrialEnd::kClusterAtMinimum;
  Begin();
  TakeOff(go);
  TrialEnd end = Arrange(go, may_add);
  if (trial_cluster_.work()->ended()) end = TrialEnd::kCutShort;
  size_t paying = 0;
  if (end == TrialEnd::kMade) {
    *parts = PartsThatPay(go);
    for (const std::vector<NodeIndex>& part : *parts) paying += part.size();
  }
  if (paying == go.size()) {
    trial_cluster_.snapshot().Commit();
  } else {
    Undo(go);
  }
  return end;
}

TrialEnd Trial::Arrange(const std::vector<NodeIndex>& go, bool may_add) {
  double removed_usd = 0;
  spot_usd_ = std::numeric_limits<double>::infinity();
  for (const NodeIndex node : go) {
    removed_usd += trial_cluster_.node(node).usd;
    spot_usd_ = std::min(spot_usd_, trial_cluster_.node(node).spot_usd);
  }
  spot_may_come_ = SpotMayCome();
  if (!UseRoom()) return TrialEnd::kNoPlace;
  const bool all =
      std::all_of(places_.begin(), places_.end(), [](const Place& p) { return p.to != kNoTarget; });
  if (!all) {
    if (!may_add) return TrialEnd::kNoPlace;
    const TrialEnd end = AddNodes(removed_usd - kCent);
    if (end != TrialEnd::kMade) return end;
  }
  if (trial_cluster_.MinimumReachedBy(go, added_) != MinimumReached::kNone)
    return TrialEnd::kClusterAtMinimum;
  const MoveTerms terms = TermsOf(go);
  if (terms.saves() <= kCent) return TrialEnd::kNotCheaper;
  if (!Pays(terms, trial_cluster_.options())) return TrialEnd::kSavesTooLittle;
  return trial_cluster_.options().as_scheduled ? PutAsScheduled(go, may_add) : TrialEnd::kMade;
}

// See ConsolidationOptions::least_spot_groups.
bool Trial::SpotMayCome() const {
  if (ignores_spot_rule_ || spot_usd_ == std::numeric_limits<double>::infinity()) return true;
  const auto groups = trial_cluster_.problem().groups;
  return std::count_if(groups.begin(), groups.end(), [&](const NodeGroup& group) {
           return group.priced.spot && HasNewNodes(group) && *group.usd_per_hour < spot_usd_;
         }) >= trial_cluster_.options().least_spot_groups;
}

// Makes the move again with the same new nodes, but pods go where a scheduler puts them; a few further nodes
// come where that leaves some without a place, as long as the move pays.
TrialEnd Trial::PutAsScheduled(const std::vector<NodeIndex>& go, bool may_add) {
  std::vector<GroupIndex> groups;
  std::vector<MoverIndex> movers;
  for (const NodeIndex node : added_) groups.push_back(*trial_cluster_.node(node).group);
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.mover < b.mover; });
  for (const Place& place : places_) movers.push_back(place.mover);
  std::vector<NodeIndex> nodes;
  const auto has_room = [&](GroupIndex group) { return RoomOf(group) > 0; };
  for (size_t further = 0;; ++further) {
    BringAgain(go, groups);
    if (!Pays(TermsOf(go), trial_cluster_.options())) return TrialEnd::kSavesTooLittle;
    FurtherNode node{has_room, std::nullopt};
    const bool may_come = may_add && further < kMostFurtherNodes;
    if (PlaceAsScheduled(&trial_cluster_, movers, {}, &nodes, may_come ? &node : nullptr)) break;
    if (!node.group.has_value()) return TrialEnd::kNoPlace;
    groups.push_back(*node.group);
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i].to = nodes[i];
    trial_cluster_.room().Read(nodes[i]);
  }
  return TrialEnd::kMade;
}

// Begins the move anew with new nodes of these groups, and no pod placed.
void Trial::BringAgain(const std::vector<NodeIndex>& go, const std::vector<GroupIndex>& groups) {
  Undo(go);
  trial_cluster_.snapshot().Fork();
  for (const NodeIndex node : go) trial_cluster_.Leave(node);
  added_.clear();
  added_of_.assign(added_of_.size(), 0);
  for (const GroupIndex group : groups) Bring(group);
  for (Place& place : places_) place.to = kNoTarget;
}

void Trial::Begin() {
  first_new_ = NodeIndex{trial_cluster_.snapshot().node_end()};
  added_.clear();
  added_of_.assign(trial_cluster_.problem().groups.size(), 0);
  places_.clear();
  stuck_ = kNoTarget;
  trial_cluster_.snapshot().Fork();
}

NodeIndex Trial::Bring(GroupIndex group) {
  added_.push_back(trial_cluster_.AddNode(group));
  double& spot_usd = trial_cluster_.node(added_.back()).spot_usd;
  spot_usd = std::min(spot_usd, spot_usd_);
  ++added_of_[group];
  return added_.back();
}

void Trial::TakeOff(const std::vector<NodeIndex>& go) {
  for (const NodeIndex node : go) {
    for (const MoverIndex mover : trial_cluster_.node(node).movers) places_.push_back({mover});
    trial_cluster_.Leave(node);
  }
  for (const Place& place : places_) {
    // The facts about a kind may have changed with others.
    if (!trial_cluster_.KindOf(place.mover).only_room)
      trial_cluster_.Prepare(trial_cluster_.movers()[place.mover].kind);
  }
  // Pods that depend on others have the fewest places, large ones fewer than small ones.
  std::stable_sort(places_.begin(), places_.end(), [&](const Place& a, const Place& b) {
    const MoverKindIndex kind_a = trial_cluster_.movers()[a.mover].kind;
    const MoverKindIndex kind_b = trial_cluster_.movers()[b.mover].kind;
    const MoverKind& x = trial_cluster_.kinds()[kind_a];
    const MoverKind& y = trial_cluster_.kinds()[kind_b];
    return std::tuple(x.only_room, -x.size, kind_a) < std::tuple(y.only_room, -y.size, kind_b);
  });
  from_.assign(trial_cluster_.kinds().size(), 0);
}

// Places what fits on nodes that are there. False: the budget ended, or a pod fits nowhere in any case.
bool Trial::UseRoom() {
  std::optional<MoverKindIndex> full;  // the last kind for which no room was left
  for (Place& place : places_) {
    const MoverKindIndex number = trial_cluster_.movers()[place.mover].kind;
    const MoverKind& kind = trial_cluster_.kinds()[number];
    if (kind.hopeless || !trial_cluster_.work()->Spend()) return false;
    if (number == full) continue;
    const std::optional<NodeIndex> node = FindRoom(number);
    if (node.has_value()) {
      Put(&place, *node);
    } else {
      full = number;
    }
  }
  return true;
}

std::optional<NodeIndex> Trial::FindRoom(MoverKindIndex number) {
  const MoverKind& kind = trial_cluster_.kinds()[number];
  PodFit& fit = trial_cluster_.fit(number);
  if (!kind.only_room) fit.Refresh(trial_cluster_.work());
  // If a kind needs no more than room, full nodes stay full as pods are placed.
  const size_t from = kind.only_room ? from_[number] : 0;
  for (size_t at = trial_cluster_.room().Next(kind.request, from); at < trial_cluster_.room().end();
       at = trial_cluster_.room().Next(kind.request, at + 1)) {
    from_[number] = at;
    if (!trial_cluster_.work()->Spend(kind.only_room ? 1 : fit.UnitsPerNode())) return std::nullopt;
    if (kind.only_room ? fit.FitsByItself(trial_cluster_.room().at(at))
                       : fit.Fits(trial_cluster_.room().at(at)))
      return trial_cluster_.room().at(at);
  }
  from_[number] = trial_cluster_.room().end();
  return std::nullopt;
}

void Trial::Put(Place* place, NodeIndex node) {
  trial_cluster_.Place(place->mover, node);
  place->to = node;
}

double Trial::AddedCost() const {
  double cost = 0;
  for (const NodeIndex node : added_) cost += trial_cluster_.node(node).usd;
  return cost;
}

MoveTerms Trial::TermsOf(const std::vector<NodeIndex>& go) const {
  MoveTerms terms;
  for (const NodeIndex node : go)
    terms.Remove(trial_cluster_.node(node).usd, trial_cluster_.node(node).age_hours);
  for (const NodeIndex node : added_) terms.Add(trial_cluster_.node(node).usd);
  for (const Place& place : places_) {
    const Mover& mover = trial_cluster_.movers()[place.mover];
    if (mover.node == mover.home) terms.Disturb(mover.pod.usd);
  }
  return terms;
}

// Nodes that go and new ones belong together where a pod moves from one to the other.
Trial::Parts Trial::PartsThatPay(const std::vector<NodeIndex>& go) const {
  StrongVector<NodeIndex, NodeIndex> parent;
  for (const NodeIndex node : trial_cluster_.nodes().indices()) parent.push_back(node);
  struct Part {
    MoveTerms terms;
    std::vector<NodeIndex> nodes;
  };
  for (const Place& place : places_) {
    if (place.to < first_new_) continue;
    const NodeIndex a = RootOf(parent, trial_cluster_.movers()[place.mover].node),
                    b = RootOf(parent, place.to);
    parent[std::max(a, b)] = std::min(a, b);
  }
  std::map<NodeIndex, Part> parts;
  const auto part_of = [&](NodeIndex node) -> Part& { return parts[RootOf(parent, node)]; };
  for (const NodeIndex node : go) {
    part_of(node).terms.Remove(trial_cluster_.node(node).usd, trial_cluster_.node(node).age_hours);
    part_of(node).nodes.push_back(node);
  }
  for (const NodeIndex node : added_) part_of(node).terms.Add(trial_cluster_.node(node).usd);
  for (const Place& place : places_) {
    const Mover& mover = trial_cluster_.movers()[place.mover];
    if (mover.node == mover.home) part_of(mover.node).terms.Disturb(mover.pod.usd);
  }
  Parts pays;
  for (auto& [root, part] : parts) {
    if (Pays(part.terms, trial_cluster_.options())) pays.push_back(std::move(part.nodes));
  }
  return pays;
}

void Trial::Undo(const std::vector<NodeIndex>& go) {
  trial_cluster_.snapshot().Revert();
  trial_cluster_.ForgetNodes(first_new_);
  for (const NodeIndex node : go) trial_cluster_.room().Read(node);
  for (const Place& place : places_) {
    if (place.to != kNoTarget && place.to < first_new_) trial_cluster_.room().Read(place.to);
  }
}

void Trial::Keep(const Parts& parts, std::vector<MadeMove>* made) {
  StrongVector<NodeIndex, std::optional<size_t>> part_of(trial_cluster_.nodes().size());
  for (const std::vector<NodeIndex>& part : parts) {
    for (const NodeIndex node : part) part_of[node] = made->size();
    MadeMove& move = made->emplace_back();
    move.removed = part;
    for (const NodeIndex node : part) {
      trial_cluster_.CountRemoved(node);
      trial_cluster_.node(node).movers.clear();
    }
  }
  for (const Place& place : places_) {
    Mover& mover = trial_cluster_.movers()[place.mover];
    const std::optional<size_t> part = part_of[mover.node];
    LOADLINE_CHECK(place.to != kNoTarget) << "a pod has no place";
    if (place.to >= first_new_) part_of[place.to] = part;
    (*made)[*part].moved.emplace_back(place.mover, mover.node);
    mover.node = place.to;
    trial_cluster_.node(place.to).movers.push_back(place.mover);
  }
  int64_t count = trial_cluster_.node_count() + static_cast<int64_t>(added_.size());
  for (const NodeIndex node : added_) {
    (*made)[part_of[node].value_or(0)].added.push_back(node);
    trial_cluster_.CountAdded(node);
  }
  for (const MadeMove& move : *made) count -= static_cast<int64_t>(move.removed.size());
  trial_cluster_.set_node_count(count);
}

}  // namespace loadline
