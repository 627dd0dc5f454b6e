#include "core/cluster/anti_affinity_terms.h"

#include <algorithm>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/cluster/identity.h"

namespace loadline {
namespace {

std::string Identity(const std::string& key, const std::string& value) {
  IdentityBuilder builder;
  builder.Add(absl::string_view(key));
  builder.Add(absl::string_view(value));
  return builder.Finish();
}

// A label that every pod has which the selector matches.
std::optional<std::string> RequiredLabel(const LabelSelector& selector) {
  for (const Requirement& requirement : selector.requirements) {
    if (requirement.op == SelectorOperator::kIn && requirement.values.size() == 1) {
      return Identity(requirement.key, requirement.values.front());
    }
  }
  return std::nullopt;
}

}  // namespace

void AntiAffinityTerms::Add(const PodRules& rules) {
  for (const AffinityTerm& term : rules.anti_affinity) {
    IdentityBuilder builder;
    term.AddTo(&builder);
    const auto [entry, is_new] = by_identity_.try_emplace(builder.Finish(), term);
    if (!is_new) continue;
    const std::optional<std::string> label = RequiredLabel(term.selector);
    (label.has_value() ? by_label_[*label] : without_label_).push_back(size());
    terms_.push_back({&entry->second, &entry->first});
  }
}

std::vector<int32_t> AntiAffinityTerms::Matching(const Labels& labels, int32_t since) const {
  std::vector<int32_t> matching;
  const auto hold = [&](int32_t number) {
    if (term(number).selector.Matches(labels)) matching.push_back(number);
  };
  const auto hold_all = [&](const std::vector<int32_t>& numbers) {
    std::for_each(std::lower_bound(numbers.begin(), numbers.end(), since), numbers.end(), hold);
  };
  if (static_cast<size_t>(size() - since) <= labels.size()) {
    for (int32_t number = since; number < size(); ++number) hold(number);
    return matching;
  }
  hold_all(without_label_);
  for (const Label& label : labels) {
    const auto found = by_label_.find(Identity(label.key, label.value));
    if (found != by_label_.end()) hold_all(found->second);
  }
  std::sort(matching.begin(), matching.end());
  return matching;
}

}  // namespace loadline
