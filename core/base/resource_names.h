#ifndef LOADLINE_CORE_BASE_RESOURCE_NAMES_H_
#define LOADLINE_CORE_BASE_RESOURCE_NAMES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"

namespace loadline {

// Number of a resource name in one ResourceNames: dense, from 0, in the order of interning.
enum class ResourceId : int32_t {};

// The same in every ResourceNames.
inline constexpr ResourceId kCpu{0};               // "cpu"
inline constexpr ResourceId kMemory{1};            // "memory"
inline constexpr ResourceId kEphemeralStorage{2};  // "ephemeral-storage"

// The one name in place of all that there is no room for: no node offers it.
inline constexpr char kOtherResources[] = "loadline.dev/other-resources";

// The limits on the number of names, without kOtherResources.
struct NameLimits {
  size_t names = 256;
  // The number of names that only pods may add, which no node has: by all pods, and by those of one
  // namespace. A pod that asks for such a name fits nowhere, so that few of them need names of their own.
  size_t of_pods = 16;
  size_t of_namespace = 8;
};

// Resource names and their numbers. Numbers are never given back or changed.
//
// A copy costs O(1) and shares the table; the first name that is interned into either clones it. So a batch
// of changes interns into a copy, which then replaces the original or is dropped.
//
// Cost:    Intern and Find take one hash look-up, the clone O(names).
// Threads: as a standard container: any number may read and copy, Intern wants the object for itself. A copy
//          may be changed while another thread reads the original.
class ResourceNames {
 public:
  ResourceNames();
  ~ResourceNames();
  ResourceNames(const ResourceNames& other);
  ResourceNames& operator=(const ResourceNames& other);
  // An object that was moved from can only be assigned to or destroyed.
  ResourceNames(ResourceNames&& other) noexcept;
  ResourceNames& operator=(ResourceNames&& other) noexcept;

  // Returns the number of `name`, the next free one if it is new. Any bytes are a name. There is no limit:
  // who takes names from outside bounds them.
  ResourceId Intern(absl::string_view name);

  // Likewise within limits, for a node, or for a pod of a namespace; nullopt where there is no room.
  std::optional<ResourceId> InternForNode(absl::string_view name, const NameLimits& limits);
  std::optional<ResourceId> InternForPod(absl::string_view name, absl::string_view namespace_name,
                                         const NameLimits& limits);

  std::optional<ResourceId> Find(absl::string_view name) const;

  // Checks that each name has the number of its position, and that those of pods are counted. For tests.
  void CheckConsistent() const;

  // The name of a number that this object gave out. Valid until the next Intern or the end of the object.
  absl::string_view name(ResourceId id) const;

  // Numbers given out are [0, size()).
  size_t size() const;
  // Names that pods have brought.
  size_t names_of_pods() const;

 private:
  struct Table;
  Table* Own();

  std::shared_ptr<Table> table_;
  // No other object refers to table_, so it may be changed in place. Copying ends that in the original too,
  // and any number of threads may copy at once. use_count() would not order their reads before our write.
  mutable std::atomic<bool> sole_owner_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_RESOURCE_NAMES_H_
