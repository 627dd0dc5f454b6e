// Questions of RankOptions: message to core types, and answers back.
#ifndef LOADLINE_PLUGIN_CONVERT_RANK_H_
#define LOADLINE_PLUGIN_CONVERT_RANK_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/left_out.h"
#include "core/expand/options_under_line.h"
#include "core/expand/rank_options.h"
#include "core/fit/load_line.h"
#include "loadline/v1/scale_up.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

// The most options of one question.
inline constexpr int kMaxRankedOptions = 10'000;
inline constexpr int kMaxPricedPods = 100'000;

// Errors: kInvalidArgument  names the field
absl::StatusOr<RankPolicy> DecodeRankPolicy(const v1::RankPolicy& message);
// The policy with nothing left unset that the preset settles.
v1::RankPolicy EncodeRankPolicy(const RankPolicy& policy, const v1::RankPolicy& asked);

// By position in the request: a pod that cannot be taken asks for nothing, and is added to `left_out`.
// Errors: kResourceExhausted  there are more than kMaxPricedPods
struct RankedPods {
  std::vector<PodRequests> priced;
  std::vector<LinePod> lined;  // empty where there is no load line
};
absl::StatusOr<RankedPods> DecodeRankedPods(const v1::RankOptionsRequest& request, const LoadLine& line,
                                            ResourceReader* resources, LeftOutList* left_out);

// Errors: kInvalidArgument    names the option and the field: `options[3]: node_count: ...`
//         kResourceExhausted  there are more than kMaxRankedOptions
struct OfferedOption {
  ExpansionOption option;
  NodeShape offer;  // what a node of it offers to pods; nothing where it has no template
};
absl::StatusOr<std::vector<OfferedOption>> DecodeExpansionOptions(const v1::RankOptionsRequest& request,
                                                                  ResourceReader* resources);

v1::RankedOption EncodeRankedOption(const RankedOption& ranked, const ExpansionOption& option, double damper);

// Errors: kInvalidArgument  names the field
absl::StatusOr<PodDemand> DecodeRunningDemand(const v1::RunningDemand& message);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_RANK_H_
