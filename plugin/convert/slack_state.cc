#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/slack.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// A text, or in its place a position in the names of the state.
absl::Status Resolve(absl::string_view field, int64_t position, const v1::SlackState& state,
                     std::string* text) {
  if (position == 0) return absl::OkStatus();
  if (absl::Status status = CheckRange(field, position, 1, state.names_size()); !status.ok()) return status;
  *text = state.names(static_cast<int>(position - 1));
  return absl::OkStatus();
}

absl::StatusOr<Placeholder> DecodePlaceholder(v1::Placeholder message, const v1::SlackState& state) {
  Placeholder placeholder;
  absl::Status status = CheckRange("id", message.id(), 1, state.next_id() - 1);
  if (status.ok()) status = Resolve("owner_name", message.owner_name(), state, message.mutable_owner());
  if (status.ok()) status = Resolve("node_name", message.node_name(), state, message.mutable_node());
  if (status.ok()) {
    status = Resolve("last_node_name", message.last_node_name(), state, message.mutable_last_node());
  }
  if (status.ok()) status = CheckRange("milli_cpu", message.milli_cpu(), 0, kMaxAmount);
  if (status.ok()) status = CheckRange("memory_bytes", message.memory_bytes(), 0, kMaxAmount);
  if (status.ok()) status = Annotate(CheckName(message.node()), "node");
  if (status.ok()) status = Annotate(CheckName(message.last_node()), "last_node");
  if (status.ok() && (message.owner().empty() || message.owner().size() > kMaxOwnerLength)) {
    status =
        Refused(absl::StrCat("owner: has ", message.owner().size(), " bytes, not 1 to ", kMaxOwnerLength));
  }
  if (!status.ok()) return status;
  switch (message.kind()) {
    case v1::Placeholder::STANDARD:
      break;
    case v1::Placeholder::RESERVED:
      placeholder.kind = PlaceholderKind::kReserved;
      break;
    case v1::Placeholder::MIRRORED:
      placeholder.kind = PlaceholderKind::kMirrored;
      break;
    default:
      return Refused(absl::StrCat("kind: ", static_cast<int>(message.kind()), " is not known"));
  }
  placeholder.id = message.id();
  placeholder.owner = message.owner();
  placeholder.size = {message.milli_cpu(), message.memory_bytes()};
  placeholder.node = message.node();
  placeholder.last_node = message.last_node().empty() ? message.node() : message.last_node();
  return placeholder;
}

}  // namespace

v1::Placeholder::Kind EncodePlaceholderKind(PlaceholderKind kind) {
  switch (kind) {
    case PlaceholderKind::kStandard:
      return v1::Placeholder::STANDARD;
    case PlaceholderKind::kReserved:
      return v1::Placeholder::RESERVED;
    case PlaceholderKind::kMirrored:
      return v1::Placeholder::MIRRORED;
  }
  return v1::Placeholder::KIND_UNSPECIFIED;
}

absl::StatusOr<SlackState> DecodeSlackState(const v1::SlackState& message) {
  SlackState state;
  if (absl::Status status = CheckRange("next_id", message.next_id(), 1, kMaxAmount); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckSize("placeholders", message.placeholders_size(), kMaxPlaceholders);
      !status.ok()) {
    return status;
  }
  state.next_id = message.next_id();
  for (int i = 0; i < message.placeholders_size(); ++i) {
    absl::StatusOr<Placeholder> placeholder = DecodePlaceholder(message.placeholders(i), message);
    if (placeholder.ok() && i > 0 && placeholder->id <= state.placeholders.back().id) {
      placeholder =
          Refused(absl::StrCat("id: ", placeholder->id, " does not follow ", state.placeholders.back().id));
    }
    if (!placeholder.ok()) return Annotate(placeholder.status(), absl::StrCat("placeholders[", i, "]"));
    state.placeholders.push_back(*std::move(placeholder));
  }
  state.class_labels.assign(message.class_labels().begin(), message.class_labels().end());
  if (absl::Status status = CheckSize("selected_labels", message.selected_labels_size(), kMostRemembered);
      !status.ok()) {
    return status;
  }
  state.selected_labels.assign(message.selected_labels().begin(), message.selected_labels().end());
  std::sort(state.selected_labels.begin(), state.selected_labels.end());
  for (const v1::SlackState::Excess& excess : message.excesses()) {
    state.excesses.push_back({excess.class_name(), excess.since_seconds()});
  }
  return state;
}

// Each name once: of thousands of placeholders there are a few owners, and some on each node.
v1::SlackState EncodeSlackState(const SlackState& state) {
  v1::SlackState message;
  absl::flat_hash_map<std::string, int32_t> positions;
  const auto position_of = [&](const std::string& name) {
    if (name.empty()) return 0;
    const auto [at, added] = positions.try_emplace(name, message.names_size() + 1);
    if (added) message.add_names(name);
    return at->second;
  };
  message.set_next_id(state.next_id);
  for (const Placeholder& placeholder : state.placeholders) {
    v1::Placeholder* const added = message.add_placeholders();
    added->set_id(placeholder.id);
    added->set_kind(EncodePlaceholderKind(placeholder.kind));
    added->set_owner_name(position_of(placeholder.owner));
    added->set_milli_cpu(placeholder.size.cpu);
    added->set_memory_bytes(placeholder.size.memory);
    added->set_node_name(position_of(placeholder.node));
    if (placeholder.last_node != placeholder.node) {
      added->set_last_node_name(position_of(placeholder.last_node));
    }
  }
  for (const std::string& key : state.class_labels) message.add_class_labels(key);
  for (const std::string& key : state.selected_labels) message.add_selected_labels(key);
  for (const SlackState::Excess& excess : state.excesses) {
    auto* const added = message.add_excesses();
    added->set_class_name(excess.class_name);
    added->set_since_seconds(excess.since_s);
  }
  return message;
}

}  // namespace loadline
