#include "core/loop/loop_memory_bytes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fleet/state_bytes.h"
#include "core/fleet/state_coder.h"

namespace loadline {
namespace {

constexpr absl::string_view kMemoryMagic = "LLLM";
constexpr size_t kMemoryHeaderBytes = 4 + 1 + 8;

void WriteAction(const OpenAction& action, StateWriter* out) {
  out->Number(static_cast<uint64_t>(action.id));
  out->Number(static_cast<uint64_t>(action.kind));
  out->Text(action.group);
  out->Number(static_cast<uint64_t>(action.at_ms));
  out->Number(static_cast<uint64_t>(action.from));
  out->Number(static_cast<uint64_t>(action.nodes));
  out->Number(action.for_pods ? 1 : 0);
  out->Optional(action.provision_ms);
  out->Number(action.machines.size());
  for (const uint64_t machine : action.machines) out->Key(machine);
}

OpenAction ReadAction(StateReader* in) {
  OpenAction action;
  action.id = in->Time();
  action.kind = static_cast<OpenAction::Kind>(in->Below(3));
  action.group = in->Text(kMostGroupNameBytes);
  action.at_ms = in->Time();
  action.from = in->Time();
  action.nodes = in->Time();
  action.for_pods = in->Below(2) == 1;
  action.provision_ms = in->Optional();
  const uint64_t machines = in->Below(kMostMachinesUnderWay + 1);
  for (uint64_t i = 0; i < machines && in->ok(); ++i) action.machines.push_back(in->Key());
  return action;
}

void WriteTimes(const absl::btree_map<uint64_t, int64_t>& times, size_t most, StateWriter* out) {
  const size_t size = std::min(times.size(), most);
  out->Number(size);
  auto at = times.begin();
  for (size_t i = 0; i < size; ++i, ++at) {
    out->Key(at->first);
    out->Number(static_cast<uint64_t>(at->second));
  }
}

void ReadTimes(size_t most, StateReader* in, absl::btree_map<uint64_t, int64_t>* times) {
  const uint64_t size = in->Below(most + 1);
  for (uint64_t i = 0; i < size && in->ok(); ++i) {
    const uint64_t key = in->Key();
    if (!times->emplace(key, in->Time()).second) in->Fail();
  }
}

std::string Payload(const LoopMemory& memory) {
  StateWriter out;
  out.Text(EncodeFleetState(memory.fleet));
  out.Number(static_cast<uint64_t>(memory.next_action));
  const size_t open = std::min(memory.open.size(), kMostOpenActions);
  out.Number(open);
  for (size_t i = memory.open.size() - open; i < memory.open.size(); ++i) WriteAction(memory.open[i], &out);
  out.Optional(memory.grown_for_pods_ms);
  out.Optional(memory.batch_since_ms);
  const size_t acknowledged = std::min(memory.acknowledged.size(), kMostDeletions);
  out.Number(acknowledged);
  auto at = memory.acknowledged.begin();
  for (size_t i = 0; i < acknowledged; ++i, ++at) out.Key(*at);
  WriteTimes(memory.abandoned_since_ms, kMostDeletions, &out);
  WriteTimes(memory.swap_refused_ms, kMostSwapRefusals, &out);
  constexpr size_t kBytesOfTimer = 8 + 6;  // a key, and seconds below 2^42
  const size_t left = kMostLoopMemoryBytes - kMemoryHeaderBytes -
                      std::min(out.bytes().size() + 8, kMostLoopMemoryBytes - kMemoryHeaderBytes);
  WriteTimes(memory.unneeded_since_s, std::min(kMostTimers, left / kBytesOfTimer), &out);
  return out.bytes();
}

}  // namespace

std::string EncodeLoopMemory(const LoopMemory& memory) {
  const std::string payload = Payload(memory);
  StateWriter checksum;
  checksum.Key(FleetKey(payload));
  return absl::StrCat(kMemoryMagic, std::string(1, static_cast<char>(kLoopMemoryVersion)), checksum.bytes(),
                      payload);
}

absl::StatusOr<LoopMemory> DecodeLoopMemory(absl::string_view bytes) {
  const auto refused = [](absl::string_view why) { return absl::InvalidArgumentError(why); };
  if (bytes.size() > kMostLoopMemoryBytes) return refused("is larger than any state");
  if (bytes.size() < kMemoryHeaderBytes || bytes.substr(0, kMemoryMagic.size()) != kMemoryMagic) {
    return refused("is no state of a loop");
  }
  const int version = static_cast<unsigned char>(bytes[kMemoryMagic.size()]);
  if (version != kLoopMemoryVersion) {
    return refused(absl::StrCat("has version ", version, ", and version ", kLoopMemoryVersion, " is read"));
  }
  const absl::string_view payload = bytes.substr(kMemoryHeaderBytes);
  if (StateReader(bytes.substr(kMemoryMagic.size() + 1)).Key() != FleetKey(payload)) {
    return refused("is damaged: its checksum is wrong");
  }
  StateReader in(payload);
  LoopMemory memory;
  absl::StatusOr<FleetState> fleet = DecodeFleetState(in.Text(kMostFleetStateBytes));
  if (!fleet.ok()) return fleet.status();
  memory.fleet = *std::move(fleet);
  memory.next_action = in.Time();
  const uint64_t open = in.Below(kMostOpenActions + 1);
  for (uint64_t i = 0; i < open && in.ok(); ++i) memory.open.push_back(ReadAction(&in));
  memory.grown_for_pods_ms = in.Optional();
  memory.batch_since_ms = in.Optional();
  const uint64_t acknowledged = in.Below(kMostDeletions + 1);
  for (uint64_t i = 0; i < acknowledged && in.ok(); ++i) {
    if (!memory.acknowledged.insert(in.Key()).second) in.Fail();
  }
  ReadTimes(kMostDeletions, &in, &memory.abandoned_since_ms);
  ReadTimes(kMostSwapRefusals, &in, &memory.swap_refused_ms);
  ReadTimes(kMostTimers, &in, &memory.unneeded_since_s);
  if (!in.ok() || !in.AtEnd()) return refused("is made up: it holds what no state holds");
  return memory;
}

}  // namespace loadline
