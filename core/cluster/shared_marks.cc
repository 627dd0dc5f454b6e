#include "core/cluster/shared_marks.h"

#include <iterator>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "core/cluster/node_model.h"
#include "core/cluster/platform_labels.h"

namespace loadline {
namespace {

// Counts the nodes with a label of each value, for those keys that are asked about.
class LabelCounts {
 public:
  template <typename IsAsked>
  LabelCounts(std::span<const Alike> alike, IsAsked is_asked) : all_(CountNodes(alike)) {
    for (const Alike& of : alike) {
      for (const Label& label : of.shape->labels) {
        if (is_asked(label.key)) counts_[{label.key, label.value}] += of.nodes;
      }
    }
  }

  // Returns the labels that more than half of these nodes have, by key, each with the value that a new node
  // is expected to have: the most frequent one if it names a zone or the type of a machine, else the one that
  // more than half have, else kOneOfSeveral.
  absl::btree_map<absl::string_view, absl::string_view> Shared() const {
    absl::btree_map<absl::string_view, absl::string_view> shared;
    for (const auto& [key, of] : ByKey()) {
      if (of.nodes <= all_ / 2) continue;
      const bool has_one = of.most > all_ / 2 || IsZoneLabel(key) || IsInstanceTypeLabel(key);
      if (has_one || !IsPlaceLabel(key)) shared[key] = has_one ? of.value : kOneOfSeveral;
    }
    return shared;
  }

 private:
  struct OfKey {
    int64_t nodes = 0;
    int64_t most = 0;
    absl::string_view value;  // of most nodes; the first by name among equals
  };
  absl::btree_map<absl::string_view, OfKey> ByKey() const {
    absl::btree_map<absl::string_view, OfKey> keys;
    for (const auto& [label, nodes] : counts_) {
      OfKey& of = keys[label.first];
      of.nodes += nodes;
      if (nodes < of.most || (nodes == of.most && label.second > of.value)) continue;
      of.most = nodes;
      of.value = label.second;
    }
    return keys;
  }

