// Resource maps of Kubernetes objects to core types.
#ifndef LOADLINE_PLUGIN_CONVERT_RESOURCES_H_
#define LOADLINE_PLUGIN_CONVERT_RESOURCES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/quantity.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "loadline/k8s/v1/core.pb.h"

namespace loadline {

// Entries of one resource map. Kubernetes sets no bound; a list is kept sorted, so each insertion is
// O(length).
inline constexpr size_t kMaxResourceEntries = 256;

using QuantityEntries = google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>;

// Reads the resource maps of one batch of objects.
class ResourceReader {
 public:
  // New names are interned in `names`, which outlives the reader.
  explicit ResourceReader(ResourceNames* names) : names_(names) {}

  // Replaces `list` by `entries`. Of entries with equal keys the last one holds. An entry without a quantity
  // is 0, as the zero value of a quantity on the wire. `field` names the map in errors.
  // Errors: kInvalidArgument  malformed or negative quantity, bad resource name, too many entries; the text
  //                           starts with the field: `resources.limits["memory"]: "1.5.2" is not a quantity:
  //                           ...`
  absl::Status Read(const QuantityEntries& entries, absl::string_view field, ResourceList* list);

  const ResourceNames& names() const { return *names_; }
  // Quantities read so far that were larger than what an amount holds.
  int64_t clamped_amounts() const { return clamped_amounts_; }

 private:
  absl::Status ReadEntry(const k8s::v1::QuantityEntry& entry, ResourceList* list);

  ResourceNames* names_;
  int64_t clamped_amounts_ = 0;
};

// Reads a quantity that is not negative.
absl::StatusOr<ParsedQuantity> ParseAmount(absl::string_view text);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_RESOURCES_H_
