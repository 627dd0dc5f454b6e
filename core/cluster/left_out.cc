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
  LeftOutObject object = {Cut(kind, kMostNameBytes), Cut(namespace_name, kMostNameBytes),
                          Cut(name, kMostNameBytes), Cut(reason, kMostReasonBytes)};
  std::set<LeftOutObject>& here = named_[object.namespace_name];
  const size_t before = here.size();
  const std::string of = object.namespace_name;
  if (!here.insert(std::move(object)).second) return;
  namespaces_by_size_.erase({before, of});
  namespaces_by_size_.insert({before + 1, of});
  ++total_;
  if (++size_ > kMostNamed) DropLast();
}

// The last that had its turn: more objects of other namespaces would not bring it back.
void LeftOutList::DropLast() {
  const auto [size, of] = *namespaces_by_size_.rbegin();
  namespaces_by_size_.erase(std::prev(namespaces_by_size_.end()));
  const auto here = named_.find(of);
  here->second.erase(std::prev(here->second.end()));
  --size_;
  if (here->second.empty()) {
    named_.erase(here);
  } else {
    namespaces_by_size_.insert({size - 1, of});
  }
}

std::set<LeftOutObject> LeftOutList::named() const {
  std::set<LeftOutObject> all;
  for (const auto& [of, here] : named_) all.insert(here.begin(), here.end());
  return all;
}

void LeftOutList::Add(const LeftOutList& other) {
  const int64_t unnamed = other.total_ - static_cast<int64_t>(other.size_);
  for (const auto& [of, here] : other.named_) {
    for (const LeftOutObject& object : here) {
      Add(object.kind, object.namespace_name, object.name, object.reason);
    }
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
