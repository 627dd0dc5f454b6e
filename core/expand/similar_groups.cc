#include "core/expand/similar_groups.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/cluster/platform_labels.h"

namespace loadline {
namespace {

bool Near(int64_t a, int64_t b, double most_difference) {
  const double larger = static_cast<double>(std::max(a, b));
  const double smaller = static_cast<double>(std::min(a, b));
  return larger - smaller <= larger * most_difference;
}

bool HaveNearCapacity(const PricedNode& a, const PricedNode& b, const SimilarityRules& rules) {
  return a.milli_cpu == b.milli_cpu && a.gpus == b.gpus && a.ephemeral_bytes == b.ephemeral_bytes &&
         Near(a.memory_bytes, b.memory_bytes, rules.most_memory_difference);
}

bool HaveNearAllocatable(const ResourceAmounts& a, const ResourceAmounts& b, const SimilarityRules& rules) {
  if (a.size() != b.size()) return false;
  return std::equal(a.begin(), a.end(), b.begin(),
                    [&](const ResourceAmounts::Entry& left, const ResourceAmounts::Entry& right) {
                      return left.id == right.id &&
                             Near(left.value, right.value, rules.most_allocatable_difference);
                    });
}

// The labels that have to be the same, in key order.
std::vector<const Label*> LabelsThatCount(const Labels& labels, const SimilarityRules& rules) {
  std::vector<const Label*> counted;
  for (const Label& label : labels) {
    if (IsPlaceLabel(label.key) || absl::c_linear_search(rules.ignored_labels, label.key)) continue;
    counted.push_back(&label);
  }
  return counted;
}

bool HaveSameLabels(const Labels& a, const Labels& b, const SimilarityRules& rules) {
  const std::vector<const Label*> left = LabelsThatCount(a, rules);
  const std::vector<const Label*> right = LabelsThatCount(b, rules);
  return absl::c_equal(left, right, [](const Label* one, const Label* other) { return *one == *other; });
}

}  // namespace

bool AreSimilar(const ComparedNode& a, const ComparedNode& b, const SimilarityRules& rules) {
  if (!rules.labels.empty()) {
    return absl::c_all_of(rules.labels, [&](const std::string& key) {
      const std::string* const left = a.shape.labels.Find(key);
      const std::string* const right = b.shape.labels.Find(key);
      return left != nullptr && right != nullptr && *left == *right;
    });
  }
  return HaveNearCapacity(a.priced, b.priced, rules) &&
         HaveNearAllocatable(a.shape.allocatable, b.shape.allocatable, rules) &&
         HaveSameLabels(a.shape.labels, b.shape.labels, rules);
}

}  // namespace loadline
