#include "plugin/convert/selectors.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

using Values = google::protobuf::RepeatedPtrField<std::string>;

constexpr char kNameField[] = "metadata.name";

std::vector<std::string> Sorted(const Values& values) {
  std::vector<std::string> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

bool ReadOperator(const std::string& text, SelectorOperator* op) {
  static constexpr struct {
    const char* text;
    SelectorOperator op;
  } kOperators[] = {
      {"In", SelectorOperator::kIn},          {"NotIn", SelectorOperator::kNotIn},
      {"Exists", SelectorOperator::kExists},  {"DoesNotExist", SelectorOperator::kDoesNotExist},
      {"Gt", SelectorOperator::kGreaterThan}, {"Lt", SelectorOperator::kLessThan},
  };
  for (const auto& entry : kOperators) {
    if (text != entry.text) continue;
    *op = entry.op;
    return true;
  }
  return false;
}

// The checks of labels.NewRequirement. Empty: it is a requirement.
std::string ReadRequirement(const std::string& key, SelectorOperator op, const Values& values,
                            Requirement* requirement) {
  if (!IsLabelKey(key)) return absl::StrCat("key: ", Quoted(key), " is not a label key");
  switch (op) {
    case SelectorOperator::kIn:
    case SelectorOperator::kNotIn:
      if (values.empty()) return "values: In and NotIn need values";
      break;
    case SelectorOperator::kExists:
    case SelectorOperator::kDoesNotExist:
      if (!values.empty()) return "values: Exists and DoesNotExist take none";
      break;
    case SelectorOperator::kGreaterThan:
    case SelectorOperator::kLessThan: {
      const std::optional<int64_t> number = values.size() == 1 ? ParseWholeNumber(values[0]) : std::nullopt;
      if (!number.has_value()) return "values: Gt and Lt need one whole number";
      requirement->number = *number;
      break;
    }
  }
  for (const std::string& value : values) {
    if (!IsLabelValue(value)) return absl::StrCat("values: ", Quoted(value), " is not a label value");
  }
  requirement->key = key;
  requirement->op = op;
  requirement->values = Sorted(values);
  return "";
}

// Fields take In and NotIn with one value.
bool ReadField(const k8s::v1::NodeSelectorRequirement& message, Requirement* requirement) {
  if (!ReadOperator(message.operator_(), &requirement->op) || message.values_size() != 1) return false;
  requirement->key = message.key();
  requirement->values = Sorted(message.values());
  return requirement->op == SelectorOperator::kIn || requirement->op == SelectorOperator::kNotIn;
}

// Narrows the names that a term pins by one requirement on metadata.name.
void Pin(const Values& values, NodeSelectorTerm* term) {
  std::vector<std::string> names = Sorted(values);
  if (term->pinned.has_value()) {
    std::vector<std::string> both;
    std::set_intersection(names.begin(), names.end(), term->pinned->begin(), term->pinned->end(),
                          std::back_inserter(both));
    names = std::move(both);
  }
  term->pinned = std::move(names);
}

NodeSelectorTerm ReadTerm(const k8s::v1::NodeSelectorTerm& message) {
  NodeSelectorTerm term;
  term.invalid = message.match_expressions().empty() && message.match_fields().empty();
  for (const k8s::v1::NodeSelectorRequirement& expression : message.match_expressions()) {
    SelectorOperator op;
    Requirement& requirement = term.labels.emplace_back();
    if (!ReadOperator(expression.operator_(), &op) ||
        !ReadRequirement(expression.key(), op, expression.values(), &requirement).empty()) {
      term.invalid = true;
    }
  }
  for (const k8s::v1::NodeSelectorRequirement& field : message.match_fields()) {
    if (!ReadField(field, &term.fields.emplace_back())) term.invalid = true;
    if (field.key() == kNameField && field.operator_() == "In") Pin(field.values(), &term);
  }
  if (term.invalid) {
    term.labels.clear();
    term.fields.clear();
  }
  return term;
}

}  // namespace

Labels ReadLabels(const StringEntries& entries) {
  std::vector<Label> labels;
  labels.reserve(static_cast<size_t>(entries.size()));
  for (const k8s::v1::StringEntry& entry : entries) labels.push_back({entry.key(), entry.value()});
  return Labels(std::move(labels));
}

const std::string* FindEntry(const StringEntries& entries, absl::string_view key) {
  const std::string* found = nullptr;
  for (const k8s::v1::StringEntry& entry : entries) {
    if (entry.key() == key) found = &entry.value();
  }
  return found;
}

absl::Status CheckSelectorSize(const k8s::v1::LabelSelector& message) {
  return CheckEntries(int64_t{message.match_labels_size()} + message.match_expressions_size(),
                      "spec.selector", kMaxSelectorRequirements);
}

absl::Status CheckSelectorSize(const k8s::v1::NodeSelector& message) {
  int64_t size = 0;
  for (const k8s::v1::NodeSelectorTerm& term : message.node_selector_terms()) {
    size += 1 + term.match_expressions_size() + term.match_fields_size();
  }
  return CheckEntries(size, "spec.nodeAffinity", 2 * kMaxSelectorRequirements);
}

LabelSelector ReadLabelSelector(const k8s::v1::LabelSelector& message, bool present, std::string* error) {
  LabelSelector selector;
  selector.nothing = !present;
  const auto fail = [&](const std::string& text) {
    *error = absl::StrCat("invalid label selector: ", text);
    return LabelSelector{true, {}};
  };
  const Labels wanted = ReadLabels(message.match_labels());
  for (const Label& label : wanted) {
    if (!IsLabelKey(label.key)) return fail(absl::StrCat(Quoted(label.key), " is not a label key"));
    if (!IsLabelValue(label.value)) return fail(absl::StrCat(Quoted(label.value), " is not a label value"));
    selector.requirements.push_back({label.key, SelectorOperator::kIn, {label.value}});
  }
  for (const k8s::v1::LabelSelectorRequirement& expression : message.match_expressions()) {
    SelectorOperator op;
    if (!ReadOperator(expression.operator_(), &op) || op == SelectorOperator::kGreaterThan ||
        op == SelectorOperator::kLessThan) {
      // In the words of apimachinery, which kube-scheduler passes on.
      *error = absl::StrCat(Quoted(expression.operator_()), " is not a valid label selector operator");
      return LabelSelector{true, {}};
    }
    const std::string problem =
        ReadRequirement(expression.key(), op, expression.values(), &selector.requirements.emplace_back());
    if (!problem.empty()) return fail(problem);
  }
  return selector;
}

NodeSelector ReadNodeSelector(const k8s::v1::NodeSelector& message) {
  NodeSelector selector;
  for (const k8s::v1::NodeSelectorTerm& term : message.node_selector_terms()) {
    selector.terms.push_back(ReadTerm(term));
  }
  return selector;
}

bool ReadInRequirement(const std::string& key, const Values& values, Requirement* requirement) {
  return ReadRequirement(key, SelectorOperator::kIn, values, requirement).empty();
}

}  // namespace loadline
