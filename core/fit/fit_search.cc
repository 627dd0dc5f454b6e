#include "core/fit/fit_search.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace loadline {
namespace {

constexpr ResourceId kIndexedResources[] = {kCpu, kMemory, kEphemeralStorage};
constexpr uint64_t kAll = ~uint64_t{0};

// About the memory of a pod that is searched for, beside its bits: its filters, its names.
constexpr int64_t kPodBytes = 2'048;
// About the memory of a demand beside its bits.
constexpr size_t kDemandBytes = 256;
// The words of bits that are compared with each other in some 100 ns.
constexpr size_t kWordsPerUnit = 64;

size_t WordOf(size_t position) { return position / 64; }

}  // namespace

FitSearch::FitSearch(Snapshot* snapshot, const FitOptions* options, std::vector<NodeIndex> order)
    : snapshot_(*snapshot), options_(*options), order_(std::move(order)), started_(false) {}

// Many searches are made of which nobody asks anything.
void FitSearch::Start() {
  if (std::exchange(started_, true)) return;
  if (order_.empty()) {
    for (int32_t i = 0; i < snapshot_.node_end(); ++i) order_.push_back(NodeIndex{i});
  }
  positions_.resize(static_cast<size_t>(snapshot_.node_end()), kNowhere);
  for (size_t i = 0; i < order_.size(); ++i) positions_[IndexOf(order_[i])] = i;
  // Nodes that the order leaves out come last as well.
  for (size_t i = 0; i < positions_.size(); ++i) {
    if (positions_[i] != kNowhere) continue;
    positions_[i] = order_.size();
    order_.push_back(NodeIndex{static_cast<int32_t>(i)});
  }
  most_free_.resize(words());
  for (size_t word = 0; word < words(); ++word) RecomputeFree(word);
  free_journal_ = snapshot_.freed_end();
}

FitSearch::FitSearch(Snapshot* snapshot, const FitOptions* options, OnlyNew)
    : snapshot_(*snapshot),
      options_(*options),
      positions_(static_cast<size_t>(snapshot->node_end()), kNowhere),
      free_journal_(snapshot->freed_end()) {}

FitSearch FitSearch::OfNewNodes(Snapshot* snapshot, const FitOptions* options) {
  return FitSearch(snapshot, options, OnlyNew());
}

void FitSearch::StartOver() {
  if (!started_) return;
  for (size_t word = 0; word < words(); ++word) RecomputeFree(word);
  free_journal_ = snapshot_.freed_end();
  for (const std::unique_ptr<Pod>& pod : pods_) {
    if (pod != nullptr) pod->journal = -1;
  }
}

SearchPod FitSearch::Add(IncomingPod pod, WorkBudget* budget) {
  Start();
  const int64_t bytes = kPodBytes + static_cast<int64_t>(words() * sizeof(uint64_t));
  if (budget != nullptr && !(budget->Spend() && budget->Reserve(bytes))) {
    if (not_kept_ == nullptr)
      not_kept_ = std::make_unique<PodFit>(&snapshot_, IncomingPod(), &options_, budget);
    pods_.push_back(nullptr);
    return SearchPod{static_cast<int32_t>(pods_.size()) - 1};
  }
  auto added = std::make_unique<Pod>(&snapshot_, std::move(pod), &options_, budget);
  for (size_t i = 0; i < kIndexed; ++i) {
    // A request of 0 is not checked: nodes that are overfull in that resource take it.
    const int64_t request = added->fit.pod().shape.requests.Get(kIndexedResources[i]);
    added->requests[i] = request > 0 ? request : std::numeric_limits<int64_t>::min();
  }
  pods_.push_back(std::move(added));
  return SearchPod{static_cast<int32_t>(pods_.size()) - 1};
}

std::optional<NodeIndex> FitSearch::FirstFit(SearchPod number, WorkBudget* budget) {
  Pod* const pod = At(number);
  if (pod == nullptr || !CatchUp(pod, budget)) return std::nullopt;
  for (size_t word = pod->first_open; word < words(); ++word) {
    uint64_t candidates = Candidates(pod, word);
    const bool any = candidates != 0;
    while (candidates != 0) {
      const size_t position = word * 64 + static_cast<size_t>(std::countr_zero(candidates));
      if (budget != nullptr && !budget->Spend(pod->fit.UnitsPerNode())) return std::nullopt;
      if (Ask(pod, position)) return order_[position];
      // A refusal may have closed a whole domain.
      candidates &= candidates - 1;
      candidates &= Candidates(pod, word);
    }
    if (any) RecomputeFree(word);
    if (word == pod->first_open && pod->open[word] == 0) ++pod->first_open;
  }
  return std::nullopt;
}

