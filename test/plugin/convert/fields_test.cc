// Errors of fields of messages: which values pass, and what the caller hears.
#include "plugin/convert/fields.h"

#include <gtest/gtest.h>

#include <string>

namespace loadline {
namespace {

TEST(FieldsTest, RangesHoldTheirBoundsAndTellThem) {
  EXPECT_TRUE(CheckRange("a", 1, 1, 3).ok());
  EXPECT_TRUE(CheckRange("a", 3, 1, 3).ok());
  EXPECT_EQ(CheckRange("a", 0, 1, 3), absl::InvalidArgumentError("a: 0 is not in [1, 3]"));
  EXPECT_EQ(CheckRange("a", 4, 1, 3), absl::InvalidArgumentError("a: 4 is not in [1, 3]"));
  EXPECT_TRUE(CheckNotNegative("b", 0).ok());
  EXPECT_EQ(CheckNotNegative("b", -1), absl::InvalidArgumentError("b: -1 is negative"));
  EXPECT_TRUE(CheckBounded("c", 0, 9).ok());
  EXPECT_TRUE(CheckBounded("c", 9, 9).ok());
  EXPECT_EQ(CheckBounded("c", -1, 9), absl::InvalidArgumentError("c: -1 is out of range"));
  EXPECT_EQ(CheckBounded("c", 10, 9), absl::InvalidArgumentError("c: 10 is out of range"));
  EXPECT_TRUE(CheckNumber("d", 0.5, 0, 0.5).ok());
  EXPECT_EQ(CheckNumber("d", 0.75, 0, 0.5), absl::InvalidArgumentError("d: 0.75 is not in [0, 0.5]"));
}

TEST(FieldsTest, ListsThatAreTooLongAreRefused) {
  EXPECT_TRUE(CheckSize("pods", 2, 2).ok());
  EXPECT_EQ(CheckSize("pods", 3, 2), absl::ResourceExhaustedError("pods: has 3 entries, the limit is 2"));
  EXPECT_TRUE(CheckEntries(2, "rules", 2).ok());
  EXPECT_EQ(CheckEntries(3, "rules", 2),
            absl::InvalidArgumentError("rules: has 3 entries, at most 2 are allowed"));
}

TEST(FieldsTest, TheFirstErrorStays) {
  Fields fields;
  fields.Range("a", 1, 0, 1);
  fields.Less("a", 1, "b", 2);
  fields.AtMost("a", 2, "b", 2);
  fields.Share("share", 1);
  fields.Name("name", "n");
  EXPECT_TRUE(fields.status().ok()) << fields.status();
  fields.Less("a", 2, "b", 2);
  fields.AtMost("a", 3, "b", 2);
  EXPECT_EQ(fields.status(), absl::InvalidArgumentError("a: 2 is not less than b, 2"));
}

TEST(FieldsTest, EveryKindOfCheckIsKept) {
  const auto error = [](auto check) {
    Fields fields;
    check(&fields);
    return std::string(fields.status().message());
  };
  EXPECT_EQ(error([](Fields* fields) { fields->AtMost("a", 3, "b", 2); }), "a: 3 is more than b, 2");
  EXPECT_EQ(error([](Fields* fields) { fields->Share("a", 1.5); }), "a: 1.5 is not in [0, 1]");
  EXPECT_EQ(error([](Fields* fields) { fields->Name("a", ""); }), "a: is empty");
  EXPECT_EQ(error([](Fields* fields) { fields->Name("a", " "); }),
            "a: \" \" is not a name: it has characters other than printable ASCII");
  EXPECT_EQ(error([](Fields* fields) { fields->Refuse("no"); }), "no");
}

}  // namespace
}  // namespace loadline
