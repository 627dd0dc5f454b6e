// The catalogue again, at a loadlined: the process that shares a pod with an autoscaler.
#include <fcntl.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "test/hostile/judge.h"
#include "test/hostile/mischief.h"
#include "test/hostile/open_rows.h"
#include "test/hostile/shared_cluster.h"

namespace loadline {
namespace {

using std::chrono::seconds;
using std::chrono::system_clock;

// A fuse that never blows, and what a daemon without a limit gives to a question.
constexpr rlim_t kMuchSpace = rlim_t{3} << 29;
constexpr char kQuestionBytes[] = "268435456";

std::string PathOfDaemon() {
  if (const char* const path = std::getenv("LOADLINED"); path != nullptr) return path;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin" / "loadlined";
}

// A fresh loadlined on a socket of its own, with at most so much address space.
class HostileDaemon {
 public:
  // `question_bytes`: what one question may take; empty: what the daemon takes for right.
  explicit HostileDaemon(rlim_t address_space, const std::string& question_bytes = "") {
    char name[] = "/tmp/loadlined-hostile-XXXXXX";
    folder_ = mkdtemp(name);
    const std::string program = PathOfDaemon();
    const std::string socket = absl::StrCat("--socket=", folder_, "/s");
    const std::string log = folder_ + "/log";
    pid_ = fork();
    if (pid_ == 0) {
      const rlimit bytes = {address_space, address_space};
      if (!kSanitized) setrlimit(RLIMIT_AS, &bytes);
      dup2(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
      const std::string most = "--max-question-bytes=" + question_bytes;
      execl(program.c_str(), program.c_str(), socket.c_str(), question_bytes.empty() ? nullptr : most.c_str(),
            nullptr);
      _exit(127);
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    channel_ = grpc::CreateCustomChannel(absl::StrCat("unix:", folder_, "/s"),
                                         grpc::InsecureChannelCredentials(), arguments);
    EXPECT_TRUE(channel_->WaitForConnected(system_clock::now() + seconds(30)));
  }
  ~HostileDaemon() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }
  HostileDaemon(const HostileDaemon&) = delete;
  HostileDaemon& operator=(const HostileDaemon&) = delete;

  loadline::Court Court() {
    return {[this](absl::string_view method, const std::string& request) { return Call(method, request); },
            [this] { return CpuMilliseconds(); }};
  }
  bool Alive() const {
    std::vector<std::string> stat = Stat();
    return !stat.empty() && stat[0] != "Z" && stat[0] != "X";
  }
  int64_t PeakKib() const {
    std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
    for (std::string line; std::getline(status, line);) {
      int64_t kib = 0;
      std::istringstream words(line);
      if (std::string key; words >> key >> kib && key == "VmHWM:") return kib;
    }
    return 0;
  }

 private:
  absl::StatusOr<std::string> Call(absl::string_view method, const std::string& request) {
    const grpc::Slice slice(request);
    const grpc::ByteBuffer in(&slice, 1);
    grpc::ByteBuffer out;
    grpc::ClientContext context;
    context.set_deadline(system_clock::now() + seconds(600));
    grpc::GenericStub stub(channel_);
    // Polled by this thread: with callbacks, the packaged gRPC now and then sleeps for 10 s.
    grpc::CompletionQueue queue;
    const auto reader = stub.PrepareUnaryCall(&context, std::string(method), in, &queue);
    reader->StartCall();
    grpc::Status status;
    reader->Finish(&out, &status, /*tag=*/nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!status.ok()) {
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
    }
    grpc::Slice bytes;
    if (!out.DumpToSingleSlice(&bytes).ok()) return absl::InternalError("the answer has no bytes");
    return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  }

  // The fields of /proc/PID/stat after the name of the program, which may have spaces.
  std::vector<std::string> Stat() const {
    std::ostringstream text;
    text << std::ifstream(absl::StrCat("/proc/", pid_, "/stat")).rdbuf();
    const size_t name_end = text.str().rfind(") ");
    if (name_end == std::string::npos) return {};
    return absl::StrSplit(text.str().substr(name_end + 2), ' ');
  }
  int64_t CpuMilliseconds() const {
    const std::vector<std::string> stat = Stat();
    constexpr size_t kUserTicks = 11;
    int64_t user = 0;
    int64_t system = 0;
    if (stat.size() <= kUserTicks + 1 || !absl::SimpleAtoi(stat[kUserTicks], &user) ||
        !absl::SimpleAtoi(stat[kUserTicks + 1], &system)) {
      return 0;
    }
    return (user + system) * 1'000 / sysconf(_SC_CLK_TCK);
  }

  std::string folder_;
  pid_t pid_;
  std::shared_ptr<grpc::Channel> channel_;
};

const SharedCluster& ClusterOfDaemons() {
  static const SharedCluster* const kCluster = new SharedCluster();
  return *kCluster;
}

void Fill(HostileDaemon* daemon) {
  for (const std::string& chunk : ClusterOfDaemons().full_list()) {
    const absl::StatusOr<std::string> answer = daemon->Court().call("/loadline.v1.ClusterState/Sync", chunk);
    EXPECT_TRUE(answer.ok()) << answer.status();
  }
}

const std::vector<std::string>& DaemonInPeace() {
  static const std::vector<std::string>* const kAnswers = [] {
    HostileDaemon daemon(kMuchSpace, kQuestionBytes);
    Fill(&daemon);
    return new std::vector<std::string>(AnswersInPeace(daemon.Court(), ClusterOfDaemons()));
  }();
  return *kAnswers;
}

Findings TryOverTheSocket(const HostileRow& row, const Mischief& mischief, rlim_t address_space,
                          const std::string& question_bytes) {
  const std::vector<std::string>& in_peace = DaemonInPeace();
  HostileDaemon daemon(address_space, question_bytes);
  Fill(&daemon);
  Findings findings;
  Judge(daemon.Court(), ClusterOfDaemons(), row, mischief, in_peace, &findings);
  if (!daemon.Alive()) findings.Add("died", "loadlined has ended");
  if (!kSanitized && daemon.PeakKib() > kMostKib)
    findings.Add("memory", absl::StrCat(daemon.PeakKib(), " KiB"));
  return findings;
}

class HostileSocketTest : public ::testing::TestWithParam<HostileRow> {};

TEST_P(HostileSocketTest, HarmsNobodyOverTheSocket) {
  const HostileRow& row = GetParam();
  Mischief mischief;
  row.build(&mischief);
  const Findings findings = TryOverTheSocket(row, mischief, kMuchSpace, kQuestionBytes);
  const std::string open = OpenIn(row.name + "OverTheSocket");
  EXPECT_EQ(findings.Words(), open.empty() ? OpenIn(row.name) : open) << findings.details;
}

INSTANTIATE_TEST_SUITE_P(Rows, HostileSocketTest, ::testing::ValuesIn(Catalogue()),
                         [](const auto& info) { return info.param.name; });

constexpr char kMostSizes[] = "16000WaitingPodsOfDifferentSizes";

void ExpectLife(const HostileRow& row, rlim_t address_space) {
  Mischief mischief;
  row.build(&mischief);
  const Findings findings = TryOverTheSocket(row, mischief, address_space, "");
  for (const absl::string_view harm : {"died", "slow", "memory"}) {
    EXPECT_EQ(findings.words.count(std::string(harm)), 0U) << row.name << ": " << findings.details;
  }
}

// A limit of the container ends the process; one of the address space shows who asks for too much before
// that. Each thread of the allocator takes 32 MiB of address space at once, and of memory what it needs:
// where little is left, what the threads happen to do decides, so that those that ask for most have more
// space.
TEST(HostileLimitTest, LivesWith512MebibytesOfAddressSpace) {
  for (const HostileRow& row : Catalogue()) {
    if (row.name != kMostSizes) ExpectLife(row, rlim_t{512} << 20);
  }
}

TEST(HostileLimitTest, LivesThroughTheGreediestIn512MebibytesOfMemory) {
  int tried = 0;
  for (const HostileRow& row : Catalogue()) {
    if (row.name != kMostSizes) continue;
    ExpectLife(row, rlim_t{1} << 30);
    ++tried;
  }
  EXPECT_EQ(tried, 1) << "the catalogue has no row " << kMostSizes;
  const auto all = [](Mischief* mischief) { BuildAllRows(Effect::kTakesAll, mischief); };
  ExpectLife({"AllWithThoseThatTakeAll", all, {}, Effect::kTakesAll}, rlim_t{1} << 30);
}

}  // namespace
}  // namespace loadline
