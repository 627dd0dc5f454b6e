// A random cluster as a client sees it, and the batches that such a client sends.
#ifndef LOADLINE_TEST_PLUGIN_RANDOM_CLUSTER_H_
#define LOADLINE_TEST_PLUGIN_RANDOM_CLUSTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/plugin/messages.h"

namespace loadline {

using Random = std::mt19937_64;

// In [0, end).
inline size_t Below(Random& random, size_t end) { return static_cast<size_t>(random() % end); }
inline bool OneIn(Random& random, size_t n) { return Below(random, n) == 0; }

using AmountsByName = std::map<std::string, int64_t>;

// A pod that may come several times, with what it counts as: known here, not asked of the code under test.
struct PodKind {
  k8s::v1::Pod pod;
  AmountsByName requests;
  AmountsByName limits;
  bool finished = false;
};

struct ClusterPod {
  size_t kind;
  std::string name;
  std::string uid;
};

struct ClusterNode {
  AmountsByName allocatable;
  std::vector<ClusterPod> pods;
};

// Nodes by name, with pods of a few kinds.
class RandomCluster {
 public:
  explicit RandomCluster(uint64_t seed);

  const std::map<std::string, ClusterNode>& nodes() const { return nodes_; }
  const PodKind& kind(size_t i) const { return kinds_[i]; }
  size_t kinds() const { return kinds_.size(); }

  // Adds, changes or removes a few nodes, and returns their names.
  std::set<std::string> Change();

 private:
  ClusterNode RandomNode();

  Random random_;
  std::vector<PodKind> kinds_;
  std::map<std::string, ClusterNode> nodes_;
  int64_t pods_made_ = 0;
};

// A client that numbers nodes and pod shapes in a random way. A batch holds all that changed since the last
// state that the engine is known to have.
class RandomClient {
 public:
  RandomClient(const RandomCluster& cluster, uint64_t seed) : cluster_(cluster), random_(seed) {}

  // All nodes in up to three chunks, numbered anew.
  std::vector<ChangesBuilder> FullList(int64_t epoch, int64_t revision);
  // The nodes of these names and of those that came before without an acknowledgement: as they are now or
  // gone.
  ChangesBuilder Delta(int64_t epoch, int64_t base_revision, int64_t revision,
                       const std::set<std::string>& changed);
  // Notes that the sent changes have arrived.
  void Acknowledge();

  const std::map<std::string, int32_t>& slots() const { return slots_; }

 private:
  int32_t FreeSlot();
  void AddNode(const std::string& name, ChangesBuilder* changes);

  const RandomCluster& cluster_;
  Random random_;
  std::map<std::string, int32_t> slots_;
  std::map<size_t, int32_t> shapes_;  // kind -> id
  // Since the last acknowledgement.
  std::set<std::string> changed_;
  std::set<int32_t> removed_;
  std::set<size_t> sent_;  // kinds
  std::set<size_t> acknowledged_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_RANDOM_CLUSTER_H_
