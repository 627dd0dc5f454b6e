#include "core/cluster/anti_affinity_terms.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/fingerprint.h"

namespace loadline {
namespace {

// Labels that share a hash are kept apart by the selectors.
uint64_t HashOfLabel(const std::string& key, const std::string& value) {
  FingerprintBuilder builder;
  builder.Add(absl::string_view(key));
  builder.Add(absl::string_view(value));
  return builder.Finish();
}

// A label that every pod has which the selector matches.
std::optional<uint64_t> RequiredLabel(const LabelSelector& selector) {
  for (const Requirement& requirement : selector.requirements) {
    if (requirement.op == SelectorOperator::kIn && requirement.values.size() == 1) {
      return HashOfLabel(requirement.key, requirement.values.front());
    }
  }
  return std::nullopt;
}

}  // namespace

void AntiAffinityTerms::Add(int32_t shape, const std::shared_ptr<const PodRules>& rules) {
  const int32_t known = size();
  for (const AffinityTerm& term : rules->anti_affinity) {
    FingerprintBuilder builder;
    term.AddTo(&builder);
    const uint64_t fingerprint = builder.Finish();
    const int32_t number =
        by_content_.Find(fingerprint, [&](int32_t other) { return this->term(other) == term; })
            .value_or(size());
    if (number == size()) {
      by_content_.Add(fingerprint, number);
      const std::optional<uint64_t> label = RequiredLabel(term.selector);
      (label.has_value() ? by_label_[*label] : without_label_).push_back(number);
      terms_.push_back({&term, {}});
    }
    // A pod may state a term twice.
    Numbers& shapes = terms_[static_cast<size_t>(number)].shapes;
    LOADLINE_CHECK(shapes.empty() || shapes.back() <= shape)
        << "shape " << shape << " comes after " << shapes.back();
    if (shapes.empty() || shapes.back() != shape) shapes.push_back(shape);
  }
  if (size() > known) rules_.push_back(rules);
}

bool AntiAffinityTerms::Has(int32_t shape, int32_t number) const {
  const std::span<const int32_t> shapes = this->shapes(number);
  return std::binary_search(shapes.begin(), shapes.end(), shape);
}

void AntiAffinityTerms::CheckConsistent() const {
  std::vector<int32_t> numbers(without_label_.begin(), without_label_.end());
  for (const auto& [label, with_label] : by_label_) {
    numbers.insert(numbers.end(), with_label.begin(), with_label.end());
    LOADLINE_CHECK(std::is_sorted(with_label.begin(), with_label.end())) << "terms of a label";
  }
  LOADLINE_CHECK(std::is_sorted(without_label_.begin(), without_label_.end())) << "terms without a label";
  std::sort(numbers.begin(), numbers.end());
  LOADLINE_CHECK(numbers.size() == terms_.size()) << numbers.size() << " of " << terms_.size() << " terms";
  LOADLINE_CHECK(by_content_.size() == terms_.size()) << by_content_.size() << " terms are told apart";
  for (int32_t number = 0; number < size(); ++number) {
    LOADLINE_CHECK(numbers[static_cast<size_t>(number)] == number) << "term " << number;
    const std::span<const int32_t> shapes = this->shapes(number);
    const auto repeat = std::adjacent_find(shapes.begin(), shapes.end(), std::greater_equal<>());
    LOADLINE_CHECK(!shapes.empty() && repeat == shapes.end()) << "shapes of term " << number;
  }
}

std::vector<int32_t> AntiAffinityTerms::Matching(const Labels& labels, int32_t since,
                                                 int64_t* looked_at) const {
  std::vector<int32_t> matching;
  const auto hold = [&](int32_t number) {
    const LabelSelector& selector = term(number).selector;
    *looked_at += static_cast<int64_t>(std::max<size_t>(1, selector.requirements.size()));
    if (selector.Matches(labels)) matching.push_back(number);
  };
  const auto hold_all = [&](std::span<const int32_t> numbers) {
    std::for_each(std::lower_bound(numbers.begin(), numbers.end(), since), numbers.end(), hold);
  };
  if (static_cast<size_t>(size() - since) <= labels.size()) {
    for (int32_t number = since; number < size(); ++number) hold(number);
    return matching;
  }
  hold_all(without_label_);
  for (const Label& label : labels) {
    const auto found = by_label_.find(HashOfLabel(label.key, label.value));
    if (found != by_label_.end()) hold_all(found->second);
  }
  std::sort(matching.begin(), matching.end());
  return matching;
}

}  // namespace loadline
