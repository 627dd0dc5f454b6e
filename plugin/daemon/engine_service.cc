#include "plugin/daemon/engine_service.h"

#include <grpcpp/alarm.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/base/error_info.h"
#include "plugin/daemon/log.h"

namespace loadline {
namespace {

constexpr char kScore[] = "/loadline.v1.SchedulerExtender/Score";
constexpr char kFit[] = "/loadline.v1.SchedulerExtender/Fit";
constexpr char kSetCluster[] = "/loadline.v1.ClusterState/SetCluster";
constexpr char kDescribe[] = "/loadline.v1.ClusterState/Describe";
constexpr char kLimit[] = "LIMIT";
constexpr char kBusy[] = "BUSY";
constexpr char kTimeout[] = "TIMEOUT";
// Beyond it a score carries so many changes that they take longer than the score.
constexpr size_t kMaxInlineBytes = 64 << 10;
// The calls that may be open at a time. Chosen: gRPC takes 19 KiB for each (measured), which its own quota
// does not count.
constexpr int64_t kMostOpenCalls = 1'024;
// Beside so many calls each further one has a short time for its request, so that silent clients keep nobody
// out. Chosen: clients of ours have a few calls, and an alarm for each would wake a thread.
constexpr int64_t kFewOpenCalls = 64;
constexpr std::chrono::seconds kTimeBesideMany(2);

grpc::Slice OneSlice(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.TrySingleSlice(&slice).ok()) buffer.DumpToSingleSlice(&slice).IgnoreError();
  return slice;
}

// Logs what somebody should look at: our own faults, and limits that were reached. At most one line a second.
void LogTrouble(const std::string& method, const grpc::Status& status) {
  static std::atomic<int64_t> next_second{0};
  if (status.error_code() != grpc::StatusCode::INTERNAL &&
      status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return;
  }
  const int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  int64_t next = next_second.load();
  if (now < next || !next_second.compare_exchange_strong(next, now + 1)) return;
  LogError(absl::StrCat(method, ": ", status.error_message()));
}

// The API of an engine, as the bytes of a google.protobuf.FileDescriptorSet within its answer to Describe.
std::string DescriptorsOf(loadline_engine* engine) {
  v1::DescribeRequest request;
  request.set_include_api(true);
  const std::string bytes = request.SerializeAsString();
  void* response = nullptr;
  size_t size = 0;
  char* error = nullptr;
  loadline_call(engine, kDescribe, bytes.data(), bytes.size(), 0, &response, &size, &error);
  v1::DescribeResponse answer;
  if (response != nullptr) answer.ParseFromArray(response, static_cast<int>(size));
  loadline_free(response);
  loadline_free(error);
  return answer.api();
}

// An error of the daemon itself, with the details that the engine's errors have. Nothing was changed.
grpc::Status Refusal(grpc::StatusCode code, absl::string_view reason, const std::string& text) {
  return {code, text, EncodeErrorInfo(static_cast<uint64_t>(code), text, reason, {{"changes", "refused"}})};
}

// Returns whether a call may take seconds, or wait for one that does: a Fit and a plan of one view take
// turns.
bool Plans(absl::string_view method) {
  return absl::StartsWith(method, "/loadline.v1.Autoscaler/") || method == kFit;
}

// A share of the bytes that all clusters may have which are being received. Its destructor gives it back.
class ClusterBytes {
 public:
  ClusterBytes(std::atomic<size_t>* all, size_t most) : all_(*all), most_(most) {}
  ClusterBytes(const ClusterBytes&) = delete;
  ClusterBytes& operator=(const ClusterBytes&) = delete;
  ~ClusterBytes() { all_ -= taken_; }

  // Returns what is wrong; OK: there was room, and it is taken.
  grpc::Status Take(size_t bytes) {
    if (taken_ + bytes > most_) {
      return Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, kLimit,
                     absl::StrCat("the cluster has more than ", most_, " bytes, which is the limit"));
    }
    taken_ += bytes;
    if (all_.fetch_add(bytes) + bytes > 2 * most_) {
      return Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, kLimit, "too many clusters are being received");
    }
    return grpc::Status::OK;
  }

 private:
  std::atomic<size_t>& all_;
  const size_t most_;
  size_t taken_ = 0;
};

// Counts a call as long as it is open.
class OpenCall {
 public:
  explicit OpenCall(std::atomic<int64_t>* all) : all_(*all), place_(all->fetch_add(1)) {}
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
  ~OpenCall() { --all_; }

  // Returns whether more calls are open than may be.
  bool OneTooMany() const { return place_ >= kMostOpenCalls; }
  // Returns whether it was opened beside so many others that it must not be silent.
  bool BesideMany() const { return place_ >= kFewOpenCalls; }

