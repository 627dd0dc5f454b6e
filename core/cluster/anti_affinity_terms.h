// The anti-affinity terms of many pods, to be held against one.
#ifndef LOADLINE_CORE_CLUSTER_ANTI_AFFINITY_TERMS_H_
#define LOADLINE_CORE_CLUSTER_ANTI_AFFINITY_TERMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "core/cluster/labels.h"
#include "core/cluster/pod_rules.h"

namespace loadline {

// Terms, each once, numbered in the order in which they came. Most selectors ask for one value of some label;
// their terms are looked up by it, so that a pod is held only against those that ask for one of its labels.
// Not thread-safe; const members may run together.
class AntiAffinityTerms {
 public:
  // Takes in the required anti-affinity terms of a pod.
  void Add(const PodRules& rules);

  int32_t size() const { return static_cast<int32_t>(terms_.size()); }
  const AffinityTerm& term(int32_t number) const { return *terms_[static_cast<size_t>(number)].term; }
  // A text that tells it apart from all others.
  const std::string& identity(int32_t number) const { return *terms_[static_cast<size_t>(number)].identity; }

  // The numbers from `since` on, ascending, of terms whose selector matches a pod with these labels. Cost:
  // O(min(labels, terms) + selectors that ask for one of the labels or for no single value).
  std::vector<int32_t> Matching(const Labels& labels, int32_t since) const;

 private:
  struct Entry {
    const AffinityTerm* term;
    const std::string* identity;
  };

  absl::node_hash_map<std::string, AffinityTerm> by_identity_;
  std::vector<Entry> terms_;
  // Numbers, ascending: of terms that ask for a value of a label by key and value, and of all others.
  absl::flat_hash_map<std::string, std::vector<int32_t>> by_label_;
  std::vector<int32_t> without_label_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_ANTI_AFFINITY_TERMS_H_
