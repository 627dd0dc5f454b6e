// Checks of our own invariants: what a caller promises, and what a data structure keeps at all times.
//
//   LOADLINE_CHECK(Covers(names, pod.requests)) << "pod " << name << " asks for a resource its table lacks";
//
// Data from outside is never the subject of a check: it is refused with a Status. A check that fails is a
// fault of ours. Tests, fuzz targets and benchmarks end there (see test/testing/abort_on_failed_check.cc).
// In production it throws CheckFailed, which the engine counts and answers with kInternal, after all that
// the call had begun is undone by its owner.
#ifndef LOADLINE_CORE_BASE_CHECK_H_
#define LOADLINE_CORE_BASE_CHECK_H_

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"

namespace loadline {

// The exception that a failed check throws unless another handler is set.
class CheckFailed : public std::exception {
 public:
  explicit CheckFailed(std::string text) : text_(std::move(text)) {}
  // Returns the place, the condition and the text of the failed check.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Tells a destructor whether its object is destroyed because of an exception.
class Unwinding {
 public:
  Unwinding() : exceptions_(std::uncaught_exceptions()) {}
  // Returns whether an exception was thrown since this was made and is not caught yet.
  bool Began() const { return std::uncaught_exceptions() > exceptions_; }

 private:
  int exceptions_;
};

// Is called in place of the throw, and does not return. nullptr: throw. Returns the former one.
using CheckFailureHandler = void (*)(const char* text);
CheckFailureHandler SetCheckFailureHandler(CheckFailureHandler handler);

// The text of a failed check as it is put together.
class CheckFailure {
 public:
  ABSL_ATTRIBUTE_NOINLINE ABSL_ATTRIBUTE_COLD CheckFailure(const char* file, int line, const char* condition);
  template <typename Value>
  ABSL_ATTRIBUTE_NOINLINE ABSL_ATTRIBUTE_COLD CheckFailure& operator<<(const Value& value) {
    absl::StrAppend(&text_, value);
    return *this;
  }

 private:
  friend struct RaiseCheckFailure;
  std::string text_;
};

// Binds less than << and more than ?:, so that all has been said when it raises the failure.
struct RaiseCheckFailure {
  [[noreturn]] ABSL_ATTRIBUTE_NOINLINE ABSL_ATTRIBUTE_COLD void operator&(const CheckFailure& failure) const;
};

[[noreturn]] ABSL_ATTRIBUTE_NOINLINE ABSL_ATTRIBUTE_COLD void RaiseBadIndex(const char* what, size_t index,
                                                                            size_t end);

// Returns a position, which has to be in [0, end). One compare, which the vector that is indexed with it need
// not make again. `what` is counted: "node", "pod shape".
inline size_t CheckedIndex(const char* what, size_t index, size_t end) {
  if (ABSL_PREDICT_FALSE(index >= end)) RaiseBadIndex(what, index, end);
  return index;
}

}  // namespace loadline

// Checks an invariant, in all builds. A condition should cost no more than a comparison or two.
#define LOADLINE_CHECK(condition) \
  ABSL_PREDICT_TRUE(condition)    \
  ? void() : ::loadline::RaiseCheckFailure{} & ::loadline::CheckFailure(__FILE__, __LINE__, #condition)

// For conditions that cost more: on in debug builds only, those of developers, sanitizers and fuzzing.
#ifdef NDEBUG
#define LOADLINE_DCHECK(condition) \
  while (false) LOADLINE_CHECK(condition)
#else
#define LOADLINE_DCHECK(condition) LOADLINE_CHECK(condition)
#endif

#endif  // LOADLINE_CORE_BASE_CHECK_H_
