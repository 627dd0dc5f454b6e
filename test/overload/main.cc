// Measures how much real overload each score and each line leaves: see docs/overload.md.
//
//   overload_bench [--orders=20] [--seed=1] FILE.csv...
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "test/overload/experiment.h"

namespace loadline {
namespace {

constexpr int64_t kGib = int64_t{1024} * 1024 * 1024;
constexpr NodeSize kSizes[] = {{16'000, 64 * kGib}, {32'000, 128 * kGib}};
constexpr Requests kRequests[] = {Requests::kDrawn, Requests::kPercentile95, Requests::kFlat,
                                  Requests::kTwoFold};
constexpr int64_t kFills[] = {70, 85, 95};

struct Options {
  uint64_t orders = 20;
  uint64_t seed = 1;
  std::vector<std::string> files;
};

bool ReadOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--orders=")) {
      if (!absl::SimpleAtoi(argument, &options->orders) || options->orders < 1 || options->orders > 1000) {
        return false;
      }
    } else if (absl::ConsumePrefix(&argument, "--seed=")) {
      if (!absl::SimpleAtoi(argument, &options->seed)) return false;
    } else if (absl::StartsWith(argument, "--")) {
      return false;
    } else {
      options->files.emplace_back(argument);
    }
  }
  return !options->files.empty();
}

// Runs all of `count` pieces of work on the processors of the machine.
template <typename Work>
void RunAll(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  const size_t most = std::max<size_t>(1, std::thread::hardware_concurrency());
  for (size_t i = 0; i < std::min(most, count); ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < count; at = next++) work(at);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string SizeText(NodeSize size) {
  return std::to_string(size.cpu_milli / 1000) + " cores, " + std::to_string(size.memory_bytes / kGib) +
         " GiB";
}

void Print(const SettingResult& result) {
  std::printf("\n%s, %s, requests %s, fill %lld %%: %zu pods on %zu nodes\n",
              result.setting.trace->name.c_str(), SizeText(result.setting.size).c_str(),
              Name(result.setting.requests), static_cast<long long>(result.setting.fill_percent), result.pods,
              result.nodes);
  std::printf("  %-30s %18s %10s %12s %8s\n", "score", "overload %", "cpu over", "memory > 97", "without");
  for (const ScoreResult& score : result.scores) {
    std::printf("  %-30s %9.3f +- %5.3f %8.1f %% %10.1f %% %8.1f\n", Name(score.score),
                score.cpu_overload.mean, score.cpu_overload.error, score.mean.cpu_nodes_over,
                score.mean.memory_nodes_over, score.mean.without);
  }
  std::printf("  overload over KEP 217: %.3f%s%s\n", result.ratio, result.worse ? "  WORSE" : "",
              result.half_worse ? "  HALF UNKNOWN IS WORSE" : "");
}

void PrintLines(const Trace& trace, NodeSize size, const std::vector<LineResult>& lines) {
  std::printf("\n%s, %s: all pods on as few nodes as a line allows, first fit\n", trace.name.c_str(),
              SizeText(size).c_str());
  std::printf("  %-20s %14s %12s %10s %12s\n", "line", "nodes", "overload %", "cpu over", "memory > 97");
  for (const LineResult& line : lines) {
    std::printf("  %-20s %7.1f +- %3.1f %12.3f %8.1f %% %10.1f %%\n", line.line.c_str(), line.nodes.mean,
                line.nodes.error, line.mean.cpu_overload, line.mean.cpu_nodes_over,
                line.mean.memory_nodes_over);
  }
}

// For each line of expected use: the strictest line of limits whose overload is not lower, and nodes over its
// nodes.
void PrintNodeRatios(const std::vector<LineResult>& lines) {
  for (const LineResult& expected : lines) {
    if (!absl::StartsWith(expected.line, "expected")) continue;
    const auto limits = std::find_if(lines.begin(), lines.end(), [&](const LineResult& line) {
      return absl::StartsWith(line.line, "limits") && line.mean.cpu_overload >= expected.mean.cpu_overload;
    });
    if (limits == lines.end()) continue;
    std::printf("  %s: %.2f of the nodes of %s\n", expected.line.c_str(),
                expected.nodes.mean / limits->nodes.mean, limits->line.c_str());
  }
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

int Run(const Options& options) {
  std::vector<Trace> traces;
  for (const std::string& file : options.files) {
    absl::StatusOr<Trace> trace = ReadTrace(file);
    if (!trace.ok()) {
      std::fprintf(stderr, "%s\n", std::string(trace.status().message()).c_str());
      return 1;
    }
    traces.push_back(*std::move(trace));
  }
  std::vector<Setting> settings;
  for (const Trace& trace : traces) {
    for (const NodeSize size : kSizes) {
      for (const Requests requests : kRequests) {
        for (const int64_t fill : kFills) settings.push_back({&trace, size, requests, fill});
      }
    }
  }
  std::vector<SettingResult> results(settings.size());
  std::vector<std::vector<LineResult>> lines(traces.size() * std::size(kSizes));
  RunAll(settings.size() + lines.size(), [&](size_t i) {
    if (i < lines.size()) {
      lines[i] = RunLines(traces[i / std::size(kSizes)], kSizes[i % std::size(kSizes)], options.orders,
                          options.seed);
    } else {
      results[i - lines.size()] = RunSetting(settings[i - lines.size()], options.orders, options.seed);
    }
  });
  std::vector<double> ratios;
  for (const SettingResult& result : results) {
    Print(result);
    ratios.push_back(result.ratio);
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    PrintLines(traces[i / std::size(kSizes)], kSizes[i % std::size(kSizes)], lines[i]);
    PrintNodeRatios(lines[i]);
  }
  std::printf("\nmedian of overload over KEP 217: %.3f\n", MedianOf(std::move(ratios)));
  return 0;
}

}  // namespace
}  // namespace loadline

int main(int argc, char** argv) {
  loadline::Options options;
  if (!loadline::ReadOptions(argc, argv, &options)) {
    std::fprintf(stderr, "usage: overload_bench [--orders=N, 1 to 1000] [--seed=N] FILE.csv...\n");
    return 2;
  }
  return loadline::Run(options);
}
