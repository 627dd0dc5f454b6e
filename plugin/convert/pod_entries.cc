#include "plugin/convert/pod_entries.h"

namespace loadline {

void PodEntries::Add(size_t pods, int32_t entry, int64_t count) {
  if (pods >= entries_.size()) {
    entries_.resize(pods + 1);
    next_.resize(pods + 1, 0);
  }
  entries_[pods].push_back({entry, count});
}

std::vector<int32_t> PodEntries::EntriesOf(size_t pods) const {
  std::vector<int32_t> entries;
  if (pods >= entries_.size()) return entries;
  for (const Entry& entry : entries_[pods]) entries.push_back(entry.entry);
  return entries;
}

void PodEntries::Take(int32_t pods, int64_t count, google::protobuf::RepeatedPtrField<v1::PodRun>* runs) {
  std::vector<Entry>& entries = entries_[static_cast<size_t>(pods)];
  size_t& next = next_[static_cast<size_t>(pods)];
  while (count > 0 && next < entries.size()) {
    const int64_t taken = std::min(count, entries[next].count);
    entries[next].count -= taken;
    count -= taken;
    if (taken > 0) {
      v1::PodRun* const run = runs->Add();
      run->set_pod(entries[next].entry);
      run->set_count(ToInt32(taken));
    }
    if (entries[next].count == 0) ++next;
  }
}

int64_t PodEntries::NextOf(int32_t pods) {
  std::vector<Entry>& entries = entries_[static_cast<size_t>(pods)];
  size_t& next = next_[static_cast<size_t>(pods)];
  while (next < entries.size() && entries[next].count == 0) ++next;
  return next < entries.size() ? entries[next].count : 0;
}

}  // namespace loadline
