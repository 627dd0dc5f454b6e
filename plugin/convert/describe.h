// The content of a view, as messages.
#ifndef LOADLINE_PLUGIN_CONVERT_DESCRIBE_H_
#define LOADLINE_PLUGIN_CONVERT_DESCRIBE_H_

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/view.h"
#include "loadline/v1/cluster_state.pb.h"

namespace loadline {

v1::NodeKind EncodeNodeKind(NodeKind kind);
// Encodes the nodes of a plan that are no machines, and those of the control plane that groups name.
v1::OtherNodes EncodeOtherNodes(const ClusterState& cluster, const GroupsOfNodes& group_of);

v1::ViewState EncodeView(absl::string_view name, const View& view);

// `amounts` in name order.
google::protobuf::RepeatedPtrField<v1::ResourceAmount> EncodeAmounts(const ResourceAmounts& amounts,
                                                                     const ResourceNames& names);

// The node in an occupied slot, with its pods if asked for; nullopt when the message would be larger than
// `max_bytes`, which many pods of many resources can be.
std::optional<v1::NodeState> EncodeNode(const ClusterState& cluster, Slot slot, bool include_pods,
                                        size_t max_bytes);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_DESCRIBE_H_
