// The load line: how far above its allocatable the limits of the pods of a node, and what they are expected
// to use in each hour of the day, may add up.
#ifndef LOADLINE_CORE_FIT_LOAD_LINE_H_
#define LOADLINE_CORE_FIT_LOAD_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/cluster/limit_sums.h"

namespace loadline {

// Lines are exact: thousandths, [0.1, 1000].
inline constexpr int64_t kLineUnit = 1'000;
inline constexpr int64_t kLowestLine = kLineUnit / 10;
inline constexpr int64_t kHighestLine = 1'000 * kLineUnit;

// The line of each resource that has one.
struct LoadLine {
  // Positions are those of `sums.resources`: limits / allocatable may be at most this much, in thousandths;
  // or expected use / allocatable, where the resource has an hour. A line of expected use is one entry for
  // each hour, so that all who keep to the line keep to all hours.
  std::vector<int64_t> lines;
  // How limits and expected use are counted. No resources: there is no load line.
  LimitSumsSpec sums;
  // A node with the label "<prefix>/<resource>", such as "lines.example.com/memory": "2.5", has that line in
  // place of the one above. A value that is no line changes nothing. Empty: labels play no part.
  std::string node_label_prefix;
  // Namespaces whose pods go where they want. They count for others.
  absl::flat_hash_set<std::string> exempt_namespaces;
  // How expected use counts: `sums.expected` is made by it.
  ExpectedUseOptions expected_use = {};

  bool empty() const { return lines.empty(); }
  // Returns true if expected use has a line.
  bool HasHours() const;
  friend bool operator==(const LoadLine&, const LoadLine&) = default;
};

// "cpu", "memory" or "ephemeral-storage": what a line may be for.
absl::string_view LineResourceName(ResourceId resource);

// Reads "1", "1.5" or "0.125": digits with at most 3 decimals, in [0.1, 1000]. nullopt: it is no line.
std::optional<int64_t> ParseLine(absl::string_view text);
// The shortest text that ParseLine() reads as this one.
std::string LineText(int64_t line);

// Adds a line of expected use, which counts by `rules` where nothing is known: one entry for each hour.
void AddExpectedLine(ResourceId resource, const LimitRules& rules, int64_t line, LoadLine* load_line);

// The line of the resource at this position on a node with these labels, which play no part in hours.
int64_t LineOn(const LoadLine& load_line, size_t resource, const Labels& labels);

// The most that limits may add up to: floor(line / 1000 * allocatable), at most 2^62. So limits / allocatable
// > line / 1000 exactly if limits > the result. `allocatable` is in [0, 2^62].
int64_t LimitCeiling(int64_t line, int64_t allocatable);

// The numbers of the line for one resource, for one pod on nodes of one shape.
struct LineOnNode {
  int64_t ceiling = 0;
  int64_t counted = 0;   // what the pod counts as
  bool lacking = false;  // the pod limits what the node does not offer
  // Returns whether the pod keeps to the line beside pods that count as `there`.
  bool Keeps(absl::int128 there) const { return !lacking && (counted == 0 || there + counted <= ceiling); }
};
LineOnNode LineFor(const LoadLine& load_line, size_t resource, const LimitSums& sums, const PodShape& pod,
                   const NodeShape& node);

// Returns the text of a refusal, such as "load line: memory limits would exceed 1.5 x allocatable". It is the
// same in all hours.
std::string LineReason(const LimitSumsSpec::Resource& resource, int64_t line);

// Sorts reasons and drops repeats.
void TidyReasons(std::vector<std::string>* reasons);

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_LOAD_LINE_H_
