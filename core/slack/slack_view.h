// The classes of one plan: those that have nodes, and those of node groups, with what is decided for each.
#ifndef LOADLINE_CORE_SLACK_SLACK_VIEW_H_
#define LOADLINE_CORE_SLACK_SLACK_VIEW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/slack/slack_growth.h"
#include "core/slack/slack_options.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// A node group that may grow, whose model is known.
struct SlackGroup {
  const NodeGroup* of = nullptr;   // outlives the call
  EmptyNode empty;                 // less the pods that come with each node
  std::optional<int64_t> may_add;  // nodes, >= 0; nullopt: any number
  // The room that is left on its upcoming nodes.
  std::vector<EmptyNode> coming = {};
  int64_t nodes = 0;  // there and on their way
  // Same as NodeGroup::balance_set, for copies of pods.
  std::optional<int32_t> balance_set = {};
};

using SlackGroupList = StrongVector<SlackGroupIndex, SlackGroup>;

// A slack class in one plan, with the groups of its new nodes.
struct SlackClassView {
  SlackClassKey key;
  const SlackClass* of = nullptr;  // nullptr: it has no nodes
  EmptyNode empty;
  // None is kept here, and why; empty: some is.
  std::string off = {};
  std::optional<CpuMemory> max_extra = {};
  // The requests of waiting pods that are expected on its nodes.
  CpuMemory waiting = {};
  // Copies of pods that are on its nodes, or asked of it.
  std::vector<CpuMemory> mirrored = {};
  int64_t mirrored_placed = 0;
  CpuMemory mirrored_ready = {};
  std::vector<SlackGroupIndex> groups = {};
};

// By name. `groups`: nullptr where they are not known; `names`: those of their models.
std::vector<SlackClassView> MakeViews(const SlackRooms& rooms, const SlackOptions& options,
                                      const SlackGroupList* groups, const ResourceNames& names);

// Returns what may grow: each group by itself, or each class where groups are not known.
std::vector<GrowableNodes> MakeGrowable(const std::vector<SlackClassView>& views, const SlackOptions& options,
                                        const SlackGroupList* groups);

// Returns the shapes of new nodes, by position in the sketch. A class without a group gets the shape of its
// first node by name. Cost: O(nodes) where groups are not known.
std::vector<NodeShape> ShapesOfNew(const ClusterState& cluster, const SlackRooms& rooms,
                                   const SlackGroupList* groups, const GrowthSketch& sketch);

// Returns whether it is the name of an extended resource: "example.com/gpu", and not one of Kubernetes' own.
bool IsExtendedResource(absl::string_view name);

// An extended resource that a node offers and that does not come with nodes of any kind, and of which the pod
// requests none; empty: there is none, or the pod requests some of one of them. `pod`: nullptr for a
// placeholder of cpu and memory.
std::string UnneededResource(const NodeShape& node, const PodShape* pod, const ResourceNames& names,
                             const SlackOptions& options);

// Returns the most that a pod on nodes of the class requests of each such resource: a node without them is
// none where every pod of the class could run. Pods that come with their node do not count. Cost: O(shapes of
// pods).
ResourceAmounts NeededResources(const SlackClassView& of, const SlackRooms& rooms, const ResourceNames& names,
                                const SlackOptions& options);

// Keys of labels that classes need and `of` does not have.
LabelKeys AbsentLabels(const SlackClassKey& of, const LabelKeys& needed);

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_VIEW_H_
