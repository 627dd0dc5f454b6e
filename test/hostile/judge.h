// Judges whether what one tenant does harms the others.
#ifndef LOADLINE_TEST_HOSTILE_JUDGE_H_
#define LOADLINE_TEST_HOSTILE_JUDGE_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "test/hostile/mischief.h"
#include "test/hostile/shared_cluster.h"

namespace loadline {

// The faults, in these words:
//   died         the process ended
//   differs      the innocents got another answer: the details say by which objects, and what differs first
//   memory       the process had more than 512 MiB
//   refused      a whole question or batch was refused
//   slow         a question took more CPU than twice its budget
//   unnamed      nobody said that the object was left out
//   unprintable  an answer carries text of the tenant that is not short and printable
struct Findings {
  std::set<std::string> words;
  std::string details;

  void Add(const std::string& word, const std::string& detail);
  std::string Words() const;  // sorted, with commas
};

inline constexpr int64_t kMostKib = 512 << 10;

// The place where a question is asked.
struct Court {
  Caller call;
  std::function<int64_t()> cpu_milliseconds;  // of the process that answers, so far
};

// The answers of the cluster without any mischief, in the order of Questions().
std::vector<std::string> AnswersInPeace(const Court& court, const SharedCluster& cluster);

// Puts `mischief` into the cluster, whose full list is there, asks everything, and holds it against
// `in_peace`.
void Judge(const Court& court, const SharedCluster& cluster, const HostileRow& row, const Mischief& mischief,
           const std::vector<std::string>& in_peace, Findings* findings);

}  // namespace loadline

#endif  // LOADLINE_TEST_HOSTILE_JUDGE_H_
