// Steps that both modes of SizeGroup() take.
#ifndef LOADLINE_CORE_SIZE_SIZE_PASS_H_
#define LOADLINE_CORE_SIZE_SIZE_PASS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/size/size_group.h"

namespace loadline::size_internal {

// One pass in the making.
class Pass {
 public:
  Pass(const SizeOptions& options, const GroupFacts& facts, const GroupState& state, int64_t now_ms);

  // Both return decision_, finished.
  SizeDecision DecideCompat();
  SizeDecision DecideDefault();

 private:
  // Growth that is called for, before bounds.
  struct Growth {
    int64_t nodes = 0;
    SizeReason reason = SizeReason::kWithinThresholds;
  };

  // The steps that both passes share.
  void LearnWhatTheCloudTook();
  bool AwaitsNodes(const GroupState& state) const;
  std::vector<size_t> OfClass(NodeClass node_class) const;
  CpuMemory Net(const GroupNode& node) const;
  bool Subtracts() const;
  void TaintUnhealthy();
  void Measure();
  bool Locked() const;
  bool TooOld() const;
  // Untaints, then asks the cloud; returns how many nodes that wins.
  int64_t Grow(int64_t count);
  void DeleteTainted(bool group_is_healthy);
  void DeleteForceTainted();
  void Delete(std::vector<size_t> nodes);
  SizeDecision Finish(SizeAction action, SizeReason reason, int64_t delta);

  // Escalator's.
  int64_t CompatThresholds(SizeReason* reason) const;
  int64_t CompatAdjusted(int64_t delta, SizeReason* reason) const;
  void CompatTaint(int64_t wanted);

  // Ours.
  std::optional<CpuMemory> NewNode() const;
  std::optional<Growth> DefaultGrowth() const;
  SizeDecision DefaultGrow(const Growth& growth);
  SizeDecision DefaultShrink();
  std::vector<size_t> Removable(int64_t count) const;

  const SizeOptions& options_;
  const GroupFacts& facts_;
  const int64_t now_ms_;
  std::vector<NodeClass> classes_;  // by node; unhealthy nodes become tainted in the pass
  std::vector<size_t> untainted_;
  int64_t target_;  // of the cloud's group, as the pass changes it
  SizeDecision decision_;
};

}  // namespace loadline::size_internal

#endif  // LOADLINE_CORE_SIZE_SIZE_PASS_H_
