// Counts pods of some kind for each value of a topology key, and follows each move.
#ifndef LOADLINE_CORE_CLUSTER_DOMAIN_COUNTS_H_
#define LOADLINE_CORE_CLUSTER_DOMAIN_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/cluster/journal.h"
#include "core/cluster/shapes.h"
#include "core/cluster/topology.h"

namespace loadline {

// The aspect of a count that decides.
enum class CountUse {
  kOccupancy,  // whether a domain holds any
  kSpread,     // how many it holds, and how many the domains hold that have the fewest
};

// The rule by which pods count.
struct PodPredicate {
  // Returns whether pods of a shape count. Pure.
  std::function<bool(const PodShape&)> matches;
  // The cost of four calls, in units of a WorkBudget.
  int64_t work = 1;
  // Pods elsewhere do not count, so that it is asked about shapes in these namespaces only; each once. Empty:
  // it is asked about all.
  std::vector<std::string> namespaces = {};
};

// The things that a count counts, and its domains.
struct CountSpec {
  // Tells specs apart: two with the same text count the same.
  std::string identity;
  CountUse use = CountUse::kSpread;
  // Pods count by the value of this label on their node; on nodes without it they do not.
  std::string topology_key;
  // The pods that count. Neighbouring specs that share it ask it once per shape for all of them.
  std::shared_ptr<const PodPredicate> counts;
  // Instead of `counts`, the number of a term in Snapshot::anti_affinity_terms(): pods that have it count.
  std::optional<int32_t> owners_of = std::nullopt;
  // Returns whether pods on a node count, and whether the node makes its domain one; empty: all do. Pure.
  std::function<bool(NodeIndex)> eligible = nullptr;
  // `eligible` turns on Snapshot::Leaving().
  bool sees_leaving = false;
};

// The counts of one spec. Changed by a snapshot only.
class DomainCounts {
 public:
  DomainCounts(CountSpec spec, const TopologyKey* topology) : spec_(std::move(spec)), topology_(topology) {}

  const CountSpec& spec() const { return spec_; }
  const TopologyKey& topology() const { return *topology_; }
  int32_t domain(NodeIndex node) const { return topology_->domain(node); }

  int32_t count(int32_t domain) const {
    return static_cast<size_t>(domain) < domains_.size() ? domains_[static_cast<size_t>(domain)].pods : 0;
  }
  // Over all domains.
  int64_t total() const { return total_; }
  // With kSpread: domains with an eligible node, and the smallest count among them (0 if there are none).
  int32_t domains() const { return eligible_domains_; }
  int32_t lowest() const { return lowest_; }
  // With kSpread: the eligible nodes of a domain.
  int32_t eligible_nodes(int32_t domain) const {
    return static_cast<size_t>(domain) < domains_.size()
               ? domains_[static_cast<size_t>(domain)].eligible_nodes
               : 0;
  }

  // The journal of domains, as Journal::Since(). With kOccupancy: those that got their first pod or lost
  // their last one. With kSpread: those that lost a pod, or kEverywhere when the smallest count rose, or
  // domains came or went; what else happens lets no node pass that was refused.
  static constexpr int32_t kEverywhere = -1;
  std::optional<std::span<const int32_t>> changed(int64_t since) const { return changed_.Since(since); }
  int64_t changed_end() const { return changed_.end(); }

  // A node joined or is about to leave its domain; without pods that count.
  void AddNode(NodeIndex node);
  void RemoveNode(NodeIndex node);
  // One counted pod more (+1) or less (-1) on a node, which stays.
  void Change(NodeIndex node, int32_t delta);
  // One counted pod more on each of these nodes, with repeats.
  void Fill(std::span<const NodeIndex> nodes);
  // Forgets what happened while the counts were made, when nobody read them.
  void ForgetChanges() { changed_ = Journal<int32_t>(); }
  // About the memory of the counts and their spec, but for what specs share: with room for some domains more,
  // and for the journal that they may fill.
  int64_t bytes() const {
    return static_cast<int64_t>(sizeof(*this) + 2 * spec_.identity.size() + spec_.topology_key.size() +
                                WithHeadroom(domains_.size()) * sizeof(Domain) +
                                kJournalPerDomain * domains_.size() * sizeof(int32_t) +
                                domains_with_.capacity() * sizeof(int32_t));
  }
  struct Domain {
    int32_t pods = 0;
    int32_t eligible_nodes = 0;  // kSpread only
  };
  // Checks what is kept against pods and eligible nodes of each domain, counted anew. For tests.
  void CheckConsistent(std::span<const Domain> counted) const;
  // Returns whether pods on the node count.
  bool Eligible(NodeIndex node) const { return !spec_.eligible || spec_.eligible(node); }
  // Returns whether any node carries the topology key, or did.
  bool AnyDomain() const { return topology_->domain_end() > 0; }

 private:
  // The length of the journal. Chosen: a reader that missed more changes looks at all domains, which costs as
  // much.
  static constexpr size_t kJournalPerDomain = 2;
  // Returns the capacity for so many domains. There are thousands of counts: were each doubled for one new
  // node, so would be their memory.
  static constexpr size_t WithHeadroom(size_t domains) { return domains + domains / 8 + 8; }
  Domain& At(int32_t domain);
  void GrowDomains();
  void ChangeSpread(int32_t domain, int32_t delta);
  void Rank(int32_t pods, int32_t delta);
  void Record(int32_t domain);

  CountSpec spec_;
  const TopologyKey* topology_;
  std::vector<Domain> domains_;
  int64_t total_ = 0;
  int32_t eligible_domains_ = 0;
  int32_t lowest_ = 0;
  std::vector<int32_t> domains_with_;  // by count: how many domains with an eligible node have it
  Journal<int32_t> changed_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_DOMAIN_COUNTS_H_
