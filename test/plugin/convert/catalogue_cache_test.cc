#include "plugin/convert/catalogue_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

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
  for (int i = 0; i < 4; ++i) {  // 3 MiB, of 2 that are kept
    const std::string large = std::string(kList) + "#" + std::string(768 << 10, 'x') + "\n";
    ASSERT_TRUE(CachedPriceCatalogue(std::to_string(i), large).ok());
  }
  EXPECT_TRUE(old.expired());
}

}  // namespace
}  // namespace loadline
