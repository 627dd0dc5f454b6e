#include "plugin/daemon/running_calls.h"

#include <algorithm>

namespace loadline {

RunningCalls::Call::Call(RunningCalls* calls, absl::string_view method,
                         std::optional<Clock::duration> timeout)
    : calls_(calls), method_(method), begin_(Clock::now()), due_(begin_) {
  if (timeout.has_value()) due_ += std::min(*timeout, Clock::time_point::max() - begin_);
  const MutexLock lock(&calls_->mutex_);
  place_ = calls_->calls_.insert(calls_->calls_.end(), this);
}

RunningCalls::Call::~Call() {
  const MutexLock lock(&calls_->mutex_);
  calls_->calls_.erase(place_);
}

std::optional<RunningCalls::Overdue> RunningCalls::LongestOverdue(Clock::duration patience,
                                                                  Clock::time_point now) const {
  const MutexLock lock(&mutex_);
  const Call* latest = nullptr;
  for (const Call* const call : calls_) {
    if (latest == nullptr || call->due_ < latest->due_) latest = call;
  }
  if (latest == nullptr || latest->due_ > now || now - latest->due_ <= patience) return std::nullopt;
  return Overdue{std::string(latest->method_), now - latest->begin_};
}

}  // namespace loadline
