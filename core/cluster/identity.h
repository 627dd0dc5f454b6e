#ifndef LOADLINE_CORE_CLUSTER_IDENTITY_H_
#define LOADLINE_CORE_CLUSTER_IDENTITY_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline {

// Writes numbers and texts so that two sequences of the same form give the same text only when they are
// equal: the counterpart of FingerprintBuilder where a collision must not happen.
class IdentityBuilder {
 public:
  void Add(int64_t number) {
    char bytes[sizeof(number)];
    std::memcpy(bytes, &number, sizeof(number));
    text_.append(bytes, sizeof(bytes));
  }
  void Add(absl::string_view text) {
    Add(static_cast<int64_t>(text.size()));
    text_.append(text.data(), text.size());
  }

  std::string Finish() const { return text_; }

 private:
  std::string text_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_IDENTITY_H_
