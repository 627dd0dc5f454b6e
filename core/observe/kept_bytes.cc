#include "core/observe/kept_bytes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "core/observe/loop_memory.h"
#include "core/observe/loop_memory_bytes.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_options.h"

namespace loadline {
namespace {

void WriteAmounts(const CpuMemory& amounts, StateWriter* out) {
  out->Number(static_cast<uint64_t>(amounts.cpu));
  out->Number(static_cast<uint64_t>(amounts.memory));
}

// Amounts up to 2^62.
int64_t ReadAmount(StateReader* in) { return static_cast<int64_t>(in->Below((uint64_t{1} << 62) + 1)); }

CpuMemory ReadAmounts(StateReader* in) {
  CpuMemory amounts;
  amounts.cpu = ReadAmount(in);
  amounts.memory = ReadAmount(in);
  return amounts;
}

void WriteSize(const GroupState& size, StateWriter* out) {
  out->Number(size.cached_node.has_value() ? 1 : 0);
  if (size.cached_node.has_value()) WriteAmounts(*size.cached_node, out);
  out->Optional(size.locked_ms);
  out->Number(static_cast<uint64_t>(std::min(size.requested, kMostNodes)));
  out->Number(size.expected.has_value() ? 1 : 0);
  if (size.expected.has_value()) out->Number(static_cast<uint64_t>(std::min(*size.expected, kMostNodes)));
  out->Number(size.asked.has_value() ? 1 : 0);
  if (!size.asked.has_value()) return;
  out->Number(static_cast<uint64_t>(size.asked->ms));
  out->Number(static_cast<uint64_t>(std::min(size.asked->target, kMostNodes)));
}

GroupState ReadSize(StateReader* in) {
  constexpr uint64_t kEndOfNodes = uint64_t{kMostNodes} + 1;
  GroupState size;
  if (in->Below(2) == 1) size.cached_node = ReadAmounts(in);
  size.locked_ms = in->Optional();
  size.requested = static_cast<int64_t>(in->Below(kEndOfNodes));
  if (in->Below(2) == 1) size.expected = static_cast<int64_t>(in->Below(kEndOfNodes));
  if (in->Below(2) == 1) {
    GroupState::Asked asked;
    asked.ms = in->Time();
    asked.target = static_cast<int64_t>(in->Below(kEndOfNodes));
    size.asked = asked;
  }
  return size;
}

void WriteTexts(const LabelKeys& texts, StateWriter* out) {
  out->Number(texts.size());
  for (const std::string& text : texts) out->Text(text);
}

LabelKeys ReadTexts(StateReader* in) {
  LabelKeys texts;
  const uint64_t size = in->Below(kMostSlackBytes);  // each takes a byte at least
  for (uint64_t i = 0; i < size && in->ok(); ++i) texts.push_back(in->Text(kMostSlackBytes));
  return texts;
}

void WriteGroup(const KeptSlack::Group& group, StateWriter* out) {
  out->Text(group.of.owner);
  out->Number(static_cast<uint64_t>(group.of.kind));
  WriteAmounts(group.of.size, out);
  out->Number(static_cast<uint64_t>(group.count));
}

KeptSlack::Group ReadGroup(StateReader* in) {
  KeptSlack::Group group;
  group.of.owner = in->Text(kMostSlackBytes);
  group.of.kind = static_cast<PlaceholderKind>(in->Below(3));
  group.of.size = ReadAmounts(in);
  group.count = static_cast<int64_t>(in->Below(kMostPlaceholders + 1));
  return group;
}

}  // namespace

void WriteSizes(const absl::btree_map<std::string, GroupState>& sizes, size_t most_bytes, StateWriter* out) {
  std::string entries;
  for (const auto& [group, size] : sizes) {
    StateWriter entry;
    entry.Text(group);
    WriteSize(size, &entry);
    if (entries.size() + entry.bytes().size() > most_bytes) break;
    entries += entry.bytes();
  }
  out->Text(entries);
}

absl::btree_map<std::string, GroupState> ReadSizes(StateReader* in) {
  absl::btree_map<std::string, GroupState> sizes;
  const std::string bytes = in->Text(kMostSizeBytes);
  StateReader entries(bytes);
  while (entries.ok() && !entries.AtEnd()) {
    if (sizes.size() == kMostSizedGroups) entries.Fail();
    std::string group = entries.Text(kMostGroupNameBytes);
    if (!sizes.emplace(std::move(group), ReadSize(&entries)).second) entries.Fail();
  }
  if (!entries.ok()) in->Fail();
  return sizes;
}

void WriteSlack(const std::optional<KeptSlack>& slack, size_t most_bytes, StateWriter* out) {
  StateWriter parts;
  if (slack.has_value()) {
    WriteTexts(slack->class_labels, &parts);
    WriteTexts(slack->selected_labels, &parts);
    parts.Number(slack->excesses.size());
    for (const SlackState::Excess& excess : slack->excesses) {
      parts.Text(excess.class_name);
      parts.Number(static_cast<uint64_t>(excess.since_s));
    }
    for (const KeptSlack::Group& group : slack->groups) WriteGroup(group, &parts);
  }
  out->Text(parts.bytes().size() <= most_bytes ? parts.bytes() : "");
}

std::optional<KeptSlack> ReadSlack(StateReader* in) {
  const std::string bytes = in->Text(kMostSlackBytes);
  if (bytes.empty()) return std::nullopt;
  StateReader parts(bytes);
  KeptSlack slack;
  slack.class_labels = ReadTexts(&parts);
  slack.selected_labels = ReadTexts(&parts);
  const uint64_t excesses = parts.Below(kMostSlackBytes);
  for (uint64_t i = 0; i < excesses && parts.ok(); ++i) {
    std::string name = parts.Text(kMostSlackBytes);
    slack.excesses.push_back({std::move(name), parts.Time()});
  }
  int64_t placeholders = 0;
  while (parts.ok() && !parts.AtEnd()) {
    slack.groups.push_back(ReadGroup(&parts));
    placeholders += slack.groups.back().count;
    if (placeholders > kMostPlaceholders) parts.Fail();
  }
  if (!parts.ok()) in->Fail();
  return slack;
}

}  // namespace loadline
