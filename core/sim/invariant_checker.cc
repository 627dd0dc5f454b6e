#include "core/sim/invariant_checker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

constexpr int64_t kCheckedHourMs = 3'600'000;
// Published: Cluster Autoscaler's defaults of --ok-total-unready-count and --max-total-unready-percentage.
constexpr int64_t kMostUnready = 3;
constexpr int64_t kMostUnreadyPercent = 45;
constexpr int64_t kOldestViewMs = 60'000;  // chosen: a loop may act on a view of this age

}  // namespace

InvariantChecker::InvariantChecker(const World* world, const Cloud* cloud)
    : world_(*world),
      cloud_(*cloud),
      has_line_(world->scenario().settings.HasLine()),
      ready_(world->scenario().workloads.size()),
      groups_(world->scenario().groups.size()) {}

void InvariantChecker::Violation(absl::string_view invariant, const std::string& text) {
  if (violations_.size() >= kMostViolations) return;
  violations_.push_back(absl::StrCat(invariant, " at ", world_.now_ms(), " ms: ", text));
}

// Returns whether the loop hears of everything at once.
bool InvariantChecker::SeesAll() const {
  const SimFaults& faults = world_.scenario().faults;
  return faults.watch_lag_ms_max == 0 && faults.lost_event == 0 && faults.broken_list == 0 &&
         faults.api_down == 0;
}

// Returns whether the next process knows all that one has found out.
bool InvariantChecker::RemembersAll() const {
  const SimFaults& faults = world_.scenario().faults;
  return faults.failed_state_write == 0 && faults.leader_ends_acting == 0 && faults.api_down == 0;
}

// --- pods and nodes ----------------------------------------------------------------------------------------

void InvariantChecker::PodChanged(SimPodIndex pod) {
  if (!pods_.Contains(pod)) pods_.resize(IndexOf(pod) + 1);
  // The time runs up to the moment in which the first pod appears.
  if (world_.pods_alive() <= 1) no_pods_ms_ = world_.now_ms();
  const SimPod& of = world_.pod(pod);
  PodNote& note = pods_[pod];
  const bool ready = of.phase == SimPodPhase::kRunning;
  if (of.evicted && !note.evicted) {
    note.evicted = true;
    evicted_ms_ = world_.now_ms();
    if (note.ready) CheckEviction(pod);
  }
  if (ready != note.ready) ready_[of.workload] += ready ? 1 : -1;
  note.ready = ready;
  const OptionalIndex<SimNodeIndex> on = of.on();
  if (on == note.on) return;
  if (note.on.has_value()) Leaves(pod, *note.on);
  if (on.has_value()) Comes(pod, *on);
  note.on = on;
}

// Returns whether its node must not go with it.
bool InvariantChecker::HasToMove(SimPodIndex pod) const {
  return !world_.IsDaemon(pod) && !world_.IsExpendable(pod);
}

// It is still among the ready ones.
void InvariantChecker::CheckEviction(SimPodIndex pod) {
  const SimWorkloadIndex workload = world_.pod(pod).workload;
  const SimWorkload& of = world_.workload(workload);
  if (of.not_evictable && !world_.IsExpendable(workload))
    Violation("D3", absl::StrCat("pod ", IndexOf(pod), " is evicted, and must not be"));
  if (of.max_unavailable < 0) return;
  const int64_t left = ready_[workload] - 1;
  const int64_t expected = of.kind == SimWorkloadKind::kDeployment
                               ? world_.replicas(workload).wanted
                               : static_cast<int64_t>(world_.replicas(workload).alive.size()) + 1;
  if (left >= expected - of.max_unavailable) return;
  Violation("D1", absl::StrCat("the eviction of pod ", IndexOf(pod), " leaves ", left, " of ", expected,
                               " of ", of.name, ", of which ", of.max_unavailable, " may be missing"));
}

void InvariantChecker::Comes(SimPodIndex pod, SimNodeIndex node) {
  if (!nodes_.Contains(node)) nodes_.resize(IndexOf(node) + 1);
  NodeNote& note = nodes_[node];
  const SimWorkload& workload = world_.workload(world_.pod(pod).workload);
  note.cpu += workload.request.cpu;
  note.memory += workload.request.memory;
  note.gpus += workload.gpus;
  ++note.pods;
  const SimGroup& group = world_.group(world_.node(node).group);
  if (workload.kind == SimWorkloadKind::kDaemon) return;  // it is there whatever else is
  note.to_move += HasToMove(pod) ? 1 : 0;
  if (note.tainted)
    Violation("A7", absl::StrCat("pod ", IndexOf(pod), " comes to node ", IndexOf(node),
                                 ", which is to be deleted"));
  if (note.cpu > group.allocatable.cpu || note.memory > group.allocatable.memory || note.gpus > group.gpus ||
      note.pods > group.pods) {
    Violation("A7", absl::StrCat("node ", IndexOf(node), " has more on it than it offers, with pod ",
                                 IndexOf(pod)));
  }
}

