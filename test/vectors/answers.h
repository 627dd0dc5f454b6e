// The answers of the product to a row, key by key, compared with what the row wants.
#ifndef LOADLINE_TEST_VECTORS_ANSWERS_H_
#define LOADLINE_TEST_VECTORS_ANSWERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "test/vectors/row.h"

namespace loadline::vectors {

// An exact fraction, as rows write it: "-25/2", "50".
struct Fraction {
  int64_t numerator;
  int64_t denominator;  // > 0
};
Fraction ParseFraction(const Json& text);

class Answers {
 public:
  explicit Answers(const Row& row) : fn_(row.fn), want_(row.want) {}

  // `got` is to be equal to what the row wants.
  void Equal(const std::string& key, Json got);
  // Same as Equal(), but null in the row means scores that are all 0.
  void Scores(const std::string& key, const std::vector<int32_t>& got);
  // `got` agrees, by a rule that the caller has checked, with what the row wants.
  void Agrees(const std::string& key, bool agrees, Json got);

  // Returns what the row wants of `key`; nullptr where it asserts nothing.
  const Json* Wanted(const std::string& key) const;

  // The keys that the row wants and where the answer differs, with the answers; null where there is none.
  // Keys that describe other programs are left out.
  std::map<std::string, Json> Differences() const;

 private:
  struct Answer {
    bool agrees;
    Json got;
  };

  const std::string& fn_;
  const Json& want_;
  std::map<std::string, Answer> answers_;
};

}  // namespace loadline::vectors

#endif  // LOADLINE_TEST_VECTORS_ANSWERS_H_
