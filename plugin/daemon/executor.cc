#include "plugin/daemon/executor.h"

#include <utility>

namespace loadline {

Executor::Executor(size_t threads, size_t max_waiting) : max_waiting_(max_waiting) {
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

bool Executor::Run(std::function<void()> task) {
  {
    const MutexLock lock(&mutex_);
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(task));
  }
  changed_.NotifyOne();
  return true;
}

void Executor::Work() {
  while (true) {
    std::function<void()> task;
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && waiting_.empty()) changed_.Wait(&mutex_);
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace loadline
