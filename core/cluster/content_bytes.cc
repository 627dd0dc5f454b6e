#include "core/cluster/content_bytes.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/cluster/labels.h"
#include "core/cluster/objects.h"
#include "core/cluster/pod_rules.h"
#include "core/cluster/shapes.h"

namespace loadline {
namespace {

// Adds up fields and notes the largest.
class Fields {
 public:
  void Add(const ContentBytes& field) {
    bytes_ += field.bytes;
    if (field.bytes > largest_.bytes) largest_ = field;
  }
  template <typename Content>
  void Add(absl::string_view field, const Content& content) {
    MemoryBuilder builder;
    Visit(content, &builder);
    Add({builder.Finish(), field});
  }
  ContentBytes sum() const { return {bytes_, largest_.field}; }

 private:
  static void Visit(const std::string& text, MemoryBuilder* builder) {
    builder->Add(absl::string_view(text));
  }
  static void Visit(const DisruptionBudget::DisruptedPod& pod, MemoryBuilder* builder) {
    builder->Add(absl::string_view(pod.name));
    builder->Add(pod.since_s);
  }
  static void Visit(const CsiNode::Driver& driver, MemoryBuilder* builder) {
    builder->Add(absl::string_view(driver.name));
    builder->Add(int64_t{0});
  }
  static void Visit(const StorageClass::TopologyTerm& term, MemoryBuilder* builder) {
    builder->Add(int64_t{term.invalid});
    Visit(term.requirements, builder);
  }
  static void Visit(const HostPort& port, MemoryBuilder* builder) {
    builder->Add(int64_t{port.port});
    builder->Add(absl::string_view(port.protocol));
    builder->Add(absl::string_view(port.ip));
  }
  template <typename Element>
  static void Visit(const std::vector<Element>& list, MemoryBuilder* builder) {
    builder->Add(static_cast<int64_t>(list.size()));
    for (const Element& element : list) Visit(element, builder);
  }
  template <typename Content>
  static void Visit(const std::optional<Content>& content, MemoryBuilder* builder) {
    if (content.has_value()) Visit(*content, builder);
  }
  template <typename Content>
  requires requires(const Content& content, MemoryBuilder* builder) { content.AddTo(builder); }
  static void Visit(const Content& content, MemoryBuilder* builder) { content.AddTo(builder); }

  int64_t bytes_ = 0;
  ContentBytes largest_;
};

void AddContent(const Namespace& content, Fields* fields) { fields->Add("metadata.labels", content.labels); }
void AddContent(const PersistentVolume& content, Fields* fields) {
  fields->Add("metadata.labels", content.labels);
  fields->Add("spec.csi.driver", content.driver);
  fields->Add("spec.csi.volumeHandle", content.handle);
  fields->Add("spec.accessModes", content.access_modes);
  fields->Add("spec.storageClassName", content.storage_class);
  fields->Add("spec.volumeMode", content.volume_mode);
  fields->Add("spec.volumeAttributesClassName", content.attributes_class);
  fields->Add("spec.nodeAffinity", content.node_affinity);
}
void AddContent(const PersistentVolumeClaim& content, Fields* fields) {
  fields->Add("metadata.uid", content.uid);
  fields->Add("metadata.ownerReferences", content.owner_uid);
  fields->Add("metadata.annotations", content.selected_node);
  fields->Add("spec.volumeName", content.volume_name);
  fields->Add("spec.accessModes", content.access_modes);
  fields->Add("spec.storageClassName", content.storage_class);
  fields->Add("spec.volumeMode", content.volume_mode);
  fields->Add("spec.volumeAttributesClassName", content.attributes_class);
  fields->Add("spec.selector", content.selector);
}
void AddContent(const StorageClass& content, Fields* fields) {
  fields->Add("provisioner", content.provisioner);
  fields->Add("allowedTopologies", content.allowed_topologies);
}
void AddContent(const CsiNode& content, Fields* fields) {
  fields->Add("spec.drivers", content.drivers);
  fields->Add("metadata.annotations", content.migrated_plugins);
}
void AddContent(const DisruptionBudget& content, Fields* fields) {
  fields->Add("spec.selector", content.selector);
  fields->Add("status.disruptedPods", content.disrupted_pods);
}
void AddContent(const Workload& content, Fields* fields) {
  fields->Add("metadata.uid", content.uid);
  if (!content.pod.has_value()) return;
  fields->Add("spec.template.metadata.labels", content.pod->labels);
  if (content.pod->rules != nullptr) fields->Add({BytesOf(*content.pod->rules).bytes, "spec.template.spec"});
}
void AddContent(const DeviceClass& content, Fields* fields) {
  fields->Add("spec.extendedResourceName", content.extended_resource);
}
void AddContent(const CsiDriver&, Fields*) {}
void AddContent(const WorkloadUsage&, Fields*) {}

}  // namespace

ContentBytes BytesOf(const Labels& labels) {
  Fields fields;
  fields.Add("metadata.labels", labels);
  return fields.sum();
}

ContentBytes BytesOf(const PodRules& rules) {
  Fields fields;
  fields.Add("spec.nodeSelector", rules.node_selector);
  fields.Add("spec.affinity.nodeAffinity", rules.node_affinity);
  fields.Add("spec.tolerations", rules.tolerations);
  fields.Add("spec.containers.ports", rules.host_ports);
  fields.Add("spec.topologySpreadConstraints", rules.spread);
  fields.Add("spec.affinity.podAffinity", rules.affinity);
  fields.Add("spec.affinity.podAntiAffinity", rules.anti_affinity);
  fields.Add("spec.volumes", rules.volumes);
  fields.Add("spec.affinity", rules.affinity_error);
  fields.Add("spec.topologySpreadConstraints", rules.spread_error);
  fields.Add("spec.containers", rules.required_features);
  fields.Add("spec.schedulerName", rules.scheduler_name);
  return fields.sum();
}

ContentBytes BytesOf(const NodeShape& shape) {
  Fields fields;
  fields.Add("metadata.labels", shape.labels);
  fields.Add("spec.taints", shape.taints);
  fields.Add("status.declaredFeatures", shape.declared_features);
  return fields.sum();
}

ContentBytes BytesOf(const ClusterObject& object) {
  Fields fields;
  std::visit([&fields](const auto& content) { AddContent(content, &fields); }, object.content);
  return fields.sum();
}

}  // namespace loadline
