// The events of a cluster, for readers that keep something of their own up to date.
#ifndef LOADLINE_CORE_CLUSTER_JOURNAL_H_
#define LOADLINE_CORE_CLUSTER_JOURNAL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/check.h"

namespace loadline {

// Events in the order in which they were recorded. Only the last ones are kept: a reader that falls behind by
// more has to look at everything again.
template <typename Event>
class Journal {
 public:
  // `start`: the position of the first event.
  explicit Journal(int64_t start = 0) : start_(start) {}

  // The position after the last event.
  int64_t end() const { return start_ + static_cast<int64_t>(events_.size()); }

  // The events from a position on, with repeats; nullopt when the journal does not hold that position.
  std::optional<std::span<const Event>> Since(int64_t position) const {
    if (position < start_ || position > end()) return std::nullopt;
    return std::span(events_).subspan(static_cast<size_t>(position - start_));
  }

  // Checks that positions are those of events. For tests.
  void CheckConsistent() const {
    LOADLINE_CHECK(start_ >= 0 && Since(start_)->size() == events_.size())
        << "a journal starts at " << start_;
  }

  // Keeps at least the last 512 events, and at least the last `most` / 2. Cost: O(1) in the mean.
  void Record(Event event, size_t most) {
    constexpr size_t kLeast = 1024;
    if (events_.size() >= std::max(kLeast, most)) {
      const size_t dropped = events_.size() / 2;
      events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(dropped));
      start_ += static_cast<int64_t>(dropped);
    }
    events_.push_back(event);
  }

 private:
  int64_t start_;
  std::vector<Event> events_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_JOURNAL_H_
