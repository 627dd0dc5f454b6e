// Consolidation under a load line: whatever moves, no pod lifts its target above the line, by a count
// of the checker's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "core/consolidate/consolidator.h"
#include "test/core/consolidate/move_checker.h"
#include "test/testing/consolidation_cluster.h"
#include "test/testing/naive_line.h"

namespace loadline {
namespace {

// Some pods have no limits, and some nodes are above the line before anything moves.
ModelCluster LinedModel(uint32_t seed) {
  ModelCluster model =
      RandomModel(seed, {.nodes = 8, .apps = 8, .smallest_pod = 200, .rules = seed % 4 == 0});
  std::mt19937 random(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (ModelApp& app : model.apps) {
    if (draw(0, 7) > 0) app.cpu_limit = app.cpu * draw(10, 40) / 10;
    if (draw(0, 9) > 0) app.memory_limit = app.memory * draw(10, 30) / 10;
  }
  model.cpu_line = draw(0, 2) == 0 ? 0 : draw(1'000, 3'000);
  model.memory_line = model.cpu_line > 0 && draw(0, 3) == 0 ? 0 : draw(900, 2'500);
  return model;
}

struct Followed {
  size_t moves = 0;
  double saves = 0;
  bool broken = false;
};

Followed Follow(const ModelCluster& model, const ConsolidationOptions& options) {
  PlannedCluster cluster(model);
  Snapshot snapshot(*cluster.problem().cluster);
  WorkBudget budget;
  const ConsolidationPlan plan = Consolidator().Plan(&snapshot, cluster.problem(), options, &budget);
  MoveChecker checker(model, options);
  checker.Follow(plan);
  return {plan.moves.size(), plan.bill.now - plan.bill.reachable, !checker.problems().empty()};
}

TEST(LoadLineConsolidationTest, NoMoveLiftsANodeAboveTheLine) {
  size_t moves = 0, broken_without = 0;
  double saves = 0, saves_without = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const ModelCluster model = LinedModel(seed);
    ConsolidationOptions options;
    options.mode = seed % 3 == 0 ? ConsolidationMode::kRemove : ConsolidationMode::kReplace;
    options.fit.load_line = StrictLine(model.cpu_line, model.memory_line);
    const Followed lined = Follow(model, options);
    ASSERT_FALSE(lined.broken) << "seed " << seed;
    moves += lined.moves;
    saves += lined.saves;
    options.fit.load_line = LoadLine();
    const Followed free = Follow(model, options);
    saves_without += free.saves;
    broken_without += free.broken ? 1 : 0;
  }
  EXPECT_GT(moves, 60U);
  EXPECT_GT(saves_without, saves);  // the line keeps some where they are
  EXPECT_GT(broken_without, 20U);   // and the checker sees where it is not kept
}

}  // namespace
}  // namespace loadline
