#include "plugin/daemon/health_check.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
// HealthCheckResponse with status: SERVING. Three bytes are no reason for a message of their own.
constexpr char kServing[] = "\x08\x01";

}  // namespace

absl::Status CheckServing(const std::string& socket, std::chrono::milliseconds timeout) {
  grpc::GenericStub stub(grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  const grpc::Slice nothing;  // HealthCheckRequest with service "", which is the whole server
  const grpc::ByteBuffer everything(&nothing, 1);
  grpc::ByteBuffer answer;
  // Polled by this thread: with callbacks, the packaged gRPC now and then sleeps for 10 s, and the probe
  // fails.
  grpc::CompletionQueue queue;
  const auto reader = stub.PrepareUnaryCall(&context, kCheck, everything, &queue);
  reader->StartCall();
  grpc::Status status;
  reader->Finish(&answer, &status, /*tag=*/nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) {
    return absl::UnavailableError(absl::StrCat("no answer from ", socket, ": ", status.error_message()));
  }
  grpc::Slice bytes;
  if (!answer.DumpToSingleSlice(&bytes).ok() ||
      absl::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()) != kServing) {
    return absl::UnavailableError(absl::StrCat(socket, " is not serving"));
  }
  return absl::OkStatus();
}

}  // namespace loadline
