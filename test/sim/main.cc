// Simulates drawn scenarios, and ends with 1 at the first invariant that is broken, of which it shows a
// shrunk scenario.
//
//   simulate_seeds [COUNT [FIRST]]   COUNT seeds (200) from FIRST (1) on
//   simulate_seeds --all COUNT FIRST the same, and continues after broken ones, of which it prints seed and
//   first
//                                    violation only
//   simulate_seeds --skips COUNT FIRST whether loops that are not run would have done nothing
//   simulate_seeds --digests COUNT FIRST the digest of each, to compare one build with another
//   simulate_seeds --large DAYS      the scenario of the speed target, for the time that it takes

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/sim/simulation.h"
#include "test/sim/random_scenario.h"

namespace loadline {
namespace {

SimResult RunOne(const Scenario& scenario) {
  WorkBudget unlimited;
  return Simulate(scenario, &unlimited);
}

void Print(const SimResult& result, double seconds) {
  std::printf(
      "digest %016llx, loops %lld, usd %.2f, waits %lld mean %.1f p50 %.1f p95 %.1f max %.1f s, "
      "evictions %lld (%lld refused), nodes +%lld -%lld, left %lld, violations %zu, in %.2f s\n",
      static_cast<unsigned long long>(result.digest), static_cast<long long>(result.loops), result.usd,
      static_cast<long long>(result.waits.pods), result.waits.mean, result.waits.p50, result.waits.p95,
      result.waits.max, static_cast<long long>(result.evictions),
      static_cast<long long>(result.refused_evictions), static_cast<long long>(result.nodes_added),
      static_cast<long long>(result.nodes_removed), static_cast<long long>(result.left_waiting),
      result.violations.size(), seconds);
  for (const std::string& violation : result.violations) std::printf("  %s\n", violation.c_str());
}

int RunLarge(int64_t days) {
  const auto start = std::chrono::steady_clock::now();
  const SimResult result = RunOne(LargeScenario(days));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  Print(result, took.count());
  return result.violations.empty() ? 0 : 1;
}

int RunAllSeeds(int64_t count, uint64_t first) {
  int64_t broken = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const SimResult result = RunOne(RandomScenario(seed));
    if (result.violations.empty()) continue;
    ++broken;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.violations.front().c_str());
  }
  std::printf("%lld of %lld seeds broken\n", static_cast<long long>(broken), static_cast<long long>(count));
  return broken == 0 ? 0 : 1;
}

int TellDigests(int64_t count, uint64_t first) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const SimResult result = RunOne(RandomScenario(seed));
    std::printf("%llu %016llx %lld\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(result.digest), static_cast<long long>(result.loops));
  }
  return 0;
}

// Loops that are not run would have done something.
bool SkipsWrongly(Scenario scenario) {
  scenario.settings.replace = false;  // moves may begin in any loop: see TestedLoop
  const uint64_t some = RunOne(scenario).digest;
  scenario.settings.run_every_loop = true;
  return RunOne(scenario).digest != some;
}

int CompareSkips(int64_t count, uint64_t first) {
  int64_t broken = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    if (!SkipsWrongly(RandomScenario(seed))) continue;
    ++broken;
    std::printf("%s", Describe(Shrink(RandomScenario(seed), SkipsWrongly)).c_str());
  }
  std::printf("%lld of %lld seeds skip loops that do something\n", static_cast<long long>(broken),
              static_cast<long long>(count));
  return broken == 0 ? 0 : 1;
}

int RunSeeds(int64_t count, uint64_t first) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const SimResult result = RunOne(RandomScenario(seed));
    if (result.violations.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.violations.front().c_str());
    const std::string invariant = result.violations.front().substr(0, 3);
    const Scenario small = Shrink(RandomScenario(seed), [&](const Scenario& scenario) {
      const SimResult again = RunOne(scenario);
      return !again.violations.empty() && again.violations.front().starts_with(invariant);
    });
    std::printf("%s", Describe(small).c_str());
    Print(RunOne(small), 0);
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%lld seeds without a violation in %.1f s\n", static_cast<long long>(count), took.count());
  return 0;
}

}  // namespace
}  // namespace loadline

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--large") == 0) return loadline::RunLarge(std::atoll(argv[2]));
  if (argc == 4 && std::strcmp(argv[1], "--all") == 0) {
    return loadline::RunAllSeeds(std::atoll(argv[2]), std::strtoull(argv[3], nullptr, 10));
  }
  if (argc == 4 && std::strcmp(argv[1], "--digests") == 0) {
    return loadline::TellDigests(std::atoll(argv[2]), std::strtoull(argv[3], nullptr, 10));
  }
  if (argc == 4 && std::strcmp(argv[1], "--skips") == 0) {
    return loadline::CompareSkips(std::atoll(argv[2]), std::strtoull(argv[3], nullptr, 10));
  }
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 200;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  return loadline::RunSeeds(count, first);
}
