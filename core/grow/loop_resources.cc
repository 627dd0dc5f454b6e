#include "core/grow/loop_resources.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/node_kind.h"

namespace loadline {
namespace {

CountedNode OfferOfNode(const NodeShape& node, const ResourceNames& names,
                        std::span<const std::string> gpu_labels) {
  return {OfferOf(node, names, gpu_labels), &node.labels};
}

// Returns whether the maxima count a node. The stated offer of a virtual node is nobody's machine.
bool IsCounted(const DrainProblem& drain, Slot slot) {
  return drain.cluster->Occupied(slot) &&
         KindForPlan(*drain.cluster, slot, drain.group_of) != NodeKind::kVirtual;
}

// Returns the labels of the nodes that each group has.
StrongVector<GroupIndex, std::vector<const Labels*>> LabelsOfGroups(const DrainProblem& drain,
                                                                    size_t groups) {
  StrongVector<GroupIndex, std::vector<const Labels*>> labels(groups);
  for (const auto [slot, group] : drain.group_of) {
    if (IsCounted(drain, slot)) labels[group].push_back(&drain.cluster->node_shape(slot).labels);
  }
  return labels;
}

}  // namespace

OffersOfGroups OffersOf(NodeGroupSpan groups, const ResourceNames& names,
                        std::span<const std::string> gpu_labels) {
  OffersOfGroups offers(groups.size());
  for (const GroupIndex group : groups.indices()) {
    if (!groups[group].model.has_value()) continue;
    offers[group] = OfferOfNode(groups[group].model->shape, names, gpu_labels);
    offers[group]->group = group;
  }
  return offers;
}

ResourceRoom RoomBesideNodes(std::span<const NodeMaximum> maxima, const DrainProblem& drain,
                             const OffersOfGroups& offers, const ResourceNames& names,
                             std::span<const std::string> gpu_labels) {
  ResourceRoom room({maxima.begin(), maxima.end()});
  if (room.unlimited()) return room;
  for (int32_t i = 0; i < drain.cluster->slot_end(); ++i) {
    const Slot slot{i};
    if (!IsCounted(drain, slot)) continue;
    CountedNode offer = OfferOfNode(drain.cluster->node_shape(slot), names, gpu_labels);
    // Its group says how many GPUs will be there where they are not yet.
    const std::optional<GroupIndex> group = drain.group_of[slot];
    if (!offer.gpu_type.empty() && offer.gpus == 0 && group.has_value() && offers[*group].has_value())
      offer.gpus = offers[*group]->gpus;
    room.Take(offer, 1);
  }
  const StrongVector<GroupIndex, std::vector<const Labels*>> labels = LabelsOfGroups(drain, offers.size());
  for (const GroupIndex group : labels.indices()) room.Learn(group, labels[group]);
  return room;
}

std::vector<std::string> WarningsOfMaxima(std::span<const NodeMaximum> maxima, NodeGroupSpan groups,
                                          const DrainProblem& drain) {
  std::vector<std::string> warnings;
  if (maxima.empty()) return warnings;
  const StrongVector<GroupIndex, std::vector<const Labels*>> labels = LabelsOfGroups(drain, groups.size());
  for (const NodeMaximum& maximum : maxima) {
    if (maximum.selector.Everything()) continue;
    std::string first;
    int64_t others = 0;
    for (const GroupIndex group : groups.indices()) {
      const std::optional<NodeModel>& model = groups[group].model;
      if (!model.has_value() || model->source != ModelSource::kStated) continue;
      const auto selected =
          absl::c_count_if(labels[group], [&](const Labels* of) { return maximum.selector.Matches(*of); });
      if (selected == 0 || maximum.selector.Matches(model->shape.labels)) continue;
      others += first.empty() ? 0 : 1;
      if (!first.empty()) continue;
      first = absl::StrCat(maximum.name, " selects ", selected, " of ", labels[group].size(),
                           " nodes of node group ", groups[group].name,
                           ", but not the template of new nodes: they count only while "
                           "most nodes of the group are selected; add the labels to the template");
    }
    if (first.empty()) continue;
    if (others > 0)
      absl::StrAppend(&first, "; likewise ", others,
                      others == 1 ? " other node group" : " other node groups");
    warnings.push_back(std::move(first));
  }
  return warnings;
}

}  // namespace loadline
