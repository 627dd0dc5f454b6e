// Clusters that have to grow: pods that wait, and node types of one cloud at list prices.
#ifndef LOADLINE_TEST_COST_SCENARIOS_H_
#define LOADLINE_TEST_COST_SCENARIOS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace loadline::cost {

struct PodKind {
  int64_t milli_cpu = 0;
  int64_t memory_mib = 0;
  int64_t count = 0;
};

struct NodeKind {
  std::string name;
  int64_t cpus = 0;  // capacity
  int64_t milli_cpu = 0;
  int64_t memory_mib = 0;  // allocatable, as milli_cpu and pods
  int64_t pods = 0;
  double usd_per_hour = 0;
};

struct Scenario {
  int64_t cpus = 0;           // that the pods ask for, about
  int64_t cluster_nodes = 0;  // that are there already, and full
  std::string source;         // "aws" or "gce", and "synthetic" or "openb"
  std::vector<PodKind> pods;
  std::vector<NodeKind> types;
};

// Node types of general purpose families. `path`: a price catalogue of manifests/prices.
std::vector<NodeKind> ReadAws(const std::string& path);
std::vector<NodeKind> ReadGce(const std::string& path);
std::vector<NodeKind> ReadAzure(const std::string& path);  // unpacked
// Shapes of pods without GPUs of the openb trace; count 1 each. Empty: there is no such file.
std::vector<PodKind> ReadOpenb(const std::string& path);

// The same for the same seed on every machine. 4 to 12 types of up to 16 CPUs, at 2,000 CPUs and more of up
// to 64; 1 to 12 kinds of pods: of `trace`, if it is not empty, else 0.1 to 7 CPUs with 0.5 to 16 GiB per
// CPU; all of them fit the largest type.
Scenario MakeScenario(uint64_t seed, int64_t cpus, const std::vector<NodeKind>& cloud,
                      const std::vector<PodKind>& trace);

}  // namespace loadline::cost

#endif  // LOADLINE_TEST_COST_SCENARIOS_H_
