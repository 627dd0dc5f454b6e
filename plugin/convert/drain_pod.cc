#include "plugin/convert/drain_pod.h"

#include <utility>

#include "plugin/convert/fields.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"

namespace loadline {

absl::StatusOr<DrainPod> ReadDrainPod(absl::string_view bytes, View* view, const ReadOptions& read) {
  k8s::v1::Pod message;
  if (bytes.size() > kMaxObjectBytes ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Refused("is not a k8s.io.api.core.v1.Pod, or too large");
  }
  message.mutable_metadata()->clear_deletion_timestamp();
  // Clients leave the status of incoming pods out, and a budget counts an eviction whatever became of the
  // pod.
  message.mutable_status()->clear_conditions();
  k8s::v1::PodCondition* const ready = message.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  ResourceNames names = view->cluster().resource_names();
  const size_t known = names.size();
  ResourceReader reader(&names, read);
  PodDecoder decoder(&reader);
  absl::StatusOr<PodShape> shape = decoder.Decode(message.SerializeAsString(), PodRole::kIncoming);
  if (!shape.ok()) return shape.status();
  SelectorKeys wish{shape->namespace_name, {}};
  if (shape->rules != nullptr) shape->rules->AddLabelKeys(&wish.keys);
  if (!view->SelectLabelKeys({&wish, 1})[0]) return Refused(kTooManyLabelKeys);
  SelectLabels(decoder.labels(), view->label_keys(), &*shape);
  DrainPod pod{*std::move(shape), decoder.name(), decoder.uid(), "", {}};
  if (names.size() > known)
    pod.unknown_resource = std::string(names.name(ResourceId{static_cast<int32_t>(known)}));
  pod.names = std::move(names);
  return pod;
}

}  // namespace loadline
