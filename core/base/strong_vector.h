// Positions that the compiler tells apart, and vectors that take only positions of their own.
#ifndef LOADLINE_CORE_BASE_STRONG_VECTOR_H_
#define LOADLINE_CORE_BASE_STRONG_VECTOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace loadline {

// A position in one list: `enum class GroupIndex : int32_t {};`. Positions are ordered and have no
// arithmetic. "None" is an empty std::optional, never a negative position.
template <typename Index>
concept StrongIndex = std::is_enum_v<Index> && std::is_same_v<std::underlying_type_t<Index>, int32_t>;

// Returns a position as a number, where a plain list or a message takes it.
template <StrongIndex Index>
constexpr size_t IndexOf(Index index) {
  return static_cast<size_t>(index);
}

// Returns the position with this number; `number` is below 2^31.
template <StrongIndex Index>
constexpr Index IndexAt(size_t number) {
  return static_cast<Index>(static_cast<int32_t>(number));
}

// A std::optional<Index> of four bytes, where there are millions of them.
template <StrongIndex Index>
class OptionalIndex {
 public:
  constexpr OptionalIndex() = default;
  // Implicit, as those of std::optional. NOLINTNEXTLINE(google-explicit-constructor)
  constexpr OptionalIndex(Index index) : index_(index) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr OptionalIndex(std::nullopt_t) {}

  constexpr bool has_value() const { return index_ != kNone; }
  constexpr Index operator*() const { return index_; }
  friend constexpr bool operator==(OptionalIndex, OptionalIndex) = default;

 private:
  static constexpr Index kNone{-1};
  Index index_ = kNone;
};

// The first positions of a list, in order: for (const GroupIndex group : groups.indices()).
template <StrongIndex Index>
class IndexRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Index;
    using difference_type = std::ptrdiff_t;
    using pointer = const Index*;
    using reference = Index;

    constexpr Iterator() = default;
    constexpr explicit Iterator(int32_t number) : number_(number) {}
    constexpr Index operator*() const { return static_cast<Index>(number_); }
    constexpr Iterator& operator++() {
      ++number_;
      return *this;
    }
    constexpr Iterator operator++(int) { return Iterator(number_++); }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    int32_t number_ = 0;
  };

  constexpr explicit IndexRange(size_t size) : size_(static_cast<int32_t>(size)) {}
  constexpr Iterator begin() const { return Iterator(0); }
  constexpr Iterator end() const { return Iterator(size_); }

 private:
  int32_t size_;
};

// A view of a StrongVector, as std::span is one of a std::vector.
template <StrongIndex Index, typename T>
class StrongSpan {
 public:
  constexpr StrongSpan() = default;
  constexpr explicit StrongSpan(std::span<T> values) : values_(values) {}

  constexpr size_t size() const { return values_.size(); }
  constexpr bool empty() const { return values_.empty(); }
  constexpr T& operator[](Index index) const { return values_[IndexOf(index)]; }
  constexpr bool Contains(Index index) const { return IndexOf(index) < values_.size(); }
  constexpr auto begin() const { return values_.begin(); }
  constexpr auto end() const { return values_.end(); }
  constexpr IndexRange<Index> indices() const { return IndexRange<Index>(values_.size()); }
  // The position behind the last one.
  constexpr Index end_index() const { return IndexAt<Index>(values_.size()); }
  constexpr std::span<T> values() const { return values_; }

 private:
  std::span<T> values_;
};

// A std::vector whose positions are of type Index. It costs what a std::vector costs.
template <StrongIndex Index, typename T>
class StrongVector {
 public:
  using value_type = T;
  using Values = std::vector<T>;

  StrongVector() = default;
  explicit StrongVector(size_t size) : values_(size) {}
  StrongVector(size_t size, const T& value) : values_(size, value) {}
  StrongVector(std::initializer_list<T> values) : values_(values) {}
  explicit StrongVector(Values values) : values_(std::move(values)) {}

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  typename Values::reference operator[](Index index) { return values_[IndexOf(index)]; }
  typename Values::const_reference operator[](Index index) const { return values_[IndexOf(index)]; }
  bool Contains(Index index) const { return IndexOf(index) < values_.size(); }
  typename Values::reference front() { return values_.front(); }
  typename Values::const_reference front() const { return values_.front(); }
  typename Values::reference back() { return values_.back(); }
  typename Values::const_reference back() const { return values_.back(); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  IndexRange<Index> indices() const { return IndexRange<Index>(values_.size()); }
  // The position behind the last one: that of the next one to be added.
  Index end_index() const { return IndexAt<Index>(values_.size()); }
  const Values& values() const { return values_; }
  Values& values() { return values_; }

  void push_back(T value) { values_.push_back(std::move(value)); }
  template <typename... Args>
  typename Values::reference emplace_back(Args&&... args) {
    return values_.emplace_back(std::forward<Args>(args)...);
  }
  void pop_back() { values_.pop_back(); }
  void reserve(size_t size) { values_.reserve(size); }
  void resize(size_t size) { values_.resize(size); }
  void resize(size_t size, const T& value) { values_.resize(size, value); }
  void assign(size_t size, const T& value) { values_.assign(size, value); }
  void clear() { values_.clear(); }

  // Implicit, like std::vector to std::span. NOLINTNEXTLINE(google-explicit-constructor)
  operator StrongSpan<Index, const T>() const { return StrongSpan<Index, const T>(values_); }

  friend bool operator==(const StrongVector&, const StrongVector&) = default;

 private:
  Values values_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_STRONG_VECTOR_H_
