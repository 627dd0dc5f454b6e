// A node group as scale-down sees it.
#ifndef LOADLINE_CORE_DRAIN_DRAIN_GROUP_H_
#define LOADLINE_CORE_DRAIN_DRAIN_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace loadline {

// What is not stated holds as it does for all groups.
struct DrainGroup {
  std::string name;
  // Nodes that it keeps, and that the cloud is to hold. A target below the number of nodes that are there
  // counts, and so does one above it: a group shrinks only while both allow it.
  int64_t min_nodes = 0;
  int64_t target = 0;
  // Machines of it that are no nodes yet, or nodes that have not started and are none of the cluster: without
  // them it does not go as a whole.
  int64_t upcoming = 0;
  // It scales to none or to all only.
  bool atomic = false;
  // Somebody else chooses which of its nodes go: those in DrainProblem::chosen, whatever is requested on
  // them.
  bool sized = false;
  std::optional<double> utilization_threshold;
  std::optional<double> gpu_utilization_threshold;
  std::optional<bool> ignore_daemonsets_utilization;
  std::optional<int64_t> unneeded_time_s;
  std::optional<int64_t> unready_time_s;
  // The price of one node per hour, in any currency; nullopt: not known.
  std::optional<double> node_price;
  friend bool operator==(const DrainGroup&, const DrainGroup&) = default;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DRAIN_GROUP_H_
