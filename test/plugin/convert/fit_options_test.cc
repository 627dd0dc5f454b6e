// How a scheduler is configured, and the fields of pods and nodes that nobody knows: from messages.
#include "plugin/convert/fit_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plugin/convert/known_fields.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const v1::FitOptions& message) {
  return std::string(DecodeFitOptions(message).status().message());
}

TEST(FitOptionsTest, DefaultsAreThoseOf136WithItsDefects) {
  const absl::StatusOr<FitOptions> options = DecodeFitOptions({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->minor, 36);
  EXPECT_TRUE(options->namespace_selector_sees_no_labels);
  EXPECT_EQ(options->disabled, 0u);
  v1::FitOptions documented;
  documented.mutable_defects();
  EXPECT_FALSE(DecodeFitOptions(documented)->namespace_selector_sees_no_labels);
  v1::FitOptions newer;
  newer.set_kubernetes_minor(37);
  EXPECT_FALSE(DecodeFitOptions(newer)->namespace_selector_sees_no_labels) << "mended there";
}

TEST(FitOptionsTest, ProfilesAndDisabledFilters) {
  v1::FitOptions message;
  message.add_disabled_filters(v1::VerdictGroup::NODE_PORTS);
  v1::SchedulerProfile* const profile = message.add_profiles();
  profile->set_scheduler_name("batch");
  profile->mutable_options()->add_disabled_filters(v1::VerdictGroup::NODE_DECLARED_FEATURES);
  const absl::StatusOr<FitOptions> options = DecodeFitOptions(message);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->Of("").disabled, 1u << static_cast<int>(FilterName::kNodePorts));
  EXPECT_EQ(options->Of("other").disabled, 1u << static_cast<int>(FilterName::kNodePorts));
  EXPECT_EQ(options->Of("batch").disabled, 1u << static_cast<int>(FilterName::kNodeDeclaredFeatures));
}

TEST(FitOptionsTest, ErrorsNameTheField) {
  v1::FitOptions message;
  message.set_kubernetes_minor(35);
  EXPECT_EQ(ErrorOf(message), "kubernetes_minor: 35 is not in [36, 37]");
  message.set_kubernetes_minor(37);
  message.add_disabled_filters(static_cast<v1::VerdictGroup::Filter>(99));
  EXPECT_EQ(ErrorOf(message), "disabled_filters: there is no value 99");
  message.clear_disabled_filters();
  message.add_profiles();
  EXPECT_THAT(ErrorOf(message), HasSubstr("profiles[0]: scheduler_name: is empty"));
  message.mutable_profiles(0)->set_scheduler_name("a");
  message.add_profiles()->set_scheduler_name("a");
  EXPECT_THAT(ErrorOf(message), HasSubstr("profiles[1]: scheduler_name: \"a\" occurs twice"));
  message.mutable_profiles(1)->set_scheduler_name("b");
  message.mutable_profiles(1)->mutable_options()->set_added_affinity("\377");
  EXPECT_THAT(ErrorOf(message), HasSubstr("profiles[1]: options: added_affinity"));
  message.mutable_profiles(1)->mutable_options()->Clear();
  message.mutable_profiles(1)->mutable_options()->add_profiles();
  EXPECT_THAT(ErrorOf(message), HasSubstr("profiles[1]: options.profiles: must be empty"));
  for (int i = 0; i < 31; ++i) message.add_profiles();
  EXPECT_THAT(ErrorOf(message), HasSubstr("profiles: has 33 entries"));
}

// Returns a field of wire type 0 and value 1.
std::string Field(int number) {
  std::string out;
  for (uint32_t tag = static_cast<uint32_t>(number) << 3; tag != 0; tag >>= 7) {
    out.push_back(static_cast<char>((tag & 127) | (tag > 127 ? 128 : 0)));
  }
  return out + '\1';
}

TEST(KnownFieldsTest, NewNumbersAreUnknown) {
  k8s::v1::Pod pod;
  EXPECT_EQ(UnknownFieldOf(pod), "");
  // Fields of 1.37 that the engine does not read: serviceAccountName, evictionResponders.
  ASSERT_TRUE(pod.mutable_spec()->ParseFromString(Field(5) + Field(43)));
  EXPECT_EQ(UnknownFieldOf(pod), "");
  ASSERT_TRUE(pod.mutable_spec()->ParseFromString(Field(5) + Field(45)));
  EXPECT_EQ(UnknownFieldOf(pod), "spec: field 45");
  pod.Clear();
  ASSERT_TRUE(pod.mutable_spec()->add_containers()->ParseFromString(Field(31)));
  EXPECT_EQ(UnknownFieldOf(pod), "spec.containers: field 31");
  pod.Clear();
  ASSERT_TRUE(
      pod.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity()->add_required()->ParseFromString(
          Field(7)));
  EXPECT_EQ(UnknownFieldOf(pod), "spec.affinity.podAntiAffinity: field 7");
  pod.Clear();
  ASSERT_TRUE(pod.mutable_metadata()->ParseFromString(Field(99)));
  EXPECT_EQ(UnknownFieldOf(pod), "") << "no filter reads what is not of the spec";
  k8s::v1::StringEntry* const note = pod.mutable_metadata()->add_annotations();
  note->set_key(kUnknownFieldsAnnotation);
  note->set_value("spec.placement\x1b,spec.x");
  EXPECT_EQ(UnknownFieldOf(pod), "spec.placement?,spec.x");
  k8s::v1::Node node;
  EXPECT_EQ(UnknownFieldOf(node), "");
  ASSERT_TRUE(node.mutable_spec()->add_taints()->ParseFromString(Field(5)));
  EXPECT_EQ(UnknownFieldOf(node), "spec.taints: field 5");
}

}  // namespace
}  // namespace loadline
