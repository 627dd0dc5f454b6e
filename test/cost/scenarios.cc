#include "test/cost/scenarios.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

namespace loadline::cost {
namespace {

std::vector<std::vector<std::string>> ReadCsv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string>& row = rows.emplace_back();
    std::stringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) row.push_back(cell);
  }
  return rows;
}

// Uniform over [0, below): the same everywhere, which std::uniform_int_distribution does not promise.
int64_t Draw(std::mt19937_64* random, int64_t below) {
  return static_cast<int64_t>((*random)() % static_cast<uint64_t>(below));
}

template <typename Item>
void Shuffle(std::vector<Item>* items, std::mt19937_64* random) {
  for (size_t i = items->size(); i > 1; --i) {
    std::swap((*items)[i - 1], (*items)[static_cast<size_t>(Draw(random, static_cast<int64_t>(i)))]);
  }
}

// Returns what GKE keeps for itself: a share of each step of CPU and memory, and 100 MiB.
int64_t Reserved(double amount, const std::vector<std::pair<double, double>>& steps) {
  double reserved = 0;
  for (const auto& [step, share] : steps) {
    const double part = std::min(amount, step);
    reserved += part * share;
    amount -= part;
  }
  return static_cast<int64_t>(reserved);
}

// A node of which that much is reserved.
NodeKind AfterReserve(const std::string& name, int64_t cpus, double gib_per_cpu, double usd_per_hour) {
  const double mib = static_cast<double>(cpus) * gib_per_cpu * 1024;
  const int64_t milli_cpu =
      Reserved(static_cast<double>(cpus) * 1000, {{1000, 0.06}, {1000, 0.01}, {2000, 0.005}, {1e9, 0.0025}});
  const int64_t memory =
      100 + Reserved(mib, {{4096, 0.25}, {4096, 0.2}, {8192, 0.1}, {114688, 0.06}, {1e9, 0.02}});
  return {name, cpus, cpus * 1000 - milli_cpu, static_cast<int64_t>(mib) - memory, 110, usd_per_hour};
}

}  // namespace

std::vector<NodeKind> ReadAws(const std::string& path) {
  static const std::set<std::string> kFamilies = {"m5",  "c5",  "r5",  "m6i", "c6i",
                                                  "r6i", "m6a", "c6a", "r6a", "t3"};
  std::vector<NodeKind> types;
  for (const std::vector<std::string>& row : ReadCsv(path)) {
    if (row.size() < 11 || !kFamilies.contains(row[0].substr(0, row[0].find('.')))) continue;
    if (row[0].find("metal") != std::string::npos) continue;
    types.push_back({row[0], std::stoll(row[2]), std::stoll(row[4]), std::stoll(row[5]), std::stoll(row[7]),
                     std::stod(row[10])});
  }
  return types;
}

std::vector<NodeKind> ReadGce(const std::string& path) {
  struct Class {
    const char* prefix;
    double gib_per_cpu;
  };
  constexpr std::array<Class, 9> kClasses = {{{"n1-standard-", 3.75},
                                              {"n1-highmem-", 6.5},
                                              {"n1-highcpu-", 0.9},
                                              {"e2-standard-", 4},
                                              {"e2-highmem-", 8},
                                              {"e2-highcpu-", 1},
                                              {"n2-standard-", 4},
                                              {"n2-highmem-", 8},
                                              {"n2-highcpu-", 1}}};
  constexpr double kBootDisk = 100 * 0.1 / 720;
  std::vector<NodeKind> types;
  for (const std::vector<std::string>& row : ReadCsv(path)) {
    if (row.size() < 3 || row[0] != "machine_hour") continue;
    for (const Class& entry : kClasses) {
      const std::string prefix = entry.prefix;
      if (row[1].rfind(prefix, 0) != 0) continue;
      const int64_t cpus = std::stoll(row[1].substr(prefix.size()));
      types.push_back(AfterReserve(row[1], cpus, entry.gib_per_cpu, std::stod(row[2]) + kBootDisk));
    }
  }
  return types;
}

