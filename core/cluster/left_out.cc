#include "core/cluster/left_out.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace loadline {
namespace {

std::string Cut(absl::string_view text, size_t most) {
  return std::string(text.data(), std::min(text.size(), most));
}

}  // namespace

void LeftOutList::Add(absl::string_view kind, absl::string_view namespace_name, absl::string_view name,
                      absl::string_view reason) {
  const bool is_new = named_
                          .insert({Cut(kind, kMostNameBytes), Cut(namespace_name, kMostNameBytes),
                                   Cut(name, kMostNameBytes), Cut(reason, kMostReasonBytes)})
                          .second;
  if (is_new) ++total_;
  if (named_.size() > kMostNamed) named_.erase(std::prev(named_.end()));
}

void LeftOutList::Add(const LeftOutList& other) {
  const int64_t unnamed = other.total_ - static_cast<int64_t>(other.named_.size());
  for (const LeftOutObject& object : other.named_) {
    Add(object.kind, object.namespace_name, object.name, object.reason);
  }
  total_ += unnamed;
}

std::vector<bool> TakeInTurns(const std::vector<absl::string_view>& namespaces, size_t most) {
  if (namespaces.size() <= most) return std::vector<bool>(namespaces.size(), true);
  absl::flat_hash_map<absl::string_view, size_t> seen;
  std::vector<std::pair<size_t, size_t>> turns;  // the turn in which an entry is taken, and its position
  turns.reserve(namespaces.size());
  for (size_t i = 0; i < namespaces.size(); ++i) turns.emplace_back(seen[namespaces[i]]++, i);
  std::sort(turns.begin(), turns.end());
  std::vector<bool> taken(namespaces.size(), false);
  for (size_t i = 0; i < most; ++i) taken[turns[i].second] = true;
  return taken;
}

}  // namespace loadline
