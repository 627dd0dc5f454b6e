// Judges the marks of removals that are written on nodes, where anybody who may annotate a node can write.
#ifndef LOADLINE_PLUGIN_CONVERT_NODE_MARKS_H_
#define LOADLINE_PLUGIN_CONVERT_NODE_MARKS_H_

#include <cstdint>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/left_out.h"
#include "core/observe/loop_observation.h"
#include "google/protobuf/repeated_field.h"
#include "loadline/v1/fleet.pb.h"

namespace loadline {

// Times of a mark lie in [0, kMaxMarkTimeS].
inline constexpr int64_t kMaxMarkTimeS = int64_t{1} << 40;

// Decodes the marks, each slot once, and reports bad ones as objects of kind Node. An impossible time since
// when a node was unneeded counts as now, so that the node is removed no sooner. An impossible time of
// deletion counts as `patience_ms` ago: if neither the machine's state nor an acknowledgement says that it is
// deleted, the node is given back, which takes the mark off. A mark in a slot without a node, and a further
// one of a node, are left out.
std::vector<NodeMark> DecodeMarks(const google::protobuf::RepeatedPtrField<v1::NodeMark>& messages,
                                  const ClusterState& cluster, int64_t now_ms, int64_t patience_ms,
                                  LeftOutList* left_out);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_NODE_MARKS_H_
