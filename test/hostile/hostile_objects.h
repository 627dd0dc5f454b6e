// Builders of objects that a tenant may write.
#ifndef LOADLINE_TEST_HOSTILE_HOSTILE_OBJECTS_H_
#define LOADLINE_TEST_HOSTILE_HOSTILE_OBJECTS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "test/plugin/messages.h"

namespace loadline {

inline void AddLabel(const std::string& key, const std::string& value, k8s::v1::ObjectMeta* metadata) {
  k8s::v1::StringEntry* const label = metadata->add_labels();
  label->set_key(key);
  label->set_value(value);
}

// evil/hostile, which asks for nothing.
inline k8s::v1::Pod EvilPod(const Quantities& requests = {}) {
  k8s::v1::Pod pod = MakePod({}, requests);
  pod.mutable_metadata()->set_name("hostile");
  pod.mutable_metadata()->set_namespace_("evil");
  pod.mutable_metadata()->set_uid("evil-uid");
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_api_version("apps/v1");
  owner->set_kind("ReplicaSet");
  owner->set_name("evil-set");
  owner->set_uid("evil-set-uid");
  owner->set_controller(true);
  return pod;
}

// Returns so many extended resources, each with this amount.
inline Quantities ExtendedResources(int count, const std::string& amount, const std::string& prefix = "r") {
  Quantities quantities;
  for (int i = 0; i < count; ++i) quantities.emplace_back(absl::StrCat("evil.example/", prefix, i), amount);
  return quantities;
}

// Metadata of evil/hostile, for any kind of object.
template <typename Object>
Object EvilObject() {
  Object object;
  object.mutable_metadata()->set_name("hostile");
  object.mutable_metadata()->set_namespace_("evil");
  object.mutable_metadata()->set_uid("evil-object-uid");
  return object;
}

inline k8s::v1::LabelSelectorRequirement* AddRequirement(const std::string& key, const std::string& op,
                                                         k8s::v1::LabelSelector* selector) {
  k8s::v1::LabelSelectorRequirement* const requirement = selector->add_match_expressions();
  requirement->set_key(key);
  requirement->set_operator_(op);
  return requirement;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_HOSTILE_HOSTILE_OBJECTS_H_
