// Orders of chance that are always the same.
#ifndef LOADLINE_CORE_BASE_SHUFFLE_H_
#define LOADLINE_CORE_BASE_SHUFFLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/fingerprint.h"

namespace loadline {

// Each call puts a list into another order; a new object begins with the same ones again.
class Shuffler {
 public:
  template <typename T>
  void Shuffle(std::vector<T>* list) {
    for (size_t i = list->size(); i > 1; --i) {
      FingerprintBuilder chance;
      chance.Add(++drawn_);
      std::swap((*list)[i - 1], (*list)[chance.Finish() % i]);
    }
  }

 private:
  int64_t drawn_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_SHUFFLE_H_
