#include "plugin/convert/catalogue_cache.h"

#include <cstddef>
#include <list>
#include <string>
#include <utility>

#include "plugin/base/mutex.h"

namespace loadline {
namespace {

using Shared = std::shared_ptr<const PriceCatalogue>;

// Four times what the lists that are built in have. What is read of a list takes up to ten times its bytes.
constexpr size_t kMostBytes = size_t{2} << 20;

class Cache {
 public:
  Shared Find(absl::string_view name, absl::string_view csv) {
    const MutexLock lock(&mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->catalogue->name != name || entry->csv != csv) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->catalogue;
    }
    return nullptr;
  }

  void Add(absl::string_view csv, Shared catalogue) {
    if (csv.size() > kMostBytes) return;
    const MutexLock lock(&mutex_);
    bytes_ += csv.size();
    entries_.push_front({std::string(csv), std::move(catalogue)});
    while (bytes_ > kMostBytes) {
      bytes_ -= entries_.back().csv.size();
      entries_.pop_back();
    }
  }

 private:
  struct Entry {
    std::string csv;
    Shared catalogue;
  };
  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the last asked for first
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<Shared> CachedPriceCatalogue(absl::string_view name, absl::string_view csv) {
  static Cache* const kCache = new Cache;  // never destroyed: calls may come until the process ends
  if (Shared known = kCache->Find(name, csv); known != nullptr) return known;
  absl::StatusOr<PriceCatalogue> parsed = ParsePriceCatalogue(name, csv);
  if (!parsed.ok()) return parsed.status();
  Shared catalogue = std::make_shared<const PriceCatalogue>(*std::move(parsed));
  kCache->Add(csv, catalogue);
  return catalogue;
}

}  // namespace loadline
