#include "core/base/bounded_name.h"

#include <gtest/gtest.h>

#include <string>

namespace loadline {
namespace {

TEST(BoundedNameTest, ANameOfTheBoundIsKept) {
  const std::string name(512, 'a');
  EXPECT_EQ(BoundedName(name), name);
}

TEST(BoundedNameTest, ALongerOneEndsInItsFingerprint) {
  const std::string name = BoundedName(std::string(513, 'a'));
  EXPECT_EQ(name.substr(0, 516), std::string(512, 'a') + "... ");
  EXPECT_EQ(name.size(), 532u);
  EXPECT_NE(name, BoundedName(std::string(514, 'a')));
}

TEST(BoundedNameTest, NoCharacterIsCutInTwo) {
  const std::string name = BoundedName(std::string(511, 'a') + "\xc3\xa9" + "b");
  EXPECT_EQ(name.substr(0, 515), std::string(511, 'a') + "... ");
  EXPECT_EQ(name.size(), 531u);
}

}  // namespace
}  // namespace loadline