 private:
  std::atomic<int64_t>& all_;
  const int64_t place_;  // the number of calls that were open before
};

// A call too many. Deletes itself.
class RefusedCall : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const std::string& method) {
    const grpc::Status status = Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, kBusy,
                                        absl::StrCat("more than ", kMostOpenCalls, " calls are open"));
    LogTrouble(method, status);
    Finish(status);
  }
  void OnDone() override { delete this; }
};

// Ends a call whose client is silent for too long.
class SilenceLimit {
 public:
  // `end` is called at most once, by a thread of gRPC, between Start() and the Stop() behind it.
  SilenceLimit(std::chrono::seconds limit, std::function<void()> end)
      : limit_(limit), watch_(std::make_shared<Watch>()) {
    watch_->end = std::move(end);
  }

  // The client has to send something from now on.
  void Start() {
    alarm_ = std::make_unique<grpc::Alarm>();  // cancels the former one
    alarm_->Set(std::chrono::system_clock::now() + limit_,
                [watch = watch_, period = watch_->period.load()](bool passed) mutable {
                  if (passed && watch->period.compare_exchange_strong(period, kEnded)) watch->end();
                });
  }

  // The client has sent something. Returns false if the call has been ended.
  bool Stop() {
    int64_t period = watch_->period;
    return period != kEnded && watch_->period.compare_exchange_strong(period, period + 1);
  }

 private:
  static constexpr int64_t kEnded = -1;

  // Outlives the call, which may be deleted while an alarm calls.
  struct Watch {
    std::atomic<int64_t> period = 0;  // of silence: an alarm of a former one does nothing
    std::function<void()> end;
  };

  const std::chrono::seconds limit_;
  const std::shared_ptr<Watch> watch_;
  std::unique_ptr<grpc::Alarm> alarm_;
};

// One call with one request, or with the parts of one. Deletes itself when gRPC is done with it.
class EngineCall : public grpc::ServerGenericBidiReactor {
 public:
  EngineCall(grpc::GenericCallbackServerContext* context, loadline_engine* engine, const Executors& executors,
             RunningCalls* calls, std::unique_ptr<OpenCall> open, std::atomic<size_t>* cluster_bytes,
             const ClientLimits& limits)
      : context_(context),
        open_(std::move(open)),
        engine_(engine),
        executors_(executors),
        calls_(calls),
        has_parts_(context->method() == kSetCluster),
        cluster_bytes_(cluster_bytes, limits.cluster_bytes) {
    // Others wait for nothing but their request, which is usually there with the call.
    const std::chrono::seconds time = open_->BesideMany() ? kTimeBesideMany
                                      : has_parts_        ? limits.request_time
                                                          : std::chrono::seconds(0);
    if (time.count() > 0) silence_.emplace(time, [this, time] { EndSilent(time); });
    Read();
  }