void InvariantChecker::Leaves(SimPodIndex pod, SimNodeIndex node) {
  NodeNote& note = nodes_[node];
  const SimWorkload& workload = world_.workload(world_.pod(pod).workload);
  note.cpu -= workload.request.cpu;
  note.memory -= workload.request.memory;
  note.gpus -= workload.gpus;
  --note.pods;
  if (HasToMove(pod) && --note.to_move == 0) note.empty_since_ms = world_.now_ms();
}

void InvariantChecker::NodeChanged(SimNodeIndex node) {
  if (!nodes_.Contains(node)) nodes_.resize(IndexOf(node) + 1);
  const SimNode& of = world_.node(node);
  if (nodes_[node].pods == 0) nodes_[node].empty_since_ms = world_.now_ms();
  if (of.tainted && !nodes_[node].tainted) {
    nodes_[node].tainted_since_ms = world_.now_ms();
    nodes_[node].tries = 0;
  }
  NodeNote& note = nodes_[node];
  const bool offers = of.Offers() && of.devices;
  if (note.marks != of.marks) note.marked_ms = world_.now_ms();
  if (!offers) {
    note.offers_ms = -1;
  } else if (note.offers_ms < 0 || note.marks != of.marks) {
    note.offers_ms = world_.now_ms();
  }
  note.marks = of.marks;
  nodes_[node].tainted = of.tainted;
  nodes_[node].started = nodes_[node].started || of.ready;
  NoteWhetherFull(of.group);
  if (!of.present) removed_ms_ = world_.now_ms();
  if (!of.present) std::erase_if(going_, [&](const Going& going) { return going.node == node; });
}

// --- what the loop does ------------------------------------------------------------------------------------

void InvariantChecker::StartsToGo(SimNodeIndex node, bool empty, bool of_move) {
  const SimNode& of = world_.node(node);
  if (!of.present) return;  // the loop did not know, and nothing happens
  const SimSettings& settings = world_.scenario().settings;
  const int64_t clocks_ms = 2 * world_.scenario().faults.leader_clock_ms;
  const int64_t since_growth_ms = world_.now_ms() - granted_ms_;
  if (grew_ms_ == world_.now_ms() ||
      (granted_ms_ >= 0 && since_growth_ms < settings.after_add_s * 1000 - clocks_ms)) {
    Violation("D11", absl::StrCat("node ", IndexOf(node), " goes while groups grow, or have just grown"));
  }
  std::erase_if(going_, [&](const Going& going) { return going.node == node && going.abandoned; });
  const bool goes =
      std::any_of(going_.begin(), going_.end(), [&](const Going& going) { return going.node == node; });
  const bool deleting = world_.machine(of.machine).state == SimMachine::State::kDeleting;
  if (goes || (deleting && SeesAll())) {
    Violation("D10", absl::StrCat("node ", IndexOf(node), " is chosen again"));
  }
  const int64_t least_ms = std::min(settings.unneeded_time_s, settings.unready_time_s) * 1000 - clocks_ms;
  const int64_t age_ms = world_.now_ms() - of.joined_ms;
  if (age_ms < least_ms && !of_move) {
    Violation("D7", absl::StrCat("node ", IndexOf(node), " goes ", age_ms, " ms after it came"));
  }
  if (of.Has(SimMark::kKeep) && SeesAll()) {
    Violation("D14", absl::StrCat("node ", IndexOf(node), " goes, and an annotation keeps it"));
  }
  CheckKnown(node, empty);
  CheckMayMove(node);
  CheckUnready("D11", absl::StrCat("node ", IndexOf(node), " goes"), kStartupMs);
  CheckMinimum(node);
  going_.push_back({node, !empty, of_move});
  CheckParallelism();
  // If writes fail, nodes that could be marked are given back for those that could not, or that fails too: a
  // few more tries count as progress. Chosen.
  constexpr int64_t kMostTries = 100;
  NodeNote& note = nodes_[node];
  if (world_.scenario().faults.failed_write > 0 && ++note.tries <= kMostTries) {
    note.tainted_since_ms = world_.now_ms();
  }
}

