#include "plugin/convert/known_fields.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr size_t kMaxFieldLength = 256;

// Finds the first field above the highest number that a message has in Kubernetes 1.37. Fields are only ever
// added with a new number.
class UnknownField {
 public:
  template <typename Message>
  void Look(const Message& message, absl::string_view path, int highest) {
    const auto& unknown = message.unknown_fields();
    if (!found_.empty() || unknown.empty()) return;
    using google::protobuf::internal::WireFormatLite;
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(unknown.data()),
                                              static_cast<int>(unknown.size()));
    while (const uint32_t tag = in.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (number > highest) {
        found_ = absl::StrCat(path, ": field ", number);
        return;
      }
      if (!WireFormatLite::SkipField(&in, tag)) return;
    }
  }

  template <typename Messages>
  void LookAtAll(const Messages& messages, absl::string_view path, int highest) {
    for (const auto& message : messages) Look(message, path, highest);
  }

  const std::string& found() const { return found_; }

 private:
  std::string found_;
};

void LookAtSelector(const k8s::v1::NodeSelector& selector, UnknownField* unknown) {
  constexpr char kPath[] = "spec.affinity.nodeAffinity";
  unknown->Look(selector, kPath, 1);
  unknown->LookAtAll(selector.node_selector_terms(), kPath, 2);
  for (const k8s::v1::NodeSelectorTerm& term : selector.node_selector_terms()) {
    unknown->LookAtAll(term.match_expressions(), kPath, 3);
    unknown->LookAtAll(term.match_fields(), kPath, 3);
  }
}

void LookAtSelector(const k8s::v1::LabelSelector& selector, absl::string_view path, UnknownField* unknown) {
  unknown->Look(selector, path, 2);
  unknown->LookAtAll(selector.match_expressions(), path, 3);
}

void LookAtTerms(const k8s::v1::PodAffinity& affinity, absl::string_view path, UnknownField* unknown) {
  unknown->Look(affinity, path, 2);
  for (const k8s::v1::PodAffinityTerm& term : affinity.required()) {
    unknown->Look(term, path, 6);
    LookAtSelector(term.label_selector(), path, unknown);
    LookAtSelector(term.namespace_selector(), path, unknown);
  }
}

void LookAtContainer(const k8s::v1::Container& container, absl::string_view path, UnknownField* unknown) {
  unknown->Look(container, path, 25);
  unknown->Look(container.resources(), path, 3);
  unknown->LookAtAll(container.ports(), path, 5);
  unknown->LookAtAll(container.volume_mounts(), path, 8);
  unknown->LookAtAll(container.restart_policy_rules(), path, 2);
}

void LookAtSpec(const k8s::v1::PodSpec& spec, UnknownField* unknown) {
  unknown->Look(spec, "spec", 44);
  for (const k8s::v1::Container& container : spec.containers()) {
    LookAtContainer(container, "spec.containers", unknown);
  }
  for (const k8s::v1::Container& container : spec.init_containers()) {
    LookAtContainer(container, "spec.initContainers", unknown);
  }
  for (const k8s::v1::EphemeralContainer& container : spec.ephemeral_containers()) {
    unknown->Look(container, "spec.ephemeralContainers", 2);
    LookAtContainer(container.common(), "spec.ephemeralContainers", unknown);
  }
  for (const k8s::v1::Volume& volume : spec.volumes()) {
    unknown->Look(volume, "spec.volumes", 2);
    unknown->Look(volume.volume_source(), "spec.volumes", 30);
  }
  unknown->Look(spec.resources(), "spec.resources", 3);
  unknown->LookAtAll(spec.tolerations(), "spec.tolerations", 5);
  unknown->LookAtAll(spec.resource_claims(), "spec.resourceClaims", 4);
  for (const k8s::v1::TopologySpreadConstraint& constraint : spec.topology_spread_constraints()) {
    unknown->Look(constraint, "spec.topologySpreadConstraints", 8);
    LookAtSelector(constraint.label_selector(), "spec.topologySpreadConstraints", unknown);
  }
  if (!spec.has_affinity()) return;
  unknown->Look(spec.affinity(), "spec.affinity", 3);
  unknown->Look(spec.affinity().node_affinity(), "spec.affinity.nodeAffinity", 2);
  LookAtSelector(spec.affinity().node_affinity().required(), unknown);
  LookAtTerms(spec.affinity().pod_affinity(), "spec.affinity.podAffinity", unknown);
  LookAtTerms(spec.affinity().pod_anti_affinity(), "spec.affinity.podAntiAffinity", unknown);
}

std::string ByAnnotation(const k8s::v1::ObjectMeta& metadata) {
  const std::string* const fields = FindEntry(metadata.annotations(), kUnknownFieldsAnnotation);
  return fields != nullptr ? Printable(*fields, kMaxFieldLength) : std::string();
}

}  // namespace

std::string UnknownFieldOf(const k8s::v1::Pod& message) {
  if (std::string reported = ByAnnotation(message.metadata()); !reported.empty()) return reported;
  UnknownField unknown;
  LookAtSpec(message.spec(), &unknown);
  return unknown.found();
}

std::string UnknownFieldOf(const k8s::v1::Node& message) {
  if (std::string reported = ByAnnotation(message.metadata()); !reported.empty()) return reported;
  UnknownField unknown;
  unknown.Look(message.spec(), "spec", 8);
  unknown.LookAtAll(message.spec().taints(), "spec.taints", 4);
  return unknown.found();
}

}  // namespace loadline
