#include "core/consolidate/search.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/fingerprint.h"

namespace loadline {
namespace {

constexpr int kMostRounds = 12;
// A cluster of at most this many nodes that may go is also replaced as a whole, and its packings get more
// work, in units of about 100 ns. Chosen: at most 20 ms for the whole cluster and 1 ms for a block.
constexpr size_t kSmallCluster = 24;
constexpr int64_t kExactWorkOfAll = 200'000;
constexpr int64_t kExactWorkOfBlock = 10'000;
// The numbers of nodes that are replaced together, in the order of trying; kFirstBlock with good types only.
// Chosen: large blocks first, since their pods share new nodes best; single nodes last, since they nearly
// always have a place.
constexpr size_t kBlockSizes[] = {16, 6, 2, 1};
constexpr size_t kFirstBlock = 20;
// The share of a node's price that its pods are worth from which on the node is filled rather than replaced.
// Chosen: a replacement saves less than the rest of the price, 15 percent, and moves all of the pods.
constexpr double kWorthFilling = 0.85;

size_t NodesThatMayGo(const TrialCluster& trial_cluster) {
  return static_cast<size_t>(std::count_if(trial_cluster.nodes().begin(), trial_cluster.nodes().end(),
                                           [](const TrialNode& node) { return node.may_go; }));
}

KeepReason ReasonFor(TrialEnd end) {
  switch (end) {
    case TrialEnd::kMade:
    case TrialEnd::kNoPlace:
    case TrialEnd::kNotCheaper:
      return KeepReason::kNoCheaperPlace;
    case TrialEnd::kSavesTooLittle:
      return KeepReason::kSavesTooLittle;
    case TrialEnd::kGroupAtMinimum:
      return KeepReason::kGroupAtMinimum;
    case TrialEnd::kClusterAtMinimum:
      return KeepReason::kClusterAtMinimum;
    case TrialEnd::kCutShort:
      return KeepReason::kNotTried;
    case TrialEnd::kTooFewSpotGroups:
      return KeepReason::kTooFewSpotGroups;
  }
  return KeepReason::kNotTried;
}

// Returns how much a reason says of what would help: of several attempts the most telling one counts, and the
// last one of those that are alike.
int Telling(KeepReason reason) {
  if (reason == KeepReason::kTooFewSpotGroups) return 2;
  return reason == KeepReason::kSavesTooLittle || reason == KeepReason::kClusterAtMinimum ? 1 : 0;
}

}  // namespace

Search::Search(TrialCluster* trial_cluster, TriedNodes* tried)
    : trial_cluster_(*trial_cluster),
      tried_(*tried),
      large_(NodesThatMayGo(*trial_cluster) > kSmallCluster),
      trial_(trial_cluster, large_ ? 0 : kExactWorkOfBlock) {}

std::vector<MadeMove> Search::Run() {
  if (trial_cluster_.options().mode == ConsolidationMode::kOff) return {};
  for (int round = 0; round < kMostRounds && !trial_cluster_.work()->ended(); ++round) {
    if (!Round()) break;
  }
  Remember();
  return std::move(moves_);
}

std::optional<KeepReason> Search::ReasonOf(NodeIndex node) const {
  return reasons_.Contains(node) ? reasons_[node] : std::nullopt;
}

// Makes one round of moves. Returns whether anything was made.
bool Search::Round() {
  // In a large cluster what was made is left alone, so that moves stay small.
  if (!large_) {
    touched_.clear();
    reasons_.clear();
  }
  touched_.resize(trial_cluster_.nodes().size(), false);
  reasons_.resize(trial_cluster_.nodes().size());
  SetOrder();
  std::vector<Candidate> candidates = Candidates();
  bool any = ReplaceEmptiest(&candidates);
  any = RemoveEach(&candidates) || any;
  if (trial_cluster_.options().mode != ConsolidationMode::kReplace) return any;
  any = ReplaceAll() || any;
  const size_t most = static_cast<size_t>(trial_cluster_.options().max_nodes_per_move);
  for (const size_t size : kBlockSizes) {
    if (trial_cluster_.work()->ended()) break;
    any = ReplaceBlocks(&candidates, std::min(size, most)) || any;
  }
  return any;
}

bool Search::MayGo(NodeIndex node) const {
  if (!trial_cluster_.IsThere(node) || !trial_cluster_.node(node).may_go) return false;
  const std::vector<MoverIndex>& movers = trial_cluster_.node(node).movers;
  return std::none_of(movers.begin(), movers.end(),
                      [&](MoverIndex mover) { return trial_cluster_.KindOf(mover).hopeless; });
}

std::vector<Search::Candidate> Search::Candidates() {
  std::vector<Candidate> candidates;
  const ConsolidationOptions& options = trial_cluster_.options();
  for (const NodeIndex node : trial_cluster_.nodes().indices()) {
    if (!trial_cluster_.IsThere(node) || !trial_cluster_.node(node).may_go || touched_[node]) continue;
    if (!MayGo(node)) {
      reasons_[node] = KeepReason::kNoCheaperPlace;
      continue;
    }
    const double usd = trial_cluster_.node(node).usd, worth = trial_cluster_.WorthOf(node);
    if (worth >= usd * (1 - options.least_saving_percent / 100) || usd <= 0) {
      reasons_[node] = KeepReason::kWorthItsPrice;
      continue;
    }
    const double share = worth / usd;
    candidates.push_back({node, share, ContentOf(node), IsFresh(node, share)});
    reasons_[node] = KeepReason::kNotTried;
  }
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    return std::tie(a.share, a.content, trial_cluster_.snapshot().name(a.node)) <
           std::tie(b.share, b.content, trial_cluster_.snapshot().name(b.node));
  });
  return candidates;
}

