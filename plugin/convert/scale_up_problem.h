// Pods that wait, and groups that may grow for them: message to core types.
#ifndef LOADLINE_PLUGIN_CONVERT_SCALE_UP_PROBLEM_H_
#define LOADLINE_PLUGIN_CONVERT_SCALE_UP_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/left_out.h"
#include "core/cluster/node_model.h"
#include "core/cluster/startup_taints.h"
#include "core/cluster/view.h"
#include "core/expand/equivalence.h"
#include "core/expand/plan.h"
#include "core/price/price_model.h"
#include "loadline/v1/scale_up_plan.pb.h"
#include "plugin/convert/fit.h"
#include "plugin/convert/pod_entries.h"
#include "plugin/convert/resources.h"

namespace loadline {

// Bounds of one question, chosen. Pods beyond them are left out, and more groups are refused.
inline constexpr int kMaxPendingPods = 100'000;
inline constexpr int kMaxScalableGroups = 1'000;
inline constexpr int kMaxDaemonPods = 1'000;

// An entry of a request with pods.
struct PodEntry {
  int32_t position = 0;  // in the request
  int32_t count = 0;
};

// A question without its cluster.
struct DecodedProblem {
  FitOptions fit;
  StartupTaints startup_taints;
  std::optional<int64_t> now_s;  // UNIX time of the question; nullopt: it has none, and no node is young
  // The pods of the entries that could be taken, in their order. Labels are not selected yet.
  std::vector<DecodedPod> read;
  std::vector<PodIdentity> identities;  // kController only
  // The entries that each position in `read` represents, in their order. Several if they are the same, byte
  // by byte, and follow each other.
  std::vector<absl::InlinedVector<PodEntry, 1>> from;
  std::vector<PendingPods> pods;  // after Complete(): equal ones together
  PodEntries entries;
  std::vector<IncomingPod> daemons;
  std::vector<Labels> daemon_labels;
  // By position in the request; without a price, and without a model where the request has no template.
  NodeGroups groups;
  LeftOutList left_out;  // pods and groups that could not be taken
  ResourceNames names;
  int64_t clamped_amounts = 0;
};

// How pods become one.
enum class PodGrouping {
  kShape,      // all that decisions read is equal
  kController  // as Cluster Autoscaler does
};

using PendingPodsList = google::protobuf::RepeatedPtrField<v1::PendingPods>;
using ScalableGroups = google::protobuf::RepeatedPtrField<v1::ScalableGroup>;

// Decodes all of `problem` but the cluster. `pods` are the pods of the problem: read from there, so that a
// larger request which has them need not copy them. `names`: those of the cluster. Pods that cannot be taken,
// and those beyond kMaxPendingPods and kMaxDaemonPods, are left out alone; so are groups of an unreadable
// template. Errors: kInvalidArgument  names the group or field. kResourceExhausted  names the limit
absl::StatusOr<DecodedProblem> DecodeProblem(const v1::ScaleUpProblem& problem, const PendingPodsList& pods,
                                             PodGrouping grouping, ResourceNames names,
                                             const ReadOptions& options);

// Works out what new nodes will be of groups by the slots of their nodes, with or without a template; see
// ModelOfNewNode(). Without nodes they are as their template. Prices are those of the template. `stated`: the
// groups that `problem` was decoded from. Errors: kInvalidArgument  names the group
absl::Status DeriveModels(const ScalableGroups& stated, const ClusterState& cluster, DecodedProblem* problem);

// Notes the cloud of groups of which neither a template nor nodes say it: that of most nodes of the cluster.
// To be called when all nodes of groups have been read. Cost: O(nodes) where there is such a group.
void CompleteClouds(const ClusterState& cluster, NodeGroups* groups);

// Returns a new node of a group for those who read prices from the bytes of a node: see EncodeNodeToCome(),
// and for a template EncodeCompleted(). Empty: the group has no nodes, and its template says all that is
// known. `stated`: as above, and checked there.
std::string EncodeModelNode(const ScalableGroups& stated, const ClusterState& cluster, GroupIndex group,
                            const DecodedProblem& problem);

// Adds to a group what its nodes show and the question does not state: without a template what a new node is,
// also for prices, see NewNodeOf(); and the price that more than half of the nodes state. Does nothing
// without nodes, and to a group whose template cannot be read. `lacking`: as in GroupNodes.
void DescribeByNodes(const ClusterState& cluster, const ScalableGroups& stated, std::span<const Slot> nodes,
                     std::span<const Slot> lacking, GroupIndex group, DecodedProblem* problem);

// Makes the view tell pods apart by what selectors of the question refer to. Pods for whose selectors there
// is no room are left out.
void SelectLabelKeys(View* view, DecodedProblem* problem);
// Gives all pods their labels of these keys, and the names, and puts equal ones together.
void Complete(const LabelKeys& keys, DecodedProblem* problem);

// New nodes of all groups together, in a cluster of so many.
NodeLimit NewNodeLimit(const v1::ScaleUpProblem& problem, int64_t nodes);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SCALE_UP_PROBLEM_H_
