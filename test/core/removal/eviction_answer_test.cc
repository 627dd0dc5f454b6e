#include "core/removal/eviction_answer.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace loadline {
namespace {

using Cause = EvictionAnswer::Cause;

// Answers as those of pkg/registry/core/pod/storage/eviction.go and of priority and fairness of Kubernetes.
TEST(EvictionAnswerTest, HasAName) {
  const std::string several =
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
  const struct {
    EvictionAnswer answer;
    absl::string_view name;
    bool again;
  } cases[] = {{{.code = 200}, "accepted", true},
               {{.code = 201}, "accepted", true},
               {{.code = 404}, "accepted", true},
               {{.code = 429, .cause = Cause::kBudget}, "budget", true},
               {{.code = 429}, "busy", true},
               {{.code = 403, .cause = Cause::kNamespaceEnds}, "namespace_ending", true},
               {{.code = 409}, "conflict", true},
               {{.code = 0, .error = "connection refused"}, "error", true},
               {{.code = 408}, "error", true},
               {{.code = 500, .error = "etcd"}, "error", true},
               {{.code = 504}, "error", true},
               {{.code = 500, .error = several}, "several_budgets", false},
               {{.code = 403}, "forbidden", false},
               {{.code = 422}, "invalid", false}};
  for (const auto& c : cases) {
    EXPECT_EQ(Name(ResultOf(c.answer)), c.name) << c.answer.code;
    EXPECT_EQ(MayBeTriedAgain(ResultOf(c.answer)), c.again) << c.answer.code;
  }
}

}  // namespace
}  // namespace loadline
