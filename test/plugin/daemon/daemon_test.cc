// loadlined as a process: its socket, its lock, its signals, and that it answers as the C ABI does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/abi/loadline.h"
#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string DaemonPath() {
  if (const char* const path = std::getenv("LOADLINED"); path != nullptr) return path;
  // build/test/plugin_test -> build/bin/loadlined
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin" / "loadlined";
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A running loadlined whose output is written to a file.
class Process {
 public:
  Process(std::vector<std::string> arguments, const std::string& output) {
    arguments.insert(arguments.begin(), DaemonPath());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Process() {
    if (pid_ > 0) Kill(SIGKILL);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Exit code, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int Kill(int signal) {
    EXPECT_EQ(kill(pid_, signal), 0);
    return Wait();
  }

 private:
  pid_t pid_;
};

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    char name[] = "/tmp/loadlined-test-XXXXXX";  // short: a socket's path has 107 bytes at most
    folder_ = mkdtemp(name);
    socket_ = folder_ + "/s";
    log_ = folder_ + "/log";
  }
  ~DaemonTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Process> Start(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--socket", socket_});
    auto process = std::make_unique<Process>(more, log_);
    EXPECT_TRUE(NewChannel()->WaitForConnected(std::chrono::system_clock::now() + seconds(30)))
        << ReadFile(log_);
    return process;
  }
  // Runs to its end.
  int Run(const std::vector<std::string>& arguments) { return Process(arguments, log_).Wait(); }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    arguments.SetMaxSendMessageSize(-1);
    return grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments);
  }

  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                           const std::string& request, std::string* response) {
    const grpc::Slice slice(request);
    const grpc::ByteBuffer in(&slice, 1);
    grpc::ByteBuffer out;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(30));
    std::promise<grpc::Status> done;
    grpc::GenericStub stub(channel);
    stub.UnaryCall(&context, method, {}, &in, &out,
                   [&](grpc::Status status) { done.set_value(std::move(status)); });
    grpc::Status status = done.get_future().get();
    grpc::Slice bytes;
    if (status.ok() && out.DumpToSingleSlice(&bytes).ok()) {
      response->assign(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
    }
    return status;
  }

  // The standard health service: SERVING is 1.
  std::string Health(const std::string& service) const {
    std::string request = "\x0a";
    request += static_cast<char>(service.size());
    request += service;
    std::string response;
    const grpc::Status status = Call(NewChannel(), "/grpc.health.v1.Health/Check", request, &response);
    if (status.ok()) return response == "\x08\x01" ? "serving" : "not serving";
    return status.error_code() == grpc::StatusCode::NOT_FOUND ? "unknown" : status.error_message();
  }

  std::string folder_;
  std::string socket_;
  std::string log_;
};

TEST_F(DaemonTest, HelpAndVersionGoToTheOutputAndEndWell) {
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(ReadFile(log_), std::string("loadlined ") + LOADLINE_VERSION + "\n");
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(ReadFile(log_), HasSubstr("--socket PATH"));
}

TEST_F(DaemonTest, AWrongCommandLineEndsWithUsage) {
  EXPECT_EQ(Run({"--sockte=x"}), 2);
  EXPECT_THAT(ReadFile(log_), HasSubstr("loadlined: unknown flag: --sockte\n\nUsage: loadlined"));
}

TEST_F(DaemonTest, WhatCannotWorkIsSaidAtStart) {
  const std::string too_long = folder_ + "/" + std::string(108, 'x');
  EXPECT_EQ(Run({"--socket", too_long}), 1);
  EXPECT_THAT(ReadFile(log_), HasSubstr("the system allows 107"));
  EXPECT_EQ(Run({"--socket", folder_}), 1);
  EXPECT_THAT(ReadFile(log_), HasSubstr("is there and not a socket"));
  EXPECT_EQ(Run({"--socket", folder_ + "/nowhere/s"}), 1);
  EXPECT_THAT(ReadFile(log_), HasSubstr("cannot open the lock file"));
  EXPECT_EQ(Run({"--socket", socket_, "--max-nodes=262145"}), 1);
  EXPECT_THAT(ReadFile(log_), HasSubstr("max_nodes: 262145 is not in [1, 262144]"));
  std::filesystem::create_symlink("/dev/null", folder_ + "/link.lock");
  EXPECT_EQ(Run({"--socket", folder_ + "/link"}), 1);
}

