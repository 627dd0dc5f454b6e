// The nodes that one count refuses, or lets pass.
#ifndef LOADLINE_CORE_FIT_OCCUPIED_NODES_H_
#define LOADLINE_CORE_FIT_OCCUPIED_NODES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/cluster/domain_counts.h"
#include "core/fit/domain_nodes.h"

namespace loadline {

// The nodes in whose domain at least one counted pod is. Not thread-safe.
class OccupiedNodes {
 public:
  // `counts` is of CountUse::kOccupancy, `nodes` of its topology; both outlive the object.
  OccupiedNodes(const DomainCounts* counts, const DomainNodes* nodes) : counts_(*counts), nodes_(*nodes) {}

  // Takes in what has happened; `nodes` has done so. Cost: that of DomainNodes::Set() for each domain that
  // became occupied or empty since the last time, and for all of them the first time.
  void CatchUp();

  // 64 nodes, as of the last CatchUp().
  uint64_t word(size_t i) const { return i < bits_.size() ? bits_[i] : 0; }

 private:
  void Rebuild();
  void RebuildByNode();
  void SetDomain(int32_t domain);

  const DomainCounts& counts_;
  const DomainNodes& nodes_;
  int64_t changed_ = -1;           // how far the journal of the counts was read
  int64_t topology_changed_ = -1;  // and that of the topology
  NodeBits bits_;                  // empty as long as no domain was ever occupied
  std::vector<bool> occupied_;     // by domain: what bits_ says
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_OCCUPIED_NODES_H_
