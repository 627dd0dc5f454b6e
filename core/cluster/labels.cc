#include "core/cluster/labels.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "absl/strings/ascii.h"
#include "core/base/fingerprint.h"
#include "core/cluster/content_bytes.h"
#include "core/cluster/identity.h"

namespace loadline {
namespace {

// Published: the limits of Kubernetes for the name and the prefix of a label key.
constexpr size_t kMaxLabelLength = 63;
constexpr size_t kMaxPrefixLength = 253;

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// Letters, digits, '-', '_' and '.', with a letter or digit at both ends.
bool IsLabelName(absl::string_view text) {
  if (text.empty() || text.size() > kMaxLabelLength || !IsAlnum(text.front()) || !IsAlnum(text.back())) {
    return false;
  }
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Parts between dots: lower-case letters, digits and '-', with a letter or digit at both ends.
bool IsSubdomain(absl::string_view text) {
  if (text.empty() || text.size() > kMaxPrefixLength) return false;
  const auto is_lower_alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  while (true) {
    const absl::string_view part = text.substr(0, text.find('.'));
    if (part.empty() || !is_lower_alnum(part.front()) || !is_lower_alnum(part.back())) return false;
    if (!std::all_of(part.begin(), part.end(), [&](char c) { return is_lower_alnum(c) || c == '-'; })) {
      return false;
    }
    if (part.size() == text.size()) return true;
    text.remove_prefix(part.size() + 1);
  }
}

template <typename Builder>
void AddAll(const std::vector<Requirement>& requirements, Builder* builder) {
  builder->Add(static_cast<int64_t>(requirements.size()));
  for (const Requirement& requirement : requirements) requirement.AddTo(builder);
}

}  // namespace

Labels::Labels(std::vector<Label> labels) : labels_(std::move(labels)) {
  std::stable_sort(labels_.begin(), labels_.end(),
                   [](const Label& a, const Label& b) { return a.key < b.key; });
  size_t kept = 0;
  for (size_t i = 0; i < labels_.size(); ++i) {
    if (i + 1 < labels_.size() && labels_[i + 1].key == labels_[i].key) continue;
    if (kept != i) labels_[kept] = std::move(labels_[i]);
    ++kept;
  }
  labels_.resize(kept);
}

const std::string* Labels::Find(absl::string_view key) const {
  const auto at =
      std::lower_bound(labels_.begin(), labels_.end(), key,
                       [](const Label& label, absl::string_view wanted) { return label.key < wanted; });
  return at != labels_.end() && at->key == key ? &at->value : nullptr;
}

std::optional<std::string> Labels::Take(absl::string_view key) {
  const std::string* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  std::string taken = *value;
  std::erase_if(labels_, [&](const Label& label) { return label.key == key; });
  return taken;
}

void Labels::Set(absl::string_view key, absl::string_view value) {
  const auto at =
      std::lower_bound(labels_.begin(), labels_.end(), key,
                       [](const Label& label, absl::string_view wanted) { return label.key < wanted; });
  if (at != labels_.end() && at->key == key) {
    at->value.assign(value.data(), value.size());
  } else {
    labels_.insert(at, {std::string(key), std::string(value)});
  }
}

template <typename Builder>
void Labels::AddTo(Builder* builder) const {
  builder->Add(static_cast<int64_t>(labels_.size()));
  for (const Label& label : labels_) {
    builder->Add(absl::string_view(label.key));
    builder->Add(absl::string_view(label.value));
  }
}

bool Requirement::Matches(const std::string* value) const {
  const auto listed = [&] { return std::binary_search(values.begin(), values.end(), *value); };
  switch (op) {
    case SelectorOperator::kIn:
      return value != nullptr && listed();
    case SelectorOperator::kNotIn:
      return value == nullptr || !listed();
    case SelectorOperator::kExists:
      return value != nullptr;
    case SelectorOperator::kDoesNotExist:
      return value == nullptr;
    case SelectorOperator::kGreaterThan:
    case SelectorOperator::kLessThan:
      break;
  }
  if (value == nullptr) return false;
  const std::optional<int64_t> parsed = ParseWholeNumber(*value);
  if (!parsed.has_value()) return false;
  return op == SelectorOperator::kGreaterThan ? *parsed > number : *parsed < number;
}

template <typename Builder>
void Requirement::AddTo(Builder* builder) const {
  builder->Add(absl::string_view(key));
  builder->Add(static_cast<int64_t>(op));
  builder->Add(number);
  builder->Add(static_cast<int64_t>(values.size()));
  for (const std::string& value : values) builder->Add(absl::string_view(value));
}

bool LabelSelector::Matches(const Labels& labels) const {
  if (nothing) return false;
  return std::all_of(requirements.begin(), requirements.end(), [&](const Requirement& requirement) {
    return requirement.Matches(labels.Find(requirement.key));
  });
}

template <typename Builder>
void LabelSelector::AddTo(Builder* builder) const {
  builder->Add(int64_t{nothing});
  AddAll(requirements, builder);
}

bool NodeSelector::Matches(const NodeLabels& node) const {
  // A field other than the name is empty on every node; kubernetes does not look at fields of a node without
  // a name.
  const auto field = [&](const Requirement& requirement) {
    const std::string value(requirement.key == "metadata.name" ? node.name.data() : "",
                            requirement.key == "metadata.name" ? node.name.size() : 0);
    return requirement.Matches(&value);
  };
  return std::any_of(terms.begin(), terms.end(), [&](const NodeSelectorTerm& term) {
    if (term.invalid) return false;
    if (!std::all_of(term.labels.begin(), term.labels.end(), [&](const Requirement& requirement) {
          return requirement.Matches(node.Find(requirement.key));
        })) {
      return false;
    }
    return node.name.empty() || std::all_of(term.fields.begin(), term.fields.end(), field);
  });
}

bool NodeSelector::NamesNodes() const {
  return std::any_of(terms.begin(), terms.end(), [](const NodeSelectorTerm& term) {
    return !term.fields.empty() || term.pinned.has_value() ||
           std::any_of(term.labels.begin(), term.labels.end(),
                       [](const Requirement& requirement) { return requirement.key == kHostnameLabel; });
  });
}

template <typename Builder>
void NodeSelector::AddTo(Builder* builder) const {
  builder->Add(static_cast<int64_t>(terms.size()));
  for (const NodeSelectorTerm& term : terms) {
    builder->Add(int64_t{term.invalid});
    AddAll(term.labels, builder);
    AddAll(term.fields, builder);
    builder->Add(int64_t{term.pinned.has_value()});
    if (!term.pinned.has_value()) continue;
    builder->Add(static_cast<int64_t>(term.pinned->size()));
    for (const std::string& name : *term.pinned) builder->Add(absl::string_view(name));
  }
}

bool HasAll(const Labels& wanted, const NodeLabels& node) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const Label& label) {
    const std::string* const value = node.Find(label.key);
    return value != nullptr && *value == label.value;
  });
}

std::optional<int64_t> ParseWholeNumber(absl::string_view text) {
  // std::from_chars takes a minus but no plus.
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty() || text.front() == '-') return std::nullopt;
  }
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

bool IsLabelKey(absl::string_view text) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos) return IsLabelName(text);
  return IsSubdomain(text.substr(0, slash)) && IsLabelName(text.substr(slash + 1));
}

bool IsLabelValue(absl::string_view text) { return text.empty() || IsLabelName(text); }

template void Labels::AddTo(FingerprintBuilder*) const;
template void Labels::AddTo(IdentityBuilder*) const;
template void Labels::AddTo(MemoryBuilder*) const;
template void Requirement::AddTo(FingerprintBuilder*) const;
template void Requirement::AddTo(IdentityBuilder*) const;
template void Requirement::AddTo(MemoryBuilder*) const;
template void LabelSelector::AddTo(FingerprintBuilder*) const;
template void LabelSelector::AddTo(IdentityBuilder*) const;
template void LabelSelector::AddTo(MemoryBuilder*) const;
template void NodeSelector::AddTo(FingerprintBuilder*) const;
template void NodeSelector::AddTo(IdentityBuilder*) const;
template void NodeSelector::AddTo(MemoryBuilder*) const;

}  // namespace loadline
