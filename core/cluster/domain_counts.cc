#include "core/cluster/domain_counts.h"

#include <algorithm>

namespace loadline {

void DomainCounts::AddNode(NodeIndex node) {
  if (spec_.use != CountUse::kSpread) return;
  const int32_t domain = this->domain(node);
  if (domain == TopologyKey::kNone || !Eligible(node)) return;
  Domain& entry = At(domain);
  if (entry.eligible_nodes++ > 0) return;
  ++eligible_domains_;
  Rank(entry.pods, +1);
  Record(kEverywhere);
}

void DomainCounts::RemoveNode(NodeIndex node) {
  if (spec_.use != CountUse::kSpread) return;
  const int32_t domain = this->domain(node);
  if (domain == TopologyKey::kNone || !Eligible(node)) return;
  Domain& entry = At(domain);
  if (--entry.eligible_nodes > 0) return;
  --eligible_domains_;
  Rank(entry.pods, -1);
  Record(kEverywhere);
}

void DomainCounts::Change(NodeIndex node, int32_t delta) {
  const int32_t domain = this->domain(node);
  if (domain == TopologyKey::kNone || !Eligible(node)) return;
  if (spec_.use == CountUse::kSpread) {
    ChangeSpread(domain, delta);
    return;
  }
  Domain& entry = At(domain);
  const bool was_empty = entry.pods == 0;
  entry.pods += delta;
  LOADLINE_CHECK(entry.pods >= 0) << "domain " << domain << " loses a pod that it did not have";
  total_ += delta;
  if (was_empty || entry.pods == 0) Record(domain);
}

void DomainCounts::Fill(std::span<const NodeIndex> nodes) {
  if (spec_.use == CountUse::kSpread || spec_.eligible) {
    for (const NodeIndex node : nodes) Change(node, +1);
    return;
  }
  GrowDomains();
  for (const NodeIndex node : nodes) {
    const int32_t domain = this->domain(node);
    if (domain == TopologyKey::kNone) continue;
    ++domains_[static_cast<size_t>(domain)].pods;
    ++total_;
  }
}

void DomainCounts::ChangeSpread(int32_t domain, int32_t delta) {
  Domain& entry = At(domain);
  const int32_t lowest_before = lowest_;
  LOADLINE_CHECK(entry.pods + delta >= 0) << "domain " << domain << " loses a pod that it did not have";
  // The new count first: the smallest one then never has to be looked for further away than that.
  Rank(entry.pods + delta, +1);
  Rank(entry.pods, -1);
  entry.pods += delta;
  total_ += delta;
  if (lowest_ > lowest_before) {
    Record(kEverywhere);
  } else if (delta < 0) {
    Record(domain);
  }
}

DomainCounts::Domain& DomainCounts::At(int32_t domain) {
  if (static_cast<size_t>(domain) >= domains_.size()) GrowDomains();
  return domains_[static_cast<size_t>(domain)];
}

void DomainCounts::GrowDomains() {
  const size_t domains = static_cast<size_t>(topology_->domain_end());
  if (domains > domains_.capacity()) domains_.reserve(WithHeadroom(domains));
  domains_.resize(domains);
}

// One domain more or less has this count. Cost: O(1), and O(largest count) when a whole domain is removed.
void DomainCounts::Rank(int32_t pods, int32_t delta) {
  const size_t i = static_cast<size_t>(pods);
  if (i >= domains_with_.size()) domains_with_.resize(i + 1, 0);
  domains_with_[i] += delta;
  if (eligible_domains_ == 0) {
    lowest_ = 0;
    return;
  }
  if (delta > 0) {
    if (eligible_domains_ == 1) lowest_ = pods;
    lowest_ = std::min(lowest_, pods);
  }
  const auto end = static_cast<int32_t>(domains_with_.size());
  while (lowest_ < end && domains_with_[static_cast<size_t>(lowest_)] == 0) ++lowest_;
  if (lowest_ == end) lowest_ = 0;
}

void DomainCounts::CheckConsistent(std::span<const Domain> counted) const {
  const bool spread = spec_.use == CountUse::kSpread;
  int64_t total = 0;
  int32_t eligible_domains = 0;
  std::vector<int32_t> domains_with;
  for (size_t i = 0; i < counted.size(); ++i) {
    const Domain kept = i < domains_.size() ? domains_[i] : Domain();
    const std::string& identity = spec_.identity;
    LOADLINE_CHECK(kept.pods == counted[i].pods) << "pods in domain " << i << " of " << identity;
    total += kept.pods;
    if (!spread) continue;
    LOADLINE_CHECK(kept.eligible_nodes == counted[i].eligible_nodes)
        << "nodes in " << i << " of " << identity;
    if (kept.eligible_nodes == 0) continue;
    ++eligible_domains;
    const size_t pods = static_cast<size_t>(kept.pods);
    if (pods >= domains_with.size()) domains_with.resize(pods + 1, 0);
    ++domains_with[pods];
  }
  LOADLINE_CHECK(total_ == total) << total_ << " pods in all, there are " << total;
  LOADLINE_CHECK(eligible_domains_ == eligible_domains) << eligible_domains_ << " domains";
  if (!spread) return;
  for (size_t i = 0; i < std::max(domains_with.size(), domains_with_.size()); ++i) {
    const int32_t expected = i < domains_with.size() ? domains_with[i] : 0;
    LOADLINE_CHECK((i < domains_with_.size() ? domains_with_[i] : 0) == expected)
        << "domains with " << i << " pods";
  }
  const auto first =
      std::find_if(domains_with.begin(), domains_with.end(), [](int32_t domains) { return domains > 0; });
  LOADLINE_CHECK(lowest_ == (first == domains_with.end() ? 0 : first - domains_with.begin())) << lowest_;
}

void DomainCounts::Record(int32_t domain) { changed_.Record(domain, kJournalPerDomain * domains_.size()); }

}  // namespace loadline
