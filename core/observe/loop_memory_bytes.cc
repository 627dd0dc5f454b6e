#include "core/observe/loop_memory_bytes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/observe/kept_bytes.h"
#include "core/observe/state_bytes.h"
#include "core/observe/state_coder.h"

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

void WriteKeys(const std::vector<uint64_t>& keys, StateWriter* out) {
  out->Number(keys.size());
  for (const uint64_t key : keys) out->Key(key);
}

std::vector<uint64_t> ReadKeys(StateReader* in) {
  std::vector<uint64_t> keys;
  const uint64_t size = in->Below(kMostNodesOfMoves + 1);
  for (uint64_t i = 0; i < size && in->ok(); ++i) keys.push_back(in->Key());
  return keys;
}

void WriteMove(const MoveUnderWay& move, StateWriter* out) {
  out->Number(static_cast<uint64_t>(move.phase));
  out->Number(static_cast<uint64_t>(move.at_ms));
  out->Number(static_cast<uint64_t>(move.step_ms));
  out->Number(move.orders.size());
  for (const MoveUnderWay::Order& order : move.orders) {
    out->Text(order.group);
    out->Number(static_cast<uint64_t>(order.nodes));
  }
  for (const auto* keys : {&move.came, &move.onto, &move.remove}) WriteKeys(*keys, out);
  out->Number(move.places.size());
  for (const MoveUnderWay::Place& place : move.places) {
    out->Key(place.pod);
    out->Number(static_cast<uint64_t>(place.target));
  }
}

MoveUnderWay ReadMove(int version, StateReader* in) {
  MoveUnderWay move;
  move.phase = static_cast<MoveUnderWay::Phase>(in->Below(3));
  move.at_ms = in->Time();
  // Versions before 7 name the nodes that were there instead. All that have come since are named as well: of
  // a move that has ended, those come that are created after its end. An order that was refused has the time
  // 0.
  move.step_ms = version >= 7 ? in->Time() : move.at_ms;
  const uint64_t orders = in->Below(kMostNodesOfMoves + 1);
  uint64_t nodes = 0;
  for (uint64_t i = 0; i < orders && in->ok(); ++i) {
    MoveUnderWay::Order& order = move.orders.emplace_back();
    order.group = in->Text(kMostGroupNameBytes);
    order.nodes = static_cast<int64_t>(in->Below(kMostNodesOfMoves + 1));
    nodes += static_cast<uint64_t>(order.nodes);
  }
  if (version < 7) ReadKeys(in);
  for (auto* keys : {&move.came, &move.onto, &move.remove}) *keys = ReadKeys(in);
  if (nodes != move.came.size()) in->Fail();
  const uint64_t places = in->Below(kMostPodsOfMoves + 1);
  for (uint64_t i = 0; i < places && in->ok(); ++i) {
    MoveUnderWay::Place& place = move.places.emplace_back();
    place.pod = in->Key();
    place.target = static_cast<int64_t>(in->Below(move.came.size() + move.onto.size()));
  }
  return move;
}

void WriteGivenUp(const absl::btree_map<uint64_t, GivenUpMoves>& given_up, StateWriter* out) {
  const size_t size = std::min(given_up.size(), kMostRestingNodes);
  out->Number(size);
  auto at = given_up.begin();
  for (size_t i = 0; i < size; ++i, ++at) {
    out->Key(at->first);
    out->Number(static_cast<uint64_t>(at->second.count));
    out->Number(static_cast<uint64_t>(at->second.last_ms));
  }
}

void ReadGivenUp(StateReader* in, absl::btree_map<uint64_t, GivenUpMoves>* given_up) {
  const uint64_t size = in->Below(kMostRestingNodes + 1);
  for (uint64_t i = 0; i < size && in->ok(); ++i) {
    const uint64_t key = in->Key();
    GivenUpMoves moves;
    moves.count = in->Time();
    moves.last_ms = in->Time();
    if (!given_up->emplace(key, moves).second) in->Fail();
  }
}

void WriteLoad(const std::optional<RestingLoad>& load, StateWriter* out) {
  out->Number(load.has_value() ? 1 : 0);
  if (!load.has_value()) return;
  out->Number(static_cast<uint64_t>(load->load.cpu));
  out->Number(static_cast<uint64_t>(load->load.memory));
  out->Number(static_cast<uint64_t>(load->since_ms));
  out->Optional(load->away_since_ms);
}

