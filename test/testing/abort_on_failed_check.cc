// Linked into tests, fuzz targets and benchmarks: a check that fails ends them.
#include <cstdio>
#include <cstdlib>

#include "core/base/check.h"

namespace {

[[noreturn]] void AbortOnFailedCheck(const char* text) {
  std::fprintf(stderr, "check failed: %s\n", text);
  std::abort();
}

[[maybe_unused]] const bool kInstalled = [] {
  loadline::SetCheckFailureHandler(AbortOnFailedCheck);
  return true;
}();

}  // namespace