// Pods move to nodes that stay for sure, then to those of good types, the fullest first.
void Search::SetOrder() {
  // Chosen: types that differ by less than 5 percent count as equally efficient.
  constexpr double kSteps = 20;
  using Key = std::tuple<bool, double, double, uint64_t, NodeIndex>;
  std::vector<Key> keys;
  for (const NodeIndex node : trial_cluster_.nodes().indices()) {
    const TrialNode& known = trial_cluster_.node(node);
    if (!trial_cluster_.snapshot().Placeable(node)) {
      keys.emplace_back(true, 0, 0, 0, node);
      continue;
    }
    const double share = known.usd > 0 ? trial_cluster_.WorthOf(node) / known.usd : 1;
    const double efficiency = std::round(std::min(1.0, trial_cluster_.EfficiencyOf(node)) * kSteps);
    keys.emplace_back(known.may_go, -efficiency, -share, ContentOf(node), node);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<NodeIndex> order;
  for (const Key& key : keys) order.push_back(std::get<4>(key));
  trial_cluster_.room().SetOrder(std::move(order));
}

uint64_t Search::ContentOf(NodeIndex node) const {
  // The sum is the same in whichever order pods came.
  const std::optional<GroupIndex> group = trial_cluster_.node(node).group;
  uint64_t content = group.has_value() ? IndexOf(*group) + 1 : 0;
  for (const MoverIndex mover : trial_cluster_.node(node).movers) {
    content += trial_cluster_.snapshot().pod_shape(trial_cluster_.KindOf(mover).shape).fingerprint;
  }
  return content;
}

bool Search::IsFresh(NodeIndex node, double share) const {
  if (trial_cluster_.node(node).is_new) return true;
  const auto found = tried_.find(trial_cluster_.snapshot().name(node));
  if (found == tried_.end()) return true;
  const TriedNode& tried = found->second;
  const int64_t now_s = trial_cluster_.problem().now_s;
  return tried.fingerprint !=
             trial_cluster_.problem().cluster->fingerprint(trial_cluster_.snapshot().slot(node)) ||
         now_s < tried.at_s || now_s >= tried.until_s || std::abs(tried.share - share) > 0.01 ||
         trial_cluster_.node(node).movers.size() !=
             trial_cluster_.problem().nodes[*trial_cluster_.node(node).problem].pods.size();
}

// Returns whether the cost of the nodes above the worth of their pods is enough for a saving.
bool Search::Promises(const std::vector<Candidate>& block) const {
  double usd = 0, worth = 0;
  for (const Candidate& candidate : block) {
    usd += trial_cluster_.node(candidate.node).usd;
    worth += candidate.share * trial_cluster_.node(candidate.node).usd;
  }
  const ConsolidationOptions& options = trial_cluster_.options();
  return usd - worth >= std::max(options.least_saving_usd_per_hour, options.least_saving_percent / 100 * usd);
}

size_t Search::RootOf(size_t move) const {
  while (parent_[move] != move) move = parent_[move];
  return move;
}

// Returns whether this move, merged with the moves that it undoes, is within the limit.
bool Search::SmallEnough(const std::vector<NodeIndex>& go) {
  int64_t size = 0;
  std::set<size_t> with;
  for (const NodeIndex node : go) {
    if (!trial_cluster_.node(node).is_new) ++size;
    if (!users_.Contains(node)) continue;
    for (const size_t user : users_[node]) with.insert(RootOf(user));
  }
  for (const size_t move : with) size += sizes_[move];
  return size <= trial_cluster_.options().max_nodes_per_move;
}

void Search::Record(MadeMove move) {
  const size_t number = moves_.size();
  parent_.push_back(number);
  sizes_.push_back(0);
  users_.resize(trial_cluster_.nodes().size());
  for (const NodeIndex node : move.removed) {
    if (!trial_cluster_.node(node).is_new) ++sizes_.back();
    for (const size_t user : users_[node]) {
      const size_t root = RootOf(user);
      if (root == number) continue;
      parent_[root] = number;
      sizes_.back() += sizes_[root];
    }
  }
  for (const NodeIndex node : move.added) users_[node].push_back(number);
  for (const auto& [mover, from] : move.moved) {
    std::vector<size_t>& users = users_[trial_cluster_.movers()[mover].node];
    if (users.empty() || users.back() != number) users.push_back(number);
  }
  moves_.push_back(std::move(move));
}

bool Search::Try(const std::vector<NodeIndex>& go, bool may_add) {
  if (!SmallEnough(go)) return false;
  std::vector<MadeMove> made;
  const TrialEnd end = trial_.Make(go, may_add, &made);
  touched_.resize(trial_cluster_.nodes().size(), false);
  reasons_.resize(trial_cluster_.nodes().size());
  if (end != TrialEnd::kMade) {
    for (const NodeIndex node : go) {
      std::optional<KeepReason>& reason = reasons_[node];
      const KeepReason now = ReasonFor(end);
      const bool tells = !reason.has_value() || Telling(now) >= Telling(*reason);
      if (tells || end == TrialEnd::kCutShort) reason = now;
    }
    return false;
  }
  for (MadeMove& move : made) {
    Touch(move);
    Record(std::move(move));
  }
  return true;
}

// The nodes that a move added, and the targets of its pods, stay as they are in this round.
void Search::Touch(const MadeMove& move) {
  touched_.resize(trial_cluster_.nodes().size(), false);
  reasons_.resize(trial_cluster_.nodes().size());
  for (const NodeIndex node : move.added) touched_[node] = true;
  for (const auto& [mover, from] : move.moved) {
    const NodeIndex to = trial_cluster_.movers()[mover].node;
    touched_[to] = true;
    reasons_[to] = KeepReason::kTakesPods;
  }
}

// The emptiest nodes of a large cluster, in blocks, onto new nodes of the best types. Their room is hidden,
// so that no pod moves to a node that is to go after it; fuller nodes take pods.
bool Search::ReplaceEmptiest(std::vector<Candidate>* candidates) {
  if (!large_ || trial_cluster_.options().mode != ConsolidationMode::kReplace) return false;
  std::vector<Candidate> emptiest;
  for (const Candidate& candidate : *candidates) {
    if (candidate.share >= kWorthFilling) continue;
    emptiest.push_back(candidate);
    trial_cluster_.room().Hide(candidate.node);
  }
  trial_.UseGoodTypes(true);
  const bool any = ReplaceBlocks(
      &emptiest, std::min(kFirstBlock, static_cast<size_t>(trial_cluster_.options().max_nodes_per_move)));
  trial_.UseGoodTypes(false);
  SetOrder();
  return any;
}

bool Search::RemoveEach(std::vector<Candidate>* candidates) {
  bool any = false;
  for (const Candidate& candidate : *candidates) {
    if (trial_cluster_.work()->ended()) break;
    if (touched_[candidate.node] || !candidate.fresh) continue;
    if (!trial_cluster_.IsThere(candidate.node)) continue;
    any = Try({candidate.node}, /*may_add=*/false) || any;
  }
  std::erase_if(*candidates, [&](const Candidate& candidate) {
    return !trial_cluster_.IsThere(candidate.node) || touched_[candidate.node];
  });
  return any;
}

bool Search::ReplaceBlocks(std::vector<Candidate>* candidates, size_t size) {
  bool any = false;
  std::vector<Candidate> left;
  for (size_t begin = 0; begin < candidates->size(); begin += size) {
    std::vector<Candidate> block;
    for (size_t i = begin; i < std::min(candidates->size(), begin + size); ++i) {
      const Candidate& candidate = (*candidates)[i];
      const bool there = trial_cluster_.IsThere(candidate.node);
      if (there && !touched_[candidate.node]) block.push_back(candidate);
    }
    const bool fresh = std::any_of(block.begin(), block.end(), [](const Candidate& c) { return c.fresh; });
    if (!block.empty() && fresh && !trial_cluster_.work()->ended() && Promises(block)) {
      std::vector<NodeIndex> go;
      for (const Candidate& candidate : block) go.push_back(candidate.node);
      any = Try(go, /*may_add=*/true) || any;
    }
    for (const Candidate& candidate : block) {
      if (trial_cluster_.IsThere(candidate.node) && !touched_[candidate.node]) left.push_back(candidate);
    }
  }
  *candidates = std::move(left);
  return any;
}

// A small cluster, packed anew as a whole.
bool Search::ReplaceAll() {
  std::vector<NodeIndex> all;
  bool fresh = false;
  for (const NodeIndex node : trial_cluster_.nodes().indices()) {
    if (!MayGo(node) || touched_[node]) continue;
    all.push_back(node);
    const double usd = trial_cluster_.node(node).usd;
    fresh = fresh || IsFresh(node, usd > 0 ? trial_cluster_.WorthOf(node) / usd : 1);
  }
  const size_t most =
      std::min(kSmallCluster, static_cast<size_t>(trial_cluster_.options().max_nodes_per_move));
  if (!fresh || all.size() < 2 || all.size() > most || trial_cluster_.work()->ended()) return false;
  std::sort(all.begin(), all.end(), [&](NodeIndex a, NodeIndex b) {
    return std::tuple(ContentOf(a), trial_cluster_.snapshot().name(a)) <
           std::tuple(ContentOf(b), trial_cluster_.snapshot().name(b));
  });
  trial_.set_exact_work(kExactWorkOfAll);
  const bool made = Try(all, /*may_add=*/true);
  trial_.set_exact_work(large_ ? 0 : kExactWorkOfBlock);
  return made;
}

// A node for which too little would be saved is tried again when it has been there for half as long again:
// more moves pay then.
int64_t Search::UntilWhen(NodeIndex node, KeepReason reason) const {
  const int64_t retry_s = trial_cluster_.options().retry_s;
  const std::optional<double>& age_hours = trial_cluster_.node(node).age_hours;
  if (reason != KeepReason::kSavesTooLittle || !age_hours.has_value())
    return trial_cluster_.problem().now_s + retry_s;
  const double half_s = std::clamp(std::ceil(*age_hours * 1'800), 1.0, static_cast<double>(retry_s));
  return trial_cluster_.problem().now_s + static_cast<int64_t>(half_s);
}

void Search::Remember() {
  TriedNodes kept;
  for (const NodeIndex node : trial_cluster_.nodes().indices()) {
    if (!trial_cluster_.IsThere(node) || trial_cluster_.node(node).is_new ||
        !trial_cluster_.node(node).may_go)
      continue;
    const std::optional<KeepReason> reason = ReasonOf(node);
    const std::string& name = trial_cluster_.snapshot().name(node);
    const auto before = tried_.find(name);
    const double usd = trial_cluster_.node(node).usd;
    const double share = usd > 0 ? trial_cluster_.WorthOf(node) / usd : 1;
    const bool tried_now = reason == KeepReason::kNoCheaperPlace || reason == KeepReason::kSavesTooLittle ||
                           reason == KeepReason::kTooFewSpotGroups;
    if (tried_now) {
      const uint64_t fingerprint =
          trial_cluster_.problem().cluster->fingerprint(trial_cluster_.snapshot().slot(node));
      // A node tried as part of a block is not delayed further.
      const bool again = before != tried_.end() && !IsFresh(node, share);
      kept[name] = {fingerprint, again ? before->second.at_s : trial_cluster_.problem().now_s,
                    again ? before->second.until_s : UntilWhen(node, *reason), share, *reason};
    } else if (before != tried_.end() && reason == KeepReason::kNotTried && !IsFresh(node, share)) {
      kept[name] = before->second;
      reasons_[node] = before->second.reason;
    }
  }
  tried_ = std::move(kept);
}

}  // namespace loadline
