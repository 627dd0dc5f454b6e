// How many questions of an input were answered, and how many refused. A corpus of refusals would pass each
// check of its target and check nothing: see corpus_main.cc.
#ifndef LOADLINE_TEST_FUZZ_ANSWERS_H_
#define LOADLINE_TEST_FUZZ_ANSWERS_H_

#include <cstdint>

namespace loadline {

struct FuzzAnswers {
  int64_t answered = 0;
  int64_t refused = 0;
};

inline FuzzAnswers fuzz_answers;

// Says what became of one question of the input; not of what a target asks beside them.
inline void NoteAnswer(bool answered) { ++(answered ? fuzz_answers.answered : fuzz_answers.refused); }

}  // namespace loadline

#endif  // LOADLINE_TEST_FUZZ_ANSWERS_H_
