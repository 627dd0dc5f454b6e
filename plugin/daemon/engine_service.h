// gRPC calls to calls of the C ABI: the bytes of a request go in as they are, so that both answer alike.
#ifndef LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_
#define LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_

#include <grpcpp/generic/async_generic_service.h>

#include "plugin/abi/loadline.h"
#include "plugin/daemon/executor.h"
#include "plugin/daemon/running_calls.h"

namespace loadline {

// Small scores are answered on gRPC's own threads, unless they would have to wait for a view: these are run
// by an executor of their own. All else is run by the other one. gRPC has as many threads as the machine has
// cores, and scores and health checks must not wait for a sync or a plan.
class EngineService : public grpc::CallbackGenericService {
 public:
  // All outlive the service. `waiting_scores` has the scores that wait for a view, `executor` all calls but
  // scores; `calls` knows what is being answered.
  EngineService(loadline_engine* engine, Executor* executor, Executor* waiting_scores, RunningCalls* calls)
      : engine_(engine), executor_(executor), waiting_scores_(waiting_scores), calls_(calls) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  loadline_engine* engine_;
  Executor* executor_;
  Executor* waiting_scores_;
  RunningCalls* calls_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_ENGINE_SERVICE_H_