TEST_F(DaemonTest, ServesAndStops) {
  const std::unique_ptr<Process> daemon = Start();
  struct stat info;
  ASSERT_EQ(stat(socket_.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(stat((socket_ + ".lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(Health(""), "serving");
  EXPECT_EQ(Health("loadline.v1.ClusterState"), "serving");
  EXPECT_EQ(Health("loadline.v1.SchedulerExtender"), "serving");
  EXPECT_EQ(Health("loadline.v1.Autoscaler"), "serving");
  EXPECT_EQ(Health("loadline.v1.Nobody"), "unknown");
  EXPECT_EQ(daemon->Kill(SIGTERM), 0);
  EXPECT_FALSE(std::filesystem::exists(socket_));
  std::istringstream lines(ReadFile(log_));
  std::string line;
  for (const char* const message : {"serves on", "stopping on Terminated", "stopped"}) {
    ASSERT_TRUE(std::getline(lines, line)) << message;
    EXPECT_THAT(line, MatchesRegex("I[0-9]{4} [0-9:]{8}\\.[0-9]{6} +[0-9]+ main\\.cc:[0-9]+\\] .*"));
    EXPECT_THAT(line, HasSubstr(message));
  }
}

TEST_F(DaemonTest, TheModeOfTheSocketIsAnOption) {
  const std::unique_ptr<Process> daemon = Start({"--socket-mode=0660", "--log-format=json"});
  struct stat info;
  ASSERT_EQ(stat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660U);
  EXPECT_EQ(daemon->Kill(SIGINT), 0);
  EXPECT_THAT(ReadFile(log_),
              MatchesRegex("(\\{\"ts\":[0-9.]+,\"severity\":\"I\",\"caller\":\"main.cc:[0-9]+\","
                           "\"msg\":\"[^\"]+\"\\}\n)+"));
}

TEST_F(DaemonTest, ASecondDaemonLeavesTheFirstOneAlone) {
  const std::unique_ptr<Process> first = Start();
  EXPECT_EQ(Run({"--socket", socket_}), 3);
  EXPECT_THAT(ReadFile(log_), HasSubstr("another loadlined serves " + socket_));
  EXPECT_EQ(Health(""), "serving");
}

TEST_F(DaemonTest, StartsAgainWhereOneWasKilled) {
  EXPECT_EQ(Start()->Kill(SIGKILL), -SIGKILL);
  EXPECT_TRUE(std::filesystem::exists(socket_));
  const std::unique_ptr<Process> second = Start();
  EXPECT_EQ(Health(""), "serving");
}

TEST_F(DaemonTest, AnswersAsTheLibraryDoes) {
  const std::unique_ptr<Process> daemon = Start({"--max-views=2"});
  const std::shared_ptr<grpc::Channel> channel = NewChannel();
  const std::string config = "\x08\x02";  // max_views: 2
  loadline_engine* engine = nullptr;
  char* error = nullptr;
  ASSERT_EQ(loadline_create(config.data(), config.size(), &engine, &error), 0);

  const ChangesBuilder full = ChangesBuilder::FullList(1, 1)
                                  .Shape(0, MakePod({{"cpu", "6"}}))
                                  .Node(0, MakeNode("a", {{"cpu", "8"}}), {{0, "p", "u"}})
                                  .Node(1, MakeNode("b", {{"cpu", "8"}}));
  const v1::ScoreRequest score =
      ScoreOf(ChangesBuilder::At(1, 1).changes(), MakePod({{"cpu", "1"}}), Preset(v1::ScorePolicy::STRICT));
  v1::ScoreRequest bad_score = score;
  bad_score.add_slots(9);
  v1::DescribeRequest describe;
  describe.set_view("test");
  describe.set_include_pods(true);
  const std::vector<std::pair<std::string, std::string>> calls = {
      {kDescribeMethod, describe.SerializeAsString()},
      {kScoreMethod, score.SerializeAsString()},
      {kSyncMethod, full.Sync().SerializeAsString()},
      {kDescribeMethod, describe.SerializeAsString()},
      {kDescribeMethod, ""},
      {kScoreMethod, score.SerializeAsString()},
      {kExplainMethod, ExplainOf(score).SerializeAsString()},
      {kScoreMethod, bad_score.SerializeAsString()},
      {kScoreMethod, ""},
      {kScoreMethod, "\xff"},
      {kSyncMethod, ChangesBuilder::FullList(1, 1).View("second").Sync().SerializeAsString()},
      {kSyncMethod, ChangesBuilder::FullList(1, 1).View("third").Sync().SerializeAsString()},
      {kSyncMethod, ChangesBuilder::Delta(2, 1, 2).Sync().SerializeAsString()},
      {kSyncMethod, std::string((4 << 20) + 1, '\0')},
      {kScoreMethod, std::string(5 << 20, '\0')},
      {"/loadline.v1.ClusterState/Nothing", ""},
      {kDropMethod, v1::DropRequest().SerializeAsString()},
  };
  for (const auto& [method, request] : calls) {
    void* response = nullptr;
    size_t size = 0;
    const int32_t code =
        loadline_call(engine, method.c_str(), request.data(), request.size(), 0, &response, &size, &error);
    std::string answer;
    const grpc::Status status = Call(channel, method, request, &answer);
    EXPECT_EQ(static_cast<int32_t>(status.error_code()), code) << method << " " << status.error_message();
    EXPECT_EQ(status.error_message(), error == nullptr ? "" : error) << method;
    EXPECT_EQ(answer, std::string(static_cast<const char*>(response), size)) << method;
    loadline_free(response);
    loadline_free(error);
  }
  loadline_destroy(engine);
}

TEST_F(DaemonTest, CheckSaysWhetherADaemonServes) {
  EXPECT_EQ(Run({"--check", socket_}), 1);
  EXPECT_THAT(ReadFile(log_), HasSubstr("loadlined: no answer from " + socket_));
  const std::unique_ptr<Process> daemon = Start();
  EXPECT_EQ(Run({"--check", socket_}), 0);
  EXPECT_EQ(daemon->Kill(SIGTERM), 0);
  EXPECT_EQ(Run({"--check=" + socket_}), 1);
}

TEST_F(DaemonTest, FarTooLargeRequestsAreRefusedByGrpc) {
  const std::unique_ptr<Process> daemon = Start();
  std::string response;
  const grpc::Status status = Call(NewChannel(), kSyncMethod, std::string(9 << 20, '\0'), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(Health(""), "serving");
}

TEST_F(DaemonTest, CompressedRequestsAreRefused) {
  const std::unique_ptr<Process> daemon = Start();
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments);
  std::string response;
  const grpc::Status status = Call(channel, kDescribeMethod, std::string(2000, '\0'), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
}

// The SETTINGS frame that a server begins with: 9 bytes of header, of which the first three are its length;
// then six bytes for each setting. RFC 9113, 4.1 and 6.5.
TEST_F(DaemonTest, AllowsSoManyStreams) {
  const std::unique_ptr<Process> daemon = Start();
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  socket_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string greeting =
      std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
  ASSERT_EQ(send(fd, greeting.data(), greeting.size(), 0), static_cast<ssize_t>(greeting.size()));
  unsigned char header[9];
  ASSERT_EQ(recv(fd, header, sizeof(header), MSG_WAITALL), 9);
  ASSERT_EQ(header[3], 4) << "not a SETTINGS frame";
  std::vector<unsigned char> settings(static_cast<size_t>(header[1]) * 256 + header[2]);
  ASSERT_EQ(recv(fd, settings.data(), settings.size(), MSG_WAITALL), static_cast<ssize_t>(settings.size()));
  int streams = -1;
  for (size_t i = 0; i + 6 <= settings.size(); i += 6) {
    if (settings[i] == 0 && settings[i + 1] == 3) streams = settings[i + 4] * 256 + settings[i + 5];
  }
  EXPECT_EQ(streams, 128);
  close(fd);
}

TEST_F(DaemonTest, ManyCallsAtOnceAllGetAnAnswer) {
  const std::unique_ptr<Process> daemon = Start();
  std::vector<std::thread> clients;
  std::atomic<int> answers = 0;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&, i] {
      const std::shared_ptr<grpc::Channel> channel = NewChannel();
      for (int n = 0; n < 50; ++n) {
        const std::string view = "view/" + std::to_string(i % 8);
        std::string response;
        const std::string request = ChangesBuilder::FullList(n + 1, 1)
                                        .View(view)
                                        .Node(0, MakeNode("a", {}))
                                        .Sync()
                                        .SerializeAsString();
        const grpc::Status status = Call(channel, kSyncMethod, request, &response);
        EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::FAILED_PRECONDITION)
            << status.error_message();
        ++answers;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answers, 16 * 50);
  EXPECT_EQ(daemon->Kill(SIGTERM), 0);
}

}  // namespace
}  // namespace loadline
