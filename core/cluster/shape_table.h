// One canonical copy of each shape in use.
#ifndef LOADLINE_CORE_CLUSTER_SHAPE_TABLE_H_
#define LOADLINE_CORE_CLUSTER_SHAPE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/base/check.h"

namespace loadline {

// Interns values of `Shape`, which has operator== and a member `uint64_t fingerprint` over its content.
// Indices are dense; a shape without references gives its index free for another one.
// Cost: O(1) per call beside comparing one shape. Not thread-safe.
template <typename Shape>
class ShapeTable {
 public:
  ShapeTable() : index_(0, Hash{this}, Equal{this}) {}
  // Copies the shapes, under their indices. Cost: O(shapes).
  ShapeTable(const ShapeTable& other)
      : entries_(other.entries_),
        free_(other.free_),
        index_(other.index_.begin(), other.index_.end(), other.index_.size(), Hash{this}, Equal{this}) {}
  ShapeTable& operator=(const ShapeTable&) = delete;

  // Returns the index of the shape equal to `shape`, with one reference more.
  int32_t Acquire(Shape shape) {
    if (const auto found = index_.find(shape); found != index_.end()) {
      ++entries_[At(*found)].references;
      return *found;
    }
    int32_t id;
    if (free_.empty()) {
      id = static_cast<int32_t>(entries_.size());
      entries_.push_back({std::move(shape), 1});
    } else {
      id = free_.back();
      free_.pop_back();
      entries_[At(id)] = {std::move(shape), 1};
    }
    index_.insert(id);
    return id;
  }

  // Gives one reference back. `id` is one that Acquire() returned and that still has references.
  void Release(int32_t id) {
    Entry& entry = entries_[InUse(id)];
    if (--entry.references > 0) return;
    index_.erase(id);
    entry.shape.reset();
    free_.push_back(id);
  }

  // Returns the shape of an index that Acquire() returned and that still has references.
  const Shape& operator[](int32_t id) const { return *entries_[InUse(id)].shape; }

  // Returns whether an index in use has one reference.
  bool HasOneReference(int32_t id) const { return entries_[InUse(id)].references == 1; }

  // Shapes in use.
  size_t size() const { return index_.size(); }

  // Checks that each shape in use is found and has as many references as `references` says, by index; what
  // lies beyond has none. For tests.
  void CheckConsistent(std::span<const int64_t> references) const {
    LOADLINE_CHECK(references.size() <= entries_.size())
        << "shapes beyond " << entries_.size() << " are in use";
    for (size_t i = 0; i < entries_.size(); ++i) {
      const int64_t expected = i < references.size() ? references[i] : 0;
      const Entry& entry = entries_[i];
      LOADLINE_CHECK(entry.references == expected)
          << "shape " << i << " has " << entry.references << " references";
      LOADLINE_CHECK(entry.shape.has_value() == (expected > 0)) << "shape " << i;
      if (expected == 0) continue;
      const auto found = index_.find(*entry.shape);
      LOADLINE_CHECK(found != index_.end() && At(*found) == i) << "shape " << i << " is not found";
    }
    LOADLINE_CHECK(index_.size() + free_.size() == entries_.size()) << index_.size() << " shapes";
  }

 private:
  struct Entry {
    std::optional<Shape> shape;  // empty: the index is free
    int64_t references = 0;
  };
  // Both look shapes up by value or by index.
  struct Hash {
    using is_transparent = void;
    const ShapeTable* table;
    size_t operator()(const Shape& shape) const { return static_cast<size_t>(shape.fingerprint); }
    size_t operator()(int32_t id) const { return (*this)(table->Unchecked(id)); }
  };
  struct Equal {
    using is_transparent = void;
    const ShapeTable* table;
    bool operator()(int32_t a, int32_t b) const { return a == b; }
    bool operator()(int32_t id, const Shape& shape) const { return table->Unchecked(id) == shape; }
    bool operator()(const Shape& shape, int32_t id) const { return table->Unchecked(id) == shape; }
  };
  static size_t At(int32_t id) { return static_cast<size_t>(id); }
  size_t InUse(int32_t id) const {
    LOADLINE_CHECK(At(id) < entries_.size() && entries_[At(id)].references > 0)
        << "shape " << id << " is not in use";
    return At(id);
  }
  // The hash table cannot take an exception.
  const Shape& Unchecked(int32_t id) const { return *entries_[At(id)].shape; }

  std::vector<Entry> entries_;
  std::vector<int32_t> free_;
  absl::flat_hash_set<int32_t, Hash, Equal> index_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SHAPE_TABLE_H_
