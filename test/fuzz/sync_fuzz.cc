// Any bytes as a sequence of SyncRequests: a refused one changes nothing, a repeated one changes nothing
// more, sums stay those of the pods, also those that scores are kept in, and the engine works on.
#include <cstddef>
#include <cstdint>
#include <string>

#include "test/fuzz/fuzz_engine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr char kSync[] = "/loadline.v1.ClusterState/Sync";
  loadline::FuzzEngine engine;
  std::string before = engine.State();
  for (const absl::string_view request : loadline::Requests(data, size)) {
    const absl::StatusOr<std::string> answer = engine.Call(kSync, request);
    loadline::NoteAnswer(answer.ok());
    std::string after = engine.State();
    if (answer.ok()) {
      loadline::Require(engine.Call(kSync, request).ok(), "a repeated batch is taken again");
      loadline::Require(engine.State() == after, "a repeated batch changes nothing");
    } else {
      loadline::Require(after == before, "a refused batch changes nothing");
    }
    before = std::move(after);
    engine.CheckKeptSums();
  }
  engine.CheckSums();
  engine.CheckAlive();
  return 0;
}