std::vector<NodeKind> ReadAzure(const std::string& path) {
  struct Series {
    const char* prefix;
    const char* suffix;
    double gib_per_cpu;
  };
  // AKS reserves by nearly the same steps as GKE.
  constexpr std::array<Series, 3> kSeries = {
      {{"Standard_D", "s_v5", 4}, {"Standard_E", "s_v5", 8}, {"Standard_F", "s_v2", 2}}};
  std::vector<NodeKind> types;
  for (const std::vector<std::string>& row : ReadCsv(path)) {
    for (const Series& series : kSeries) {
      const std::string prefix = series.prefix;
      if (row.size() < 2 || row[1].empty() || row[0].rfind(prefix, 0) != 0) continue;
      const std::string rest = row[0].substr(prefix.size());
      const size_t digits = rest.find_first_not_of("0123456789");
      if (digits == 0 || digits == std::string::npos || rest.substr(digits) != series.suffix) continue;
      const int64_t cpus = std::stoll(rest.substr(0, digits));
      types.push_back(AfterReserve(row[0], cpus, series.gib_per_cpu, std::stod(row[1])));
    }
  }
  return types;
}

std::vector<PodKind> ReadOpenb(const std::string& path) {
  std::vector<PodKind> kinds;
  for (const std::vector<std::string>& row : ReadCsv(path)) {
    if (row.size() < 4 || row[3] != "0") continue;
    kinds.push_back({std::stoll(row[1]), std::stoll(row[2]), 1});
  }
  return kinds;
}

Scenario MakeScenario(uint64_t seed, int64_t cpus, const std::vector<NodeKind>& cloud,
                      const std::vector<PodKind>& trace) {
  std::mt19937_64 random(seed);
  Scenario scenario;
  scenario.cpus = cpus;
  scenario.cluster_nodes = cpus <= 20 ? 3 : cpus <= 2000 ? 100 : 1000;
  const int64_t largest = cpus < 2000 ? 16 : 64;
  std::vector<NodeKind> types;
  for (const NodeKind& type : cloud) {
    if (type.cpus >= 2 && type.cpus <= largest) types.push_back(type);
  }
  Shuffle(&types, &random);
  types.resize(std::min(types.size(), static_cast<size_t>(4 + Draw(&random, 9))));
  std::sort(types.begin(), types.end(), [](const NodeKind& a, const NodeKind& b) { return a.name < b.name; });
  scenario.types = types;
  const auto fits = [&](const PodKind& pod) {
    // Beside 0.3 CPU and 0.5 GiB of DaemonSets.
    return std::any_of(types.begin(), types.end(), [&](const NodeKind& type) {
      return pod.milli_cpu + 300 <= type.milli_cpu && pod.memory_mib + 512 <= type.memory_mib;
    });
  };
  const int64_t kinds = 1 + Draw(&random, 12);
  for (int64_t tries = 0; tries < 10'000 && static_cast<int64_t>(scenario.pods.size()) < kinds; ++tries) {
    PodKind pod;
    if (trace.empty()) {
      pod.milli_cpu = 100 + Draw(&random, 6'901);
      pod.memory_mib = pod.milli_cpu * (512 + Draw(&random, 15'873)) / 1000;
    } else {
      pod = trace[static_cast<size_t>(Draw(&random, static_cast<int64_t>(trace.size())))];
      pod.count = 0;
    }
    if (pod.milli_cpu > 0 && fits(pod)) scenario.pods.push_back(pod);
  }
  if (scenario.pods.empty()) scenario.pods.push_back({100, 100, 0});
  for (int64_t asked = 0; asked < cpus * 1000;) {
    PodKind& pod =
        scenario.pods[static_cast<size_t>(Draw(&random, static_cast<int64_t>(scenario.pods.size())))];
    ++pod.count;
    asked += pod.milli_cpu;
  }
  return scenario;
}

}  // namespace loadline::cost
