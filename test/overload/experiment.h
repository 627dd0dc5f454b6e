// One setting of the experiment: a trace, a size of nodes, a model of requests and how full nodes are to be.
#ifndef LOADLINE_TEST_OVERLOAD_EXPERIMENT_H_
#define LOADLINE_TEST_OVERLOAD_EXPERIMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "test/overload/judge.h"

namespace loadline {

// How much of their limits pods request.
enum class Requests {
  kDrawn,         // between 10 and 70 %, of each resource by itself
  kPercentile95,  // as much as the 95th percentile of the first week, as KRR sets them
  kFlat,          // 35 %
  kTwoFold,       // half of the pods 100 %, the others 15 %
  kLow,           // 5 %: for lines, where requests are not to decide
};
const char* Name(Requests requests);

// The machines of a trace that fit three quarters of the smaller node, as pods.
std::vector<TracePod> PodsOf(const Trace& trace, Requests requests, uint64_t seed);

// A mean over orders, and its standard error.
struct Estimate {
  double mean = 0;
  double error = 0;
};
Estimate EstimateOf(const std::vector<double>& values);

struct Setting {
  const Trace* trace = nullptr;
  NodeSize size;
  Requests requests = Requests::kDrawn;
  int64_t fill_percent = 0;
};

// The outcome of one score in a setting.
struct ScoreResult {
  Score score;
  Estimate cpu_overload;
  Outcome mean;  // over the orders
};
struct SettingResult {
  Setting setting;
  size_t pods = 0;
  size_t nodes = 0;
  std::vector<ScoreResult> scores;  // in the order of kScores
  // The overload of expected use over that of KEP 217; 1 if both have less than 0.01 %.
  double ratio = 1;
  // Expected use, or expected use of half of the pods, has more overload than KEP 217 by more than two
  // standard errors and 0.01 %.
  bool worse = false;
  bool half_worse = false;
};
SettingResult RunSetting(const Setting& setting, size_t orders, uint64_t seed);

// The outcome of filling nodes up to a line.
struct LineResult {
  std::string line;
  Estimate nodes;
  Outcome mean;
};
std::vector<LineResult> RunLines(const Trace& trace, NodeSize size, size_t orders, uint64_t seed);

}  // namespace loadline

#endif  // LOADLINE_TEST_OVERLOAD_EXPERIMENT_H_
