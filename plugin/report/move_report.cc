#include "plugin/report/move_report.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin/report/facts.h"
#include "plugin/report/metrics.h"
#include "plugin/report/words.h"

namespace loadline {
namespace {

// Returns the nodes that a move removes and adds.
std::string NodesOf(const v1::MoveUnderWay& move) {
  std::string comes = Listed(move.add());
  if (move.to_come() > 0)
    absl::StrAppend(&comes, comes.empty() ? "" : ", ", Counted(move.to_come(), "new node"));
  if (comes.empty()) comes = "existing nodes";
  return absl::StrCat(Listed(move.remove(), "removed nodes"), " by ", comes);
}

std::string MoveText(const v1::MoveUnderWay& move) {
  return absl::StrCat(move.phase(), " for ", SecondsText(move.seconds()), ": ", NodesOf(move));
}

std::string EndedText(const v1::EndedMove& move) {
  if (move.why().empty()) return absl::StrCat("done: ", Counted(move.nodes(), "node"), " replaced");
  return absl::StrCat("given up: ", move.why(), "; nodes that stay: ", Listed(move.remove(), "none"));
}

void TellMetricsOf(const v1::LoopReplacement& replacement, v1::LoopReport* report) {
  absl::btree_map<absl::string_view, int64_t> phases{{"ordered", 0}, {"draining", 0}, {"giving back", 0}};
  for (const v1::MoveUnderWay& move : replacement.moves()) ++phases[move.phase()];
  for (const auto& [phase, moves] : phases) {
    AddMetric("replacement_moves", {phase}, static_cast<double>(moves), report);
  }
  const auto done = std::count_if(replacement.ended().begin(), replacement.ended().end(),
                                  [](const v1::EndedMove& move) { return move.why().empty(); });
  AddMetric("replacement_moves_total", {"begun"}, static_cast<double>(replacement.begun()), report);
  AddMetric("replacement_moves_total", {"done"}, static_cast<double>(done), report);
  AddMetric("replacement_moves_total", {"givenUp"}, static_cast<double>(replacement.ended_size() - done),
            report);
  if (!replacement.has_bill()) return;
  AddMetric("bill_usd_per_hour", {"now"}, replacement.bill().now(), report);
  if (replacement.bill().has_bound())
    AddMetric("bill_usd_per_hour", {"bound"}, replacement.bill().bound(), report);
  AddMetric("bill_usd_per_hour", {"reachable"}, replacement.bill().reachable(), report);
}

void TellTable(const v1::LoopReplacement& replacement, v1::LoopReport* report) {
  v1::PageTable* const table = report->add_tables();
  table->set_title("Nodes that are replaced");
  table->set_none("None is replaced.");
  for (const char* const name : {"GO", "COME", "YET TO COME", "PHASE", "FOR"}) table->add_header(name);
  table->set_rows_total(replacement.moves_size());
  table->set_rows_are("move");
  for (const v1::MoveUnderWay& move : replacement.moves()) {
    if (table->rows_size() == kMostPageRows) break;
    v1::PageRow* const row = table->add_rows();
    row->add_cells(Listed(move.remove()));
    row->add_cells(Listed(move.add()));
    row->add_cells(absl::StrCat(move.to_come()));
    row->add_cells(move.phase());
    row->add_cells(SecondsText(move.seconds()));
  }
}

void AddEvent(const Texts& nodes, bool warning, absl::string_view reason, std::string message,
              v1::LoopReport* report) {
  v1::NodeEvent* const event = report->add_events();
  *event->mutable_nodes() = nodes;
  event->set_warning(warning);
  event->set_reason(std::string(reason));
  event->set_message(std::move(message));
}

void TellEvents(const v1::LoopReplacement& replacement, v1::LoopReport* report) {
  const int before = std::max(0, replacement.moves_size() - Clamped32(replacement.begun()));
  for (int i = before; i < replacement.moves_size(); ++i) {
    const v1::MoveUnderWay& move = replacement.moves(i);
    AddEvent(move.remove(), false, "Replacement",
             absl::StrCat("to be replaced at lower cost: ", NodesOf(move)), report);
  }
  for (const v1::EndedMove& move : replacement.ended()) {
    if (move.why().empty()) continue;
    AddEvent(move.remove(), true, "ReplacementGivenUp", absl::StrCat("stays for now: ", move.why()), report);
  }
}

}  // namespace

v1::ReplacementStatus ReplacementStatusOf(const v1::LoopReplacement& replacement) {
  v1::ReplacementStatus status;
  status.set_status(replacement.moves().empty() ? "NoActivity" : "InProgress");
  for (const v1::MoveUnderWay& move : replacement.moves()) status.add_moves(MoveText(move));
  for (const v1::EndedMove& move : replacement.ended()) status.add_ended(EndedText(move));
  if (replacement.has_bill()) {
    v1::BillStatus* const bill = status.mutable_bill();
    bill->set_now(replacement.bill().now());
    if (replacement.bill().has_bound()) bill->set_bound(replacement.bill().bound());
    bill->set_reachable(replacement.bill().reachable());
    bill->set_proven(replacement.bill().proven());
  }
  return status;
}

void TellMoves(const LoopReportInput& input, v1::LoopReport* report) {
  const v1::LoopReplacement& replacement = input.answer.replacement();
  TellMetricsOf(replacement, report);
  TellTable(replacement, report);
  for (const v1::EndedMove& move : replacement.ended()) {
    report->add_lines(absl::StrCat("A move ended, ", EndedText(move), "."));
  }
  if (input.question.fleet().acts()) TellEvents(replacement, report);
}

}  // namespace loadline
