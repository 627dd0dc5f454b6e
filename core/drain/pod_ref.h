// How the planner refers to what moves from a node.
#ifndef LOADLINE_CORE_DRAIN_POD_REF_H_
#define LOADLINE_CORE_DRAIN_POD_REF_H_

#include <cstddef>
#include <cstdint>

namespace loadline {

// A pod of a node, or a placeholder of slack on it: which of the two, and its position in its list. Which
// node is meant is known where it is used.
class PodRef {
 public:
  // `position` in ClusterState::pods() of the node.
  static constexpr PodRef Pod(size_t position) { return {position, false}; }
  // `position` in DrainProblem::placeholders.
  static constexpr PodRef Placeholder(size_t position) { return {position, true}; }

  constexpr bool is_placeholder() const { return is_placeholder_; }
  constexpr size_t position() const { return position_; }

  friend constexpr bool operator==(PodRef, PodRef) = default;

 private:
  constexpr PodRef(size_t position, bool is_placeholder)
      : position_(static_cast<uint32_t>(position)), is_placeholder_(is_placeholder) {}

  uint32_t position_;
  bool is_placeholder_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_POD_REF_H_
