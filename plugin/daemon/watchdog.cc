#include "plugin/daemon/watchdog.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/daemon/log.h"

namespace loadline {
namespace {

constexpr std::chrono::milliseconds kLongestInterval(1'000);

}  // namespace

Watchdog::Watchdog(const RunningCalls* calls, std::chrono::milliseconds patience,
                   std::function<void(bool serving)> set_serving)
    : calls_(calls),
      patience_(patience),
      set_serving_(std::move(set_serving)),
      thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void Watchdog::Watch() {
  const std::chrono::milliseconds interval =
      std::clamp(patience_ / 4, std::chrono::milliseconds(1), kLongestInterval);
  while (!StopsWithin(interval)) Look();
}

bool Watchdog::StopsWithin(std::chrono::milliseconds interval) {
  const auto until = std::chrono::steady_clock::now() + interval;
  const MutexLock lock(&mutex_);
  while (!stopping_ && changed_.WaitUntil(&mutex_, until)) {
  }
  return stopping_;
}

void Watchdog::Look() {
  const std::optional<RunningCalls::Overdue> late =
      calls_->LongestOverdue(patience_, RunningCalls::Clock::now());
  if (late.has_value() != serving_) return;
  serving_ = !late.has_value();
  if (late.has_value()) {
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(late->age).count();
    LogError(absl::StrCat(late->method, " has run for ", age, " s and does not end: not serving"));
  } else {
    LogInfo("the call that did not end has ended: serving");
  }
  set_serving_(serving_);
}

}  // namespace loadline
