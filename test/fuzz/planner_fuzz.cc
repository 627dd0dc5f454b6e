// An input is a sequence of questions of planners, the method before each: an answer holds to what its
// messages say, is the same the second time with the state that the first one had, and the engine works on.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "loadline/v1/drain.pb.h"
#include "loadline/v1/loop.pb.h"
#include "loadline/v1/size.pb.h"
#include "loadline/v1/slack.pb.h"
#include "test/fuzz/fuzz_engine.h"

namespace loadline {
namespace {

template <typename Request, typename Response>
void Ask(absl::string_view method, absl::string_view bytes, FuzzEngine* engine,
         void (*check)(const Request&, const Response&)) {
  const absl::StatusOr<std::string> answer = engine->Call(method, bytes);
  NoteAnswer(answer.ok());
  if (!answer.ok()) return;
  Request request;
  Response response;
  Require(request.ParseFromString(std::string(bytes)), "what was answered is a request");
  Require(response.ParseFromString(*answer), "an answer parses");
  check(request, response);
  // The answer went on from the state in the request, or from one that is gone by now.
  if (!request.has_state()) *request.mutable_state() = response.state();
  const std::string again = request.SerializeAsString();
  const absl::StatusOr<std::string> first = engine->Call(method, again);
  Require(first.ok(), "a state that was handed out is taken");
  const absl::StatusOr<std::string> second = engine->Call(method, again);
  Require(second.ok() && *second == *first, "the same question has the same answer");
}

void CheckSize(const v1::GroupSize& size) {
  Require(size.action() != v1::GroupSize::ACTION_UNSPECIFIED, "each group has an action");
  Require(size.reason() != v1::GroupSize::REASON_UNSPECIFIED, "each group has a reason");
  const bool shrinks =
      size.action() == v1::GroupSize::REMOVE_SLOWLY || size.action() == v1::GroupSize::REMOVE_FAST;
  Require(!shrinks || size.delta() < 0, "what shrinks loses nodes");
  Require(size.ask_cloud() >= 0, "no fewer than no node is asked for");
  for (const v1::Utilization* usage : {&size.utilization(), &size.utilization_after()}) {
    Require(std::isfinite(usage->cpu_percent()) && usage->cpu_percent() >= 0, "cpu has a percentage");
    Require(std::isfinite(usage->memory_percent()) && usage->memory_percent() >= 0,
            "memory has a percentage");
  }
  std::set<std::string> once;
  for (const auto* list : {&size.untaint(), &size.taint(), &size.remove()}) {
    for (const v1::SizedNode& node : *list) {
      Require(once.insert(node.node()).second, "one thing happens to a node");
    }
  }
}

void CheckSizes(const v1::MeasureUtilizationRequest& request,
                const v1::MeasureUtilizationResponse& response) {
  Require(response.groups_size() == request.groups_size(), "every group is answered");
  Require(response.state().groups_size() == request.groups_size(), "every group has a state");
  for (int i = 0; i < request.groups_size(); ++i) {
    Require(response.groups(i).node_group() == request.groups(i).node_group(), "groups keep their order");
    CheckSize(response.groups(i));
  }
}

void CheckDrain(const v1::PlanDrainRequest&, const v1::PlanDrainResponse& response) {
  std::set<int32_t> once;
  std::set<int32_t> goes;
  Require(response.brake().empty() || response.remove().empty(), "a brake keeps all nodes");
  for (const v1::NodeRemoval& removal : response.remove()) {
    Require(once.insert(removal.slot()).second, "a node goes once");
    goes.insert(removal.slot());
    Require(removal.start() == removal.waits().empty(), "a node goes now or waits for something");
    Require(!removal.empty() || removal.moves().empty() || removal.moves(0).placeholder(),
            "an empty node moves no pod");
  }
  for (const v1::NodeRemoval& removal : response.remove()) {
    for (const v1::PodMove& move : removal.moves()) {
      Require(!goes.contains(move.to_slot()), "no pod moves to a node that goes");
    }
  }
  for (const v1::NodeKeep& keep : response.keep()) {
    Require(once.insert(keep.slot()).second, "a node goes or stays");
    Require(!keep.reason().empty(), "a node that stays has a reason");
  }
}

void CheckSlack(const v1::PlanSlackRequest&, const v1::PlanSlackResponse& response) {
  int64_t count = 0;
  for (const v1::ClassSlack& slack : response.classes()) {
    Require(slack.status() != v1::SLACK_STATUS_UNSPECIFIED, "each class has a status");
    Require(slack.placed() <= slack.count(), "no more are placed than there are");
  }
  for (const v1::ShapeSlack& shape : response.shapes()) {
    Require(0 <= shape.placed() && shape.placed() <= shape.count(), "no more are placed than there are");
    count += shape.count();
  }
  Require(count == response.state().placeholders_size(), "all placeholders are in the state");
  for (const v1::SlackDemand& demand : response.demands()) {
    Require(demand.nodes() > 0, "nodes are asked for");
  }
}

void AskSlack(absl::string_view bytes, FuzzEngine* engine) {
  v1::PlanSlackRequest request;
  if (!request.ParseFromString(std::string(bytes))) return;
  request.set_want_state(true);
  Ask("/loadline.v1.Autoscaler/PlanSlack", request.SerializeAsString(), engine, CheckSlack);
}

void CheckLoop(const v1::PlanLoopRequest& request, const v1::PlanLoopResponse& response) {
  std::vector<int64_t> places(static_cast<size_t>(request.pods_size() + response.drained_size()), 0);
  const auto count = [&](const v1::PodRun& run, int64_t times) {
    Require(run.pod() >= 0 && static_cast<size_t>(run.pod()) < places.size(), "a place is one of known pods");
    places[static_cast<size_t>(run.pod())] += times * run.count();
  };
  for (const v1::ExistingPlacement& place : response.existing()) count(place.pods(), 1);
  for (const v1::UpcomingPlacement& place : response.upcoming()) count(place.pods(), 1);
  for (const v1::PlannedNodes& nodes : response.scale_up().nodes()) {
    for (const v1::PodRun& run : nodes.pods()) count(run, nodes.nodes());
  }
  for (const v1::PodRun& run : response.scale_up().unplaced()) count(run, 1);
  for (int i = 0; i < request.pods_size(); ++i) {
    // Pods that give way to any pod wait for no node.
    Require(places[static_cast<size_t>(i)] == 0 || places[static_cast<size_t>(i)] == request.pods(i).count(),
            "each pod has one place or is left over");
  }
  for (int i = 0; i < response.drained_size(); ++i) {
    Require(places[static_cast<size_t>(request.pods_size() + i)] == response.drained(i).count(),
            "each pod of a node that goes has one place or is left over");
  }
  std::set<std::string> once;
  for (const v1::LoopGrowth& growth : response.growth()) {
    Require(once.insert(growth.node_group()).second, "a group grows once");
    Require(growth.nodes_for_pods() + growth.nodes_for_slack() + growth.nodes_for_utilization() +
                    growth.nodes_for_minimum() >
                0,
            "a group that grows wins a node");
  }
  Require(response.size().groups_size() == request.sized_size(), "every group that is sized is answered");
  for (const v1::GroupSize& size : response.size().groups()) CheckSize(size);
  for (const v1::NodeRemoval& removal : response.scale_down().remove()) {
    Require(response.growth().empty() || !removal.start(), "nodes come or start to go");
  }
  Require(response.has_scale_down() || !response.no_scale_down().empty(),
          "scale-down is planned or a reason given");
  v1::PlanDrainRequest drain;
  CheckDrain(drain, response.scale_down());
}

// Only machines that are no nodes go, so many at most, and a group keeps its minimum.
void CheckFleet(const v1::PlanLoopRequest& request, const v1::LoopFleetAnswer& answer) {
  Require(answer.groups_size() == request.groups_size(), "every group is answered");
  int64_t deletions = 0;
  int64_t soft_taints = 0;
  for (const v1::LoopAction& action : answer.actions()) {
    soft_taints += action.has_soft_taint() || action.has_take_soft_taint_slot() ? 1 : 0;
    const std::string& name = action.delete_machines().node_group();
    for (const v1::LoopGroup& group : request.groups()) {
      if (!action.has_delete_machines() || group.growth().node_group() != name) continue;
      for (const int32_t machine : action.delete_machines().machines()) {
        Require(machine >= 0 && machine < group.cloud().machines_size() &&
                    !group.cloud().machines(machine).has_slot(),
                "only a machine without a node is deleted");
        ++deletions;
      }
      Require(
          group.cloud().target() - action.delete_machines().machines_size() >= group.scale_down().min_nodes(),
          "a group keeps its minimum");
    }
  }
  Require(deletions <= request.fleet().options().max_deletions(), "so many machines go at most");
  Require(soft_taints <= request.fleet().options().max_soft_taints(), "so many soft taints change at most");
  Require(request.fleet().acts() || answer.actions().empty(), "who does not act is given no action");
}

// The memory of the engine is returned as bytes, and is read again.
void AskLoop(absl::string_view bytes, FuzzEngine* engine) {
  const char* const method = "/loadline.v1.Autoscaler/PlanLoop";
  Ask(method, bytes, engine, CheckLoop);
  v1::PlanLoopRequest request;
  v1::PlanLoopResponse response;
  if (!request.ParseFromString(std::string(bytes)) || !request.has_fleet()) return;
  const absl::StatusOr<std::string> answer = engine->Call(method, bytes);
  if (!answer.ok()) return;
  Require(response.ParseFromString(*answer), "an answer parses");
  CheckFleet(request, response.fleet());
  request.mutable_fleet()->set_state(response.fleet().state());
  const absl::StatusOr<std::string> again = engine->Call(method, request.SerializeAsString());
  Require(!again.ok() || (response.ParseFromString(*again) && response.fleet().state_problem().empty()),
          "a state that was handed out is taken");
}

}  // namespace
}  // namespace loadline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  loadline::FuzzEngine engine;
  for (absl::string_view bytes : loadline::Requests(data, size)) {
    if (bytes.empty()) continue;
    const char method = bytes[0];
    bytes.remove_prefix(1);
    switch (method) {
      case 's':
        loadline::Ask("/loadline.v1.Autoscaler/MeasureUtilization", bytes, &engine, loadline::CheckSizes);
        break;
      case 'd':
        loadline::Ask("/loadline.v1.Autoscaler/PlanDrain", bytes, &engine, loadline::CheckDrain);
        break;
      case 'l':
        loadline::AskLoop(bytes, &engine);
        break;
      case 'k':
        loadline::AskSlack(bytes, &engine);
        break;
      default:
        break;
    }
  }
  engine.CheckSums();
  engine.CheckAlive();
  return 0;
}
