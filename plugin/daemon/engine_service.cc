#include "plugin/daemon/engine_service.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "plugin/daemon/log.h"

namespace loadline {
namespace {

constexpr char kScore[] = "/loadline.v1.SchedulerExtender/Score";
// Beyond it a score carries so many changes that they take longer than the score.
constexpr size_t kMaxInlineBytes = 64 << 10;

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

// One unary call. Deletes itself when gRPC is done with it.
class UnaryCall : public grpc::ServerGenericBidiReactor {
 public:
  UnaryCall(grpc::GenericCallbackServerContext* context, loadline_engine* engine, Executor* executor,
            Executor* waiting_scores, RunningCalls* calls)
      : context_(context),
        engine_(engine),
        executor_(executor),
        waiting_scores_(waiting_scores),
        calls_(calls) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no request"});
      return;
    }
    const bool is_small_score = context_->method() == kScore && request_.Length() <= kMaxInlineBytes;
    if (is_small_score && Answer(loadline_try_call)) return;
    Executor* const executor = is_small_score ? waiting_scores_ : executor_;
    if (!executor->Run(request_.Length(), [this] { Answer(loadline_call); })) {
      Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls are waiting"});
    }
  }

  void OnDone() override { delete this; }

 private:
  // Returns false, and has done nothing, if `call` may not wait for other calls and would have to.
  bool Answer(decltype(loadline_call)* call) {
    int64_t timeout_ns = 0;
    if (const auto deadline = context_->deadline(); deadline != decltype(deadline)::max()) {
      const auto left = deadline - std::chrono::system_clock::now();
      timeout_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      if (timeout_ns <= 0) {
        Finish({grpc::StatusCode::DEADLINE_EXCEEDED, "the timeout passed"});
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
  loadline_engine* engine_;
  Executor* executor_;
  Executor* waiting_scores_;
  RunningCalls* calls_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

}  // namespace

grpc::ServerGenericBidiReactor* EngineService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  return new UnaryCall(context, engine_, executor_, waiting_scores_, calls_);
}

}  // namespace loadline
