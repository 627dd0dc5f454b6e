// NodePorts: none of the host ports of the pod's containers and sidecars is taken: same port and protocol,
// and same address or one of the two means all addresses.
#include <algorithm>

#include "core/fit/filters.h"

namespace loadline {
namespace {

class NodePorts : public NodeFilter {
 public:
  explicit NodePorts(const FitContext& context)
      : NodeFilter(FilterName::kNodePorts, Scope::kNode),
        snapshot_(*context.snapshot),
        wanted_(context.rules->host_ports) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    if (std::none_of(wanted_.begin(), wanted_.end(),
                     [&](const HostPort& port) { return Taken(node, port); })) {
      return true;
    }
    return Refuse(why, StatusClass::kUnschedulable,
                  "node(s) didn't have free ports for the requested pod ports");
  }

  int64_t UnitsPerNode() const override {
    constexpr size_t kPortsPerUnit = 4;
    return static_cast<int64_t>(wanted_.size() / kPortsPerUnit);
  }

 private:
  // Cost: O(log ports + addresses that use the port).
  bool Taken(NodeIndex node, const HostPort& wanted) const {
    const std::span<const UsedPort> used = snapshot_.ports(node);
    auto at = std::lower_bound(used.begin(), used.end(), wanted.port,
                               [](const UsedPort& entry, int32_t port) { return entry.port.port < port; });
    for (; at != used.end() && at->port.port == wanted.port; ++at) {
      if (at->port.ConflictsWith(wanted)) return true;
    }
    return false;
  }

  const Snapshot& snapshot_;
  const std::vector<HostPort>& wanted_;
};

}  // namespace

MadeFilter MakeNodePorts(const FitContext& context) {
  if (context.rules->host_ports.empty()) return {};
  return {std::make_unique<NodePorts>(context), {}, {}};
}

}  // namespace loadline
