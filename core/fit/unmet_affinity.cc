#include "core/fit/unmet_affinity.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace loadline {
namespace {

// The number of values that a condition names. Chosen: zones and types of a cloud rarely are more.
constexpr size_t kMostValues = 5;

std::string Listed(const std::vector<std::string>& values) {
  if (values.size() <= kMostValues) return absl::StrJoin(values, ", ");
  const std::vector<std::string> first(values.begin(), values.begin() + kMostValues);
  return absl::StrCat(absl::StrJoin(first, ", "), " and ", values.size() - kMostValues, " more");
}

// In the words of kubectl.
std::string TextOf(const Requirement& requirement) {
  const std::string& key = requirement.key;
  switch (requirement.op) {
    case SelectorOperator::kIn:
      return requirement.values.size() == 1 ? absl::StrCat(key, "=", requirement.values.front())
                                            : absl::StrCat(key, " in (", Listed(requirement.values), ")");
    case SelectorOperator::kNotIn:
      return absl::StrCat(key, " notin (", Listed(requirement.values), ")");
    case SelectorOperator::kExists:
      return key;
    case SelectorOperator::kDoesNotExist:
      return absl::StrCat("!", key);
    case SelectorOperator::kGreaterThan:
      return absl::StrCat(key, " > ", requirement.number);
    case SelectorOperator::kLessThan:
      return absl::StrCat(key, " < ", requirement.number);
  }
  return key;
}

}  // namespace

std::string UnmetAffinity(const PodRules& rules, const NodeLabels& node) {
  const auto text = [&](absl::string_view selects, absl::string_view key) {
    if (key == kHostnameLabel) return absl::StrCat("the pod selects ", selects, ", which no new node has");
    const std::string* const value = node.Find(key);
    return absl::StrCat("the pod selects ", selects, ", and a new node has ",
                        value == nullptr ? absl::StrCat("no label ", key) : absl::StrCat(key, "=", *value));
  };
  for (const Label& label : rules.node_selector) {
    const std::string* const value = node.Find(label.key);
    if (value == nullptr || *value != label.value) {
      return text(absl::StrCat(label.key, "=", label.value), label.key);
    }
  }
  if (!rules.node_affinity.has_value() || rules.node_affinity->Matches(node)) return "";
  for (const NodeSelectorTerm& term : rules.node_affinity->terms) {
    for (const Requirement& requirement : term.labels) {
      if (!requirement.Matches(node.Find(requirement.key))) return text(TextOf(requirement), requirement.key);
    }
  }
  return "";
}

}  // namespace loadline
