#ifndef LOADLINE_CORE_BASE_RESOURCE_LIST_H_
#define LOADLINE_CORE_BASE_RESOURCE_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "core/base/quantity.h"
#include "core/base/resource_names.h"

namespace loadline {

// A small map from resource to value, sorted by ResourceId. Absent and zero differ: a pod without a memory
// limit is not one with a limit of 0. Up to three resources take no allocation; look-ups are O(log n).
template <typename Value>
class ResourceMap {
 public:
  struct Entry {
    ResourceId id;
    Value value;

    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using const_iterator = const Entry*;

  // In the order of the ids.
  const_iterator begin() const { return entries_.data(); }
  const_iterator end() const { return entries_.data() + entries_.size(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void clear() { entries_.clear(); }

  // The value of `id`, or nullptr where it is absent. Valid until an insertion.
  const Value* Find(ResourceId id) const {
    const size_t at = Position(id);
    return at < size() && entries_[at].id == id ? &entries_[at].value : nullptr;
  }
  Value* Find(ResourceId id) {
    const size_t at = Position(id);
    return at < size() && entries_[at].id == id ? &entries_[at].value : nullptr;
  }

  // The value of `id`, which is a zero value where it is absent.
  Value Get(ResourceId id) const {
    const Value* const value = Find(id);
    return value == nullptr ? Value{} : *value;
  }

  // The value of `id` to be changed; inserts a zero value where it is absent. Valid until the next insertion.
  Value& operator[](ResourceId id) {
    const size_t at = Position(id);
    if (at == size() || entries_[at].id != id) entries_.insert(entries_.begin() + at, Entry{id, Value{}});
    return entries_[at].value;
  }

  friend bool operator==(const ResourceMap&, const ResourceMap&) = default;

 private:
  size_t Position(ResourceId id) const {
    const const_iterator at = std::lower_bound(
        begin(), end(), id, [](const Entry& entry, ResourceId wanted) { return entry.id < wanted; });
    return static_cast<size_t>(at - begin());
  }

  absl::InlinedVector<Entry, 3> entries_;
};

// Returns whether `names` has the names of all resources in `map`.
template <typename Value>
bool Covers(const ResourceNames& names, const ResourceMap<Value>& map) {
  if (map.empty()) return true;
  const auto last = map.end() - 1;  // ids are sorted, a negative one would come first
  return static_cast<size_t>(map.begin()->id) < names.size() && static_cast<size_t>(last->id) < names.size();
}

// Exact: what containers state, and sums and maxima of it.
using ResourceList = ResourceMap<Quantity>;

// Rounded: cpu in millicores, anything else in its own unit, each in [0, kMaxAmount].
using ResourceAmounts = ResourceMap<int64_t>;

// Adds each value of `addend` to that of `sum`; what `sum` lacks is taken over, also a zero. Saturates.
void AddTo(ResourceList& sum, const ResourceList& addend);
void AddTo(ResourceAmounts& sum, const ResourceAmounts& addend);

// Raises a value of `list` to `floor` where it is smaller; inserts `floor`, also a zero, where it is absent.
void RaiseTo(ResourceList& list, ResourceId id, Quantity floor);
void RaiseTo(ResourceList& list, const ResourceList& floors);

// Reads out one quantity of resource `id`: cpu in millicores, anything else in units, rounded up and cut to
// [0, kMaxAmount]. kMaxAmount means that it may have been more: 2^62 units, or of cpu 2^62 millicores.
int64_t ToAmount(ResourceId id, Quantity quantity);

// Reads out every entry; none is left out.
ResourceAmounts ToAmounts(const ResourceList& list);

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_RESOURCE_LIST_H_
