// The load line: message to core type.
#ifndef LOADLINE_PLUGIN_CONVERT_LOAD_LINE_H_
#define LOADLINE_PLUGIN_CONVERT_LOAD_LINE_H_

#include "absl/status/statusor.h"
#include "core/fit/load_line.h"
#include "core/score/limit_policy.h"
#include "loadline/v1/load_line.pb.h"

namespace loadline {

inline constexpr int kMaxExemptNamespaces = 1'000;

// A load line, with a policy whose columns have its sums.
struct DecodedLoadLine {
  LoadLine line;
  // A policy whose columns hold the sums of the line; it is the one that the line counts by, where that has
  // all resources of the line.
  LimitPolicy columns;
};

// Errors: kInvalidArgument  names the field: a resource that no line can be for or that is named twice, a
// line
//                           that is no decimal in [0.1, 1000], a counting that treats incoming pods apart, a
//                           label prefix or namespace that is no name
absl::StatusOr<DecodedLoadLine> DecodeLoadLine(const v1::LoadLine& message);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_LOAD_LINE_H_
