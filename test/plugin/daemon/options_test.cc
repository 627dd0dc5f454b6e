// The command line of loadlined.
#include "plugin/daemon/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "plugin/daemon/memory_limit.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

TEST(DefaultQuestionBytesTest, IsAPartOfWhatTheProcessMayTake) {
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  EXPECT_EQ(DefaultQuestionBytes({}), 256 * kMebibyte);
  EXPECT_EQ(DefaultQuestionBytes({.container = 4096 * kMebibyte}), 256 * kMebibyte);
  EXPECT_EQ(DefaultQuestionBytes({.container = 512 * kMebibyte}), 128 * kMebibyte);
  EXPECT_EQ(DefaultQuestionBytes({.address_space = 1024 * kMebibyte}), 32 * kMebibyte);
  EXPECT_EQ(DefaultQuestionBytes({.container = 1}), 16 * kMebibyte);
}

TEST(DefaultViewBytesTest, IsHalfOfThatOfAQuestion) {
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  EXPECT_EQ(DefaultViewBytes({}), 256 * kMebibyte);
  EXPECT_EQ(DefaultViewBytes({.container = 4096 * kMebibyte}), 256 * kMebibyte);
  EXPECT_EQ(DefaultViewBytes({.container = 512 * kMebibyte}), 64 * kMebibyte);
  EXPECT_EQ(DefaultViewBytes({.address_space = 1024 * kMebibyte}), 16 * kMebibyte);
  EXPECT_EQ(DefaultViewBytes({.container = 1}), 8 * kMebibyte);
}

TEST(ReadMemoryLimitsTest, ReadsTheControlGroup) {
  const std::string file = ::testing::TempDir() + "/memory.max";
  std::ofstream(file) << "536870912\n";
  EXPECT_EQ(ReadMemoryLimits(file).container, int64_t{512} << 20);
  std::ofstream(file) << "max\n";
  EXPECT_EQ(ReadMemoryLimits(file).container, 0);
  EXPECT_EQ(ReadMemoryLimits(file + ".none").container, 0);
}

TEST(ParseOptionsTest, HasDefaults) {
  const absl::StatusOr<Options> options = ParseOptions({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->socket, "/run/loadline/loadlined.sock");
  EXPECT_EQ(options->socket_mode, 0600U);
  EXPECT_EQ(options->log_format, LogFormat::kText);
  EXPECT_EQ(options->engine.SerializeAsString(), "");
  EXPECT_EQ(options->threads, 2);
  EXPECT_EQ(options->max_waiting_calls, 256);
  EXPECT_EQ(options->watchdog_seconds, std::chrono::seconds(60));
  EXPECT_EQ(options->check, "");
  EXPECT_FALSE(options->help);
  EXPECT_FALSE(options->version);
}

TEST(ParseOptionsTest, TakesValuesInBothForms) {
  const absl::StatusOr<Options> options = ParseOptions(
      {"--socket", "/a=b", "--socket-mode=0660", "--max-views=1", "--max-nodes", "2", "--max-pods=3",
       "--max-pod-shapes=4", "--max-resources=5", "--max-policies=6", "--log-format=json", "--version",
       "--max-question-bytes=1048576", "--max-view-bytes=1048577", "--help", "--threads=7",
       "--max-waiting-calls=8", "--watchdog-seconds=0", "--check=/c"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->socket, "/a=b");
  EXPECT_EQ(options->socket_mode, 0660U);
  EXPECT_EQ(options->engine.max_views(), 1);
  EXPECT_EQ(options->engine.max_nodes(), 2);
  EXPECT_EQ(options->engine.max_pods(), 3);
  EXPECT_EQ(options->engine.max_pod_shapes(), 4);
  EXPECT_EQ(options->engine.max_resources(), 5);
  EXPECT_EQ(options->engine.max_policies(), 6);
  EXPECT_EQ(options->engine.max_question_bytes(), 1'048'576);
  EXPECT_EQ(options->engine.max_view_bytes(), 1'048'577);
  EXPECT_EQ(options->log_format, LogFormat::kJson);
  EXPECT_EQ(options->threads, 7);
  EXPECT_EQ(options->max_waiting_calls, 8);
  EXPECT_EQ(options->watchdog_seconds, std::chrono::seconds(0));
  EXPECT_EQ(options->check, "/c");
  EXPECT_TRUE(options->version);
  EXPECT_TRUE(options->help);
}

TEST(ParseOptionsTest, TakesHowLongAClientMayBeSilent) {
  const absl::StatusOr<Options> options = ParseOptions({"--request-seconds=5"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->request_seconds, std::chrono::seconds(5));
}

TEST(ParseOptionsTest, RefusesWhatItDoesNotKnow) {
  const auto error_of = [](const std::vector<absl::string_view>& arguments) {
    const absl::StatusOr<Options> options = ParseOptions(arguments);
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(options.status().message());
  };
  EXPECT_EQ(error_of({"--sockets=x"}), "unknown flag: --sockets");
  EXPECT_EQ(error_of({"--"}), "unknown flag: --");
  EXPECT_EQ(error_of({"-h"}), "unexpected argument: -h");
  EXPECT_EQ(error_of({"serve"}), "unexpected argument: serve");
  EXPECT_EQ(error_of({"--socket"}), "--socket needs a value");
  EXPECT_EQ(error_of({"--help=yes"}), "--help takes no value");
  EXPECT_EQ(error_of({"--socket="}), "--socket: : must not be empty");
  EXPECT_EQ(error_of({"--log-format=xml"}), "--log-format: xml: must be text or json");
  for (const char* const mode : {"--socket-mode=", "--socket-mode=0800", "--socket-mode=1000",
                                 "--socket-mode=u+r", "--socket-mode=77777777777777777777"}) {
    EXPECT_THAT(error_of({mode}), HasSubstr("must be an octal number"));
  }
  for (const char* const number :
       {"--max-views=", "--max-views=0", "--max-views=-1", "--max-views=1.5", "--max-views=2147483648"}) {
    EXPECT_THAT(error_of({number}), HasSubstr("must be a number from 1"));
  }
  EXPECT_EQ(error_of({"--max-view-bytes=1048575"}),
            "--max-view-bytes: 1048575: must be a number from 1048576");
  EXPECT_EQ(error_of({"--threads=0"}), "--threads: 0: must be a number from 1 to 256");
  EXPECT_EQ(error_of({"--threads=257"}), "--threads: 257: must be a number from 1 to 256");
  EXPECT_EQ(error_of({"--max-waiting-calls=65537"}),
            "--max-waiting-calls: 65537: must be a number from 1 to 65536");
  EXPECT_EQ(error_of({"--watchdog-seconds=-1"}), "--watchdog-seconds: -1: must be a number from 0 to 86400");
  EXPECT_EQ(error_of({"--request-seconds=1s"}), "--request-seconds: 1s: must be a number from 0 to 86400");
  EXPECT_EQ(error_of({"--check="}), "--check: : must not be empty");
}

TEST(UsageTest, NamesEveryFlag) {
  const std::string usage = Usage();
  for (const char* const flag :
       {"--socket PATH", "--socket-mode MODE", "--max-views N", "--max-nodes N", "--max-pods N",
        "--max-pod-shapes N", "--max-resources N", "--max-policies N", "--max-question-bytes N",
        "--max-view-bytes N", "--slack-namespace NAME", "--threads N", "--max-waiting-calls N",
        "--watchdog-seconds N", "--request-seconds N", "--check PATH", "--log-format FORMAT", "--version",
        "--help"}) {
    EXPECT_THAT(usage, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace loadline
