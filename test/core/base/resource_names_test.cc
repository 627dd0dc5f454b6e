#include "core/base/resource_names.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

std::string NameOf(const ResourceNames& names, ResourceId id) { return std::string(names.name(id)); }

TEST(ResourceNamesTest, KnowsThreeNamesFromTheStart) {
  const ResourceNames names;
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(names.Find("cpu"), kCpu);
  EXPECT_EQ(names.Find("memory"), kMemory);
  EXPECT_EQ(names.Find("ephemeral-storage"), kEphemeralStorage);
  EXPECT_EQ(NameOf(names, kCpu), "cpu");
  EXPECT_EQ(NameOf(names, kMemory), "memory");
  EXPECT_EQ(NameOf(names, kEphemeralStorage), "ephemeral-storage");
  names.CheckConsistent();
}

TEST(ResourceNamesTest, NumbersAreDenseAndStay) {
  ResourceNames names;
  EXPECT_EQ(names.Intern("nvidia.com/gpu"), ResourceId{3});
  EXPECT_EQ(names.Intern("hugepages-2Mi"), ResourceId{4});
  EXPECT_EQ(names.Intern("nvidia.com/gpu"), ResourceId{3});
  EXPECT_EQ(names.Intern("cpu"), kCpu);
  EXPECT_EQ(names.size(), 5U);
  EXPECT_EQ(NameOf(names, ResourceId{4}), "hugepages-2Mi");
}

TEST(ResourceNamesTest, FindsOnlyWhatIsThere) {
  ResourceNames names;
  EXPECT_EQ(names.Find("nvidia.com/gpu"), std::nullopt);
  EXPECT_EQ(names.Find("CPU"), std::nullopt);
  EXPECT_EQ(names.Find("cp"), std::nullopt);
  EXPECT_EQ(names.size(), 3U);
}

TEST(ResourceNamesTest, AnyBytesAreAName) {
  ResourceNames names;
  const std::string with_nul("a\0b", 3);
  EXPECT_EQ(names.Intern(""), ResourceId{3});
  EXPECT_EQ(names.Intern(with_nul), ResourceId{4});
  EXPECT_EQ(names.Intern("a"), ResourceId{5});
  EXPECT_EQ(NameOf(names, ResourceId{4}), with_nul);
}

TEST(ResourceNamesTest, CopyAndOriginalGoTheirOwnWays) {
  ResourceNames original;
  original.Intern("a");
  original.CheckConsistent();
  ResourceNames copy = original;
  EXPECT_EQ(copy.Intern("b"), ResourceId{4});
  EXPECT_EQ(original.Find("b"), std::nullopt);
  EXPECT_EQ(original.Intern("c"), ResourceId{4});
  EXPECT_EQ(copy.Find("c"), std::nullopt);
  EXPECT_EQ(NameOf(copy, ResourceId{4}), "b");
  EXPECT_EQ(NameOf(original, ResourceId{4}), "c");
  EXPECT_EQ(copy.Find("a"), ResourceId{3});
}

TEST(ResourceNamesTest, OriginalMayChangeFirst) {
  ResourceNames original;
  ResourceNames copy = original;
  EXPECT_EQ(original.Intern("a"), ResourceId{3});
  EXPECT_EQ(copy.Find("a"), std::nullopt);
  EXPECT_EQ(copy.Intern("b"), ResourceId{3});
  EXPECT_EQ(NameOf(original, ResourceId{3}), "a");
}

// A copy of a copy, while the table in the middle has been changed in place.
TEST(ResourceNamesTest, CopiesOfCopiesAreApart) {
  const ResourceNames first;
  ResourceNames second = first;
  second.Intern("a");
  ResourceNames third = second;
  third.Intern("b");
  second.Intern("c");
  EXPECT_EQ(first.size(), 3U);
  EXPECT_EQ(second.Find("b"), std::nullopt);
  EXPECT_EQ(third.Find("c"), std::nullopt);
  EXPECT_EQ(NameOf(second, ResourceId{4}), "c");
}

TEST(ResourceNamesTest, CopyReplacesOriginal) {
  ResourceNames names;
  ResourceNames staged = names;
  staged.Intern("a");
  names = std::move(staged);
  EXPECT_EQ(names.Find("a"), ResourceId{3});
  staged = names;
  EXPECT_EQ(staged.Intern("b"), ResourceId{4});
  EXPECT_EQ(names.size(), 4U);
}

TEST(ResourceNamesTest, MoveKeepsSharingInMind) {
  ResourceNames original;
  ResourceNames copy = original;
  ResourceNames moved = std::move(copy);
  moved.Intern("a");
  EXPECT_EQ(original.Find("a"), std::nullopt);
  EXPECT_EQ(moved.Find("a"), ResourceId{3});
}

TEST(ResourceNamesTest, AssigningToItselfChangesNothing) {
  ResourceNames names;
  names.Intern("a");
  const ResourceNames& same = names;
  names = same;
  EXPECT_EQ(names.Find("a"), ResourceId{3});
  EXPECT_EQ(names.Intern("b"), ResourceId{4});
}

// Cloning the table for each new name would copy 10^10 names here.
TEST(ResourceNamesTest, ManyNewNamesInOneCopyCloneOnce) {
  constexpr int kMany = 100'000;
  const ResourceNames names;
  ResourceNames copy = names;
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(copy.Intern(absl::StrCat("example.com/r", i)), ResourceId{3 + i});
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(copy.size(), 3U + kMany);
}

// For the thread sanitizer: one object read and copied by several threads, each changing its own copy.
TEST(ResourceNamesTest, CopiesMayBeChangedByOtherThreads) {
  ResourceNames names;
  names.Intern("shared");
  std::vector<ResourceNames> results(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&names, &result = results[t], t] {
      for (int i = 0; i < 200; ++i) {
        ResourceNames copy = names;
        copy.Intern(absl::StrCat("thread", t, "-", i));
        if (names.Find("shared") == ResourceId{3}) result = std::move(copy);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  names.Intern("mine");
  EXPECT_EQ(names.size(), 5U);
  for (size_t t = 0; t < results.size(); ++t) {
    EXPECT_EQ(NameOf(results[t], ResourceId{4}), absl::StrCat("thread", t, "-199"));
  }
}

}  // namespace
}  // namespace loadline
