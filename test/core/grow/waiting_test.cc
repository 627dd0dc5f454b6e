// The pods without a node that wait for one.
#include "core/grow/waiting.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace loadline {

void PrintTo(NotWaiting why, std::ostream* out) { *out << "reason " << static_cast<int>(why); }

namespace {

// A pod of a ReplicaSet that a scheduler has tried, a minute old; nothing of the rules is set.
struct WaitingCase {
  std::string name;
  std::function<void(PodTraits*, PendingFacts*, WaitingRules*)> change;
  std::optional<NotWaiting> why;
};
class WhyNotWaitingTest : public ::testing::TestWithParam<WaitingCase> {};

TEST_P(WhyNotWaitingTest, SaysWhy) {
  PodTraits traits;
  traits.owner = PodOwner{"ReplicaSet", "apps/v1", "web", "uid"};
  PendingFacts facts{.unschedulable = true, .scheduler = "default-scheduler", .youngest_age_ms = 60'000};
  WaitingRules rules;
  GetParam().change(&traits, &facts, &rules);
  EXPECT_EQ(WhyNotWaiting(traits, facts, rules), GetParam().why);
}

constexpr int64_t kMostMs = std::numeric_limits<int64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Cases, WhyNotWaitingTest,
    ::testing::ValuesIn(std::vector<WaitingCase>{
        {"Tried", [](auto*, auto*, auto*) {}, std::nullopt},
        {"NotTried", [](auto*, auto* f, auto*) { f->unschedulable = false; }, NotWaiting::kNotTried},
        {"OfABypassedScheduler",
         [](auto*, auto* f, auto* r) {
           f->unschedulable = false;
           r->bypassed_schedulers = {"other", "default-scheduler"};
         },
         std::nullopt},
        {"OfAnotherScheduler",
         [](auto*, auto* f, auto* r) {
           f->unschedulable = false;
           r->bypassed_schedulers = {"default"};
         },
         NotWaiting::kNotTried},
        {"Placeholder", [](auto* t, auto*, auto*) { t->placeholder = true; }, NotWaiting::kExpendable},
        {"AtTheLowestPriority", [](auto* t, auto*, auto*) { t->priority = -10; }, std::nullopt},
        {"BelowTheLowestPriority", [](auto* t, auto*, auto*) { t->priority = -11; }, NotWaiting::kExpendable},
        {"AtTheCutoff",
         [](auto* t, auto*, auto* r) { t->priority = r->expendable_priority = 5; }, std::nullopt},
        {"BelowTheCutoff",
         [](auto* t, auto*, auto* r) {
           t->priority = 4;
           r->expendable_priority = 5;
         },
         NotWaiting::kExpendable},
        {"ACutoffRaisesNobody",
         [](auto* t, auto*, auto* r) {
           t->priority = -11;
           r->expendable_priority = -20;
         },
         NotWaiting::kExpendable},
        {"OfADaemonSet", [](auto* t, auto*, auto*) { t->owner->kind = "DaemonSet"; },
         NotWaiting::kOfDaemonSet},
        {"OfADaemonSetAndABypassedScheduler",
         [](auto* t, auto*, auto* r) {
           t->owner->kind = "DaemonSet";
           r->bypassed_schedulers = {"default-scheduler"};
         },
         NotWaiting::kOfDaemonSet},
        {"OfNobody", [](auto* t, auto*, auto*) { t->owner.reset(); }, std::nullopt},
        {"OldEnough", [](auto*, auto*, auto* r) { r->scale_up_delay_ms = 60'000; }, std::nullopt},
        {"TooYoung", [](auto*, auto*, auto* r) { r->scale_up_delay_ms = 60'001; }, NotWaiting::kTooYoung},
        {"TooYoungByItself", [](auto*, auto* f, auto*) { f->delay_ms = 60'001; }, NotWaiting::kTooYoung},
        {"ItsOwnDelayIsShorter",
         [](auto*, auto* f, auto* r) {
           f->delay_ms = 60'000;
           r->scale_up_delay_ms = 60'001;
         },
         std::nullopt},
        {"ItsOwnDelayIsNone",
         [](auto*, auto* f, auto* r) {
           f->delay_ms = 0;
           f->youngest_age_ms = 0;
           r->scale_up_delay_ms = 60'001;
         },
         std::nullopt},
        {"ItsOwnDelayIsNegative",
         [](auto*, auto* f, auto* r) {
           f->delay_ms = std::numeric_limits<int64_t>::min();
           f->youngest_age_ms = 0;
           r->scale_up_delay_ms = 1;
         },
         std::nullopt},
        {"ForEverTooYoung", [](auto*, auto* f, auto*) { f->delay_ms = kMostMs; }, NotWaiting::kTooYoung},
        {"OfUnknownAge",
         [](auto*, auto* f, auto*) {
           f->delay_ms = kMostMs;
           f->youngest_age_ms = PendingFacts().youngest_age_ms;
         },
         std::nullopt},
        {"WithoutADelayAgesSayNothing", [](auto*, auto* f, auto*) { f->youngest_age_ms = 0; }, std::nullopt},
        {"TooYoungAndBypassed",
         [](auto*, auto* f, auto* r) {
           f->unschedulable = false;
           r->bypassed_schedulers = {"default-scheduler"};
           r->scale_up_delay_ms = 60'001;
         },
         NotWaiting::kTooYoung},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace loadline