void FitSearch::AllFits(SearchPod number, std::vector<NodeIndex>* nodes, WorkBudget* budget) {
  nodes->clear();
  Pod* const pod = At(number);
  if (pod == nullptr || !CatchUp(pod, budget)) return;
  for (size_t word = pod->first_open; word < words(); ++word) {
    uint64_t candidates = Candidates(pod, word);
    while (candidates != 0) {
      const size_t position = word * 64 + static_cast<size_t>(std::countr_zero(candidates));
      candidates &= candidates - 1;
      if (budget != nullptr && !budget->Spend(pod->fit.UnitsPerNode())) return;
      if (Ask(pod, position)) {
        nodes->push_back(order_[position]);
      } else {
        candidates &= Candidates(pod, word);
      }
    }
  }
}

bool FitSearch::CatchUp(Pod* pod, WorkBudget* budget) {
  CatchUpOrder();
  pod->fit.Refresh(budget);
  if (pod->fit.Hopeless()) return false;
  const auto freed = pod->journal < 0 ? std::nullopt : snapshot_.freed(pod->journal);
  if (freed.has_value()) {
    pod->open.resize(words(), 0);
    for (const NodeIndex node : *freed) {
      if (PositionOf(node) != kNowhere) Open(pod, PositionOf(node));
    }
    // A number may have gone to another node, of another domain.
    for (Block& block : pod->blocks) {
      block.refused.resize(words(), 0);
      for (const NodeIndex node : *freed) {
        if (PositionOf(node) != kNowhere) SetBit(PositionOf(node), false, &block.refused);
      }
    }
  } else {
    pod->open.assign(words(), kAll);
    if (order_.size() % 64 != 0) pod->open.back() = (uint64_t{1} << (order_.size() % 64)) - 1;
    pod->first_open = 0;
    for (Block& block : pod->blocks) block.journal = -1;
  }
  pod->journal = snapshot_.freed_end();
  if (!CatchUpDemands(pod, budget)) return false;
  CatchUpBlocks(pod);
  return true;
}

// Takes in nodes that are new, and room that came free.
void FitSearch::CatchUpOrder() {
  for (size_t i = positions_.size(); i < static_cast<size_t>(snapshot_.node_end()); ++i) {
    positions_.push_back(order_.size());
    order_.push_back(NodeIndex{static_cast<int32_t>(i)});
  }
  if (most_free_.size() < words()) {
    const size_t first = most_free_.size();
    most_free_.resize(words());
    for (size_t word = first; word < words(); ++word) RecomputeFree(word);
  }
  if (free_journal_ == snapshot_.freed_end()) return;
  if (const auto freed = snapshot_.freed(free_journal_)) {
    for (const NodeIndex node : *freed) RaiseFree(node);
  } else {
    for (size_t word = 0; word < words(); ++word) RecomputeFree(word);
  }
  free_journal_ = snapshot_.freed_end();
}

bool FitSearch::ReadDemands(Pod* pod, WorkBudget* budget) {
  const std::vector<Demand>& demands = pod->fit.demands();
  const int64_t bytes = static_cast<int64_t>(demands.size() * (kDemandBytes + words() * sizeof(uint64_t)));
  if (budget != nullptr && !budget->Reserve(bytes)) return false;
  pod->demands_seen = demands.size();
  pod->empty.clear();
  pod->occupied.clear();
  pod->blocks.clear();
  for (const Demand& demand : demands) {
    const TopologyKey& topology = demand.counts->topology();
    std::unique_ptr<DomainNodes>& nodes = domain_nodes_[&topology];
    if (nodes == nullptr) nodes = std::make_unique<DomainNodes>(&topology);
    if (demand.kind == DemandKind::kBalanced) {
      pod->blocks.push_back({demand.counts, nodes.get(), demand.counts->changed_end(), {}, {}});
      continue;
    }
    std::unique_ptr<OccupiedNodes>& occupied = occupied_[demand.counts];
    if (occupied == nullptr) occupied = std::make_unique<OccupiedNodes>(demand.counts, nodes.get());
    (demand.kind == DemandKind::kEmpty ? pod->empty : pod->occupied).push_back(occupied.get());
  }
  return true;
}

