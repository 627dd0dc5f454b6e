// One object is one object's problem: a catalogue of hostile ones, each put into a cluster that others share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugin/service/engine.h"
#include "test/hostile/hostile_objects.h"
#include "test/hostile/judge.h"
#include "test/hostile/mischief.h"
#include "test/hostile/open_rows.h"
#include "test/hostile/shared_cluster.h"

namespace loadline {
namespace {

constexpr size_t kLeastRows = 40;

int64_t CpuMilliseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000 +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1'000;
}

// The output of a process before it ended, and its cost.
struct ChildEnd {
  std::string text;
  bool well = false;  // it ended by itself, with 0
  int64_t peak_kib = 0;
};

// Runs `body` in a child: a copy of this process, whose memory and crashes are its own.
ChildEnd RunInChild(const std::function<std::string()>& body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    const rlimit seconds = {600, 600};
    setrlimit(RLIMIT_CPU, &seconds);
    const rlimit bytes = {rlim_t{3} << 29, rlim_t{3} << 29};  // beyond that it ends
    if (!kSanitized) setrlimit(RLIMIT_AS, &bytes);
    const std::string text = body();
    for (size_t done = 0; done < text.size();) {
      const ssize_t size = write(ends[1], text.data() + done, text.size() - done);
      if (size <= 0) _exit(1);
      done += static_cast<size_t>(size);
    }
    _exit(0);
  }
  close(ends[1]);
  ChildEnd end;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    end.text.append(buffer, static_cast<size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(pid, &status, 0, &usage), pid);
  end.well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  end.peak_kib = usage.ru_maxrss;
  return end;
}

// An engine that has the shared cluster, built once; each row gets a copy of the process.
class SharedEngine {
 public:
  SharedEngine() : engine_(EngineLimits()) {
    for (const std::string& chunk : cluster_.full_list()) {
      const auto answer = Court().call("/loadline.v1.ClusterState/Sync", chunk);
      EXPECT_TRUE(answer.ok()) << answer.status();
    }
    // In a child too: questions leave things in an engine.
    const ChildEnd end = RunInChild([this] {
      std::string text;
      for (const std::string& answer : AnswersInPeace(Court(), cluster_)) {
        absl::StrAppend(&text, answer.size(), "\n", answer);
      }
      return text;
    });
    EXPECT_TRUE(end.well);
    for (absl::string_view rest = end.text; !rest.empty();) {
      const size_t newline = rest.find('\n');
      const size_t size = std::stoul(std::string(rest.substr(0, newline)));
      in_peace_.emplace_back(rest.substr(newline + 1, size));
      rest.remove_prefix(newline + 1 + size);
    }
  }

  static SharedEngine& Get() {
    static SharedEngine* const kEngine = new SharedEngine();
    return *kEngine;
  }

  loadline::Court Court() {
    return {[this](absl::string_view method, const std::string& request) {
              return engine_.Call(method, request, Deadline());
            },
            CpuMilliseconds};
  }
  const SharedCluster& cluster() const { return cluster_; }
  const std::vector<std::string>& in_peace() const { return in_peace_; }

 private:
  SharedCluster cluster_;
  Engine engine_;
  std::vector<std::string> in_peace_;
};

// Words in the first line; in the second one the memory that the test itself takes for the objects, with a
// copy of them as changes; then the details.
std::string TextOf(const Findings& findings, const Mischief& mischief) {
  return absl::StrCat(findings.Words(), "\n", 2 * mischief.ViewBytes() >> 10, "\n", findings.details);
}

Findings FindingsOf(const ChildEnd& end) {
  Findings findings;
  const std::vector<std::string> parts = absl::StrSplit(end.text, absl::MaxSplits('\n', 2));
  int64_t own_kib = 0;
  if (parts.size() == 3 && absl::SimpleAtoi(parts[1], &own_kib)) {
    for (const absl::string_view word : absl::StrSplit(parts[0], ',', absl::SkipEmpty())) {
      findings.words.emplace(word);
    }
    findings.details = parts[2];
  }
  if (!end.well) findings.Add("died", "the process ended by a signal");
  const int64_t peak_kib = end.peak_kib - own_kib;
  if (!kSanitized && peak_kib > kMostKib) findings.Add("memory", absl::StrCat(peak_kib, " KiB"));
  return findings;
}

Findings TryInProcess(const HostileRow& row, const std::function<void(Mischief*)>& build) {
  SharedEngine& shared = SharedEngine::Get();
  return FindingsOf(RunInChild([&] {
    Mischief mischief;
    build(&mischief);
    Findings findings;
    Judge(shared.Court(), shared.cluster(), row, mischief, shared.in_peace(), &findings);
    return TextOf(findings, mischief);
  }));
}

class HostileTest : public ::testing::TestWithParam<HostileRow> {};

TEST_P(HostileTest, HarmsNobodyInProcess) {
  const HostileRow& row = GetParam();
  const Findings findings = TryInProcess(row, row.build);
  EXPECT_EQ(findings.Words(), OpenIn(row.name)) << findings.details;
}

