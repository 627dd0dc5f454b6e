// Resource maps of Kubernetes objects to core types.
#ifndef LOADLINE_PLUGIN_CONVERT_RESOURCES_H_
#define LOADLINE_PLUGIN_CONVERT_RESOURCES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/quantity.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "core/cluster/pod_resources.h"
#include "loadline/k8s/v1/core.pb.h"

namespace loadline {

// Entries of one resource map. Kubernetes sets no bound; a list is kept sorted, so each insertion is
// O(length).
inline constexpr size_t kMaxResourceEntries = 256;

using QuantityEntries = google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>;

// The reason why a resource is left out for whose name there is no room.
inline constexpr char kNoRoomForName[] = "is one resource name too many";
// The namespace of placeholders, unless an engine has another one: as in manifests/autoscaler/slack.
inline constexpr char kDefaultSlackNamespace[] = "loadline-slack";

// The parts of objects that are read, and their bounds.
struct ReadOptions {
  NameLimits names;
  // The namespace of our own placeholders.
  std::string slack_namespace = kDefaultSlackNamespace;
  // How pods count that are being resized.
  ResizeRule resize_rule = ResizeRule::kPerContainer;
};

// Reads the resource maps of one batch of objects.
class ResourceReader {
 public:
  // New names are interned in `names`, which outlives the reader.
  explicit ResourceReader(ResourceNames* names, ReadOptions options = {})
      : names_(names), options_(std::move(options)) {}

  // Says that the next amounts are those of a pod of this namespace, or of a node. In a pod amounts of 0
  // count as absent, but for cpu, memory and ephemeral storage; and a name beyond the limit counts as
  // kOtherResources.
  void OfPod(absl::string_view namespace_name) {
    of_pod_ = true;
    namespace_name_ = std::string(namespace_name);
  }
  void OfNode() { of_pod_ = false; }

  // Replaces `list` by `entries`. Of entries with equal keys the last one holds. An entry without a quantity
  // is 0, as the zero value of a quantity on the wire. `field` names the map in errors. Of a map with errors
  // `list` holds what could be read; the error is that of the first entry that could not.
  // Errors: kInvalidArgument  malformed or negative quantity, bad resource name, too many entries; the text
  //                           starts with the field: `resources.limits["memory"]: "1.5.2" is not a quantity:
  //                           ...`
  absl::Status Read(const QuantityEntries& entries, absl::string_view field, ResourceList* list);
  // The same where a map without entries is none, as the wire does not tell one from the other.
  absl::Status Read(const QuantityEntries& entries, absl::string_view field,
                    std::optional<ResourceList>* list);

  const ResourceNames& names() const { return *names_; }
  const ReadOptions& options() const { return options_; }
  // Quantities read so far that were larger than what an amount holds.
  int64_t clamped_amounts() const { return clamped_amounts_; }

 private:
  absl::Status ReadEntry(const k8s::v1::QuantityEntry& entry, ResourceList* list);

  ResourceNames* names_;
  ReadOptions options_;
  bool of_pod_ = false;
  std::string namespace_name_;
  int64_t clamped_amounts_ = 0;
};

// Returns the bounds on what a question may bring beside the names of its cluster, so that snapshots of it
// stay small.
ReadOptions OptionsOfQuestion(const ResourceNames& of_cluster, const std::string& slack_namespace);

// Reads a quantity that is not negative.
absl::StatusOr<ParsedQuantity> ParseAmount(absl::string_view text);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_RESOURCES_H_
