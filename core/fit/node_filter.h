// The interface of all filters. Each has a file of its own; filters.h lists them.
#ifndef LOADLINE_CORE_FIT_NODE_FILTER_H_
#define LOADLINE_CORE_FIT_NODE_FILTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/cluster/snapshot.h"
#include "core/fit/load_line.h"
#include "core/fit/verdict.h"

namespace loadline {

// Releases of kube-scheduler of which the rules are known: 1.36 and 1.37.
inline constexpr int kFirstMinor = 36;
inline constexpr int kLastMinor = 37;

struct SchedulerProfile;

// Configuration of the scheduler whose answer is wanted.
struct FitOptions {
  // NodeAffinityArgs.addedAffinity, its required part.
  std::optional<NodeSelector> added_affinity;
  // NodeResourcesFitArgs: extended resources, and prefixes of them, that do not count.
  absl::flat_hash_set<std::string> ignored_resources;
  absl::flat_hash_set<std::string> ignored_resource_groups;
  // Reproduces kubernetes/kubernetes#141526: a namespace selector of the incoming pod that matches an empty
  // set of labels matches every namespace.
  bool namespace_selector_sees_no_labels = false;
  // The most that the limits of the pods of a node may add up to; off by default.
  LoadLine load_line = {};
  // The minor version of kube-scheduler, in [kFirstMinor, kLastMinor].
  int minor = kFirstMinor;
  // The filters that refuse no pod, as bits 1 << FilterName.
  uint32_t disabled = 0;
  // NodeResourcesFit scores by MostAllocated, and not by LeastAllocated: of nodes that take a pod, the one
  // that it leaves least of is chosen. No filter reads it.
  bool most_allocated = false;
  // Other profiles, each for the pods that name it; these have no profiles of their own.
  std::vector<SchedulerProfile> profiles;

  // Returns the options for pods of a profile; an empty or unknown name: these options.
  const FitOptions& Of(absl::string_view scheduler_name) const;
};

// A further profile of the scheduler, for the pods that name it.
struct SchedulerProfile {
  std::string scheduler_name;
  FitOptions options;
};

inline const FitOptions& FitOptions::Of(absl::string_view scheduler_name) const {
  if (scheduler_name.empty()) return *this;
  for (const SchedulerProfile& profile : profiles) {
    if (profile.scheduler_name == scheduler_name) return profile.options;
  }
  return *this;
}

// A pod that looks for a node.
struct IncomingPod {
  PodShape shape;
  std::string name;
  std::string uid;
  // The cluster's default spread constraints, complete with the selector that holds for this pod.
  std::vector<SpreadConstraint> default_spread;
  // Names that ids in the shape refer to: those of the snapshot's cluster state, with names added.
  ResourceNames names;
};

// The objects that filters are made for. They outlive them.
struct FitContext {
  Snapshot* snapshot = nullptr;
  const IncomingPod* pod = nullptr;
  int32_t shape = -1;               // of the pod, in the snapshot
  const PodRules* rules = nullptr;  // empty for a plain pod
  const FitOptions* options = nullptr;
  // The budget for making filters; not to be used later. Where it ends, a filter sets `cut_short`, and its
  // answers mean nothing.
  WorkBudget* budget = nullptr;
  bool* cut_short = nullptr;
};

// The result of NodeFilter::Refresh().
enum class Refreshed {
  kSame,
  kMoreDemands,
  kCutShort,  // the budget ended, and answers would be wrong until it is called again
};

// The part of the cluster on which the answer of a filter for one node depends.
enum class Scope {
  kNodeShape,  // the shape of the node: remembered for all nodes that share it
  kNode,       // the node, and the pods on it
  kTopology,   // also pods elsewhere, through counts
};

// The condition of a filter of scope kTopology on the count in a node's domain.
enum class DemandKind {
  kEmpty,     // no counted pod is in it, or the node has no domain
  kOccupied,  // one is
  kBalanced,  // see NodeFilter::BlockedBy()
};

struct Demand {
  const DomainCounts* counts;
  DemandKind kind;
};

// A demand kBalanced that a node does not meet: no node of the domain does until DomainCounts::changed()
// names it.
struct Blocked {
  const DomainCounts* counts;
  int32_t domain;
};

// One filter for one incoming pod. Answers follow the snapshot.
class NodeFilter {
 public:
  NodeFilter(FilterName name, Scope scope) : name_(name), scope_(scope) {}
  virtual ~NodeFilter() = default;
  NodeFilter(const NodeFilter&) = delete;
  NodeFilter& operator=(const NodeFilter&) = delete;

  FilterName name() const { return name_; }
  Scope scope() const { return scope_; }

  // Takes note of what other pods demand that the snapshot has learned of; called before a round of
  // questions.
  virtual Refreshed Refresh(WorkBudget*) { return Refreshed::kSame; }

  // Returns the cost of one question about a node, in units of a WorkBudget, beside the unit that each pod
  // pays.
  virtual int64_t UnitsPerNode() const { return 0; }

  // Returns whether the scheduler would look at the node at all. Called before any filter's Passes(); same
  // contract.
  virtual bool LooksAt(NodeIndex, Verdict*) const { return true; }

  // Returns whether the node, which is there, passes. If not and `why` is given, sets it to a refusal, or to
  // what cannot be judged.
  virtual bool Passes(NodeIndex node, Verdict* why) const = 0;

  // Returns whether a filter of scope kNode refuses a node only where pods have used up what RoomColumns of
  // core/expand counts as well.
  virtual bool AsksForRoom() const { return false; }

  // Appends what a filter of scope kTopology demands: a node that does not meet all demands does not pass;
  // one that does may still lack something for good.
  virtual void AddDemands(std::vector<Demand>*) const {}
  // Returns whether demands kOccupied need not be met as things are.
  virtual bool WaivesOccupied() const { return false; }
  // Returns the demand kBalanced that a node which does not pass fails; nullopt: the node lacks something for
  // good.
  virtual std::optional<Blocked> BlockedBy(NodeIndex) const { return std::nullopt; }

 protected:
  // For the last line of Passes().
  bool Refuse(Verdict* why, StatusClass status_class, const char* reason) const {
    if (why != nullptr) *why = Refusal(name_, status_class, {reason});
    return false;
  }

 private:
  FilterName name_;
  Scope scope_;
};

// The result of making a filter, before nodes are looked at.
struct MadeFilter {
  // nullptr: the filter has nothing to decide for this pod.
  std::unique_ptr<NodeFilter> filter;
  // Refuses the pod on every node; or it cannot be judged anywhere, because the scheduler itself would fail.
  std::optional<Verdict> verdict;
  // Something could not be worked out: where nothing refuses the pod, this is the answer.
  std::optional<Verdict> doubt;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_NODE_FILTER_H_
