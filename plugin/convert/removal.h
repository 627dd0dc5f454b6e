// The removal of one node: messages to core types, and answers back.
#ifndef LOADLINE_PLUGIN_CONVERT_REMOVAL_H_
#define LOADLINE_PLUGIN_CONVERT_REMOVAL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/removal/removal.h"
#include "core/removal/removal_rules.h"
#include "loadline/v1/removal.pb.h"

namespace loadline {

// Bounds of one question, chosen; a larger number is refused. Times and waits lie far from any overflow.
inline constexpr int kMaxRemovalPods = 5'000;
inline constexpr int kMaxRemovalDelays = 1'000;
inline constexpr int kMaxRemovalGroups = 1'000;
inline constexpr int64_t kMaxRemovalTimeMs = int64_t{1} << 50;
inline constexpr int64_t kMaxRemovalPatience = int64_t{1} << 40;

// A question about one step.
struct RemovalQuestion {
  RemovalRules rules;
  Removal removal;
  RemovalFacts seen;
  int64_t now_ms = 0;
};

// Errors: kInvalidArgument, kResourceExhausted  name the field
absl::StatusOr<RemovalQuestion> DecodeRemovalQuestion(const v1::StepRemovalRequest& message);
v1::StepRemovalResponse EncodeRemovalStep(const RemovalOrders& orders, const Removal& removal);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_REMOVAL_H_
