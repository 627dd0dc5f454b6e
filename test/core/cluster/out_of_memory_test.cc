// Memory that runs out while a view selects label keys: it is as it was, as it should be, or says that it is
// neither.
//
// Tables stay as large as they are, for absl's hash tables do not survive a failed allocation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/view.h"

namespace {

// Allocations of this thread until one fails; negative: none does.
thread_local int64_t allocations_left = -1;

void* Allocate(std::size_t size) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Not inlined: compilers would see memory of `new` go to free().
[[gnu::noinline]] void Release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
// Buffers of std::stable_sort: what does without memory where there is none is not made to fail.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, std::size_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Release(memory); }

namespace loadline {
namespace {

// A node with pods of four namespaces, of which one has a label that is as long as no string holds in place.
Batch FourNamespaces() {
  Batch batch;
  batch.epoch = batch.revision = 1;
  batch.full_list = FullListChunk{0, true};
  NodeRecord& node = batch.nodes.emplace_back();
  node = {Slot{0}, "a", MakeNodeShape({}, ResourceNames()), {}};
  for (int i = 0; i < 4; ++i) {
    PodShape shape =
        MakePodShape(absl::StrCat("ns-", i), false, PodResources(), ResourceNames(), PodRole::kExisting);
    Labels labels =
        i == 0 ? Labels(std::vector<Label>{{"app.kubernetes.io/name", "a-name-beyond-inline"}}) : Labels();
    batch.pod_shapes.push_back({i, std::move(shape), std::move(labels)});
    node.pods.push_back({i, "", ""});
  }
  return batch;
}

TEST(OutOfMemoryTest, AViewThatSelectsLabelsIsNeverHalfDoneUnnoticed) {
  const SelectorKeys wish{"ns-1", {"app.kubernetes.io/name"}};
  int half_applied = 0;
  bool failed = true;
  for (int64_t at = 0; failed; ++at) {
    ASSERT_LT(at, 10'000);
    View view(ViewLimits{});
    ASSERT_TRUE(view.Apply(FourNamespaces()).ok());
    const auto has_label = [&] {
      return !view.cluster().pod_shapes()[view.cluster().pods(Slot{0}).pods()[0].shape].labels.empty();
    };
    allocations_left = at;
    try {
      view.SelectLabelKeys({&wish, 1});
    } catch (const std::bad_alloc&) {
    }
    failed = allocations_left < 0;  // also where somebody can do without the memory
    allocations_left = -1;
    half_applied += view.half_applied() ? 1 : 0;
    EXPECT_TRUE(view.half_applied() || !view.label_keys().empty() == has_label()) << "at allocation " << at;
  }
  EXPECT_GT(half_applied, 0);
}

}  // namespace
}  // namespace loadline
