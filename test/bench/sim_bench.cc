// Days of a simulated cluster, with all that happens in it.
#include <benchmark/benchmark.h>

#include <chrono>

#include "core/sim/simulation.h"
#include "test/sim/random_scenario.h"

namespace loadline {
namespace {

// 1,000 nodes and 20,000 pods, with daily curves and budgets: the days of a week, one after the other. Thirty
// of them are to take no more than a minute, and a loop that is run 5 ms in the mean, the simulation around
// it included.
void BM_SimulateDays(benchmark::State& state) {
  double seconds = 0;
  double loops = 0;
  double days = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    WorkBudget unlimited;
    const SimResult result = Simulate(LargeScenario(state.range(0)), &unlimited);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    loops += static_cast<double>(result.loops);
    days += static_cast<double>(state.range(0));
    if (!result.violations.empty()) state.SkipWithError(result.violations.front().c_str());
  }
  state.counters["s_of_30_days"] = 30 * seconds / days;
  state.counters["ms_per_loop"] = 1000 * seconds / loops;
  state.counters["loops_per_day"] = loops / days;
}
BENCHMARK(BM_SimulateDays)->Arg(1)->Arg(7)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
