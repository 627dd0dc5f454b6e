// Questions about the size of node groups: messages to core types, and answers back.
#ifndef LOADLINE_PLUGIN_CONVERT_SIZE_H_
#define LOADLINE_PLUGIN_CONVERT_SIZE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/left_out.h"
#include "core/cluster/shapes.h"
#include "core/fit/node_filter.h"
#include "core/size/group_facts.h"
#include "core/size/size_group.h"
#include "loadline/v1/size.pb.h"

namespace loadline {

inline constexpr int kMaxSizedGroups = 1'000;  // kMostSizedGroups
inline constexpr int kMaxWaitingPods = 100'000;
inline constexpr int kMaxSizeDaemons = 10'000;

// A question without its cluster.
struct DecodedSizing {
  int64_t now_ms = 0;
  std::vector<SizedGroup> groups;
  std::vector<WaitingPods> waiting;
  std::vector<GroupState> states;  // per group
  std::vector<IncomingPod> daemons;
  ResourceNames names;   // what ids refer to: those of the cluster, with names added
  LeftOutList left_out;  // of those that wait
  int64_t clamped_amounts = 0;
};

// The names of the fields of the groups and of the state in a request; groups[1] is "groups[1]".
struct SizingFields {
  absl::string_view groups = "groups";
  absl::string_view state = "state";
  absl::string_view pods = "pods";
};

// `names`: those of the cluster. `kept`: the state that holds where the request has none. `keys`: labels that
// selectors of the view refer to. `slack_namespace`: that of the engine.
// Errors: kInvalidArgument    names the group, state or field
//         kResourceExhausted  names the limit
absl::StatusOr<DecodedSizing> DecodeSizing(const v1::MeasureUtilizationRequest& request,
                                           const v1::SizeState& kept, ResourceNames names,
                                           const LabelKeys& keys, const std::string& slack_namespace,
                                           const SizingFields& fields = {});

// The answer about one group.
v1::GroupSize EncodeSize(const std::vector<SizedGroup>& groups, size_t group, const GatheredGroup& gathered,
                         const SizeDecision& decision);
v1::GroupSizeState EncodeState(const std::string& group_name, const GroupState& state);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SIZE_H_
