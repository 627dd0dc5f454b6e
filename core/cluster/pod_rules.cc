#include "core/cluster/pod_rules.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"
#include "core/cluster/content_bytes.h"
#include "core/cluster/identity.h"

namespace loadline {
namespace {

template <typename Builder>
void AddText(const std::string& text, Builder* builder) {
  builder->Add(absl::string_view(text));
}

template <typename Builder>
void AddTexts(const std::vector<std::string>& texts, Builder* builder) {
  builder->Add(static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) AddText(text, builder);
}

template <typename Element, typename Builder>
void AddAll(const std::vector<Element>& elements, Builder* builder) {
  builder->Add(static_cast<int64_t>(elements.size()));
  for (const Element& element : elements) element.AddTo(builder);
}

void AddKeys(const LabelSelector& selector, std::vector<std::string>* keys) {
  for (const Requirement& requirement : selector.requirements) keys->push_back(requirement.key);
}

}  // namespace

template <typename Builder>
void Taint::AddTo(Builder* builder) const {
  for (const std::string* text : {&key, &value, &effect}) AddText(*text, builder);
}

bool Toleration::Tolerates(const Taint& taint) const {
  if (!effect.empty() && effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (op == "Exists") return true;
  return (op.empty() || op == "Equal") && value == taint.value;
}

template <typename Builder>
void Toleration::AddTo(Builder* builder) const {
  for (const std::string* text : {&key, &op, &value, &effect}) AddText(*text, builder);
}

bool HostPort::ConflictsWith(const HostPort& other) const {
  static constexpr char kAnyAddress[] = "0.0.0.0";
  if (port != other.port || protocol != other.protocol) return false;
  return ip == other.ip || ip == kAnyAddress || other.ip == kAnyAddress;
}

template <typename Builder>
void AffinityTerm::AddTo(Builder* builder) const {
  selector.AddTo(builder);
  AddText(topology_key, builder);
  AddTexts(namespaces, builder);
  namespace_selector.AddTo(builder);
}

template <typename Builder>
void SpreadConstraint::AddTo(Builder* builder) const {
  builder->Add(int64_t{max_skew});
  AddText(topology_key, builder);
  selector.AddTo(builder);
  builder->Add(int64_t{min_domains});
  builder->Add(int64_t{honor_affinity});
  builder->Add(int64_t{honor_taints});
}

template <typename Builder>
void PodVolume::AddTo(Builder* builder) const {
  builder->Add(static_cast<int64_t>(kind));
  AddText(name, builder);
  AddText(pool, builder);
  AddTexts(monitors, builder);
  builder->Add(int64_t{read_only});
}

bool PodRules::IsPlain() const { return *this == PodRules(); }

std::vector<std::string> PodRules::NodeLabelKeys() const {
  std::vector<std::string> keys;
  for (const Label& label : node_selector) keys.push_back(label.key);
  if (node_affinity.has_value()) {
    for (const NodeSelectorTerm& term : node_affinity->terms) {
      for (const Requirement& requirement : term.labels) keys.push_back(requirement.key);
    }
  }
  std::erase(keys, kHostnameLabel);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void PodRules::AddLabelKeys(std::vector<std::string>* keys) const {
  for (const SpreadConstraint& constraint : spread) AddKeys(constraint.selector, keys);
  for (const AffinityTerm& term : affinity) AddKeys(term.selector, keys);
  for (const AffinityTerm& term : anti_affinity) AddKeys(term.selector, keys);
}

template <typename Builder>
void PodRules::AddTo(Builder* builder) const {
  AddText(node_name, builder);
  node_selector.AddTo(builder);
  builder->Add(int64_t{node_affinity.has_value()});
  if (node_affinity.has_value()) node_affinity->AddTo(builder);
  AddAll(tolerations, builder);
  builder->Add(static_cast<int64_t>(host_ports.size()));
  for (const HostPort& port : host_ports) {
    builder->Add(int64_t{port.port});
    AddText(port.protocol, builder);
    AddText(port.ip, builder);
  }
  AddAll(spread, builder);
  builder->Add(int64_t{has_spread});
  AddAll(affinity, builder);
  AddAll(anti_affinity, builder);
  AddAll(volumes, builder);
  builder->Add(int64_t{claims_resources});
  builder->Add(int64_t{terminating});
  AddText(affinity_error, builder);
  AddText(spread_error, builder);
  AddTexts(required_features, builder);
  AddText(scheduler_name, builder);
  AddText(unknown_field, builder);
}

template void Taint::AddTo(FingerprintBuilder*) const;
template void Taint::AddTo(IdentityBuilder*) const;
template void Taint::AddTo(MemoryBuilder*) const;
template void Toleration::AddTo(FingerprintBuilder*) const;
template void Toleration::AddTo(IdentityBuilder*) const;
template void Toleration::AddTo(MemoryBuilder*) const;
template void AffinityTerm::AddTo(FingerprintBuilder*) const;
template void AffinityTerm::AddTo(IdentityBuilder*) const;
template void AffinityTerm::AddTo(MemoryBuilder*) const;
template void SpreadConstraint::AddTo(FingerprintBuilder*) const;
template void SpreadConstraint::AddTo(IdentityBuilder*) const;
template void SpreadConstraint::AddTo(MemoryBuilder*) const;
template void PodVolume::AddTo(FingerprintBuilder*) const;
template void PodVolume::AddTo(IdentityBuilder*) const;
template void PodVolume::AddTo(MemoryBuilder*) const;
template void PodRules::AddTo(FingerprintBuilder*) const;
template void PodRules::AddTo(IdentityBuilder*) const;

}  // namespace loadline
