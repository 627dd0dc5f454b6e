// Objects that could not be read, or not in full: each is left out alone, and reported by name.
#ifndef LOADLINE_CORE_CLUSTER_LEFT_OUT_H_
#define LOADLINE_CORE_CLUSTER_LEFT_OUT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline {

// The kind of what is no object of Kubernetes.
inline constexpr char kNodeGroupKind[] = "NodeGroup";

// One such object. Its text may be anything.
struct LeftOutObject {
  std::string kind;  // in Kubernetes: "Pod"
  std::string namespace_name;
  std::string name;
  std::string reason;  // what is wrong with it, in plain words
  friend auto operator<=>(const LeftOutObject&, const LeftOutObject&) = default;
};

// Bounded: of many objects some are named, the others are counted. Namespaces take turns, the first objects
// of each by kind and name, so that nobody's are hidden behind those of another. What is named depends on the
// objects only, and not on the order in which they come.
class LeftOutList {
 public:
  static constexpr size_t kMostNamed = 256;        // chosen: all others are counted
  static constexpr size_t kMostNameBytes = 253;    // published: the longest name of a Kubernetes object
  static constexpr size_t kMostReasonBytes = 512;  // chosen: one sentence that quotes a name

  // Adds an object, its text cut to the bounds. One that is named already counts once.
  // Cost: O(log kMostNamed).
  void Add(absl::string_view kind, absl::string_view namespace_name, absl::string_view name,
           absl::string_view reason);
  // Adds all of `other`.
  void Add(const LeftOutList& other);

  bool empty() const { return total_ == 0; }
  int64_t total() const { return total_; }
  // At most kMostNamed, by kind, namespace and name.
  std::set<LeftOutObject> named() const;

 private:
  void DropLast();

  int64_t total_ = 0;
  size_t size_ = 0;                                              // of all in named_
  std::map<std::string, std::set<LeftOutObject>> named_;         // by namespace
  std::set<std::pair<size_t, std::string>> namespaces_by_size_;  // of named_
};

// For each entry of a list that may be too long: whether it is among the `most` that are taken. Namespaces
// take turns, so that one with many entries leaves out none of another; within a namespace the first are
// taken.
std::vector<bool> TakeInTurns(const std::vector<absl::string_view>& namespaces, size_t most);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_LEFT_OUT_H_