  void OnReadDone(bool ok) override {
    if (silence_.has_value() && !silence_->Stop()) return;
    if (has_parts_ && ok) {
      AddPart();
      return;
    }
    if (has_part_) {
      request_ = grpc::ByteBuffer(parts_.data(), parts_.size());
      parts_.clear();
    } else if (!ok) {
      Finish(Refusal(grpc::StatusCode::INVALID_ARGUMENT, "UNREADABLE_REQUEST", "the call has no request"));
      return;
    }
    const bool is_small_score = context_->method() == kScore && request_.Length() <= kMaxInlineBytes;
    if (is_small_score && Answer(loadline_try_call)) return;
    Executor* const executor = is_small_score              ? executors_.scores
                               : Plans(context_->method()) ? executors_.plans
                                                           : executors_.questions;
    if (!executor->Run(request_.Length(), [this] { Answer(loadline_call); })) {
      Finish(Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, kBusy, "too many calls are waiting"));
    }
  }

  void OnDone() override { delete this; }

 private:
  void Read() {
    if (silence_.has_value()) silence_->Start();
    StartRead(&request_);
  }

  void EndSilent(std::chrono::seconds time) {
    Finish(Refusal(grpc::StatusCode::DEADLINE_EXCEEDED, kTimeout,
                   absl::StrCat("the client sent nothing for ", time.count(),
                                " s, and its request is not complete; nothing has changed")));
  }

  // Keeps a part, and reads the next one. Messages of protobuf that stand one behind the other add up.
  void AddPart() {
    if (grpc::Status status = cluster_bytes_.Take(request_.Length()); !status.ok()) {
      LogTrouble(context_->method(), status);
      Finish(status);
      return;
    }
    std::vector<grpc::Slice> slices;
    request_.Dump(&slices).IgnoreError();
    parts_.insert(parts_.end(), slices.begin(), slices.end());
    has_part_ = true;
    request_.Clear();
    Read();
  }

  // Returns false, and has done nothing, if `call` may not wait for other calls and would have to.
  bool Answer(decltype(loadline_call)* call) {
    int64_t timeout_ns = 0;
    if (const auto deadline = context_->deadline(); deadline != decltype(deadline)::max()) {
      const auto left = deadline - std::chrono::system_clock::now();
      timeout_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      if (timeout_ns <= 0) {
        Finish(Refusal(grpc::StatusCode::DEADLINE_EXCEEDED, kTimeout, "the timeout passed"));
        return true;
      }
    }
    const grpc::Slice request = OneSlice(request_);
    void* response = nullptr;
    size_t response_size = 0;
    char* error = nullptr;
    const int32_t code = Ask(call, request, timeout_ns, &response, &response_size, &error);
    if (code == static_cast<int32_t>(grpc::StatusCode::ABORTED)) {
      loadline_free(error);
      return false;
    }
    if (code != 0) {
      size_t size = 0;
      const void* const details = loadline_error_details(error, &size);
      const grpc::Status status(static_cast<grpc::StatusCode>(code), error == nullptr ? "" : error,
                                std::string(static_cast<const char*>(details), size));
      loadline_free(error);
      LogTrouble(context_->method(), status);
      Finish(status);
      return true;
    }
    const grpc::Slice slice =
        response_size == 0 ? grpc::Slice() : grpc::Slice(response, response_size, loadline_free);
    response_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    return true;
  }

  // Makes the call under the eyes of the watchdog.
  int32_t Ask(decltype(loadline_call)* call, const grpc::Slice& request, int64_t timeout_ns, void** response,
              size_t* response_size, char** error) {
    std::optional<std::chrono::nanoseconds> timeout;
    if (timeout_ns > 0) timeout.emplace(timeout_ns);
    const RunningCalls::Call running(calls_, context_->method(), timeout);
    return call(engine_, context_->method().c_str(), request.begin(), request.size(), timeout_ns, response,
                response_size, error);
  }

  grpc::GenericCallbackServerContext* context_;
  const std::unique_ptr<OpenCall> open_;
  loadline_engine* engine_;
  const Executors executors_;
  RunningCalls* calls_;
  const bool has_parts_;
  ClusterBytes cluster_bytes_;
  std::optional<SilenceLimit> silence_;
  std::vector<grpc::Slice> parts_;
  bool has_part_ = false;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

// A stream of questions about the services, each answered before the next is read. Deletes itself.
class ReflectionCall : public grpc::ServerGenericBidiReactor {
 public:
  ReflectionCall(const Reflection* reflection, std::unique_ptr<OpenCall> open)
      : reflection_(reflection), open_(std::move(open)) {
    if (open_->BesideMany()) {
      silence_.emplace(kTimeBesideMany, [this] {
        Finish(Refusal(grpc::StatusCode::DEADLINE_EXCEEDED, kTimeout, "the client sent nothing for long"));
      });
    }
    Read();
  }

  void OnReadDone(bool ok) override {
    if (silence_.has_value() && !silence_->Stop()) return;
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    const grpc::Slice question = OneSlice(request_);
    const grpc::Slice answer(reflection_->Answer({question.begin(), question.end()}));
    response_ = grpc::ByteBuffer(&answer, 1);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      Read();
    } else {
      Finish({grpc::StatusCode::CANCELLED, "the client has disconnected"});
    }
  }
  void OnDone() override { delete this; }

 private:
  void Read() {
    if (silence_.has_value()) silence_->Start();
    StartRead(&request_);
  }

  const Reflection* reflection_;
  const std::unique_ptr<OpenCall> open_;
  std::optional<SilenceLimit> silence_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

}  // namespace

EngineService::EngineService(loadline_engine* engine, const Executors& executors, RunningCalls* calls,
                             ClientLimits limits)
    : engine_(engine),
      executors_(executors),
      calls_(calls),
      limits_(limits),
      reflection_(DescriptorsOf(engine)) {}

grpc::ServerGenericBidiReactor* EngineService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  auto open = std::make_unique<OpenCall>(&open_calls_);
  if (open->OneTooMany()) return new RefusedCall(context->method());
  if (Reflection::Serves(context->method())) return new ReflectionCall(&reflection_, std::move(open));
  return new EngineCall(context, engine_, executors_, calls_, std::move(open), &cluster_bytes_, limits_);
}

}  // namespace loadline