// Nodes that may still be starting are none of the cluster.
void InvariantChecker::CheckUnready(absl::string_view invariant, const std::string& what,
                                    int64_t youngest_ms) {
  if (!SeesAll()) return;
  int64_t unready = 0;
  int64_t nodes = 0;
  for (const SimNodeIndex other : world_.nodes()) {
    ++nodes;
    const SimNode& of = world_.node(other);
    unready += of.ready || world_.now_ms() - of.joined_ms < youngest_ms ? 0 : 1;
  }
  if (unready > kMostUnready && unready * 100 > nodes * kMostUnreadyPercent) {
    Violation(invariant, absl::StrCat(what, " while ", unready, " of ", nodes, " nodes are not ready"));
  }
}

// The loop knows the cluster well enough to let a node go, and what is on it.
void InvariantChecker::CheckKnown(SimNodeIndex node, bool empty) {
  const SimFaults& faults = world_.scenario().faults;
  const int64_t down_ms = world_.api_down_since_ms();
  const int64_t interval_ms = world_.scenario().settings.scan_interval_s * 1000;
  if (down_ms >= 0 && world_.now_ms() - down_ms > kOldestViewMs + interval_ms) {
    Violation("D8", absl::StrCat("node ", IndexOf(node), " goes, and the API server is out of reach since ",
                                 down_ms));
  }
  // A lost change arrives with a list; and a list that lacks few pods, or is the first one of a new process,
  // looks the same as pods that have ended: only the look right before the eviction does not (D3).
  if (!empty || faults.lost_event > 0 || faults.broken_list > 0) return;
  const int64_t told_ms = faults.watch_lag_ms_max + faults.api_down_s * 1000 + kCheckedHourMs;
  for (const SimPodIndex pod : world_.node(node).pods) {
    const SimPod& of = world_.pod(pod);
    // One that takes longer to end than it may counts for nothing.
    if (!HasToMove(pod) || of.phase == SimPodPhase::kTerminating) continue;
    if (world_.now_ms() - of.bound_ms <= told_ms) continue;
    Violation("D8",
              absl::StrCat("node ", IndexOf(node), " goes as an empty one, and has pod ", IndexOf(pod)));
  }
}

void InvariantChecker::CheckMayMove(SimNodeIndex node) {
  if (!SeesAll()) return;
  for (const SimPodIndex pod : world_.node(node).pods) {
    const SimWorkload& of = world_.workload(world_.pod(pod).workload);
    if (!HasToMove(pod) || world_.pod(pod).phase == SimPodPhase::kTerminating) continue;
    if (of.not_evictable)
      Violation("D3", absl::StrCat("node ", IndexOf(node), " goes, and pod ", IndexOf(pod), " must stay"));
    if (of.two_budgets && of.max_unavailable >= 0) {
      Violation("D1",
                absl::StrCat("node ", IndexOf(node), " goes, and two budgets select pod ", IndexOf(pod)));
    }
  }
}

void InvariantChecker::CheckMinimum(SimNodeIndex node) {
  const GroupIndex group = world_.node(node).group;
  const SimGroup& of = world_.group(group);
  int64_t asked = 0;  // that the cloud still counts
  int64_t going = 0;
  for (const Going& entry : going_) {
    if (world_.node(entry.node).group != group || IsLeftBehind(entry)) continue;
    ++going;
    asked += deleted_.contains(world_.node(entry.node).machine) ? 0 : 1;
  }
  const int64_t target = cloud_.target(group) - asked - 1;
  if (target < of.min_nodes) {
    Violation("D2",
              absl::StrCat("group ", of.name, " is left with a target of ", target, ", with a minimum of ",
                           of.min_nodes, ", when node ", IndexOf(node), " goes"));
  }
  int64_t nodes = -1 - going;
  for (const SimNodeIndex other : world_.nodes()) nodes += world_.node(other).group == group ? 1 : 0;
  if (nodes < of.min_nodes && SeesAll()) {
    Violation("D2", absl::StrCat("group ", of.name, " is left with ", nodes, " nodes, with a minimum of ",
                                 of.min_nodes, ", when node ", IndexOf(node), " goes"));
  }
}

// Returns whether its removal has begun and nobody continues it.
bool InvariantChecker::IsLeftBehind(const Going& going) const {
  return going.abandoned &&
         world_.machine(world_.node(going.node).machine).state != SimMachine::State::kDeleting;
}

