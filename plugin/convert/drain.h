// Questions about nodes that may go: messages to core types, and answers back.
#ifndef LOADLINE_PLUGIN_CONVERT_DRAIN_H_
#define LOADLINE_PLUGIN_CONVERT_DRAIN_H_

#include "absl/status/statusor.h"
#include "core/cluster/left_out.h"
#include "core/cluster/startup_taints.h"
#include "core/cluster/view.h"
#include "core/drain/brakes.h"
#include "core/drain/planner.h"
#include "core/observe/derived_groups.h"
#include "loadline/v1/drain.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

inline constexpr int kMaxDrainGroups = 10'000;
inline constexpr int kMaxDrainPlaceholders = 100'000;

// Flags that the planner does not ask for itself.
struct DecodedDrainOptions {
  DrainOptions options;
  BrakeOptions brakes;
};
// kInvalidArgument names the field.
absl::StatusOr<DecodedDrainOptions> DecodeDrainOptions(const v1::DrainOptions& message,
                                                       const v1::FitOptions& fit);

// Decodes groups, placeholders, pools and times of a question about `view`, to which it may add label keys. A
// placeholder whose pod cannot be taken asks for nothing, and is added to `left_out`.
// Errors: kInvalidArgument  names group, slot, placeholder or field. kResourceExhausted  names the limit
absl::StatusOr<DrainProblem> DecodeDrainProblem(const v1::PlanDrainRequest& request, const ReadOptions& read,
                                                View* view, LeftOutList* left_out);

// Derives the groups of a problem that has none yet, and returns them.
// Errors: kInvalidArgument  groups are stated. kResourceExhausted  the nodes make more than `most` groups
absl::StatusOr<DerivedGroups> PutIntoDerivedGroups(const StartupTaints& startup_taints, int most,
                                                   DrainProblem* problem);

// Tells the namespaces whose disruption budgets cost too much to match.
void TellTooCostlyBudgets(const DrainPlan& plan, LeftOutList* left_out);

// `options`: those that the plan was made by.
v1::PlanDrainResponse EncodeDrainPlan(const DrainPlan& plan, const DrainProblem& problem,
                                      const DrainOptions& options, bool compact);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_DRAIN_H_
