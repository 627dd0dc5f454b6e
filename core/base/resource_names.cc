#include "core/base/resource_names.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/check.h"

namespace loadline {

struct ResourceNames::Table {
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, ResourceId> ids;  // never iterated: its order differs between runs
  size_t of_pods = 0;                                // names that pods have brought
  absl::flat_hash_map<std::string, size_t> of_namespace;
};

// Until a name is interned into them they share one table.
ResourceNames::ResourceNames() : sole_owner_(false) {
  static const std::shared_ptr<Table>* const kCommon = [] {
    auto table = std::make_shared<Table>();
    table->names = {"cpu", "memory", "ephemeral-storage"};
    table->ids = {{"cpu", kCpu}, {"memory", kMemory}, {"ephemeral-storage", kEphemeralStorage}};
    return new std::shared_ptr<Table>(std::move(table));
  }();
  table_ = *kCommon;
}

ResourceNames::~ResourceNames() = default;

ResourceNames::ResourceNames(const ResourceNames& other) : table_(other.table_), sole_owner_(false) {
  other.sole_owner_.store(false, std::memory_order_relaxed);
}

ResourceNames& ResourceNames::operator=(const ResourceNames& other) {
  ResourceNames copy(other);
  return *this = std::move(copy);
}

ResourceNames::ResourceNames(ResourceNames&& other) noexcept
    : table_(std::move(other.table_)), sole_owner_(other.sole_owner_.load(std::memory_order_relaxed)) {}

ResourceNames& ResourceNames::operator=(ResourceNames&& other) noexcept {
  table_ = std::move(other.table_);
  sole_owner_.store(other.sole_owner_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return *this;
}

// The table, which may be changed: no other object refers to it any more.
ResourceNames::Table* ResourceNames::Own() {
  if (!sole_owner_.load(std::memory_order_relaxed)) {
    table_ = std::make_shared<Table>(*table_);
    sole_owner_.store(true, std::memory_order_relaxed);
  }
  return table_.get();
}

ResourceId ResourceNames::Intern(absl::string_view name) {
  if (const std::optional<ResourceId> known = Find(name); known.has_value()) return *known;
  Own();
  const ResourceId id{static_cast<int32_t>(table_->names.size())};
  table_->names.emplace_back(name);
  table_->ids.emplace(name, id);
  return id;
}

std::optional<ResourceId> ResourceNames::InternForNode(absl::string_view name, const NameLimits& limits) {
  if (const std::optional<ResourceId> known = Find(name); known.has_value()) return known;
  const size_t other = Find(kOtherResources).has_value() ? 1 : 0;
  if (size() - other >= limits.names) return std::nullopt;
  return Intern(name);
}

std::optional<ResourceId> ResourceNames::InternForPod(absl::string_view name,
                                                      absl::string_view namespace_name,
                                                      const NameLimits& limits) {
  if (const std::optional<ResourceId> known = Find(name); known.has_value()) return known;
  if (names_of_pods() >= limits.of_pods) return std::nullopt;
  const auto found = table_->of_namespace.find(namespace_name);
  if (found != table_->of_namespace.end() && found->second >= limits.of_namespace) return std::nullopt;
  const std::optional<ResourceId> id = InternForNode(name, limits);
  if (!id.has_value()) return std::nullopt;
  ++Own()->of_pods;
  ++table_->of_namespace[std::string(namespace_name)];
  return id;
}

std::optional<ResourceId> ResourceNames::Find(absl::string_view name) const {
  const auto found = table_->ids.find(name);
  if (found == table_->ids.end()) return std::nullopt;
  return found->second;
}

absl::string_view ResourceNames::name(ResourceId id) const {
  return table_->names[CheckedIndex("resource", static_cast<size_t>(id), table_->names.size())];
}

void ResourceNames::CheckConsistent() const {
  LOADLINE_CHECK(table_->ids.size() == size())
      << table_->ids.size() << " of " << size() << " names are found";
  for (size_t i = 0; i < size(); ++i) {
    LOADLINE_CHECK(Find(table_->names[i]) == ResourceId{static_cast<int32_t>(i)}) << table_->names[i];
  }
  LOADLINE_CHECK(size() >= 3 && name(kMemory) == "memory") << "the first names are the same everywhere";
  size_t of_pods = 0;
  for (const auto& [namespace_name, names] : table_->of_namespace) of_pods += names;
  LOADLINE_CHECK(of_pods == names_of_pods())
      << of_pods << " names are of pods, " << names_of_pods() << " counted";
}

size_t ResourceNames::size() const { return table_->names.size(); }

size_t ResourceNames::names_of_pods() const { return table_->of_pods; }

}  // namespace loadline
