#include "plugin/convert/catalogue_cache.h"

#include <cstddef>
#include <list>
#include <string>
#include <utility>

#include "plugin/base/mutex.h"

namespace loadline {
namespace {

using Shared = std::shared_ptr<const PriceCatalogue>;

// Four times what the lists that are built in take.
constexpr size_t kMostBytes = size_t{16} << 20;

// Returns about how many bytes a hash map takes, without what its elements have elsewhere.
template <typename Map>
size_t BytesOf(const Map& map) {
  return map.capacity() * (sizeof(typename Map::value_type) + 1);
}

// Returns about how many bytes a list takes once it is read, without its names: they are part of its text,
// which is counted beside it.
size_t BytesOf(const PriceCatalogue& catalogue) {
  size_t bytes = BytesOf(catalogue.types) + BytesOf(catalogue.families) +
                 BytesOf(catalogue.region_positions) + catalogue.regions.capacity() * sizeof(std::string);
  for (const auto& [type, price] : catalogue.types) {
    bytes += price.elsewhere.capacity() * sizeof(MachinePrice);
  }
  for (const auto& [family, members] : catalogue.families) bytes += members.capacity() * sizeof(FamilyMember);
  if (!catalogue.gce.has_value()) return bytes;
  const GcePrices& gce = *catalogue.gce;
  return bytes + BytesOf(gce.families) + BytesOf(gce.custom_families) + BytesOf(gce.gpus) +
         BytesOf(gce.spot_gpus) + BytesOf(gce.boot_disk_gib);
}

class Cache {
 public:
  Shared Find(absl::string_view name, absl::string_view csv) {
    const MutexLock lock(&mutex_);
    return Locate(name, csv);
  }

  // Returns `catalogue`, or the same list where another thread has added it in the meantime.
  Shared Add(absl::string_view csv, Shared catalogue) {
    const size_t bytes = 2 * csv.size() + BytesOf(*catalogue);  // the text that is kept, and the names
    if (bytes > kMostBytes) return catalogue;
    const MutexLock lock(&mutex_);
    if (Shared known = Locate(catalogue->name, csv); known != nullptr) return known;
    bytes_ += bytes;
    entries_.push_front({std::string(csv), catalogue, bytes});
    while (bytes_ > kMostBytes) {
      bytes_ -= entries_.back().bytes;
      entries_.pop_back();
    }
    return catalogue;
  }

 private:
  struct Entry {
    std::string csv;
    Shared catalogue;
    size_t bytes;
  };

  Shared Locate(absl::string_view name, absl::string_view csv) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->catalogue->name != name || entry->csv != csv) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->catalogue;
    }
    return nullptr;
  }

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
  return kCache->Add(csv, std::make_shared<const PriceCatalogue>(*std::move(parsed)));
}

}  // namespace loadline
