#include "core/base/check.h"

#include <atomic>

#include "absl/strings/string_view.h"

namespace loadline {
namespace {

std::atomic<CheckFailureHandler> failure_handler{nullptr};

absl::string_view NameOfFile(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

[[noreturn]] void Raise(std::string text) {
  if (const CheckFailureHandler handler = failure_handler.load(); handler != nullptr) handler(text.c_str());
  throw CheckFailed(std::move(text));
}

}  // namespace

CheckFailureHandler SetCheckFailureHandler(CheckFailureHandler handler) {
  return failure_handler.exchange(handler);
}

CheckFailure::CheckFailure(const char* file, int line, const char* condition)
    : text_(absl::StrCat(NameOfFile(file), ":", line, ": ", condition, ": ")) {}

void RaiseCheckFailure::operator&(const CheckFailure& failure) const { Raise(failure.text_); }

void RaiseBadIndex(const char* what, size_t index, size_t end) {
  Raise(absl::StrCat(what, " ", static_cast<int64_t>(index), " is not one of ", end));
}

}  // namespace loadline
