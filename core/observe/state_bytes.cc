#include "core/observe/state_bytes.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/texts.h"
#include "core/observe/devices.h"
#include "core/observe/state_coder.h"

namespace loadline {
namespace {

constexpr absl::string_view kMagic = "LLFS";
constexpr size_t kHeaderBytes = 4 + 1 + 8;
constexpr uint64_t kRequestBit = 1, kDelaysBit = 2;
constexpr uint64_t kHadNodeBit = 1, kInheritedBit = 2, kFaultyBit = 4;

using KeyedMachine = std::pair<uint64_t, MachineMemory>;

size_t TextShare(const FleetState& state) {
  size_t texts = 0;
  for (const auto& [key, group] : state.groups) texts += group.back_off.has_value() ? size_t{1} : 0;
  return std::min(kMostBackOffText, kMostBackOffTexts / std::max<size_t>(texts, 1));
}

void WriteGroup(uint64_t key, const GroupMemory& group, size_t text_share, StateWriter* out) {
  out->Key(key);
  out->Optional(group.target);
  out->Optional(group.short_since_ms);
  const bool delays = group.grown_ms.has_value() || group.deleted_ms.has_value();
  out->Number((group.request.has_value() ? kRequestBit : 0) | (delays ? kDelaysBit : 0));
  if (group.request.has_value()) {
    out->Signed(group.request->from);
    out->Number(static_cast<uint64_t>(group.request->nodes));
    out->Number(static_cast<uint64_t>(group.request->until_ms));
  }
  if (delays) {
    out->Optional(group.grown_ms);
    out->Optional(group.deleted_ms);
  }
  out->Number(group.back_off.has_value() ? 1 + static_cast<uint64_t>(group.back_off->reason) : 0);
  if (group.back_off.has_value()) {
    out->Number(static_cast<uint64_t>(group.back_off->since_ms));
    out->Number(static_cast<uint64_t>(group.back_off->until_ms));
    out->Number(static_cast<uint64_t>(group.back_off->duration_ms));
    out->Text(CutText(group.back_off->text, text_share));
  }
  out->Number(group.devices.size());
  for (const uint64_t device : group.devices) out->Key(device);
}

GroupMemory ReadGroup(StateReader* in) {
  GroupMemory group;
  group.target = in->Optional();
  group.short_since_ms = in->Optional();
  const uint64_t bits = in->Below(4);
  if ((bits & kRequestBit) != 0) {
    const int64_t from = in->Signed(), nodes = in->Time(), until_ms = in->Time();
    group.request = OpenRequest{from, nodes, until_ms};
  }
  if ((bits & kDelaysBit) != 0) {
    group.grown_ms = in->Optional();
    group.deleted_ms = in->Optional();
    if (!group.grown_ms.has_value() && !group.deleted_ms.has_value()) in->Fail();
  }
  if (const uint64_t reason = in->Below(kBackOffReasons + 1); reason > 0) {
    BackOff back_off;
    back_off.reason = static_cast<BackOffReason>(reason - 1);
    back_off.since_ms = in->Time();
    back_off.until_ms = in->Time();
    back_off.duration_ms = in->Time();
    back_off.text = in->Text(kMostBackOffText);
    group.back_off = std::move(back_off);
  }
  const uint64_t devices = in->Below(kMostDevices + 1);
  for (uint64_t i = 0; i < devices && in->ok(); ++i) group.devices.push_back(in->Key());
  if (!std::is_sorted(group.devices.begin(), group.devices.end())) in->Fail();
  return group;
}

bool HadNodeOnly(const MachineMemory& machine) { return machine == MachineMemory{.had_node = true}; }

// Returns the machines under way; if there are too many, those that will be late first.
std::vector<KeyedMachine> MachinesUnderWay(const FleetState& state) {
  std::vector<KeyedMachine> machines;
  for (const auto& [key, machine] : state.machines) {
    if (!HadNodeOnly(machine)) machines.emplace_back(key, machine);
  }
  if (machines.size() <= kMostMachinesUnderWay) return machines;
  const auto since = [](const KeyedMachine& machine) {
    return std::make_pair(machine.second.missing_since_ms.value_or(INT64_MAX), machine.first);
  };
  std::sort(machines.begin(), machines.end(),
            [&](const KeyedMachine& a, const KeyedMachine& b) { return since(a) < since(b); });
  machines.resize(kMostMachinesUnderWay);
  std::sort(machines.begin(), machines.end(),
            [](const KeyedMachine& a, const KeyedMachine& b) { return a.first < b.first; });
  return machines;
}

void WriteMachines(const FleetState& state, StateWriter* out) {
  const std::vector<KeyedMachine> under_way = MachinesUnderWay(state);
  out->Number(under_way.size());
  for (const auto& [key, machine] : under_way) {
    out->Key(key);
    out->Number((machine.had_node ? kHadNodeBit : 0) | (machine.inherited ? kInheritedBit : 0) |
                (machine.faulty ? kFaultyBit : 0));
    out->Optional(machine.missing_since_ms);
    out->Optional(machine.given_up_ms);
  }
  std::vector<uint64_t> with_nodes;
  for (const auto& [key, machine] : state.machines) {
    if (HadNodeOnly(machine)) with_nodes.push_back(key);
  }
  if (with_nodes.size() > kMostMachinesWithNodes) with_nodes.resize(kMostMachinesWithNodes);
  out->Number(with_nodes.size());
  for (const uint64_t key : with_nodes) out->Key(key);
}

void ReadMachines(StateReader* in, FleetState* state) {
  const uint64_t under_way = in->Below(kMostMachinesUnderWay + 1);
  for (uint64_t i = 0; i < under_way && in->ok(); ++i) {
    const uint64_t key = in->Key();
    const uint64_t bits = in->Below(8);
    MachineMemory machine{.had_node = (bits & kHadNodeBit) != 0,
                          .inherited = (bits & kInheritedBit) != 0,
                          .faulty = (bits & kFaultyBit) != 0};
    machine.missing_since_ms = in->Optional();
    machine.given_up_ms = in->Optional();
    if (!state->machines.emplace(key, machine).second) in->Fail();
  }
  const uint64_t with_nodes = in->Below(kMostMachinesWithNodes + 1);
  for (uint64_t i = 0; i < with_nodes && in->ok(); ++i) {
    if (!state->machines.emplace(in->Key(), MachineMemory{.had_node = true}).second) in->Fail();
  }
}

}  // namespace

std::string EncodeFleetState(const FleetState& state) {
  StateWriter out;
  out.Number(state.looked ? 1 : 0);
  out.Optional(state.grown_ms);
  out.Optional(state.deleted_ms);
  out.Optional(state.taint_failed_ms);
  out.Number(state.groups.size());
  const size_t text_share = TextShare(state);
  for (const auto& [key, group] : state.groups) WriteGroup(key, group, text_share, &out);
  WriteMachines(state, &out);
  StateWriter header;
  header.Key(FleetKey(out.bytes()));
  return absl::StrCat(kMagic, std::string(1, static_cast<char>(kFleetStateVersion)), header.bytes(),
                      out.bytes());
}

absl::StatusOr<FleetState> DecodeFleetState(absl::string_view bytes) {
  const auto refused = [](absl::string_view why) { return absl::InvalidArgumentError(why); };
  if (bytes.size() > kMostFleetStateBytes) return refused("is larger than any state");
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return refused("is no state of a fleet");
  }
  if (const int version = static_cast<unsigned char>(bytes[kMagic.size()]); version != kFleetStateVersion) {
    return refused(absl::StrCat("has version ", version, ", and version ", kFleetStateVersion, " is read"));
  }
  const absl::string_view payload = bytes.substr(kHeaderBytes);
  if (StateReader(bytes.substr(kMagic.size() + 1)).Key() != FleetKey(payload)) {
    return refused("is damaged: its checksum is wrong");
  }
  StateReader in(payload);
  FleetState state;
  state.looked = in.Below(2) == 1;
  state.grown_ms = in.Optional();
  state.deleted_ms = in.Optional();
  state.taint_failed_ms = in.Optional();
  const uint64_t groups = in.Below(kMostStateGroups + 1);
  for (uint64_t i = 0; i < groups && in.ok(); ++i) {
    const uint64_t key = in.Key();
    if (!state.groups.emplace(key, ReadGroup(&in)).second) in.Fail();
  }
  ReadMachines(&in, &state);
  if (!in.ok() || !in.AtEnd()) return refused("is made up: it holds what no state holds");
  return state;
}

}  // namespace loadline
