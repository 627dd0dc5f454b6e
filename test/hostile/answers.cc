// The parts of an answer about the pods and nodes that do no harm.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "loadline/v1/fit.pb.h"
#include "loadline/v1/score.pb.h"
#include "test/hostile/shared_cluster.h"

namespace loadline {
namespace {

// Places of the innocents: by entry, the nodes and new nodes that they go to.
class Places {
 public:
  void Add(const v1::PodRun& run, const std::string& place) {
    if (run.pod() < kInnocents) places_[run.pod()].insert(place);
  }
  void AddExisting(const google::protobuf::RepeatedPtrField<v1::ExistingPlacement>& existing) {
    for (const v1::ExistingPlacement& place : existing) Add(place.pods(), place.node());
  }
  void AddPlan(const v1::PlanScaleUpResponse& plan) {
    AddExisting(plan.existing());
    for (const v1::PlannedNodes& nodes : plan.nodes()) {
      for (const v1::PodRun& run : nodes.pods()) Add(run, absl::StrCat("new node of group ", nodes.group()));
    }
  }
  std::string Text(Effect effect) const {
    std::string text;
    if (effect == Effect::kTakesAll) return text;
    for (const auto& [entry, places] : places_) {
      absl::StrAppend(&text, "pod ", entry, " has ",
                      effect == Effect::kNone ? absl::StrJoin(places, ", ") : "a place", "\n");
    }
    return text;
  }

 private:
  std::map<int32_t, std::set<std::string>> places_;
};

template <typename Message>
Message Read(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) message.Clear();
  return message;
}

std::string TextOfFit(const v1::FitResponse& response) {
  std::string text;
  for (int i = 0; i < kInnocents && i < response.pods_size(); ++i) {
    for (const v1::VerdictGroup& group : response.pods(i).groups()) {
      absl::StrAppend(&text, "pod ", i, ": ", group.verdict(), " ", group.filter(), " on ",
                      absl::StrJoin(group.slots(), ","), "\n");
    }
  }
  return text;
}

std::string TextOfEstimate(const v1::EstimateScaleUpResponse& response, Effect effect) {
  std::string text;
  Places existing;
  existing.AddExisting(response.existing());
  for (const v1::GroupEstimate& group : response.groups()) {
    Places places = existing;
    for (const v1::PodRun& run : group.pods()) places.Add(run, "a new node");
    if (!absl::StartsWith(group.node_group(), "hostile")) {
      absl::StrAppend(&text, "group ", group.node_group(), "\n", places.Text(effect));
    }
  }
  return text;
}

std::string TextOfSlack(const v1::PlanSlackResponse& response, Effect effect) {
  std::string text;
  if (effect != Effect::kNone) return text;
  for (const v1::ClassSlack& slack : response.classes()) {
    if (absl::StrContains(slack.name(), "evil.example")) continue;
    absl::StrAppend(&text, "class ", slack.name(), ": ", slack.placed(), " of ", slack.count(), ", ",
                    slack.status(), "\n");
  }
  return text;
}

std::string TextOfDrain(const v1::PlanDrainResponse& response) {
  std::string text = absl::StrCat("brake '", response.brake(), "'\n");
  for (const v1::NodeRemoval& node : response.remove()) {
    absl::StrAppend(&text, node.node(), node.start() ? " goes now\n" : " goes\n");
  }
  return text;
}

std::string TextOfLoop(const v1::PlanLoopResponse& response, Effect effect) {
  Places places;
  places.AddExisting(response.existing());
  places.AddPlan(response.scale_up());
  for (const v1::UpcomingPlacement& place : response.upcoming()) places.Add(place.pods(), place.node_group());
  std::string text = places.Text(effect);
  if (effect != Effect::kNone) return text;
  for (const v1::LoopGrowth& growth : response.growth()) {
    if (absl::StartsWith(growth.node_group(), "hostile")) continue;
    absl::StrAppend(&text, growth.node_group(), " grows by ", growth.nodes_for_pods(), " and ",
                    growth.nodes_for_slack(), "\n");
  }
  return absl::StrCat(text, TextOfSlack(response.slack(), effect), TextOfDrain(response.scale_down()));
}

template <typename Response>
std::vector<v1::LeftOut> LeftOutIn(const std::string& bytes) {
  const auto response = Read<Response>(bytes);
  return {response.left_out().begin(), response.left_out().end()};
}

}  // namespace

std::string AnswerOf(absl::string_view method, const std::string& response, Effect effect) {
  if (absl::EndsWith(method, "/Score")) return absl::StrJoin(Read<v1::ScoreResponse>(response).scores(), " ");
  if (absl::EndsWith(method, "/Fit")) return TextOfFit(Read<v1::FitResponse>(response));
  if (absl::EndsWith(method, "/EstimateScaleUp")) {
    return TextOfEstimate(Read<v1::EstimateScaleUpResponse>(response), effect);
  }
  if (absl::EndsWith(method, "/PlanScaleUp")) {
    Places places;
    places.AddPlan(Read<v1::PlanScaleUpResponse>(response));
    return places.Text(effect);
  }
  if (absl::EndsWith(method, "/PlanSlack")) return TextOfSlack(Read<v1::PlanSlackResponse>(response), effect);
  if (absl::EndsWith(method, "/PlanDrain")) return TextOfDrain(Read<v1::PlanDrainResponse>(response));
  return TextOfLoop(Read<v1::PlanLoopResponse>(response), effect);
}

std::vector<v1::LeftOut> LeftOutOf(absl::string_view method, const std::string& response) {
  if (absl::EndsWith(method, "/Sync")) return LeftOutIn<v1::SyncResponse>(response);
  if (absl::EndsWith(method, "/Fit")) return LeftOutIn<v1::FitResponse>(response);
  if (absl::EndsWith(method, "/EstimateScaleUp")) return LeftOutIn<v1::EstimateScaleUpResponse>(response);
  if (absl::EndsWith(method, "/PlanScaleUp")) return LeftOutIn<v1::PlanScaleUpResponse>(response);
  if (absl::EndsWith(method, "/PlanSlack")) return LeftOutIn<v1::PlanSlackResponse>(response);
  if (absl::EndsWith(method, "/PlanDrain")) return LeftOutIn<v1::PlanDrainResponse>(response);
  if (absl::EndsWith(method, "/PlanLoop")) return LeftOutIn<v1::PlanLoopResponse>(response);
  return {};
}

}  // namespace loadline
