// The C ABI: what it sets, and that no bytes do harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "loadline/v1/engine_config.pb.h"
#include "plugin/abi/loadline.h"
#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Changes = ChangesBuilder;

struct Answer {
  int32_t code = -1;
  std::string response;
  std::string error;
};

class AbiTest : public ::testing::Test {
 protected:
  AbiTest() {
    char* error = Garbage<char>();
    engine_ = Garbage<loadline_engine>();
    EXPECT_EQ(loadline_create(nullptr, 0, &engine_, &error), 0);
    EXPECT_EQ(error, nullptr);
  }
  ~AbiTest() override { loadline_destroy(engine_); }

  // The content of an output before the call must not matter.
  template <typename T>
  static T* Garbage() {
    static char garbage;
    return static_cast<T*>(static_cast<void*>(&garbage));
  }

  Answer Call(const char* method, const std::string& request, int64_t timeout_ns = 0) {
    void* response = Garbage<void>();
    size_t size = 12345;
    char* error = Garbage<char>();
    Answer answer;
    answer.code =
        loadline_call(engine_, method, request.data(), request.size(), timeout_ns, &response, &size, &error);
    if (answer.code == 0) {
      EXPECT_EQ(error, nullptr);
      if (size > 0) answer.response.assign(static_cast<const char*>(response), size);
    } else {
      EXPECT_EQ(response, nullptr);
      EXPECT_EQ(size, 0U);
      EXPECT_NE(error, nullptr);
      if (error != nullptr) answer.error = error;
    }
    loadline_free(response);
    loadline_free(error);
    return answer;
  }

  // A call that must succeed and give the same answer whatever came before it.
  void ExpectWorks() {
    const std::string request = ScoreOf(Changes::FullList(++epoch_, 1)
                                            .View("works")
                                            .Shape(0, MakePod({{"cpu", "6"}}))
                                            .Node(0, MakeNode("a", {{"cpu", "8"}}), {{0, "p", "u"}})
                                            .Node(1, MakeNode("b", {{"cpu", "8"}}))
                                            .changes(),
                                        MakePod({{"cpu", "1"}}), Preset(v1::ScorePolicy::STRICT))
                                    .SerializeAsString();
    const Answer answer = Call(kScoreMethod, request);
    ASSERT_EQ(answer.code, 0) << answer.error;
    v1::ScoreResponse response;
    ASSERT_TRUE(response.ParseFromString(answer.response));
    ASSERT_EQ(response.scores_size(), 2);
    ASSERT_EQ(response.scores(0), 0);
    ASSERT_EQ(response.scores(1), 100);
  }

  loadline_engine* engine_;
  int64_t epoch_ = 0;
};

TEST_F(AbiTest, HasTheVersionOfTheProject) { EXPECT_STREQ(loadline_version(), LOADLINE_VERSION); }

TEST_F(AbiTest, AnswersCalls) {
  ExpectWorks();
  const Answer answer = Call(kDescribeMethod, "");
  EXPECT_EQ(answer.code, 0);
  v1::DescribeResponse response;
  ASSERT_TRUE(response.ParseFromString(answer.response));
  EXPECT_EQ(response.views(0).name(), "works");
}

TEST_F(AbiTest, ACallThatMayNotWaitIsAnsweredWhereNobodyHasTheView) {
  ExpectWorks();
  void* response = nullptr;
  size_t size = 0;
  char* error = nullptr;
  EXPECT_EQ(loadline_try_call(engine_, kDescribeMethod, nullptr, 0, 0, &response, &size, &error), 0);
  EXPECT_EQ(std::string(static_cast<const char*>(response), size), Call(kDescribeMethod, "").response);
  loadline_free(response);
  EXPECT_EQ(loadline_try_call(engine_, nullptr, nullptr, 0, 0, &response, &size, &error), 3);
  loadline_free(error);
}

TEST_F(AbiTest, AnEmptyResponseIsNoError) {
  ExpectWorks();
  v1::DropRequest drop;
  drop.set_view("works");
  const Answer answer = Call(kDropMethod, drop.SerializeAsString());
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.response, "");
}

TEST_F(AbiTest, EnginesAreIndependent) {
  ExpectWorks();
  loadline_engine* other = nullptr;
  char* error = nullptr;
  ASSERT_EQ(loadline_create(nullptr, 0, &other, &error), 0);
  std::swap(engine_, other);
  const Answer answer = Call(kDescribeMethod, "");
  v1::DescribeResponse response;
  ASSERT_TRUE(response.ParseFromString(answer.response));
  EXPECT_EQ(response.views_size(), 0);
  std::swap(engine_, other);
  loadline_destroy(other);
}

