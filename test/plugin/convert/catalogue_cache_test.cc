#include "plugin/convert/catalogue_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace loadline {
namespace {

constexpr char kList[] = "instance_type,on_demand_usd_per_hour\na,1\n";

TEST(CachedPriceCatalogue, ReadsAListOnce) {
  const auto first = CachedPriceCatalogue("cached.csv", kList);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->types.at("a").on_demand, 1);
  const auto again = CachedPriceCatalogue("cached.csv", kList);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first->get(), again->get());
}

TEST(CachedPriceCatalogue, TellsNamesAndContentsApart) {
  const auto first = CachedPriceCatalogue("apart.csv", kList);
  const auto renamed = CachedPriceCatalogue("other.csv", kList);
  const auto changed = CachedPriceCatalogue("apart.csv", "instance_type,on_demand_usd_per_hour\na,2\n");
  ASSERT_TRUE(first.ok() && renamed.ok() && changed.ok());
  EXPECT_EQ((*renamed)->name, "other.csv");
  EXPECT_EQ((*changed)->types.at("a").on_demand, 2);
  EXPECT_EQ((*first)->types.at("a").on_demand, 1) << "who holds a list keeps it";
}

TEST(CachedPriceCatalogue, RefusesWhatIsNone) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(CachedPriceCatalogue("bad.csv", "a,b\n").status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(CachedPriceCatalogue, ForgetsWhatWasNotAskedForLongest) {
  std::weak_ptr<const PriceCatalogue> old;
  {
    const auto first = CachedPriceCatalogue("old.csv", kList);
    ASSERT_TRUE(first.ok());
    old = *first;
  }
  EXPECT_FALSE(old.expired());
  for (int i = 0; i < 12; ++i) {  // 9 MiB of text, which counts twice, of 16 MiB that are kept
    const std::string large = std::string(kList) + "#" + std::string(768 << 10, 'x') + "\n";
    ASSERT_TRUE(CachedPriceCatalogue(std::to_string(i), large).ok());
  }
  EXPECT_TRUE(old.expired());
}

// A price of one of 1,000 regions makes a line of 1 kB that takes 32 kB once it is read.
TEST(CachedPriceCatalogue, CountsTheMemoryThatAListTakes) {
  std::string list = "instance_type,on_demand_usd_per_hour";
  for (int region = 0; region < 1'000; ++region) {
    list += ",on_demand_usd_per_hour@r" + std::to_string(region);
  }
  for (int type = 0; type < 250; ++type) {
    list += "\nt" + std::to_string(type) + "," + std::string(1'000, ',') + "1";
  }
  std::weak_ptr<const PriceCatalogue> old;
  for (int i = 0; i < 3; ++i) {  // 24 MB, of 900 kB of text
    const auto read = CachedPriceCatalogue("wide-" + std::to_string(i), list);
    ASSERT_TRUE(read.ok()) << read.status();
    if (i == 0) old = *read;
  }
  EXPECT_TRUE(old.expired());
}

TEST(CachedPriceCatalogue, ThreadsShareOneCopy) {
  std::vector<std::shared_ptr<const PriceCatalogue>> read(8);
  std::vector<std::thread> threads;
  for (auto& into : read) {
    threads.emplace_back([&into] { into = CachedPriceCatalogue("shared.csv", kList).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : read) EXPECT_EQ(one, read[0]);
}

}  // namespace
}  // namespace loadline
