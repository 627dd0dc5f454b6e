// LoadLine: a node takes no pod that would lift the limits of its pods, or what they are expected to use in
// any hour of the day, above the load line. It is no filter
// of kube-scheduler, but of our plugin for it. The refusal is UnschedulableAndUnresolvable where the pod
// alone counts as more than the node may hold; else other pods may make room.
#include "core/fit/load_line.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

constexpr size_t kLineDecimals = 3;

class LoadLineFilter : public NodeFilter {
 public:
  explicit LoadLineFilter(const FitContext& context)
      : NodeFilter(FilterName::kLoadLine, Scope::kNode),
        snapshot_(*context.snapshot),
        line_(context.options->load_line),
        pod_(context.pod->shape),
        exempt_(line_.exempt_namespaces.contains(pod_.namespace_name)),
        sums_(context.snapshot->SumLimits(line_.sums)) {}

  // A pod that is let through wherever it wants takes room from others and needs none itself.
  bool AsksForRoom() const override { return !exempt_; }

  bool Passes(NodeIndex node, Verdict* why) const override {
    if (exempt_) return true;
    const std::vector<LineOnNode>& lines = LinesOn(node);
    bool passes = true;
    for (size_t r = 0; r < lines.size(); ++r) passes = passes && lines[r].Keeps(sums_->sum(node, r));
    if (!passes && why != nullptr) *why = Explain(node, lines);
    return passes;
  }

 private:
  // The numbers that depend on the shape of the node only, by position of the resource.
  const std::vector<LineOnNode>& LinesOn(NodeIndex node) const {
    const size_t shape = static_cast<size_t>(snapshot_.node_shape_id(node));
    if (shape >= by_shape_.size()) by_shape_.resize(shape + 1);
    std::vector<LineOnNode>& lines = by_shape_[shape];
    for (size_t r = lines.size(); r < line_.lines.size(); ++r) {
      lines.push_back(LineFor(line_, r, *sums_, pod_, snapshot_.node_shape(node)));
    }
    return lines;
  }

  Verdict Explain(NodeIndex node, const std::vector<LineOnNode>& lines) const {
    Verdict verdict = Refusal(name(), StatusClass::kUnschedulable, {});
    for (size_t r = 0; r < lines.size(); ++r) {
      if (lines[r].Keeps(sums_->sum(node, r))) continue;
      const int64_t line = LineOn(line_, r, snapshot_.node_shape(node).labels);
      verdict.reasons.push_back(LineReason(line_.sums.resources[r], line));
      if (!lines[r].Keeps(0)) verdict.status_class = StatusClass::kUnschedulableAndUnresolvable;
    }
    TidyReasons(&verdict.reasons);
    return verdict;
  }

  const Snapshot& snapshot_;
  const LoadLine& line_;
  const PodShape& pod_;
  const bool exempt_;
  const std::shared_ptr<const LimitSums> sums_;
  mutable std::vector<std::vector<LineOnNode>> by_shape_;
};

}  // namespace

absl::string_view LineResourceName(ResourceId resource) {
  if (resource == kCpu) return "cpu";
  if (resource == kMemory) return "memory";
  return "ephemeral-storage";
}

std::optional<int64_t> ParseLine(absl::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const absl::string_view whole = text.substr(0, point);
  const absl::string_view decimals = point < text.size() ? text.substr(point + 1) : absl::string_view();
  const auto digits = [](absl::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
  };
  if (!digits(whole) || whole.size() > 4 || decimals.size() > kLineDecimals) return std::nullopt;
  if (point < text.size() && !digits(decimals)) return std::nullopt;
  int64_t line = 0;
  const std::string padded = absl::StrCat(whole, decimals, std::string(kLineDecimals - decimals.size(), '0'));
  if (!absl::SimpleAtoi(padded, &line) || line < kLowestLine || line > kHighestLine) return std::nullopt;
  return line;
}

std::string LineText(int64_t line) {
  std::string decimals = absl::StrCat(kLineUnit + line % kLineUnit).substr(1);
  while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
  return absl::StrCat(line / kLineUnit, decimals.empty() ? "" : ".", decimals);
}

bool LoadLine::HasHours() const {
  return std::any_of(sums.resources.begin(), sums.resources.end(),
                     [](const LimitSumsSpec::Resource& resource) { return resource.hour.has_value(); });
}

void AddExpectedLine(ResourceId resource, const LimitRules& rules, int64_t line, LoadLine* load_line) {
  for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
    load_line->sums.resources.push_back({resource, rules, static_cast<int8_t>(hour)});
    load_line->lines.push_back(line);
  }
}

int64_t LineOn(const LoadLine& load_line, size_t resource, const Labels& labels) {
  const int64_t line = load_line.lines[resource];
  if (load_line.node_label_prefix.empty() || load_line.sums.resources[resource].hour.has_value()) return line;
  const std::string* const value = labels.Find(absl::StrCat(
      load_line.node_label_prefix, "/", LineResourceName(load_line.sums.resources[resource].id)));
  return value == nullptr ? line : ParseLine(*value).value_or(line);
}

int64_t LimitCeiling(int64_t line, int64_t allocatable) {
  const absl::int128 ceiling = absl::int128(allocatable) * line / kLineUnit;
  return ceiling > kMaxAmount ? kMaxAmount : static_cast<int64_t>(ceiling);
}

LineOnNode LineFor(const LoadLine& load_line, size_t resource, const LimitSums& sums, const PodShape& pod,
                   const NodeShape& node) {
  const LimitSumsSpec::Resource& entry = load_line.sums.resources[resource];
  const int64_t allocatable = node.allocatable.Get(entry.id);
  LineOnNode line;
  line.ceiling = LimitCeiling(LineOn(load_line, resource, node.labels), allocatable);
  line.counted = sums.Counted(pod, node, resource).amount;
  line.lacking = allocatable == 0 && pod.limits.Get(entry.id) > 0;
  return line;
}

std::string LineReason(const LimitSumsSpec::Resource& resource, int64_t line) {
  const bool expected = resource.hour.has_value();
  return absl::StrCat("load line: ", expected ? "expected use of " : "", LineResourceName(resource.id),
                      expected ? "" : " limits", " would exceed ", LineText(line), " x allocatable");
}

void TidyReasons(std::vector<std::string>* reasons) {
  std::sort(reasons->begin(), reasons->end());
  reasons->erase(std::unique(reasons->begin(), reasons->end()), reasons->end());
}

MadeFilter MakeLoadLine(const FitContext& context) {
  const LoadLine& line = context.options->load_line;
  if (line.empty()) return {};
  auto filter = std::make_unique<LoadLineFilter>(context);
  return {std::move(filter), {}, {}};
}

}  // namespace loadline