TEST_F(AbiTest, TheConfigurationIsChecked) {
  v1::EngineConfig config;
  config.set_max_views(-1);
  for (const std::string& bytes : {config.SerializeAsString(), std::string("\xff")}) {
    loadline_engine* engine = Garbage<loadline_engine>();
    char* error = Garbage<char>();
    EXPECT_EQ(loadline_create(bytes.data(), bytes.size(), &engine, &error), 3);
    EXPECT_EQ(engine, nullptr);
    ASSERT_NE(error, nullptr);
    EXPECT_NE(std::string(error), "");
    loadline_free(error);
  }
  config.set_max_views(1);
  const std::string bytes = config.SerializeAsString();
  loadline_destroy(engine_);
  char* error = Garbage<char>();
  ASSERT_EQ(loadline_create(bytes.data(), bytes.size(), &engine_, &error), 0);
  ExpectWorks();
  const Answer answer = Call(kSyncMethod, Changes::FullList(1, 1).View("second").Sync().SerializeAsString());
  EXPECT_EQ(answer.code, 8);
  EXPECT_EQ(answer.error, "view \"second\" would be one more than the limit of 1 views");
}

TEST_F(AbiTest, NullPointersAreRefused) {
  void* response = nullptr;
  size_t size = 0;
  char* error = nullptr;
  const auto expect_refused = [&](int32_t code) {
    EXPECT_EQ(code, 3);
    EXPECT_STREQ(error, "loadline_call: a pointer is NULL");
    loadline_free(error);
    error = nullptr;
  };
  expect_refused(loadline_call(nullptr, kDropMethod, "", 0, 0, &response, &size, &error));
  expect_refused(loadline_call(engine_, nullptr, "", 0, 0, &response, &size, &error));
  expect_refused(loadline_call(engine_, kDropMethod, nullptr, 1, 0, &response, &size, &error));
  expect_refused(loadline_call(engine_, kDropMethod, "", 0, 0, nullptr, &size, &error));
  expect_refused(loadline_call(engine_, kDropMethod, "", 0, 0, &response, nullptr, &error));
  EXPECT_EQ(loadline_call(engine_, kDropMethod, "", 0, 0, &response, &size, nullptr), 3);
  EXPECT_EQ(loadline_create(nullptr, 1, &engine_, nullptr), 3);
  EXPECT_EQ(loadline_create(nullptr, 0, nullptr, &error), 3);
  loadline_free(error);
  loadline_free(nullptr);
  loadline_destroy(nullptr);
  ExpectWorks();
}

