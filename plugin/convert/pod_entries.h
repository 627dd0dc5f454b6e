// Pods that decisions do not tell apart, back to the entries of the request that they came in.
#ifndef LOADLINE_PLUGIN_CONVERT_POD_ENTRIES_H_
#define LOADLINE_PLUGIN_CONVERT_POD_ENTRIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "loadline/v1/scale_up.pb.h"

namespace loadline {

// Clamps to what a message holds: limits keep counts below 2^31.
inline int32_t ToInt32(int64_t value) { return static_cast<int32_t>(std::min<int64_t>(value, 0x7fffffff)); }

// Tells which entries of a request stand behind the pods that a decision is asked about.
class PodEntries {
 public:
  void Add(size_t pods, int32_t entry, int64_t count);
  // The entries that hold these pods.
  std::vector<int32_t> EntriesOf(size_t pods) const;
  // Returns the number of these pods in the next entry.
  int64_t NextOf(int32_t pods);
  // Takes `count` of these pods, in the order of the entries, and appends them to `runs`.
  void Take(int32_t pods, int64_t count, google::protobuf::RepeatedPtrField<v1::PodRun>* runs);

 private:
  struct Entry {
    int32_t entry;
    int64_t count;
  };
  std::vector<std::vector<Entry>> entries_;  // by position of the pods
  std::vector<size_t> next_;                 // by position: the first entry with pods left
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_POD_ENTRIES_H_
