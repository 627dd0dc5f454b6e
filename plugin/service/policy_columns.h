// The limit columns of the policies that were asked about last.
#ifndef LOADLINE_PLUGIN_SERVICE_POLICY_COLUMNS_H_
#define LOADLINE_PLUGIN_SERVICE_POLICY_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace loadline {

class ClusterState;
class ExpectedUse;
class LimitColumns;
struct LimitPolicy;

// Keeps LimitColumns per policy of one view; beyond `max_policies` the least recently used go. Not
// thread-safe.
class PolicyColumns {
 public:
  explicit PolicyColumns(int32_t max_policies);
  ~PolicyColumns();

  // The columns of `policy`, up to date with `cluster`, which is the same view each time. Valid until the
  // next call. Cost: that of LimitColumns::CatchUp(); O(pods) for a policy that was not kept.
  // `expected`: the profiles by which the policy counts; nullptr: none.
  const LimitColumns& For(const LimitPolicy& policy, const ClusterState& cluster,
                          std::shared_ptr<const ExpectedUse> expected);

 private:
  std::unique_ptr<LimitColumns> Take(const LimitPolicy& policy);

  size_t max_policies_;
  std::vector<std::unique_ptr<LimitColumns>> kept_;  // most recently used last
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_POLICY_COLUMNS_H_
