#include "test/vectors/answers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace loadline::vectors {
namespace {

// Keys of a function that say what another program computes: README.md, "What describes others".
bool DescribesAnother(const std::string& fn, const std::string& key) {
  static const auto* const kKeys = new std::set<std::pair<std::string, std::string>>{
      {"combined", "least_allocated"},
      {"combined", "total"},
      {"limit_score", "norm_round"},
      {"limit_score", "norm_sibling"},
      {"missing_limit", "norm_round"},
      {"missing_limit", "norm_sibling"},
      {"normalise", "divide_first_int"},
      {"normalise", "norm_round"},
      {"normalise", "norm_sibling"},
      {"overflow", "go_raw"},
      {"overflow", "go_sum"},
      {"overflow", "go_value"},
  };
  return kKeys->contains({fn, key});
}

}  // namespace

Fraction ParseFraction(const Json& text) {
  const std::string written = text.get<std::string>();
  const size_t slash = written.find('/');
  const auto number = [](const std::string& digits) { return Json::parse(digits).get<int64_t>(); };
  if (slash == std::string::npos) return {number(written), 1};
  return {number(written.substr(0, slash)), number(written.substr(slash + 1))};
}

void Answers::Equal(const std::string& key, Json got) {
  const Json* const wanted = Wanted(key);
  const bool agrees = wanted != nullptr && *wanted == got;
  Agrees(key, agrees, std::move(got));
}

void Answers::Scores(const std::string& key, const std::vector<int32_t>& got) {
  const Json* const wanted = Wanted(key);
  if (wanted != nullptr && wanted->is_null()) {
    Agrees(key, std::all_of(got.begin(), got.end(), [](int32_t score) { return score == 0; }), got);
  } else {
    Equal(key, got);
  }
}

void Answers::Agrees(const std::string& key, bool agrees, Json got) {
  answers_.insert_or_assign(key, Answer{agrees, std::move(got)});
}

const Json* Answers::Wanted(const std::string& key) const {
  const auto found = want_.find(key);
  return found == want_.end() ? nullptr : &*found;
}

std::map<std::string, Json> Answers::Differences() const {
  std::map<std::string, Json> differences;
  for (const auto& [key, wanted] : want_.items()) {
    if (DescribesAnother(fn_, key)) continue;
    const auto answer = answers_.find(key);
    if (answer == answers_.end()) {
      differences[key] = nullptr;
    } else if (!answer->second.agrees) {
      differences[key] = answer->second.got;
    }
  }
  return differences;
}

}  // namespace loadline::vectors
