// The part of the answer about a line of expected use beside its verdicts: what the pods of nodes are
// expected to use, and which line of limits would have been safe.
#ifndef LOADLINE_PLUGIN_SERVICE_LINE_USE_H_
#define LOADLINE_PLUGIN_SERVICE_LINE_USE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/fit/load_line.h"
#include "core/score/limit_columns.h"
#include "core/score/safe_line.h"
#include "loadline/v1/load_line.pb.h"

namespace loadline {

// Tells of nodes one after the other, then of all of them.
class LineUse {
 public:
  // `positions`: ColumnsOfLine() of the policy of `columns`. `line`, `columns` and `cluster` outlive the
  // object.
  LineUse(const LoadLine* line, const LimitColumns* columns, const std::vector<size_t>& positions,
          const ClusterState* cluster);

  // Cost: O(resources * (hours + pods there)).
  void Tell(Slot slot, v1::LineNode* node);
  // Adds the hours of the busiest nodes to `response`, which has the nodes in the order of Tell().
  void TellHours(v1::CheckLoadLineResponse* response) const;
  void TellSafeLines(v1::CheckLoadLineResponse* response) const;

 private:
  // A resource whose expected use has a line.
  struct Resource {
    ResourceId id;
    size_t column;
    std::vector<UseOnNode> nodes;  // in the order of slots_
  };

  const LimitColumns& columns_;
  const ClusterState& cluster_;
  std::vector<Resource> resources_;
  std::vector<Slot> slots_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_LINE_USE_H_
