#include "plugin/daemon/engine_service.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <cstdint>

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

// One unary call. Deletes itself when gRPC is done with it.
class UnaryCall : public grpc::ServerGenericBidiReactor {
 public:
  UnaryCall(grpc::GenericCallbackServerContext* context, loadline_engine* engine, Executor* executor)
      : context_(context), engine_(engine), executor_(executor) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no request"});
      return;
    }
    if (context_->method() == kScore && request_.Length() <= kMaxInlineBytes) return Answer();
    if (!executor_->Run([this] { Answer(); })) {
      Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls are waiting"});
    }
  }

  void OnDone() override { delete this; }

 private:
  void Answer() {
    int64_t timeout_ns = 0;
    if (const auto deadline = context_->deadline(); deadline != decltype(deadline)::max()) {
      const auto left = deadline - std::chrono::system_clock::now();
      timeout_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      if (timeout_ns <= 0) return Finish({grpc::StatusCode::DEADLINE_EXCEEDED, "the timeout passed"});
    }
    const grpc::Slice request = OneSlice(request_);
    void* response = nullptr;
    size_t response_size = 0;
    char* error = nullptr;
    const int32_t code = loadline_call(engine_, context_->method().c_str(), request.begin(), request.size(),
                                       timeout_ns, &response, &response_size, &error);
    if (code != 0) {
      const grpc::Status status(static_cast<grpc::StatusCode>(code), error == nullptr ? "" : error);
      loadline_free(error);
      return Finish(status);
    }
    const grpc::Slice slice =
        response_size == 0 ? grpc::Slice() : grpc::Slice(response, response_size, loadline_free);
    response_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  grpc::GenericCallbackServerContext* context_;
  loadline_engine* engine_;
  Executor* executor_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

}  // namespace

grpc::ServerGenericBidiReactor* EngineService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  return new UnaryCall(context, engine_, executor_);
}

}  // namespace loadline