bool FitSearch::CatchUpDemands(Pod* pod, WorkBudget* budget) {
  const size_t demands = pod->fit.demands().size();
  if (budget != nullptr && !budget->Spend(static_cast<int64_t>(demands * words() / kWordsPerUnit))) {
    return false;
  }
  if (pod->demands_seen != demands && !ReadDemands(pod, budget)) return false;
  for (const auto& [topology, nodes] : domain_nodes_) nodes->CatchUp(positions_);
  for (OccupiedNodes* nodes : pod->empty) nodes->CatchUp();
  for (OccupiedNodes* nodes : pod->occupied) nodes->CatchUp();
  pod->waives_occupied = pod->fit.WaivesOccupied();
  return true;
}

void FitSearch::CatchUpBlocks(Pod* pod) {
  for (Block& block : pod->blocks) {
    block.refused.resize(words(), 0);
    if (block.journal == block.counts->changed_end()) continue;
    const auto changed = block.counts->changed(block.journal);
    block.journal = block.counts->changed_end();
    const bool everywhere = !changed.has_value() || std::find(changed->begin(), changed->end(),
                                                              DomainCounts::kEverywhere) != changed->end();
    if (everywhere) {
      std::fill(block.refused.begin(), block.refused.end(), 0);
      std::fill(block.domains.begin(), block.domains.end(), false);
      continue;
    }
    for (const int32_t domain : *changed) {
      const size_t i = static_cast<size_t>(domain);
      if (i >= block.domains.size() || !block.domains[i]) continue;
      block.domains[i] = false;
      block.nodes->Set(domain, false, &block.refused);
    }
  }
}

void FitSearch::Open(Pod* pod, size_t position) {
  SetBit(position, true, &pod->open);
  pod->first_open = std::min(pod->first_open, WordOf(position));
}

bool FitSearch::MayFit(const Pod& pod, size_t word) const {
  for (size_t i = 0; i < kIndexed; ++i) {
    if (pod.requests[i] > most_free_[word][i]) return false;
  }
  return true;
}

uint64_t FitSearch::Candidates(Pod* pod, size_t word) {
  if (pod->open[word] == 0) return 0;
  if (!MayFit(*pod, word)) {
    pod->open[word] = 0;  // what becomes free is opened again
    return 0;
  }
  uint64_t candidates = pod->open[word];
  for (const OccupiedNodes* nodes : pod->empty) candidates &= ~nodes->word(word);
  if (!pod->waives_occupied) {
    for (const OccupiedNodes* nodes : pod->occupied) candidates &= nodes->word(word);
  }
  for (const Block& block : pod->blocks) candidates &= ~block.refused[word];
  return candidates;
}

bool FitSearch::Ask(Pod* pod, size_t position) {
  const NodeIndex node = order_[position];
  if (!snapshot_.Placeable(node) || !pod->fit.FitsByItself(node)) {
    SetBit(position, false, &pod->open);
    return false;
  }
  if (pod->fit.FitsAmongOthers(node)) return true;
  Remember(pod, position, pod->fit.BlockedBy(node));
  return false;
}

void FitSearch::Remember(Pod* pod, size_t position, const std::optional<Blocked>& blocked) {
  if (!blocked.has_value()) {
    SetBit(position, false, &pod->open);
    return;
  }
  const auto block = std::find_if(pod->blocks.begin(), pod->blocks.end(),
                                  [&](const Block& entry) { return entry.counts == blocked->counts; });
  if (block == pod->blocks.end()) return;
  const size_t domain = static_cast<size_t>(blocked->domain);
  if (domain >= block->domains.size()) {
    block->domains.resize(static_cast<size_t>(block->counts->topology().domain_end()), false);
  }
  if (block->domains[domain]) {
    SetBit(position, true, &block->refused);
    return;
  }
  block->domains[domain] = true;
  block->nodes->Set(blocked->domain, true, &block->refused);
}

void FitSearch::RaiseFree(NodeIndex node) {
  if (PositionOf(node) == kNowhere || !snapshot_.Contains(node)) return;
  for (size_t i = 0; i < kIndexed; ++i) {
    int64_t& most = most_free_[WordOf(PositionOf(node))][i];
    most = std::max(most, snapshot_.amount(node, kIndexedResources[i]).free);
  }
}

void FitSearch::RecomputeFree(size_t word) {
  most_free_[word].fill(std::numeric_limits<int64_t>::min());
  const size_t end = std::min(order_.size(), word * 64 + 64);
  for (size_t position = word * 64; position < end; ++position) {
    if (snapshot_.Contains(order_[position])) RaiseFree(order_[position]);
  }
}

}  // namespace loadline
