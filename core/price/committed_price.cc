#include <algorithm>

#include "core/price/price_model.h"

namespace loadline {
namespace {

bool Covers(const Commitment& commitment, const PricedNode& node) {
  return commitment.instance.empty() || commitment.instance == node.instance_type ||
         commitment.instance == FamilyOf(node.instance_type);
}

}  // namespace

double CommittedPrice(const PriceModel& model, const PricedNode& node, const NodePrice& price,
                      int64_t nodes) {
  if (node.spot || price.parts.empty() || price.parts[0].kind != PricePartKind::kMachine) return 0;
  const double all = static_cast<double>(nodes) * CpusOf(node.milli_cpu);
  double left = all;
  for (const Commitment& commitment : model.commitments) {
    if (Covers(commitment, node)) left -= std::min(left, CpusOf(commitment.unused_milli_cpu));
  }
  if (left == all) return 0;  // also without CPUs
  return static_cast<double>(nodes) * price.parts[0].price * ((all - left) / all);
}

}  // namespace loadline
