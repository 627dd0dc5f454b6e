#include "test/hostile/judge.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace loadline {
namespace {

constexpr char kSync[] = "/loadline.v1.ClusterState/Sync";
constexpr size_t kMostNameBytes = 253;
constexpr size_t kMostReasonBytes = 512;
// A sanitizer makes all of it several times slower.
constexpr int64_t kMostMilliseconds = int64_t{2} * kMaxMilliseconds;

bool ShortAndPrintable(const std::string& text, size_t most) {
  return text.size() <= most && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isprint(static_cast<unsigned char>(c));
         });
}

// One trial of one row.
class RowTrial {
 public:
  RowTrial(const Court& court, const HostileRow& row, Findings* findings)
      : court_(court), row_(row), findings_(findings) {}

  // The response, unless it was refused.
  std::optional<std::string> Ask(const std::string& method, const std::string& request, bool may_refuse) {
    const int64_t begin = court_.cpu_milliseconds();
    absl::StatusOr<std::string> response = court_.call(method, request);
    const int64_t spent = court_.cpu_milliseconds() - begin;
    if (spent > kMostMilliseconds) findings_->Add("slow", absl::StrCat(method, ": ", spent, " ms"));
    if (!response.ok()) {
      if (absl::IsUnavailable(response.status())) findings_->Add("died", method);
      if (!may_refuse) findings_->Add("refused", absl::StrCat(method, ": ", response.status().ToString()));
      return std::nullopt;
    }
    for (const v1::LeftOut& left_out : LeftOutOf(method, *response)) Note(method, left_out);
    return *std::move(response);
  }

  void CheckNamed() {
    if (row_.culprit.kind.empty() || named_) return;
    findings_->Add("unnamed",
                   absl::StrCat("named are only: ", others_.empty() ? "none" : absl::StrJoin(others_, ", ")));
  }

 private:
  void Note(const std::string& method, const v1::LeftOut& left_out) {
    const bool printable = ShortAndPrintable(left_out.kind(), kMostNameBytes) &&
                           ShortAndPrintable(left_out.namespace_(), kMostNameBytes) &&
                           ShortAndPrintable(left_out.name(), kMostNameBytes) &&
                           ShortAndPrintable(left_out.reason(), kMostReasonBytes);
    if (!printable) findings_->Add("unprintable", absl::StrCat(method, ": left_out"));
    const Culprit& culprit = row_.culprit;
    const bool is_it = left_out.kind() == culprit.kind &&
                       (culprit.namespace_name.empty() || left_out.namespace_() == culprit.namespace_name) &&
                       (culprit.name.empty() || left_out.name() == culprit.name) &&
                       !left_out.reason().empty();
    named_ = named_ || is_it;
    if (!is_it && others_.size() < 5) {
      others_.insert(absl::StrCat(left_out.kind(), " ", left_out.namespace_(), "/", left_out.name(), ": ",
                                  left_out.reason()));
    }
  }

  const Court& court_;
  const HostileRow& row_;
  Findings* findings_;
  bool named_ = false;
  std::set<std::string> others_;
};

// Returns where two texts differ, for a person to read.
std::string FirstDifference(const std::string& got, const std::string& want) {
  const auto part = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
  const auto line = [](const std::string& text, std::string::const_iterator at) {
    const auto newline = std::find(std::make_reverse_iterator(at), text.rend(), '\n');
    return std::string(newline.base(), std::find(at, text.end(), '\n')).substr(0, 300);
  };
  return absl::StrCat("got '", line(got, part.first), "', without it '", line(want, part.second), "'");
}

}  // namespace

void Findings::Add(const std::string& word, const std::string& detail) {
  words.insert(word);
  absl::StrAppend(&details, word, ": ", detail.substr(0, 700), "\n");
}

std::string Findings::Words() const { return absl::StrJoin(words, ","); }

std::vector<std::string> AnswersInPeace(const Court& court, const SharedCluster& cluster) {
  std::vector<std::string> answers;
  for (const SharedCluster::Question& question : cluster.Questions(Mischief(), /*revision=*/1)) {
    const absl::StatusOr<std::string> answer = court.call(question.method, question.request);
    answers.push_back(answer.ok() ? *answer : answer.status().ToString());
  }
  return answers;
}

void Judge(const Court& court, const SharedCluster& cluster, const HostileRow& row, const Mischief& mischief,
           const std::vector<std::string>& in_peace, Findings* findings) {
  RowTrial trial(court, row, findings);
  int64_t revision = 1;
  for (const std::string& delta : cluster.Deltas(mischief)) {
    if (!trial.Ask(kSync, delta, /*may_refuse=*/false).has_value()) break;
    ++revision;
  }
  const std::vector<SharedCluster::Question> questions = cluster.Questions(mischief, revision);
  for (size_t i = 0; i < questions.size(); ++i) {
    const std::string& method = questions[i].method;
    const std::optional<std::string> response = trial.Ask(method, questions[i].request, /*may_refuse=*/false);
    if (!response.has_value()) continue;
    const std::string got = AnswerOf(method, *response, row.effect);
    const std::string want = AnswerOf(method, in_peace[i], row.effect);
    if (got == want) continue;
    findings->Add("differs", absl::StrCat(mischief.Describe().substr(0, 200), " harmed others in ", method,
                                          ": ", FirstDifference(got, want)));
  }
  for (const SharedCluster::Question& question : cluster.OwnQuestions(mischief, revision)) {
    trial.Ask(question.method, question.request, /*may_refuse=*/true);
  }
  trial.CheckNamed();
}

}  // namespace loadline