INSTANTIATE_TEST_SUITE_P(Rows, HostileTest, ::testing::ValuesIn(Catalogue()),
                         [](const auto& info) { return info.param.name; });

TEST(HostileCatalogueTest, AllTogetherHarmNobodyInProcess) {
  const HostileRow row = {"All", nullptr, {}, Effect::kTakesRoom};
  const Findings findings = TryInProcess(row, [&](Mischief* m) { BuildAllRows(row.effect, m); });
  EXPECT_EQ(findings.Words(), OpenIn(row.name)) << findings.details;
}

TEST(HostileCatalogueTest, AllTogetherWithThoseThatTakeAllHarmNobodyInProcess) {
  const HostileRow row = {"AllWithThoseThatTakeAll", nullptr, {}, Effect::kTakesAll};
  const Findings findings = TryInProcess(row, [&](Mischief* m) { BuildAllRows(row.effect, m); });
  EXPECT_EQ(findings.Words(), OpenIn(row.name)) << findings.details;
}

TEST(HostileCatalogueTest, TheSharedClusterIsAsItSays) {
  const std::vector<std::string>& in_peace = SharedEngine::Get().in_peace();
  ASSERT_EQ(in_peace.size(), 7U);
  const std::string loop = AnswerOf("/loadline.v1.Autoscaler/PlanLoop", in_peace[6], Effect::kTakesRoom);
  for (int i = 0; i < kInnocents; ++i) {
    EXPECT_THAT(loop, ::testing::HasSubstr(absl::StrCat("pod ", i, " has a place\n")));
  }
  EXPECT_THAT(AnswerOf("/loadline.v1.Autoscaler/PlanLoop", in_peace[6], Effect::kNone),
              ::testing::HasSubstr("big grows by 10 and "));
  EXPECT_THAT(
      AnswerOf("/loadline.v1.Autoscaler/PlanDrain", in_peace[5], Effect::kNone),
      ::testing::AllOf(::testing::HasSubstr("brake ''\n"), ::testing::HasSubstr("node-0980 goes now\n")));
}

// A fifth of all pods belongs to one tenant and is replaced from loop to loop, under owners of a kind that
// nobody knows. Such pods may vanish because a controller is broken, but those of others have nothing to do
// with it.
TEST(HostileCatalogueTest, PodsThatVanishHoldNoNodesOfOthers) {
  SharedEngine& shared = SharedEngine::Get();
  const ChildEnd end = RunInChild([&] {
    const auto call = shared.Court().call;
    std::string text;
    int64_t revision = 1;
    for (int round = 0; round < 4; ++round) {
      Mischief mischief;
      for (int i = 0; i < kSharedNodes * kPodsPerSharedNode / 4; ++i) {
        k8s::v1::Pod pod = EvilPod();
        pod.mutable_metadata()->set_name(absl::StrCat("job-", round, "-", i));
        k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->mutable_owner_references(0);
        owner->set_api_version("foo.example/v1");
        owner->set_kind("Foo");
        owner->set_uid(absl::StrCat("foo-", round, "-", i));
        mischief.Bound(pod);
      }
      for (const std::string& delta : shared.cluster().Deltas(mischief, revision)) {
        if (!call("/loadline.v1.ClusterState/Sync", delta).ok()) return std::string("a change was refused");
        ++revision;
      }
      const SharedCluster::Question drain = shared.cluster().Questions(Mischief(), revision)[5];
      const absl::StatusOr<std::string> answer = call(drain.method, drain.request);
      text = answer.ok() ? AnswerOf(drain.method, *answer, Effect::kNone) : answer.status().ToString();
      if (!answer.ok()) break;
    }
    return text;
  });
  EXPECT_TRUE(end.well);
  EXPECT_EQ(end.text,
            AnswerOf("/loadline.v1.Autoscaler/PlanDrain", SharedEngine::Get().in_peace()[5], Effect::kNone));
}

TEST(HostileCatalogueTest, HasRowsEnoughAndKnowsWhichAreOpen) {
  const std::vector<HostileRow> rows = Catalogue();
  EXPECT_GE(rows.size(), kLeastRows);
  std::set<std::string> names = {"All", "AllWithThoseThatTakeAll"};
  for (const HostileRow& row : rows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    names.insert(row.name + "OverTheSocket");
  }
  for (const auto& [name, words] : OpenRows()) EXPECT_TRUE(names.count(name) == 1 && !words.empty()) << name;
  EXPECT_EQ(OpenRows().size(), kOpenRows);
}

TEST(MischiefTest, SaysOfWhichObjectsItConsists) {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("evil");
  pod.mutable_metadata()->set_name("p");
  k8s::v1::PodDisruptionBudget budget;
  *budget.mutable_metadata() = pod.metadata();
  Mischief mischief("-1");
  mischief.Pending(pod, 300);
  mischief.Pending(pod);
  mischief.Object(v1::POD_DISRUPTION_BUDGET, budget);
  EXPECT_EQ(mischief.Describe(),
            R"(Pod "evil"/"p" (waits, 1 of 2), POD_DISRUPTION_BUDGET "evil"/"p-1" (1 of 1))");
}

}  // namespace
}  // namespace loadline
