#include "plugin/convert/waiting.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr int kMostBypassedSchedulers = 1'000;

// The scheduler of a pod that names none.
constexpr char kDefaultScheduler[] = "default-scheduler";

PendingFacts FactsOf(const v1::PendingPods& message, const DecodedPod& pod) {
  PendingFacts facts;
  facts.unschedulable = message.unschedulable();
  facts.scheduler = pod.scheduler.empty() ? absl::string_view(kDefaultScheduler) : pod.scheduler;
  if (message.has_scale_up_delay_milliseconds()) facts.delay_ms = message.scale_up_delay_milliseconds();
  if (message.has_youngest_age_milliseconds()) facts.youngest_age_ms = message.youngest_age_milliseconds();
  return facts;
}

v1::NotWaitingPods::Reason ReasonOf(NotWaiting why) {
  switch (why) {
    case NotWaiting::kExpendable:
      return v1::NotWaitingPods::EXPENDABLE;
    case NotWaiting::kOfDaemonSet:
      return v1::NotWaitingPods::OF_DAEMON_SET;
    case NotWaiting::kNotTried:
      return v1::NotWaitingPods::NOT_TRIED;
    case NotWaiting::kTooYoung:
      return v1::NotWaitingPods::TOO_YOUNG;
  }
  return v1::NotWaitingPods::REASON_UNSPECIFIED;
}

}  // namespace

absl::StatusOr<std::optional<WaitingRules>> DecodeWaitingRules(const PendingPodsList& pods,
                                                               const v1::WaitingRules* of_question) {
  for (int i = 0; i < pods.size(); ++i) {
    Fields fields;
    fields.Range("youngest_age_milliseconds", pods[i].youngest_age_milliseconds(), 0, INT64_MAX);
    if (!fields.status().ok()) return Annotate(fields.status(), absl::StrCat("pods[", i, "]"));
  }
  if (of_question == nullptr) return std::nullopt;
  const v1::WaitingRules& message = *of_question;
  WaitingRules rules;
  if (message.has_expendable_priority_cutoff()) {
    rules.expendable_priority = message.expendable_priority_cutoff();
  }
  rules.bypassed_schedulers = {message.bypassed_schedulers().begin(), message.bypassed_schedulers().end()};
  rules.scale_up_delay_ms = message.scale_up_delay_milliseconds();
  Fields fields;
  fields.Range("expendable_priority_cutoff", rules.expendable_priority, kExpendablePriority, INT32_MAX);
  fields.Keep(CheckSize("bypassed_schedulers", message.bypassed_schedulers_size(), kMostBypassedSchedulers));
  for (const std::string& name : rules.bypassed_schedulers) fields.Name("bypassed_schedulers", name);
  fields.Range("scale_up_delay_milliseconds", rules.scale_up_delay_ms, 0, INT64_MAX);
  if (!fields.status().ok()) return Annotate(fields.status(), "waiting");
  return rules;
}

NotWaitingList RemoveNotWaiting(const PendingPodsList& pods, const WaitingRules& rules,
                                DecodedProblem* problem) {
  NotWaitingList removed;
  size_t kept = 0;
  for (size_t i = 0; i < problem->read.size(); ++i) {
    const DecodedPod& pod = problem->read[i];
    auto& entries = problem->from[i];
    const auto waits = [&](const PodEntry& entry) {
      const std::optional<NotWaiting> why =
          WhyNotWaiting(TraitsOf(pod.pod.shape), FactsOf(pods[entry.position], pod), rules);
      if (!why.has_value()) return true;
      v1::NotWaitingPods* const message = removed.Add();
      message->set_pod(entry.position);
      message->set_reason(ReasonOf(*why));
      return false;
    };
    entries.erase(std::stable_partition(entries.begin(), entries.end(), waits), entries.end());
    if (entries.empty()) continue;
    if (kept != i) {
      problem->read[kept] = std::move(problem->read[i]);
      problem->from[kept] = std::move(problem->from[i]);
    }
    ++kept;
  }
  problem->read.resize(kept);
  problem->from.resize(kept);
  return removed;
}

absl::StatusOr<DecodedProblem> DecodeYoungPods(const v1::PlanLoopRequest& request,
                                               const NotWaitingList& not_waiting, ResourceNames names,
                                               const ReadOptions& options) {
  PendingPodsList young;
  for (const v1::NotWaitingPods& pods : not_waiting) {
    if (pods.reason() == v1::NotWaitingPods::TOO_YOUNG) *young.Add() = request.pods(pods.pod());
  }
  if (young.empty()) {
    DecodedProblem none;
    none.names = std::move(names);
    return none;
  }
  v1::ScaleUpProblem growth;
  *growth.mutable_fit() = request.fit();
  return DecodeProblem(growth, young, PodGrouping::kShape, std::move(names), options);
}

absl::StatusOr<DecodedProblem> DecodeWaitingPods(const v1::PlanDrainRequest& request, ResourceNames names,
                                                 const ReadOptions& options) {
  absl::StatusOr<std::optional<WaitingRules>> waiting = DecodeWaitingRules(request);
  if (!waiting.ok()) return waiting.status();
  v1::ScaleUpProblem growth;
  *growth.mutable_fit() = request.fit();
  *growth.mutable_startup_taints() = request.startup_taints();
  absl::StatusOr<DecodedProblem> decoded =
      DecodeProblem(growth, request.pods(), PodGrouping::kShape, std::move(names), options);
  if (!decoded.ok() || !waiting->has_value()) return decoded;
  (*waiting)->any_age = true;
  RemoveNotWaiting(request.pods(), **waiting, &*decoded);
  return decoded;
}

}  // namespace loadline
