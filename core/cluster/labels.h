// Labels of nodes, pods and namespaces, and the two kinds of selectors over them.
//
// AddTo() adds the whole content to a FingerprintBuilder, an IdentityBuilder or a MemoryBuilder.
#ifndef LOADLINE_CORE_CLUSTER_LABELS_H_
#define LOADLINE_CORE_CLUSTER_LABELS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline {

// The label whose value is the node's own name; of all labels the one that makes every node different.
inline constexpr char kHostnameLabel[] = "kubernetes.io/hostname";

// A label of an object, ordered by key and then by value.
struct Label {
  std::string key;
  std::string value;
  friend auto operator<=>(const Label&, const Label&) = default;
};

// Labels of one object, in key order, each key once.
class Labels {
 public:
  Labels() = default;
  // If keys are equal, the last one holds, as in a map on the wire.
  explicit Labels(std::vector<Label> labels);

  // The value of a key, or nullptr. Cost: O(log labels).
  const std::string* Find(absl::string_view key) const;
  // Takes a label out and returns its value, if it is there.
  std::optional<std::string> Take(absl::string_view key);
  void Set(absl::string_view key, absl::string_view value);

  bool empty() const { return labels_.empty(); }
  size_t size() const { return labels_.size(); }
  auto begin() const { return labels_.begin(); }
  auto end() const { return labels_.end(); }

  template <typename Builder>
  void AddTo(Builder* builder) const;

  friend bool operator==(const Labels&, const Labels&) = default;

 private:
  std::vector<Label> labels_;
};

// The condition of one requirement on the value of a label.
enum class SelectorOperator {
  kIn,
  kNotIn,  // also where the label is absent
  kExists,
  kDoesNotExist,
  kGreaterThan,  // both sides are whole numbers; nodes only
  kLessThan,
};

// One condition of a selector: of a label, or in a node selector also of the field metadata.name.
struct Requirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kIn;
  std::vector<std::string> values;  // sorted
  int64_t number = 0;               // of kGreaterThan and kLessThan

  // `value`: that of the label, or nullptr where it is absent. Cost: O(log values).
  bool Matches(const std::string* value) const;
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const Requirement&, const Requirement&) = default;
};

// A selector over the labels of pods, namespaces or volumes: all requirements hold.
struct LabelSelector {
  // There is no selector: matches nothing, while one without requirements matches everything.
  bool nothing = false;
  std::vector<Requirement> requirements;

  bool Everything() const { return !nothing && requirements.empty(); }
  bool Matches(const Labels& labels) const;
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

// One alternative of a node selector.
struct NodeSelectorTerm {
  // It states nothing, or has an operator, key or value that Kubernetes refuses to parse: it matches no node.
  bool invalid = false;
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;  // kIn or kNotIn with one value; keys other than metadata.name are empty
  // Sorted names that requirements In on metadata.name leave over, also of an invalid term; nullopt: it has
  // none.
  std::optional<std::vector<std::string>> pinned;
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

// The parts of a node that node selectors see: `name` is empty for the node affinity of volumes, where no
// field counts.
struct NodeLabels {
  const Labels* labels;  // without the hostname
  const std::string* hostname;
  absl::string_view name;

  const std::string* Find(absl::string_view key) const {
    return key == kHostnameLabel ? hostname : labels->Find(key);
  }
};

// Alternatives, of which one has to match. None: no node matches.
struct NodeSelector {
  std::vector<NodeSelectorTerm> terms;

  bool Matches(const NodeLabels& node) const;
  // Returns whether it looks at what is different on every node: name or hostname.
  bool NamesNodes() const;
  template <typename Builder>
  void AddTo(Builder* builder) const;
  friend bool operator==(const NodeSelector&, const NodeSelector&) = default;
};

// Returns whether every label of `wanted` is on the node.
bool HasAll(const Labels& wanted, const NodeLabels& node);

// A whole number as Go's strconv.ParseInt(text, 10, 64) reads it, or nullopt.
std::optional<int64_t> ParseWholeNumber(absl::string_view text);

// Returns whether `text` is a label key, or a label value, as apimachinery 0.36 checks them when it reads a
// selector.
bool IsLabelKey(absl::string_view text);
bool IsLabelValue(absl::string_view text);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_LABELS_H_
