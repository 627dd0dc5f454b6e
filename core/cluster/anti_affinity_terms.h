// The anti-affinity terms of many pods, to be matched with one.
#ifndef LOADLINE_CORE_CLUSTER_ANTI_AFFINITY_TERMS_H_
#define LOADLINE_CORE_CLUSTER_ANTI_AFFINITY_TERMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "core/base/fingerprint_index.h"
#include "core/cluster/labels.h"
#include "core/cluster/pod_rules.h"

namespace loadline {

// Terms, each once, numbered in the order in which they came. Most selectors ask for one value of some label;
// their terms are looked up by it, so that a pod is matched only with those that ask for one of its labels.
// Terms stay where the pods have them: a tenant may write hundreds of thousands, and each takes some 150
// bytes here. Not thread-safe; const members may run together.
class AntiAffinityTerms {
 public:
  // Takes in the required anti-affinity terms of a shape of pods, each shape once and in ascending order.
  void Add(int32_t shape, const std::shared_ptr<const PodRules>& rules);

  int32_t size() const { return static_cast<int32_t>(terms_.size()); }
  const AffinityTerm& term(int32_t number) const { return *terms_[static_cast<size_t>(number)].term; }
  // The shapes that have a term, ascending.
  std::span<const int32_t> shapes(int32_t number) const { return terms_[static_cast<size_t>(number)].shapes; }
  // Checks that each term is known once and is in one of the lists that are searched. For tests.
  void CheckConsistent() const;

  // Cost: O(log shapes that have the term).
  bool Has(int32_t shape, int32_t number) const;

  // Returns the numbers from `since` on, ascending, of terms whose selector matches a pod with these labels.
  // Adds to `looked_at` how many requirements of terms were matched with them. Cost: O(min(labels, terms) +
  // requirements of the selectors that ask for one of the labels or for no single value).
  std::vector<int32_t> Matching(const Labels& labels, int32_t since, int64_t* looked_at) const;

 private:
  using Numbers = absl::InlinedVector<int32_t, 4>;  // 4 take no more room than the pointer to more
  struct Entry {
    const AffinityTerm* term;
    Numbers shapes;
  };

  std::vector<std::shared_ptr<const PodRules>> rules_;  // that terms are of
  FingerprintIndex by_content_;
  std::vector<Entry> terms_;
  // Numbers, ascending: of terms that ask for a value of a label by a hash of key and value, and of all
  // others.
  absl::flat_hash_map<uint64_t, Numbers> by_label_;
  Numbers without_label_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_ANTI_AFFINITY_TERMS_H_
