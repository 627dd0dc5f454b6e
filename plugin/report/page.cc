#include "plugin/report/page.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin/report/words.h"

namespace loadline {
namespace {

std::string NoteOf(const v1::NodeGroupStatus& group) {
  if (group.scale_up().has_backoff_info()) {
    return absl::StrCat("backs off until ", group.scale_up().backoff_info().until(), ": ",
                        group.scale_up().backoff_info().error_message());
  }
  if (group.has_size()) return absl::StrCat("sized: ", group.size().reason());
  const int32_t candidates = group.scale_down().candidates();
  return candidates > 0 ? absl::StrCat(candidates, " could go") : "";
}

int64_t Busy(const v1::PageGroup& group) {
  return group.going() + std::max(int64_t{0}, int64_t{group.target()} - group.nodes());
}

void AddGroups(const LoopReportInput& input, v1::LoopReport* report) {
  absl::flat_hash_map<absl::string_view, int64_t> under_way;
  for (const v1::RemovalUnderWay& removal : input.question.fleet().under_way()) {
    ++under_way[removal.node_group()];
  }
  std::vector<v1::PageGroup> groups;
  for (int i = 0; i < report->status().node_groups_size(); ++i) {
    const v1::NodeGroupStatus& status = report->status().node_groups(i);
    v1::PageGroup& group = groups.emplace_back();
    group.set_name(status.name());
    group.set_note(NoteOf(status));
    group.set_min_size(status.health().min_size());
    group.set_max_size(status.health().max_size());
    group.set_target(status.health().cloud_provider_target());
    group.set_nodes(status.health().node_counts().registered().total());
    group.set_going(Clamped32(input.answer.fleet().groups(i).going() + under_way[status.name()]));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const v1::PageGroup& a, const v1::PageGroup& b) { return Busy(a) > Busy(b); });
  report->set_groups_total(static_cast<int32_t>(groups.size()));
  groups.resize(std::min<size_t>(groups.size(), kMostPageGroups));
  for (v1::PageGroup& group : groups) *report->add_groups() = std::move(group);
}

v1::PageTable* SetTable(absl::string_view title, absl::string_view none, absl::string_view rows_are,
                        std::initializer_list<absl::string_view> header, v1::PageTable* table) {
  table->set_title(std::string(title));
  table->set_none(std::string(none));
  table->set_rows_are(std::string(rows_are));
  for (const absl::string_view name : header) table->add_header(std::string(name));
  return table;
}

std::string StateOf(const v1::NodeRemoval& removal, int64_t now_s) {
  if (removal.start()) return "can go now";
  std::string state = absl::StrCat("waits: ", removal.waits());
  if (const int64_t left = removal.ready_at_s() - now_s; left > 0) {
    absl::StrAppend(&state, ", timer ends in ", SecondsText(left));
  }
  return state;
}

// Nodes that could go, in the order of the plan, without those whose removal is under way.
void AddCandidates(const LoopReportInput& input, const GroupOfSlot& group_of, v1::LoopReport* report) {
  v1::PageTable* const table = SetTable("Nodes that go", "None is going, and none could.", "node",
                                        {"NODE", "NODE GROUP", "STATE", "NOT NEEDED FOR", "PODS TO MOVE"},
                                        report->mutable_nodes_that_go());
  absl::flat_hash_set<int32_t> under_way;
  for (const v1::RemovalUnderWay& removal : input.question.fleet().under_way()) {
    if (removal.has_slot()) under_way.insert(removal.slot());
  }
  const int64_t now_s = input.question.now_s();
  for (const v1::NodeRemoval& removal : input.answer.scale_down().remove()) {
    if (under_way.contains(removal.slot())) continue;
    table->set_rows_total(table->rows_total() + 1);
    if (table->rows_size() == kMostPageRows) continue;
    const std::string name = input.name_of(removal.slot());
    const auto group = group_of.find(removal.slot());
    v1::PageRow* const row = table->add_rows();
    row->add_cells(name);
    row->add_cells(group == group_of.end() ? "" : input.question.groups(group->second).growth().node_group());
    row->add_cells(StateOf(removal, now_s));
    row->add_cells(SecondsText(now_s - removal.since_s()));
    row->add_cells(absl::StrCat(removal.pods_to_move()));
    v1::NodeNote* const note = report->add_notes();
    note->set_node(name);
    note->set_text("could go");
  }
}

// Returns the reason for which a node stays, in words.
std::string StayText(const v1::NodeKeep& keep) {
  std::string text = keep.reason();
  for (const std::string* const more : {&keep.pod_reason(), &keep.budget_refusal()}) {
    if (!more->empty()) absl::StrAppend(&text, ", ", *more);
  }
  return text;
}

// The most frequent reasons first.
void AddReasons(const LoopReportInput& input, v1::LoopReport* report) {
  v1::PageTable* const table =
      SetTable("Why nodes stay", "There is no plan that says so.", "reason",
               {"REASON", "NODES", "SUCH AS", "POD", "WHAT WOULD HELP"}, report->add_tables());
  std::vector<std::pair<std::string, const v1::StayReason*>> reasons;
  for (const v1::StayReason& stay : input.answer.scale_down().stay()) {
    reasons.emplace_back(StayText(stay.first()), &stay);
  }
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) {
    const int size_a = a.second->slots_size(), size_b = b.second->slots_size();
    return size_a != size_b ? size_a > size_b : a.first < b.first;
  });
  table->set_rows_total(static_cast<int64_t>(reasons.size()));
  reasons.resize(std::min<size_t>(reasons.size(), kMostPageRows));
  for (const auto& [text, stay] : reasons) {
    const v1::NodeKeep& first = stay->first();
    v1::PageRow* const row = table->add_rows();
    row->add_cells(text);
    row->add_cells(absl::StrCat(stay->slots_size()));
    row->add_cells(input.name_of(first.slot()));
    row->add_cells(first.pod_name().empty() ? ""
                                            : absl::StrCat(first.pod_namespace(), "/", first.pod_name()));
    row->add_cells(first.advice());
  }
}

void AddLines(v1::LoopReport* report) {
  const v1::ClusterWideStatus& all = report->status().cluster_wide();
  if (!all.scale_down().brake().empty()) {
    report->add_warnings(absl::StrCat("No node goes: ", all.scale_down().brake()));
  }
  if (!all.scale_down().limit().empty()) {
    report->add_lines(absl::StrCat(all.scale_down().limit(), " holds nodes back that could go."));
  }
  for (const std::string& growth : all.scale_up().growth()) {
    report->add_lines(absl::StrCat("Grows: ", growth, "."));
  }
  if (all.scale_up().unplaced() > 0) {
    report->add_warnings(absl::StrCat(
        all.scale_up().unplaced(), " of ", Counted(all.scale_up().pending_pods(), "pod"), " that ",
        all.scale_up().pending_pods() == 1 ? "waits " : "wait ",
        all.scale_up().unplaced() == 1 ? "gets no node: " : "get no node: ", all.scale_up().why()));
  }
}

}  // namespace

void TellPage(const LoopReportInput& input, const GroupOfSlot& group_of, v1::LoopReport* report) {
  AddLines(report);
  AddGroups(input, report);
  AddCandidates(input, group_of, report);
  AddReasons(input, report);
}

}  // namespace loadline