std::optional<RestingLoad> ReadLoad(StateReader* in) {
  if (in->Below(2) == 0) return std::nullopt;
  RestingLoad load;
  load.load.cpu = static_cast<int64_t>(in->Below(uint64_t{kMaxAmount} + 1));
  load.load.memory = static_cast<int64_t>(in->Below(uint64_t{kMaxAmount} + 1));
  load.since_ms = in->Time();
  load.away_since_ms = in->Optional();
  return load;
}

void WritePurchases(const LoopMemory& memory, StateWriter* out) {
  const size_t size = std::min(memory.purchases.size(), kMostPurchases);
  out->Number(size);
  auto at = memory.purchases.begin();
  for (size_t i = 0; i < size; ++i, ++at) {
    const Purchase& purchase = at->second;
    for (const uint64_t key : {at->first.group, at->first.namespace_name, at->first.pods}) out->Key(key);
    out->Optional(purchase.asked_ms);
    out->Number(static_cast<uint64_t>(purchase.failures));
    out->Number(static_cast<uint64_t>(purchase.until_ms));
    for (const uint64_t key :
         {purchase.model_asked, purchase.model_judged, purchase.node, purchase.node_shape})
      out->Key(key);
  }
}

void ReadPurchases(StateReader* in, LoopMemory* memory) {
  const uint64_t size = in->Below(kMostPurchases + 1);
  for (uint64_t i = 0; i < size && in->ok(); ++i) {
    PurchaseKey of;
    for (uint64_t* const key : {&of.group, &of.namespace_name, &of.pods}) *key = in->Key();
    Purchase purchase;
    purchase.asked_ms = in->Optional();
    purchase.failures = in->Time();
    purchase.until_ms = in->Time();
    for (uint64_t* const key :
         {&purchase.model_asked, &purchase.model_judged, &purchase.node, &purchase.node_shape})
      *key = in->Key();
    if (!memory->purchases.emplace(of, purchase).second) in->Fail();
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
  const size_t moves = std::min(memory.moves.size(), kMostMoves);
  out.Number(moves);
  for (size_t i = 0; i < moves; ++i) WriteMove(memory.moves[i], &out);
  WriteTimes(memory.resting_since_ms, kMostRestingNodes, &out);
  out.Optional(memory.nodes_took_ms);
  out.Optional(memory.drains_took_ms);
  WriteTimes(memory.downscale_order, kMostNodesToEmpty, &out);
  WriteSizes(memory.sizes, kMostSizeBytes, &out);
  WriteSlack(memory.slack, kMostSlackBytes, &out);
  WriteTimes(memory.soft_taint_tried_ms, kMostSoftTaintsTried, &out);
  WritePurchases(memory, &out);
  WriteGivenUp(memory.given_up, &out);
  WriteLoad(memory.load, &out);
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
  if (version < kOldestLoopMemoryVersion || version > kLoopMemoryVersion) {
    return refused(absl::StrCat("has version ", version, ", and ", kOldestLoopMemoryVersion, " to ",
                                kLoopMemoryVersion, " are read"));
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
  const uint64_t moves = in.Below(kMostMoves + 1);
  for (uint64_t i = 0; i < moves && in.ok(); ++i) memory.moves.push_back(ReadMove(version, &in));
  ReadTimes(kMostRestingNodes, &in, &memory.resting_since_ms);
  memory.nodes_took_ms = in.Optional();
  memory.drains_took_ms = in.Optional();
  ReadTimes(kMostNodesToEmpty, &in, &memory.downscale_order);
  if (version >= 5) {
    memory.sizes = ReadSizes(&in);
    memory.slack = ReadSlack(&in);
  }
  if (version >= 6) ReadTimes(kMostSoftTaintsTried, &in, &memory.soft_taint_tried_ms);
  if (version >= 7) {
    ReadPurchases(&in, &memory);
    ReadGivenUp(&in, &memory.given_up);
  }
  if (version >= 8) memory.load = ReadLoad(&in);
  ReadTimes(kMostTimers, &in, &memory.unneeded_since_s);
  if (!in.ok() || !in.AtEnd()) return refused("is made up: it holds what no state holds");
  return memory;
}

}  // namespace loadline
