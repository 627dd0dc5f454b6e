// gRPC calls to calls of the C ABI: the bytes of a request go in as they are, so that both answer alike.
#ifndef LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_
#define LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_

#include <grpcpp/generic/async_generic_service.h>

#include "plugin/abi/loadline.h"
#include "plugin/daemon/executor.h"
#include "plugin/daemon/running_calls.h"

namespace loadline {

// Small scores are answered on gRPC's own threads. All else goes to the executor: gRPC has as many threads as
// the machine has cores, and scores and health checks must not wait for a sync.
class EngineService : public grpc::CallbackGenericService {
 public:
  // All outlive the service. `calls` knows what is being answered.
  EngineService(loadline_engine* engine, Executor* executor, RunningCalls* calls)
      : engine_(engine), executor_(executor), calls_(calls) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  loadline_engine* engine_;
  Executor* executor_;
  RunningCalls* calls_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_