TEST_F(AbiTest, UnknownMethodsAreUnimplemented) {
  for (const char* const method : {"", "Sync", "/loadline.v1.ClusterState/Sync ", "/loadline.v1.Nobody/Sync",
                                   "loadline.v1.ClusterState/Sync", "/x\x1b[31m"}) {
    const Answer answer = Call(method, "");
    EXPECT_EQ(answer.code, 12) << method;
    EXPECT_THAT(answer.error, StartsWith("there is no method \""));
  }
  EXPECT_EQ(Call("/x\x1b[31m", "").error, R"(there is no method "/x\x1b[31m")");
}

TEST_F(AbiTest, OversizedRequestsAreRefusedWithTheLimit) {
  for (const char* const method : {kSyncMethod, kDescribeMethod, kDropMethod, kScoreMethod, kExplainMethod}) {
    const Answer answer = Call(method, std::string((4 << 20) + 1, '\0'));
    EXPECT_EQ(answer.code, 8) << method;
    EXPECT_EQ(answer.error, "the request has 4194305 bytes, the limit is 4194304");
  }
  ExpectWorks();
}

// Field 1 of every request, over and over: messages within messages.
TEST_F(AbiTest, DeeplyNestedRequestsAreRefused) {
  std::string nested;
  for (int i = 0; i < 200; ++i) nested.push_back('\x0b');  // groups
  for (const char* const method : {kSyncMethod, kDescribeMethod, kDropMethod, kScoreMethod, kExplainMethod}) {
    const Answer answer = Call(method, nested);
    EXPECT_EQ(answer.code, 3) << method;
    EXPECT_THAT(answer.error, StartsWith("request is not a loadline.v1."));
  }
  ExpectWorks();
}

TEST_F(AbiTest, TextThatIsNotUtf8IsRefused) {
  const Changes changes = Changes::FullList(1, 1).Node(0, MakeNode("a", {}), {{0, "placeholder", ""}});
  std::string bytes = changes.Sync().SerializeAsString();
  bytes.replace(bytes.find("placeholder"), 11, "\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff");
  const Answer answer = Call(kSyncMethod, bytes);
  EXPECT_EQ(answer.code, 3);
  EXPECT_THAT(answer.error, StartsWith("request is not a loadline.v1.SyncRequest"));
  ExpectWorks();
}

TEST_F(AbiTest, ErrorsNeverCarryWhatSteersATerminal) {
  const std::string evil("\x1b]0;x\x07\n\r\t\x7f\xe2\x80\xae\0z", 13);
  for (const Changes& changes :
       {Changes::FullList(1, 1).Node(131'072, MakeNode(evil, {})),
        Changes::FullList(1, 1).View(evil.substr(0, 8)),
        Changes::FullList(1, 1).Node(0, MakeNode("a", {}), {{0, evil.substr(0, 8), ""}})}) {
    const Answer answer = Call(kSyncMethod, changes.Sync().SerializeAsString());
    EXPECT_NE(answer.code, 0);
    EXPECT_NE(answer.error, "");
    for (const char c : answer.error) EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
  }
  ExpectWorks();
}

TEST_F(AbiTest, ErrorsStayShort) {
  const std::string longest(1 << 20, '\x1b');
  const Answer answer =
      Call(kSyncMethod,
           Changes::FullList(1, 1).Node(0, MakeNode("a", {}), {{0, longest, ""}}).Sync().SerializeAsString());
  EXPECT_EQ(answer.code, 3);
  EXPECT_LT(answer.error.size(), 1000U);
}

std::string GoodRequest(const char* method) {
  const Changes changes = Changes::FullList(9, 9)
                              .View("works")
                              .Shape(0, MakePod({{"cpu", "6"}, {"memory", "1Gi"}}, {{"cpu", "1"}}))
                              .Node(0, MakeNode("a", {{"cpu", "8"}, {"memory", "4Gi"}}), {{0, "p", "u"}})
                              .Node(1, MakeNode("b", {{"cpu", "8"}}));
  const v1::ScoreRequest score =
      ScoreOf(changes.changes(), MakePod({{"cpu", "1"}}), Preset(v1::ScorePolicy::STRICT), {1, 0});
  if (method == kScoreMethod) return score.SerializeAsString();
  if (method == kExplainMethod) return ExplainOf(score, {0}).SerializeAsString();
  return changes.Sync().SerializeAsString();
}

// Whatever the answer, the process lives, the contract of the outputs holds, and the next good call works.
TEST_F(AbiTest, TruncatedRequestsDoNoHarm) {
  for (const char* const method : {kSyncMethod, kScoreMethod, kExplainMethod}) {
    const std::string good = GoodRequest(method);
    for (size_t size = 0; size < good.size(); ++size) {
      const Answer answer = Call(method, good.substr(0, size));
      EXPECT_THAT(answer.code, ::testing::AnyOf(0, 3, 9)) << answer.error;
    }
    epoch_ += 100;
    ExpectWorks();
  }
}

TEST_F(AbiTest, DamagedRequestsDoNoHarm) {
  std::mt19937_64 random(5);
  for (const char* const method : {kSyncMethod, kScoreMethod, kExplainMethod}) {
    const std::string good = GoodRequest(method);
    for (int i = 0; i < 3000; ++i) {
      std::string bad = good;
      for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
        char& byte = bad[random() % bad.size()];
        byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << random() % 8));
      }
      const Answer answer = Call(method, bad);
      EXPECT_THAT(answer.code, ::testing::AnyOf(0, 3, 8, 9)) << answer.error;
    }
    // A flipped bit may have made an epoch of 2^60.
    v1::DropRequest drop;
    drop.set_view("works");
    Call(kDropMethod, drop.SerializeAsString());
    ExpectWorks();
  }
}

// After an allocation that failed nothing is certain to be whole: the process ends, and says why.
TEST_F(AbiTest, WithoutMemoryTheProcessEndsWithAText) {
  ASSERT_NE(std::get_new_handler(), nullptr);
  EXPECT_DEATH(std::get_new_handler()(), "^loadline: out of memory: .*max_question_bytes");
}

TEST_F(AbiTest, TheHandlerOfAHostStays) {
  const std::new_handler ours = std::set_new_handler([] { throw std::bad_alloc(); });
  const std::new_handler of_host = std::get_new_handler();
  loadline_engine* engine = nullptr;
  char* error = nullptr;
  EXPECT_EQ(loadline_create(nullptr, 0, &engine, &error), 0);
  EXPECT_EQ(std::get_new_handler(), of_host);
  loadline_destroy(engine);
  std::set_new_handler(ours);
}

TEST_F(AbiTest, ATimeoutThatHasPassedIsTold) {
  ExpectWorks();
  v1::DescribeRequest describe;
  describe.set_view("works");
  // One nanosecond passes before the view is locked.
  const Answer answer = Call(kDescribeMethod, describe.SerializeAsString(), 1);
  EXPECT_EQ(answer.code, 4);
  EXPECT_THAT(answer.error, HasSubstr("timeout"));
  for (const int64_t forever : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(Call(kDescribeMethod, describe.SerializeAsString(), forever).code, 0) << forever;
  }
  // A batch that is too late changes nothing.
  const Answer late = Call(kSyncMethod, Changes::FullList(99, 1).View("works").Sync().SerializeAsString(), 1);
  EXPECT_EQ(late.code, 4);
  v1::DescribeResponse response;
  ASSERT_TRUE(response.ParseFromString(Call(kDescribeMethod, "").response));
  EXPECT_EQ(response.views(0).nodes(), 2);
}

}  // namespace
}  // namespace loadline
