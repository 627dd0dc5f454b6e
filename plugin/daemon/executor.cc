#include "plugin/daemon/executor.h"

#include <utility>

#include "plugin/base/free_memory.h"

namespace loadline {

Executor::Executor(size_t threads, const ExecutorLimits& limits) : limits_(limits) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Executor::~Executor() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool Executor::Run(size_t bytes, std::function<void()> task) {
  {
    const MutexLock lock(&mutex_);
    const bool fits = waiting_.empty() || waiting_bytes_ + bytes <= limits_.bytes;
    if (waiting_.size() >= limits_.tasks || !fits) return false;
    waiting_.push_back({bytes, std::move(task)});
    waiting_bytes_ += bytes;
  }
  changed_.NotifyOne();
  return true;
}

// A thread without a task gives back the memory that has become free, once in a while.
void Executor::WaitForTask(std::chrono::milliseconds* idle_time) {
  if (changed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + *idle_time)) return;
  *idle_time = kIdleTime;
  mutex_.Unlock();
  ReturnFreeMemory();
  mutex_.Lock();
}

void Executor::Work() {
  std::chrono::milliseconds idle_time = kIdleTime;
  while (true) {
    Task task;
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && waiting_.empty()) WaitForTask(&idle_time);
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= task.bytes;
    }
    const auto begin = std::chrono::steady_clock::now();
    task.run();
    if (std::chrono::steady_clock::now() - begin > kLongTask) idle_time = kIdleTimeAfterLongTask;
  }
}

}  // namespace loadline
