// Equal values under one number.
#ifndef LOADLINE_CORE_BASE_FINGERPRINT_INDEX_H_
#define LOADLINE_CORE_BASE_FINGERPRINT_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

namespace loadline {

// The numbers that a table gave its values, to find again by a hash of their content. The table holds the
// values, and compares them: two values may have one fingerprint.
//
// Cost: O(1) beside the comparison with values of the same fingerprint. Not thread-safe.
class FingerprintIndex {
 public:
  // The number that was added with `fingerprint` and of which `is_equal(number)` holds; nullopt: there is
  // none.
  template <typename IsEqual>
  std::optional<int32_t> Find(uint64_t fingerprint, IsEqual is_equal) const {
    const auto found = numbers_.find(fingerprint);
    if (found == numbers_.end()) return std::nullopt;
    const auto equal = std::find_if(found->second.begin(), found->second.end(), is_equal);
    return equal == found->second.end() ? std::nullopt : std::optional<int32_t>(*equal);
  }

  void Add(uint64_t fingerprint, int32_t number) { numbers_[fingerprint].push_back(number); }

  // Returns the number of entries. Cost: O(entries).
  size_t size() const {
    return std::accumulate(numbers_.begin(), numbers_.end(), size_t{0},
                           [](size_t sum, const auto& entry) { return sum + entry.second.size(); });
  }

  // `number` was added with `fingerprint`.
  void Remove(uint64_t fingerprint, int32_t number) {
    const auto found = numbers_.find(fingerprint);
    Numbers& numbers = found->second;
    numbers.erase(std::remove(numbers.begin(), numbers.end(), number), numbers.end());
    if (numbers.empty()) numbers_.erase(found);
  }

 private:
  using Numbers = absl::InlinedVector<int32_t, 4>;  // 4 take no more room than the pointer to more

  absl::flat_hash_map<uint64_t, Numbers> numbers_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_FINGERPRINT_INDEX_H_
