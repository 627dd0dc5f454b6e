// Autoscaler.LookAtFleet, from bytes to bytes.
#include "plugin/convert/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "loadline/v1/fleet.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLookMethod[] = "/loadline.v1.Autoscaler/LookAtFleet";
constexpr int64_t kLookMinute = 60'000;
constexpr int64_t kLookStart = 1'700'000'000'000;

class FleetTest : public ::testing::Test {
 protected:
  FleetTest() {
    v1::FleetOptions* const options = request_.mutable_options();
    options->set_max_node_provision_milliseconds(15 * kLookMinute);
    options->set_max_node_startup_milliseconds(15 * kLookMinute);
    options->set_initial_back_off_milliseconds(5 * kLookMinute);
    options->set_max_back_off_milliseconds(30 * kLookMinute);
    options->set_back_off_reset_milliseconds(180 * kLookMinute);
    options->set_deletion_patience_milliseconds(5 * kLookMinute);
    options->set_max_deletions(10);
    options->set_ok_unready_nodes(3);
    options->set_max_unready_percent(45);
    request_.set_now_milliseconds(kLookStart);
    v1::FleetGroup* const group = AddGroup("g");
    for (const char* const id : {"m0", "m1"}) {
      v1::FleetMachine* const machine = group->add_machines();
      machine->set_id(id);
      machine->set_state(v1::FleetMachine::CREATING);
    }
    group->set_target(2);
  }

  v1::FleetGroup* AddGroup(const std::string& name) {
    v1::FleetGroup* const group = request_.mutable_observation()->add_groups();
    group->set_node_group(name);
    return group;
  }
  v1::FleetGroup* group() { return request_.mutable_observation()->mutable_groups(0); }
  void At(int64_t minute) { request_.set_now_milliseconds(kLookStart + minute * kLookMinute); }

  absl::StatusOr<v1::LookAtFleetResponse> Ask() {
    const absl::StatusOr<std::string> bytes = engine_.CallBytes(kLookMethod, request_.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    v1::LookAtFleetResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }
  // Looks, and goes on from the state of the answer.
  v1::LookAtFleetResponse Look() {
    absl::StatusOr<v1::LookAtFleetResponse> response = Ask();
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) return {};
    request_.set_state(response->state());
    return *response;
  }

  TypedEngine engine_;
  v1::LookAtFleetRequest request_;
};

TEST_F(FleetTest, TheStateGoesFromAnEngineToTheNext) {
  v1::LookAtFleetResponse look = Look();
  EXPECT_EQ(look.groups(0).coming(), 2);
  EXPECT_EQ(look.groups(0).live(), 2);
  EXPECT_EQ(look.state_problem(), "");
  At(15);
  TypedEngine next;
  const absl::StatusOr<std::string> bytes = next.CallBytes(kLookMethod, request_.SerializeAsString());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_TRUE(look.ParseFromString(*bytes));
  EXPECT_EQ(look.groups(0).late(), 2);
  EXPECT_THAT(look.groups(0).delete_late(), ElementsAre(0, 1));
  EXPECT_EQ(look.groups(0).back_off().reason(), v1::GroupBackOff::TIMEOUT);
  EXPECT_EQ(look.groups(0).back_off().text(), "nodes did not register in 15m0s");
  EXPECT_EQ(look.groups(0).back_off().until_milliseconds(), kLookStart + 20 * kLookMinute);
  EXPECT_EQ(look.groups(0).held(), "backs off for 5m0s: nodes did not register in 15m0s");
  ASSERT_EQ(look.failures_size(), 1);
  EXPECT_EQ(look.failures(0).node_group(), "g");
  EXPECT_TRUE(look.backs_off());
  request_.clear_state();
  EXPECT_EQ(Look().groups(0).coming(), 2);
}

TEST_F(FleetTest, AllThatIsSeenCounts) {
  v1::FleetMachine* const failed = group()->mutable_machines(0);
  failed->mutable_fault()->set_code("STOCK_OUT");
  failed->mutable_fault()->set_message("none\nleft \xe2\x82\xac");
  failed->mutable_fault()->set_out_of_resources(true);
  v1::FleetMachine* const machine = group()->mutable_machines(1);
  machine->set_state(v1::FleetMachine::RUNNING);
  machine->mutable_node()->set_created_milliseconds(kLookStart);
  machine->mutable_node()->set_ready(true);
  group()->add_template_devices("nvidia.com/gpu");
  v1::FleetNode* const other = request_.mutable_observation()->add_other_nodes();
  other->set_created_milliseconds(kLookStart);
  v1::LookAtFleetResponse look = Look();
  EXPECT_EQ(look.groups(0).failed(), 1);
  EXPECT_THAT(look.groups(0).delete_failed(), ElementsAre(0));
  EXPECT_EQ(look.groups(0).starting(), 1);
  EXPECT_THAT(look.groups(0).not_started(), ElementsAre(1));
  EXPECT_THAT(look.groups(0).lacking(), ElementsAre(1));
  EXPECT_THAT(look.other_not_started(), ElementsAre(0));
  ASSERT_EQ(look.failed_creations_size(), 1);
  EXPECT_EQ(look.failed_creations(0).reason(), v1::GroupBackOff::OUT_OF_RESOURCES);
  EXPECT_EQ(look.failed_creations(0).machines(), 1);
  EXPECT_EQ(look.groups(0).back_off().text(),
            "1 machines could not be created: STOCK_OUT: none?left \xe2\x82\xac");
  machine->mutable_node()->add_devices("nvidia.com/gpu");
  look = Look();
  EXPECT_THAT(look.groups(0).started(), ElementsAre(1));
  EXPECT_EQ(look.failed_creations_size(), 0);
  machine->mutable_node()->set_leaving(true);
  EXPECT_THAT(Look().groups(0).started(), ElementsAre());
}

