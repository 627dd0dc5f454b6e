#include "core/grow/expected_pods.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cluster/leaving.h"
#include "core/cluster/pod_role.h"
#include "core/drain/being_deleted.h"
#include "core/expand/plan.h"

namespace loadline {
namespace {

// The part of the budget of a question in which waiting pods look for nodes. Chosen: what is asked about has
// the rest.
constexpr double kForWaiting = 0.5;

// Returns the places of pods that wait on nodes of the snapshot.
std::vector<ExpectedPlace> PlacesOnNodes(const std::vector<PendingPods>& waiting, PodsOfDeleting pods,
                                         const DrainProblem& drain, const FitOptions& fit, Snapshot* snapshot,
                                         WorkBudget* budget) {
  const WorkPhase phase(budget, kForWaiting);
  snapshot->Fork();
  RemovePodsThatGiveWay(snapshot);
  const ClusterState& cluster = *drain.cluster;
  CloseNodesBeingDeleted(cluster, NodesBeingDeleted(cluster, {}, drain.now_s), pods, snapshot);
  const ScaleUpPlan plan = PlanScaleUp(snapshot, &fit, waiting, {}, GrowableGroups(), PlanOptions(), budget);
  snapshot->Revert();
  std::vector<ExpectedPlace> places;
  for (const ExistingUse& use : plan.existing) {
    places.push_back({use.pods.pods, use.pods.count, use.node, std::nullopt});
  }
  return places;
}

}  // namespace

void CloseNodesBeingDeleted(const ClusterState& cluster, std::span<const Slot> deleting, PodsOfDeleting pods,
                            Snapshot* snapshot) {
  for (const Slot slot : deleting) {
    const std::optional<NodeIndex> node = snapshot->FindSlot(slot);
    if (!node.has_value()) continue;
    std::vector<int32_t> shapes;
    for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
      const bool waits = pods == PodsOfDeleting::kWait &&
                         NeedsAnotherNode(cluster.pod_shapes()[pod.shape], cluster.objects());
      if (waits) shapes.push_back(snapshot->ShapeOf(pod.shape));
    }
    Vacate(*node, shapes, snapshot);
  }
}

void KeepExpected(const std::vector<PendingPods>& waiting, std::span<const ExpectedPlace> expected,
                  const Snapshot& snapshot, WorkBudget* budget, DrainProblem* drain) {
  // Estimated: a placeholder with its name, and its place in the trial cluster.
  constexpr int64_t kBytesOfExpected = 512;
  int64_t pods = 0;
  for (const ExpectedPlace& place : expected) pods += place.group.has_value() ? 0 : place.count;
  if (!budget->Reserve(pods * kBytesOfExpected)) {
    drain->doubt = absl::StrCat("there is not enough memory to plan with the ", pods,
                                " waiting pods that are expected on nodes");
    return;
  }
  std::vector<int64_t> named(waiting.size(), 0);
  for (const ExpectedPlace& place : expected) {
    if (place.group.has_value()) continue;
    const size_t position = static_cast<size_t>(place.pods);
    const IncomingPod& pod = waiting[position].pod;
    const std::string name =
        pod.name.empty()  // of a node that is being deleted
            ? absl::StrCat("room for the replacement of a pod in namespace ", pod.shape.namespace_name)
            : absl::StrCat("room for waiting pod ", pod.shape.namespace_name, "/", pod.name);
    for (int64_t i = 0; i < place.count; ++i) {
      const int64_t number = ++named[position];  // equal pods have one name here
      drain->placeholders.emplace_back(number == 1 ? name : absl::StrCat(name, " (", number, ")"),
                                       snapshot.name(place.node), pod);
      drain->placeholders.back().is_room = true;
    }
  }
}

void ExpectOnNodes(std::vector<PendingPods> waiting, PodsOfDeleting pods, const FitOptions& fit,
                   Snapshot* snapshot, WorkBudget* budget, DrainProblem* drain) {
  std::erase_if(waiting, [](const PendingPods& entry) { return GivesWay(TraitsOf(entry.pod.shape)); });
  if (waiting.empty()) return;
  const std::vector<ExpectedPlace> places = PlacesOnNodes(waiting, pods, *drain, fit, snapshot, budget);
  KeepExpected(waiting, places, *snapshot, budget, drain);
}

}  // namespace loadline
