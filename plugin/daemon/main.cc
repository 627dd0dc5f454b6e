// loadlined: libloadline.so behind gRPC on a unix socket.
//
// Exit: 0 after SIGTERM or SIGINT, for --help and --version, and for --check when the daemon serves; 1 cannot
// start, or --check finds no daemon that serves; 2 wrong command line; 3 another daemon serves the socket.
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin/abi/loadline.h"
#include "plugin/base/cluster_bytes.h"
#include "plugin/daemon/engine_service.h"
#include "plugin/daemon/executor.h"
#include "plugin/daemon/health_check.h"
#include "plugin/daemon/log.h"
#include "plugin/daemon/memory_limit.h"
#include "plugin/daemon/options.h"
#include "plugin/daemon/running_calls.h"
#include "plugin/daemon/socket.h"
#include "plugin/daemon/watchdog.h"

namespace loadline {
namespace {

constexpr int kCannotStart = 1;
constexpr int kNotServing = 1;
constexpr int kWrongCommandLine = 2;
constexpr int kAlreadyServed = 3;

constexpr char kClusterState[] = "loadline.v1.ClusterState";
constexpr char kSchedulerExtender[] = "loadline.v1.SchedulerExtender";
constexpr char kAutoscaler[] = "loadline.v1.Autoscaler";

// The engine refuses requests above 4 MiB in words of its own. gRPC lets somewhat larger ones pass to it, and
// refuses what is far too large before all of it is in memory.
constexpr int kMaxReceivedBytes = 8 << 20;
constexpr int kMaxSentBytes = 4 << 20;
// Bounds the requests of all calls that wait for a thread, to an eighth of the 512 MiB of the manifests.
constexpr size_t kMostWaitingBytes = 64 << 20;
// The bytes that gRPC may keep of requests that have not come in full, beside those that wait and the
// clusters that are being received. Beyond it gRPC ends calls. Chosen: four of the largest.
constexpr size_t kMostIncomingBytes = 32 << 20;
// The threads for small scores that wait, and the least ones for calls that are no plans. Chosen: two, so
// that others continue while one waits for a view that another call uses; a thread that waits uses no
// processor.
constexpr size_t kLeastQuestionThreads = 2;
constexpr int kMaxStreams = 128;
constexpr int kMinPingIntervalMs = 10'000;
constexpr std::chrono::seconds kShutdownTime(5);
constexpr std::chrono::seconds kCheckTime(5);

using EnginePtr = std::unique_ptr<loadline_engine, decltype(&loadline_destroy)>;

EnginePtr CreateEngine(const v1::EngineConfig& config) {
  const std::string bytes = config.SerializeAsString();
  loadline_engine* engine = nullptr;
  char* error = nullptr;
  if (loadline_create(bytes.data(), bytes.size(), &engine, &error) != 0) {
    LogError(absl::StrCat("cannot create the engine: ", error));
    loadline_free(error);
  }
  return {engine, loadline_destroy};
}

// gRPC keeps at most `most_bytes` of requests.
std::unique_ptr<grpc::Server> StartServer(const Options& options, size_t most_bytes, EngineService* service) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(service);
  builder.SetMaxReceiveMessageSize(kMaxReceivedBytes);
  builder.SetMaxSendMessageSize(kMaxSentBytes);
  builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetResourceQuota(grpc::ResourceQuota("requests").Resize(most_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  // Clients look after idle connections with pings every 30 s; gRPC's default allows one in 5 minutes.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int bound = 0;
  builder.AddListeningPort(absl::StrCat("unix:", options.socket), grpc::InsecureServerCredentials(), &bound);
  // The socket has its mode from the first moment; a chmod afterwards would leave a gap.
  const mode_t former = umask(0777 & ~options.socket_mode);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  umask(former);
  return bound == 0 ? nullptr : std::move(server);
}

void SetServing(grpc::Server* server, bool serving) {
  grpc::HealthCheckServiceInterface* const health = server->GetHealthCheckService();
  health->SetServingStatus(serving);  // overall, and of the services that it knows
  health->SetServingStatus(kClusterState, serving);
  health->SetServingStatus(kSchedulerExtender, serving);
  health->SetServingStatus(kAutoscaler, serving);
}

int Serve(const Options& options, const sigset_t& stop_signals) {
  if (absl::Status status = CheckSocketPath(options.socket); !status.ok()) {
    LogError(status.message());
    return kCannotStart;
  }
  const absl::StatusOr<SocketLock> lock = SocketLock::Acquire(options.socket);
  if (!lock.ok()) {
    LogError(lock.status().message());
    return absl::IsAlreadyExists(lock.status()) ? kAlreadyServed : kCannotStart;
  }
  const MemoryLimits limits = ReadMemoryLimits();
  SaveAddressSpace(limits);
  v1::EngineConfig config = options.engine;
  if (config.max_question_bytes() == 0) config.set_max_question_bytes(DefaultQuestionBytes(limits));
  if (config.max_view_bytes() == 0) config.set_max_view_bytes(DefaultViewBytes(limits));
  const EnginePtr engine = CreateEngine(config);
  if (engine == nullptr) return kCannotStart;
  RunningCalls calls;
  const size_t threads = static_cast<size_t>(options.threads);
  const ExecutorLimits limits_of_each = {static_cast<size_t>(options.max_waiting_calls), kMostWaitingBytes};
  Executor plans(threads, limits_of_each);
  Executor scores(kLeastQuestionThreads, limits_of_each);
  // Each thread maps address space of its own: where that is limited, all other calls wait for plans.
  std::optional<Executor> questions;
  if (limits.address_space == 0) {
    questions.emplace(std::max(threads, kLeastQuestionThreads), limits_of_each);
  }
  const size_t cluster_bytes = MostClusterBytes(config.max_question_bytes());
  EngineService service(engine.get(), {&plans, questions.has_value() ? &*questions : &plans, &scores}, &calls,
                        {cluster_bytes, options.request_seconds});
  const std::unique_ptr<grpc::Server> server =
      StartServer(options, kMostWaitingBytes + 2 * cluster_bytes + kMostIncomingBytes, &service);
  if (server == nullptr) {
    LogError(absl::StrCat("cannot listen on ", options.socket));
    return kCannotStart;
  }
  SetServing(server.get(), true);
  std::optional<Watchdog> watchdog;
  if (options.watchdog_seconds.count() > 0) {
    watchdog.emplace(&calls, options.watchdog_seconds,
                     [&server](bool serving) { SetServing(server.get(), serving); });
  }
  LogInfo(absl::StrCat("loadlined ", loadline_version(), " serves on ", options.socket,
                       ", a question may take ", config.max_question_bytes() >> 20, " MiB"));

  int signal = 0;
  sigwait(&stop_signals, &signal);
  LogInfo(absl::StrCat("stopping on ", strsignal(signal)));
  watchdog.reset();  // what it has to say about health is of no interest any more
  SetServing(server.get(), false);
  server->Shutdown(std::chrono::system_clock::now() + kShutdownTime);
  server->Wait();
  unlink(options.socket.c_str());  // gRPC did so already where it could
  LogInfo("stopped");
  return EXIT_SUCCESS;
}

int Main(const std::vector<absl::string_view>& arguments) {
  const absl::StatusOr<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    const std::string message = absl::StrCat("loadlined: ", options.status().message(), "\n\n", Usage());
    std::fputs(message.c_str(), stderr);
    return kWrongCommandLine;
  }
  if (options->help || options->version) {
    const std::string text = options->help ? Usage() : absl::StrCat("loadlined ", loadline_version(), "\n");
    return std::fputs(text.c_str(), stdout) < 0 ? kCannotStart : EXIT_SUCCESS;
  }
  if (!options->check.empty()) {
    const absl::Status status = CheckServing(options->check, kCheckTime);
    if (status.ok()) return EXIT_SUCCESS;
    std::fputs(absl::StrCat("loadlined: ", status.message(), "\n").c_str(), stderr);
    return kNotServing;
  }
  // Blocked before any thread starts, so that all inherit it and the signals wait for sigwait().
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  InitLog(options->log_format);
  return Serve(*options, stop_signals);
}

}  // namespace
}  // namespace loadline

int main(int argc, char** argv) {
  // Flags decide, and nothing else: gRPC would read GRPC_*, and TZ would move the times in the log.
  clearenv();
  return loadline::Main({argv + 1, argv + argc});
}
