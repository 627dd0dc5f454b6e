// One pod against the nodes of a snapshot.
#ifndef LOADLINE_CORE_FIT_POD_FIT_H_
#define LOADLINE_CORE_FIT_POD_FIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/fit/node_filter.h"
#include "core/fit/verdict.h"

namespace loadline {

// The filters for one incoming pod, prepared once and asked for many nodes, also after moves of the snapshot.
// Computes once per shape the part that depends on the shape of a node only.
//
// Work: preparing is O(requirements of the pod * shapes of the snapshot), and O(pods) where it brings a term
// that the snapshot has not counted yet. A question is O(resources + ports + terms of the pod + anti-affinity
// terms of other pods that match it); with volumes also O(volumes of the pods on the node). A selector of n
// values costs O(log n) per match, a pod of n labels O(log n) per requirement. Not thread-safe.
class PodFit {
 public:
  // `snapshot` and `options` outlive the object, and its objects (namespaces, volumes) do not change.
  // `budget`, nullptr for none, takes work and memory of terms and constraints that are new to the snapshot;
  // it may end before the object does. See CutShort().
  PodFit(Snapshot* snapshot, IncomingPod pod, const FitOptions* options, WorkBudget* budget = nullptr);
  PodFit(const PodFit&) = delete;
  PodFit& operator=(const PodFit&) = delete;

  const IncomingPod& pod() const { return pod_; }
  // The shape to place pods like this one by; -1 where the budget had ended before the object was made.
  int32_t shape() const { return context_.shape; }
  // Returns whether the scheduler of the pod prefers nodes that are used most; see FitOptions.
  bool most_allocated() const { return context_.options != nullptr && context_.options->most_allocated; }

  // To be called before a round of questions, after other pods may have become known to the snapshot.
  void Refresh(WorkBudget* budget = nullptr);

  // Returns whether the budget ended before all facts were known on which answers depend, when the object was
  // made or at the last Refresh(). Then nothing fits, and Judge() says that it cannot judge.
  bool CutShort() const { return cut_short_ || not_refreshed_; }

  // Returns the cost of a question about one node, in units of a WorkBudget: with many terms, ports or
  // volumes more than 1.
  int64_t UnitsPerNode() const { return units_per_node_; }

  // The answer for a node that is there; of all reasons, as kube-scheduler would give it.
  // `known`: a refusal for lack of room has no reasons and no class if its filter is no later than this.
  Verdict Judge(NodeIndex node, FilterName known = FilterName::kNone);
  // Returns whether Judge() says kFits; cheap.
  bool Fits(NodeIndex node);

  // Returns whether a node that passes takes pods like this one until it runs out of resources or pod slots,
  // whatever other pods there are: no port, volume, affinity or spreading plays a part, neither of this pod
  // nor, as far as the snapshot knows them, of others. The last Refresh() decides.
  bool OnlyNeedsRoom() const;

  // The parts of Fits(): nothing fits anywhere; what does not depend on other nodes; and what does.
  bool Hopeless() const { return refused_.has_value() || doubt_.has_value() || CutShort(); }
  bool FitsByItself(NodeIndex node);
  bool FitsAmongOthers(NodeIndex node) const;
  // After FitsAmongOthers() said no, see NodeFilter.
  std::optional<Blocked> BlockedBy(NodeIndex node) const;
  // Returns the demands of all filters; more may be added by Refresh().
  const std::vector<Demand>& demands() const { return demands_; }
  bool WaivesOccupied() const;

 private:
  enum class ShapeVerdict : char { kUnknown, kPasses, kFails };

  void CollectDemands();
  bool PassesByShape(NodeIndex node);

  IncomingPod pod_;
  PodRules no_rules_;
  FitContext context_;
  std::vector<std::unique_ptr<NodeFilter>> filters_;  // in their order
  std::vector<Demand> demands_;
  std::optional<Verdict> refused_;
  std::optional<Verdict> doubt_;
  int64_t units_per_node_ = 1;
  bool cut_short_ = false;              // in the constructor
  bool not_refreshed_ = false;          // at the last Refresh()
  std::vector<ShapeVerdict> by_shape_;  // by node shape: all filters of that scope together
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_POD_FIT_H_
