// gRPC calls to calls of the C ABI: the bytes of a request go in as they are, so that both answer alike.
#ifndef LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_
#define LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "plugin/abi/loadline.h"
#include "plugin/daemon/executor.h"
#include "plugin/daemon/reflection.h"
#include "plugin/daemon/running_calls.h"

namespace loadline {

// The shares of one client.
struct ClientLimits {
  size_t cluster_bytes;  // of one cluster; all that are being received, or wait for a thread: twice as many
  std::chrono::seconds
      request_time;  // that a client may be silent before its request is complete; 0: for ever
};

// The threads of calls.
struct Executors {
  Executor* plans;      // of calls that may take seconds
  Executor* questions;  // of all others: neither the load line nor a sync waits for a plan
  Executor* scores;     // of small scores that wait for a view
};

// Small scores are answered on gRPC's own threads, unless they would have to wait for a view. gRPC has as
// many threads as the machine has cores, and scores and health checks must not wait for a sync or a plan.
//
// The parts of a call that sets a cluster are put together here: the engine takes them as one request.
class EngineService : public grpc::CallbackGenericService {
 public:
  // All pointees outlive the service. `calls` knows what is being answered.
  EngineService(loadline_engine* engine, const Executors& executors, RunningCalls* calls,
                ClientLimits limits);

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  loadline_engine* engine_;
  const Executors executors_;
  RunningCalls* calls_;
  const ClientLimits limits_;
  std::atomic<size_t> cluster_bytes_ = 0;  // of all clusters
  std::atomic<int64_t> open_calls_ = 0;
  const Reflection reflection_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_
