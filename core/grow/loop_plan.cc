#include "core/grow/loop_plan.h"

namespace loadline {

absl::string_view Name(NoScaleDown why) {
  switch (why) {
    case NoScaleDown::kConsidered:
      return "considered";
    case NoScaleDown::kNotDecided:
      return "decided elsewhere";
    case NoScaleDown::kGrowing:
      return "groups grow";
  }
  return "invalid reason";
}

}  // namespace loadline
