// A failed check throws, as it does in production, where tests otherwise end.
#ifndef LOADLINE_TEST_TESTING_THROW_ON_FAILED_CHECK_H_
#define LOADLINE_TEST_TESTING_THROW_ON_FAILED_CHECK_H_

#include <string>

#include "core/base/check.h"

namespace loadline {

// Throws on failed checks as long as it lives.
class ThrowOnFailedCheck {
 public:
  ThrowOnFailedCheck() : former_(SetCheckFailureHandler(nullptr)) {}
  ~ThrowOnFailedCheck() { SetCheckFailureHandler(former_); }
  ThrowOnFailedCheck(const ThrowOnFailedCheck&) = delete;
  ThrowOnFailedCheck& operator=(const ThrowOnFailedCheck&) = delete;

 private:
  const CheckFailureHandler former_;
};

// Returns what the check says that fails in `body`; empty: none does.
template <typename Body>
std::string FailedCheckIn(const Body& body) {
  const ThrowOnFailedCheck in_production;
  try {
    body();
  } catch (const CheckFailed& failed) {
    return failed.what();
  }
  return "";
}

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_THROW_ON_FAILED_CHECK_H_