  int64_t all_;
  absl::flat_hash_map<std::pair<absl::string_view, absl::string_view>, int64_t> counts_;
};

// Returns the zone that the next node is expected in, and sets all of them if there are several.
std::string NextZone(std::span<const Alike> alike, std::vector<std::string>* zones) {
  absl::btree_map<absl::string_view, int64_t> nodes;
  for (const Alike& of : alike) nodes[ZoneOf(of.shape->labels)] += of.nodes;
  // A controller has yet to label some; where most have no zone, somebody has labelled the others.
  if (2 * nodes[""] > CountNodes(alike)) return "";
  nodes.erase("");
  if (nodes.size() > 1) {
    for (const auto& [zone, count] : nodes) zones->push_back(std::string(zone));
  }
  const auto next = absl::c_min_element(nodes, [](const auto& a, const auto& b) {
    return std::tie(a.second, a.first) < std::tie(b.second, b.first);
  });
  return next == nodes.end() ? "" : std::string(next->first);
}

bool MostHave(std::span<const Alike> alike, absl::string_view key) {
  int64_t with = 0;
  for (const Alike& of : alike) with += of.shape->labels.Find(key) != nullptr ? of.nodes : 0;
  return 2 * with > CountNodes(alike);
}

// Returns the value that more than half of the nodes state under any of the keys, for the type of a machine
// the most frequent one; empty: there is none.
std::string MostFrequent(std::span<const Alike> alike, std::span<const absl::string_view> keys) {
  absl::btree_map<absl::string_view, int64_t> counts;
  int64_t stated = 0;
  for (const Alike& of : alike) {
    const absl::string_view value = FirstOf(of.shape->labels, keys);
    if (value.empty()) continue;
    counts[value] += of.nodes;
    stated += of.nodes;
  }
  const auto most = absl::c_max_element(
      counts, [](const auto& a, const auto& b) { return a.second < b.second; });  // the first of equal ones
  if (most == counts.end()) return "";
  const int64_t enough = IsInstanceTypeLabel(keys.front()) ? stated : most->second;
  return 2 * enough > CountNodes(alike) ? std::string(most->first) : "";
}

std::string DefaultOf(absl::string_view key) {
  if (key == kOperatingSystemLabel) return "linux";
  return key == kArchitectureLabel ? "amd64" : "";
}

using SharedTaint = std::tuple<std::string, std::string, std::string>;

absl::btree_set<SharedTaint> SharedTaints(std::span<const Alike> alike, const StartupTaints& names) {
  absl::btree_map<SharedTaint, int64_t> counts;
  for (const Alike& of : alike) {
    for (const Taint& taint : LastingTaints(of.shape->taints, names)) {
      counts[{taint.key, taint.value, taint.effect}] += of.nodes;
    }
  }
  const int64_t half = CountNodes(alike) / 2;
  absl::btree_set<SharedTaint> shared;
  for (const auto& [taint, nodes] : counts) {
    if (nodes > half) shared.insert(taint);
  }
  return shared;
}

}  // namespace

std::vector<Alike> ByShape(const ClusterState& cluster, std::span<const Slot> nodes) {
  absl::flat_hash_map<int32_t, size_t> known;
  std::vector<Alike> alike;
  int32_t last = -1;
  size_t of_last = 0;
  for (const Slot slot : nodes) {
    const int32_t shape = cluster.shape_number(slot);
    if (shape != last) {
      const auto [at, is_new] = known.try_emplace(shape, alike.size());
      if (is_new) alike.push_back({&cluster.node_shape(slot), 0});
      last = shape;
      of_last = at->second;
    }
    ++alike[of_last].nodes;
  }
  return alike;
}

int64_t CountNodes(std::span<const Alike> alike) {
  int64_t nodes = 0;
  for (const Alike& of : alike) nodes += of.nodes;
  return nodes;
}

void ShareMarks(std::span<const Alike> healthy, std::span<const Alike> started, const StartupTaints& names,
                NodeShape* shape) {
  const auto names_no_zone = [](absl::string_view key) { return !IsZoneLabel(key); };
  const auto of_started = LabelCounts(started, names_no_zone).Shared();
  for (const auto& [key, value] : LabelCounts(healthy, names_no_zone).Shared()) {
    const auto found = of_started.find(key);
    if (found == of_started.end()) continue;
    const bool one_value = found->second == value || IsInstanceTypeLabel(key);
    if (one_value || !IsPlaceLabel(key)) shape->labels.Set(key, one_value ? value : kOneOfSeveral);
  }
  const absl::btree_set<SharedTaint> taints = SharedTaints(started, names);
  for (const SharedTaint& taint : SharedTaints(healthy, names)) {
    if (!taints.contains(taint)) continue;
    shape->taints.push_back({std::get<0>(taint), std::get<1>(taint), std::get<2>(taint)});
  }
}

void DropLabelsOf(absl::string_view node, Labels* labels) {
  std::vector<Label> kept;
  absl::c_copy_if(*labels, std::back_inserter(kept), [&](const Label& label) { return label.value != node; });
  *labels = Labels(std::move(kept));
}

void AddCloudLabels(std::span<const Alike> alike, Labels* labels) {
  for (const std::span<const absl::string_view> keys : KeysOfFacts()) {
    if (!alike.empty() && IsZoneLabel(keys.front())) continue;  // see AddZoneLabels()
    std::string value(FirstOf(*labels, keys));
    if (value.empty()) value = alike.empty() ? DefaultOf(keys.front()) : MostFrequent(alike, keys);
    if (value.empty()) continue;
    for (const absl::string_view key : keys) {
      if (labels->Find(key) == nullptr && (alike.empty() || MostHave(alike, key))) labels->Set(key, value);
    }
    // The nodes may use different keys.
    if (FirstOf(*labels, keys).empty()) labels->Set(keys.front(), value);
  }
}

void AddZoneLabels(std::span<const Alike> alike, bool has_template, Labels* labels,
                   std::vector<std::string>* zones) {
  std::string zone(ZoneOf(*labels));
  if (zone.empty()) zone = NextZone(alike, zones);
  std::vector<Alike> there;
  absl::c_copy_if(alike, std::back_inserter(there),
                  [&](const Alike& of) { return ZoneOf(of.shape->labels) == zone; });
  for (const auto& [key, value] : LabelCounts(there, IsZoneLabel).Shared()) {
    if (!has_template || labels->Find(key) == nullptr) labels->Set(key, value);
  }
  // The nodes there may use different keys.
  if (!zone.empty() && ZoneOf(*labels).empty()) labels->Set(kZoneLabel, zone);
}

}  // namespace loadline