TEST_F(FleetTest, OutcomesAreTakenNoteOf) {
  Look();
  v1::FleetIncrease* const increase = request_.mutable_outcomes()->add_increases();
  increase->set_node_group("g");
  increase->set_result(v1::FleetIncrease::FAILED);
  increase->set_nodes(3);
  increase->set_error("quota");
  request_.mutable_outcomes()->add_given_up("m0");
  request_.mutable_outcomes()->set_tainting_failed(true);
  request_.mutable_options()->set_delay_after_failure_milliseconds(1);
  const v1::FleetObservation observation = request_.observation();
  request_.clear_observation();
  const v1::LookAtFleetResponse alone = Look();
  ASSERT_EQ(alone.groups_size(), 1);
  EXPECT_EQ(alone.groups(0).held(), "backs off for 5m0s: quota");
  EXPECT_TRUE(alone.cools_down());
  request_.clear_outcomes();
  *request_.mutable_observation() = observation;
  EXPECT_EQ(Look().groups(0).live(), 1);
  request_.mutable_outcomes()->add_removals()->set_node_group("g");
  request_.mutable_options()->set_delay_after_delete_milliseconds(1);
  EXPECT_TRUE(Look().cools_down());
}

TEST_F(FleetTest, AStateThatCannotBeReadIsPutAside) {
  Look();
  At(15);
  std::string newer = request_.state();
  newer[4] = 9;
  for (const auto& [bytes, problem] : std::vector<std::pair<std::string, std::string>>{
           {"status: fine", "state: is no state of a fleet"},
           {newer, "state: has version 9, and version 1 is read"},
           {request_.state() + "x", "state: is damaged: its checksum is wrong"}}) {
    v1::LookAtFleetRequest good = request_;
    request_.set_state(bytes);
    const v1::LookAtFleetResponse look = Look();
    EXPECT_EQ(look.state_problem(), problem);
    EXPECT_EQ(look.groups(0).coming(), 2);
    EXPECT_EQ(Look().state_problem(), "");
    request_ = good;
  }
}

struct RefusedLook {
  std::string name;
  std::function<void(v1::LookAtFleetRequest*)> change;
  std::string text;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};
class RefusedLookTest : public FleetTest, public ::testing::WithParamInterface<RefusedLook> {};

TEST_P(RefusedLookTest, NamesWhatIsWrong) {
  GetParam().change(&request_);
  const absl::StatusOr<v1::LookAtFleetResponse> answer = Ask();
  EXPECT_EQ(answer.status().code(), GetParam().code);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr(GetParam().text));
}

