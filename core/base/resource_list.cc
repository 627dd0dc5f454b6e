#include "core/base/resource_list.h"

#include "core/base/amount.h"

namespace loadline {

void AddTo(ResourceList& sum, const ResourceList& addend) {
  for (const ResourceList::Entry& entry : addend) sum[entry.id].Add(entry.value);
}

void AddTo(ResourceAmounts& sum, const ResourceAmounts& addend) {
  for (const ResourceAmounts::Entry& entry : addend) {
    int64_t& value = sum[entry.id];
    value = SaturatingAdd(value, entry.value);
  }
}

void RaiseTo(ResourceList& list, ResourceId id, Quantity floor) {
  if (Quantity* const value = list.Find(id); value != nullptr) {
    *value = std::max(*value, floor);
  } else {
    list[id] = floor;  // also one below zero
  }
}

void RaiseTo(ResourceList& list, const ResourceList& floors) {
  for (const ResourceList::Entry& entry : floors) RaiseTo(list, entry.id, entry.value);
}

int64_t ToAmount(ResourceId id, Quantity quantity) {
  return std::max<int64_t>(0, id == kCpu ? Milli(quantity) : Units(quantity));
}

ResourceAmounts ToAmounts(const ResourceList& list) {
  ResourceAmounts amounts;
  for (const ResourceList::Entry& entry : list) amounts[entry.id] = ToAmount(entry.id, entry.value);
  return amounts;
}

}  // namespace loadline
