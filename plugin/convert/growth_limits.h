// Decodes the limits and the sharing of growth in one iteration of an autoscaler.
#ifndef LOADLINE_PLUGIN_CONVERT_GROWTH_LIMITS_H_
#define LOADLINE_PLUGIN_CONVERT_GROWTH_LIMITS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/node_offer.h"
#include "core/expand/similar_groups.h"
#include "core/grow/nominated.h"
#include "core/grow/resource_limit.h"
#include "google/protobuf/repeated_field.h"
#include "loadline/v1/drain.pb.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/pod_entries.h"

namespace loadline {

// Errors: kInvalidArgument  names the entry of `field`. kResourceExhausted  there are too many
absl::StatusOr<GpuCounts> DecodeGpuCounts(absl::string_view field,
                                          const google::protobuf::RepeatedPtrField<v1::GpuCount>& counts);

// Decodes the most that all nodes, and selected ones, may offer together.
// Errors: kInvalidArgument  names the field. kResourceExhausted  there are too many
absl::StatusOr<std::vector<NodeMaximum>> DecodeMaxima(const v1::PlanLoopRequest& request);

// When groups are similar; nullopt: growth is not shared.
// Errors: kInvalidArgument  names the field
absl::StatusOr<std::optional<SimilarityRules>> DecodeSimilarity(const v1::PlanLoopRequest& request);

// The nominations of pods; `entries` are those of the `pods` kinds of pods of the request. Nominations of
// entries that were left out are left out.
// Errors: kInvalidArgument  names the entry and the field
absl::StatusOr<std::vector<Nomination>> DecodeNominations(const v1::PlanLoopRequest& request,
                                                          const PodEntries& entries, size_t pods);

// Errors: kInvalidArgument  names the group and the field
absl::Status CheckNotBegun(const v1::PlanLoopRequest& request);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_GROWTH_LIMITS_H_