std::function<void(v1::LookAtFleetRequest*)> OfOptions(const std::function<void(v1::FleetOptions*)>& change) {
  return [change](v1::LookAtFleetRequest* request) { change(request->mutable_options()); };
}
std::function<void(v1::LookAtFleetRequest*)> OfGroup(const std::function<void(v1::FleetGroup*)>& change) {
  return [change](v1::LookAtFleetRequest* request) {
    change(request->mutable_observation()->mutable_groups(0));
  };
}
std::function<void(v1::LookAtFleetRequest*)> OfOutcomes(
    const std::function<void(v1::FleetOutcomes*)>& change) {
  return [change](v1::LookAtFleetRequest* request) { change(request->mutable_outcomes()); };
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RefusedLookTest,
    ::testing::ValuesIn(std::vector<RefusedLook>{
        {"NoTime", [](auto* r) { r->set_now_milliseconds(0); }, "now_milliseconds: 0 is not in [1, "},
        {"AbsurdTime", [](auto* r) { r->set_now_milliseconds(int64_t{1} << 60); }, "now_milliseconds: "},
        {"NoOptions", [](auto* r) { r->clear_options(); },
         "options: max_node_provision_milliseconds: 0 is not in [1, "},
        {"NegativePeriod", OfOptions([](auto* o) { o->set_delay_after_add_milliseconds(-1); }),
         "options: delay_after_add_milliseconds: -1 is not in [0, "},
        {"BackOffTooShort", OfOptions([](auto* o) { o->set_max_back_off_milliseconds(1); }),
         "options: initial_back_off_milliseconds: 300000 is more than max_back_off_milliseconds, 1"},
        {"NegativeDeletions", OfOptions([](auto* o) { o->set_max_deletions(-1); }),
         "options: max_deletions: -1 is negative"},
        {"Percent", OfOptions([](auto* o) { o->set_max_unready_percent(101); }),
         "options: max_unready_percent: 101 is not in [0, 100]"},
        {"GroupWithoutName", OfGroup([](auto* g) { g->clear_node_group(); }),
         "observation: groups[0]: node_group: is empty"},
        {"GroupTwice", [](auto* r) { *r->mutable_observation()->add_groups() = r->observation().groups(0); },
         "observation: groups[1]: node_group \"g\" is named twice"},
        {"NegativeTarget", OfGroup([](auto* g) { g->set_target(-1); }),
         "observation: groups[0]: target: -1 is negative"},
        {"NegativeMinimum", OfGroup([](auto* g) { g->set_min_nodes(-1); }),
         "observation: groups[0]: min_nodes: -1 is negative"},
        {"MachineTwice", OfGroup([](auto* g) { g->mutable_machines(1)->set_id("m0"); }),
         "observation: groups[0]: machines[1]: id \"m0\" is named twice"},
        {"MachineWithoutId", OfGroup([](auto* g) { g->mutable_machines(1)->clear_id(); }),
         "observation: groups[0]: machines[1]: id: is empty"},
        {"MachineWithLongId", OfGroup([](auto* g) { g->mutable_machines(1)->set_id(std::string(1025, 'x')); }),
         "it has 1025 bytes, at most 1024 are allowed"},
        {"MachineOfNoState",
         OfGroup([](auto* g) { g->mutable_machines(0)->set_state(static_cast<v1::FleetMachine::State>(9)); }),
         "observation: groups[0]: machines[0]: state: there is no value 9"},
        {"LongFault",
         OfGroup([](auto* g) {
           g->mutable_machines(0)->mutable_fault()->set_message(std::string(1025, 'x'));
         }),
         "machines[0]: fault.message: has 1025 bytes, at most 1024 are allowed"},
        {"NodeOfNoTime",
         OfGroup([](auto* g) { g->mutable_machines(0)->mutable_node()->set_created_milliseconds(-1); }),
         "machines[0]: node: created_milliseconds: -1 is not in [0, "},
        {"BadDevice", OfGroup([](auto* g) { g->add_template_devices("a b"); }),
         "groups[0]: template_devices: \"a b\" is not a name"},
        {"ManyDevices",
         [](auto* r) {
           v1::FleetNode* const node = r->mutable_observation()->add_other_nodes();
           for (int i = 0; i <= kMaxFleetDevices; ++i) node->add_devices("d");
         },
         "other_nodes[0]: devices: has 65 entries, at most 64 are allowed"},
        {"IncreaseOfNoGroup", OfOutcomes([](auto* o) { o->add_increases(); }),
         "outcomes: increases[0]: node_group: is empty"},
        {"IncreaseOfNoResult",
         OfOutcomes([](auto* o) {
           o->add_increases()->set_node_group("g");
           o->mutable_increases(0)->set_nodes(1);
         }),
         "outcomes: increases[0]: result: there is no value 0"},
        {"IncreaseByNothing",
         OfOutcomes([](auto* o) {
           o->add_increases()->set_node_group("g");
           o->mutable_increases(0)->set_result(v1::FleetIncrease::GRANTED);
         }),
         "outcomes: increases[0]: nodes: 0 is not in [1, "},
        {"IncreaseTwice",
         OfOutcomes([](auto* o) {
           for (int i = 0; i < 2; ++i) {
             v1::FleetIncrease* const increase = o->add_increases();
             increase->set_node_group("g");
             increase->set_nodes(1);
             increase->set_result(v1::FleetIncrease::GRANTED);
           }
         }),
         "outcomes: increases[1]: node_group \"g\" is named twice"},
        {"GivenUpNothing", OfOutcomes([](auto* o) { o->add_given_up(""); }), "given_up[0]: is empty"},
        {"RemovalOfNoGroup", OfOutcomes([](auto* o) { o->add_removals(); }),
         "outcomes: removals[0]: node_group: is empty"},
        {"ManyGroups",
         [](auto* r) {
           for (int i = 0; i < kMaxFleetGroups; ++i) r->mutable_observation()->add_groups();
         },
         "observation: groups: has 1001 entries, the limit is 1000", absl::StatusCode::kResourceExhausted},
        {"ManyMachines",
         OfGroup([](auto* g) {
           for (int i = 0; i < kMaxFleetMachines; ++i) g->add_machines();
         }),
         "observation: machines and other_nodes: have 100002 entries, the limit is 100000",
         absl::StatusCode::kResourceExhausted}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace loadline
