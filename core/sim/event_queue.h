#ifndef LOADLINE_CORE_SIM_EVENT_QUEUE_H_
#define LOADLINE_CORE_SIM_EVENT_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace loadline {

// The kinds of events.
enum class SimEventKind : uint8_t {
  kLoadStep,        // all workloads work out how many pods they want
  kReconcile,       // subject: a workload
  kWave,            // subject: a workload; its next jobs come
  kSchedule,        // the scheduler looks at the pods that wait
  kPodRunning,      // subject: a pod
  kPodFinished,     // subject: a pod
  kPodGone,         // subject: a pod; its grace period is over
  kMachineUp,       // subject: a machine; it registers its node
  kNodeReady,       // subject: a node
  kDevicesReady,    // subject: a node; its devices are offered from now on
  kMachineGone,     // subject: a machine
  kSpotHour,        // subject: a machine; once in an hour it may be taken back
  kSpotEnd,         // subject: a machine
  kMachineFails,    // subject: a machine; the cloud says that it cannot be created
  kMachineTaken,    // subject: a machine; the cloud takes back what was ordered
  kNodeFaultHour,   // once in an hour nodes may fail
  kNodeReturns,     // subject: a machine; its node registers again
  kNodeFlaps,       // subject: a node; it is ready, or not any more
  kHandHour,        // once in an hour somebody else may change groups
  kHandMarkHour,    // once in an hour an operator may mark nodes
  kHandMarkEnds,    // subject: kSimMarks * a node + a SimMark
  kStartupEnds,     // subject: a node; its startup taint is removed
  kApiHour,         // once in an hour the loop may not reach the API server
  kNodeBack,        // subject: a node; it is ready again
  kPodsOfLostNode,  // subject: a node; pods of one that is not ready for long are deleted
  kActuate,         // subject: a node that is removed
  kLoop,            // the loop under test; subject: 0 at its interval, 1 before that
  kRemovalEnded,    // a node is gone, or given back
  kLeaderHour,      // once in an hour the process that leads may end
  kSample,          // a point of the series
  kUseHour,         // pods begin to use what they use in the next hour
};

// An event at a time in milliseconds since the begin of the simulation.
struct SimEvent {
  int64_t at_ms = 0;
  uint64_t number = 0;  // of equal times the one that was put in first is first
  int32_t subject = 0;
  SimEventKind kind = SimEventKind::kLoop;
};

// Events by time, in a binary heap.
class EventQueue {
 public:
  void Put(int64_t at_ms, SimEventKind kind, int32_t subject = 0) {
    heap_.push_back({at_ms, next_++, subject, kind});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }
  bool empty() const { return heap_.empty(); }
  const SimEvent& first() const { return heap_.front(); }
  SimEvent Take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const SimEvent event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool Later(const SimEvent& a, const SimEvent& b) {
    return a.at_ms != b.at_ms ? a.at_ms > b.at_ms : a.number > b.number;
  }

  std::vector<SimEvent> heap_;
  uint64_t next_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_EVENT_QUEUE_H_