// One that the cloud has said to delete long ago, and has not, holds up nobody.
bool InvariantChecker::IsUnderWay(const Going& going) const {
  const int64_t patience_ms = kDeletionPatienceMs - 1'000;  // marks have the time in full seconds
  const bool stuck = going.deleted_ms >= 0 && world_.now_ms() - going.deleted_ms >= patience_ms;
  return !going.abandoned && !stuck;
}

void InvariantChecker::CheckParallelism() {
  const SimSettings& settings = world_.scenario().settings;
  int64_t drains = 0;
  int64_t all = 0;
  int64_t replaced = 0;
  StrongVector<GroupIndex, int64_t> of_group(world_.scenario().groups.size(), 0);
  for (const Going& going : going_) {
    if (!IsUnderWay(going)) continue;
    ++all;
    ++of_group[world_.node(going.node).group];
    drains += going.drain && going.deleted_ms < 0 ? 1 : 0;
    replaced += going.drain && going.of_move ? 1 : 0;
  }
  if (replaced > settings.replacement.options.max_nodes_at_once) {
    Violation("D13", absl::StrCat(replaced, " nodes are replaced at once, of at most ",
                                  settings.replacement.options.max_nodes_at_once));
  }
  if (all > settings.max_scale_down_parallelism) {
    Violation("D6", absl::StrCat(all, " nodes go at once, of at most ", settings.max_scale_down_parallelism));
  }
  const int64_t most_of_group = *std::max_element(of_group.begin(), of_group.end());
  if (settings.node_budget > 0 && most_of_group > settings.node_budget) {
    Violation("D6",
              absl::StrCat(most_of_group, " nodes of a group go at once, of at most ", settings.node_budget));
  }
  if (drains > settings.max_drain_parallelism) {
    Violation("D6", absl::StrCat(drains, " nodes are drained at once, of at most ",
                                 settings.max_drain_parallelism));
  }
}

void InvariantChecker::GivesBack(SimNodeIndex node) {
  const SimNode& of = world_.node(node);
  if (of.present && world_.machine(of.machine).state == SimMachine::State::kDeleting) {
    Violation("D10", absl::StrCat("node ", IndexOf(node), " is given back, and the cloud is deleting it"));
  }
  std::erase_if(going_, [&](const Going& going) { return going.node == node; });
}

void InvariantChecker::GivesUp(SimNodeIndex node) {
  for (Going& going : going_) going.abandoned = going.abandoned || going.node == node;
}

void InvariantChecker::Deletes(SimMachineIndex machine, bool late) {
  const SimMachine& of = world_.machine(machine);
  // A removal under way does not know that somebody else has just done the same.
  if (of.state == SimMachine::State::kDeleting && (late || !of.deleted_by_hand)) {
    Violation("D10", absl::StrCat("machine ", IndexOf(machine), " is deleted again"));
  }
  if (late && of.faulty) return;
  if (late) {
    const int64_t age_ms = world_.now_ms() - of.ordered_ms;
    if (of.had_node && SeesAll()) {
      Violation("D9", absl::StrCat("machine ", IndexOf(machine), " is given up, and has had a node"));
    }
    // Each process reads its own clock.
    const int64_t least_ms =
        world_.scenario().settings.max_node_provision_s * 1000 - 2 * world_.scenario().faults.leader_clock_ms;
    if (age_ms < least_ms) {
      Violation("D9",
                absl::StrCat("machine ", IndexOf(machine), " is given up ", age_ms, " ms after its order"));
    }
    if (cloud_.target(of.group) <= world_.group(of.group).min_nodes) {
      Violation("D2", absl::StrCat("machine ", IndexOf(machine), " is given up, of a group at its minimum"));
    }
    return;
  }
  for (const SimPodIndex pod : world_.node(*of.node).pods) {
    if (!HasToMove(pod)) continue;
    Violation("D3", absl::StrCat("node ", IndexOf(*of.node), " goes with pod ", IndexOf(pod),
                                 ", which was not evicted"));
  }
  deleted_.insert(machine);
  for (Going& going : going_) {
    if (going.node == of.node) going.deleted_ms = world_.now_ms();
  }
}

void InvariantChecker::LeaderChanges() {
  for (Going& going : going_) going.abandoned = true;
  if (RemembersAll()) return;
  granted_ms_ = -1;
  for (GroupNote& group : groups_) group.failed_ms = -1;
}

}  // namespace loadline
