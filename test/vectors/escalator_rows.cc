// escalator_*.jsonl: SizeGroup and its steps, IsMember, and SimpleRequests. Rows hold zeros where a file may
// not, and are asked below validation, in the mode that is Escalator as shipped.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/pod_resources.h"
#include "core/size/free_room.h"
#include "core/size/membership.h"
#include "core/size/size_group.h"
#include "test/testing/group_simulation.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;
constexpr int64_t kHour = 3'600'000;

int64_t Number(const Json& value) { return value.is_null() ? 0 : value.get<int64_t>(); }

CpuMemory Amounts(const Json& object) { return {Number(object.at("cpu")), Number(object.at("mem"))}; }

std::optional<CpuMemory> CachedNode(const Json& in) {
  if (!in.contains("cached_node") || in.at("cached_node").is_null()) return std::nullopt;
  return Amounts(in.at("cached_node"));
}

Json ErrorName(SizeReason reason) {
  if (reason == SizeReason::kNoCapacity) return "DIV0";
  return reason == SizeReason::kFewerThanMinimum ? Json("BELOW_MIN") : Json();
}

// --- escalator_math ---------------------------------------------------------------------------------------

CpuMemory Requests(const Json& in) { return {in.at("cpu_request"), in.at("mem_request")}; }
CpuMemory Capacity(const Json& in) { return {in.at("cpu_capacity"), in.at("mem_capacity")}; }

void UsagePercent(const Json& in, Answers* answers) {
  const Usage usage = ShippedUsage(Requests(in), Capacity(in), in.at("untainted_nodes"));
  answers->Equal("error", usage.kind == UsageKind::kNoCapacity ? Json("DIV0") : Json());
  answers->Equal("cpu_percent", usage.cpu);
  answers->Equal("mem_percent", usage.memory);
}

void ScaleUpDelta(const Json& in, Answers* answers) {
  const int64_t nodes = in.at("untainted_nodes");
  const int32_t threshold = in.at("threshold_percent");
  const Usage usage = ShippedUsage(Requests(in), Capacity(in), nodes);
  answers->Equal("delta", ShippedDelta(usage, nodes, Requests(in), threshold, CachedNode(in)));
  const std::optional<int64_t> exact =
      ExactDelta(Requests(in), Capacity(in), nodes, threshold, CachedNode(in));
  answers->Equal("exact_delta", exact.has_value() ? Json(*exact) : Json());
}

void AboveThreshold(const Json& in, Answers* answers) {
  const int32_t threshold = in.at("threshold_percent");
  const Usage usage = ShippedUsage(Requests(in), Capacity(in), in.at("untainted_nodes"));
  answers->Equal("above", std::max(usage.cpu, usage.memory) > threshold);
  answers->Equal("exact_above", IsAbove(Requests(in), Capacity(in), threshold));
}

// --- escalator_decide -------------------------------------------------------------------------------------

GroupSimulation Group(const Json& in) {
  GroupSimulation group;
  SizeOptions& options = group.options;
  options.mode = SizeMode::kCompat;
  options.min_nodes = options.cloud_min = in.at("min_nodes");
  options.max_nodes = options.cloud_max = in.at("max_nodes");
  options.scale_up_percent = in.at("scale_up_percent");
  options.taint_upper_percent = in.at("taint_upper_percent");
  options.taint_lower_percent = in.at("taint_lower_percent");
  options.slow_rate = in.at("slow_node_removal_rate");
  options.fast_rate = in.at("fast_node_removal_rate");
  group.state.cached_node = CachedNode(in);
  group.nodes_arrive = false;
  return group;
}

void AddPods(const Json& pods, GroupFacts* facts) {
  const int64_t count = pods.at("count");
  facts->requests = Plus(facts->requests, Times(Amounts(pods), count));
  facts->pods += count;
}

void AnswerDecision(const SizeDecision& decision, Answers* answers) {
  answers->Equal("delta", decision.delta);
  answers->Equal("error", ErrorName(decision.reason));
}

void Decide(const Json& in, Answers* answers) {
  if (!in.at("list_error").is_null()) return;  // lists are the client's
  GroupSimulation group = Group(in);
  group.node_size = Amounts(in.at("nodes"));
  group.AddNodes(in.at("nodes").at("count"), NodeClass::kUntainted, kNow);
  group.AddNodes(in.at("tainted_nodes"), NodeClass::kTainted, kNow);
  AddPods(in.at("pods"), &group.facts);
  AnswerDecision(group.Pass(kNow), answers);
}

void DecideStarve(const Json& in, Answers* answers) {
  GroupSimulation group = Group(in);
  group.options.scale_on_starve = in.at("scale_on_starve");
  group.node_size = Amounts(in.at("nodes"));
  const int64_t nodes = in.at("nodes").at("count");
  group.AddNodes(nodes, NodeClass::kUntainted, kNow);
  const Json& bound = in.at("bound_pods_per_node");
  const CpuMemory used = Times(Amounts(bound), bound.at("count"));
  group.facts.requests = Times(used, nodes);
  group.facts.pods = nodes * bound.at("count").get<int64_t>();
  FreeRoom room;
  for (int64_t i = 0; i < nodes; ++i) room.AddNode(Minus(group.node_size, used));
  const CpuMemory pending = Amounts(in.at("pending_pod"));
  AddPods({{"count", 1}, {"cpu", pending.cpu}, {"mem", pending.memory}}, &group.facts);
  group.facts.pending_pods = 1;
  group.facts.starved = room.ShippedStarved(pending);
  AnswerDecision(group.Pass(kNow), answers);
}

void DecideAge(const Json& in, Answers* answers) {
  GroupSimulation group = Group(in);
  group.options.max_node_age_ms = in.at("max_node_age_h").get<int64_t>() * kHour;
  group.node_size = {1000, 1000};
  for (const Json& node : in.at("nodes")) {
    group.AddNodes(1, node.at("tainted") ? NodeClass::kTainted : NodeClass::kUntainted,
                   kNow - node.at("age_h").get<int64_t>() * kHour);
  }
  AnswerDecision(group.Pass(kNow), answers);
}

void Untaint(const Json& in, Answers* answers) {
  GroupSimulation group = Group(in);
  group.node_size = Amounts(in.at("node"));
  group.AddNodes(in.at("untainted_nodes"), NodeClass::kUntainted, kNow);
  group.AddNodes(in.at("tainted_nodes"), NodeClass::kTainted, kNow);
  AddPods(in.at("pods"), &group.facts);
  group.Pass(kNow);
  answers->Equal("untainted_after", group.Count(NodeClass::kUntainted));
  answers->Equal("tainted_after", group.Count(NodeClass::kTainted));
}

void MultiPass(const Json& in, Answers* answers) {
  GroupSimulation group = Group(in);
  group.options.grace = {in.at("soft_delete_grace_s").get<int64_t>() * 1000,
                         in.at("hard_delete_grace_s").get<int64_t>() * 1000};
  group.options.cool_down_ms = in.at("scale_up_cool_down_s").get<int64_t>() * 1000;
  group.node_size = Amounts(in.at("nodes"));
  group.AddNodes(in.at("nodes").at("count"), NodeClass::kUntainted, kNow);
  AddPods(in.at("pods"), &group.facts);
  std::optional<int64_t> first_delta;
  for (const Json& time : in.at("pass_times_s")) {
    const SizeDecision decision = group.Pass(kNow + time.get<int64_t>() * 1000);
    if (!first_delta.has_value()) first_delta = decision.delta;
  }
  answers->Equal("first_delta", first_delta.value_or(0));
  answers->Equal("cloud_target_after", group.cloud_target);
}

// --- escalator_actions ------------------------------------------------------------------------------------

void AskCloud(const Json& in, Answers* answers) {
  answers->Equal("asked", CloudIncrease(in.at("wanted"), in.at("cloud_target"), in.at("cloud_max")));
}

void CountToTaint(const Json& in, Answers* answers) {
  const std::optional<int64_t> count =
      TaintCount(in.at("untainted_nodes"), in.at("wanted"), in.at("min_nodes"), in.at("cloud_min"),
                 in.at("cloud_target"));
  answers->Equal("tainted", count.value_or(0));
  answers->Equal("error", count.has_value() ? Json() : Json("BELOW_MIN"));
}

std::vector<GroupNode> Created(const Json& years) {
  std::vector<GroupNode> nodes;
  for (const Json& year : years) {
    GroupNode& node = nodes.emplace_back();
    node.name = "node-" + std::to_string(nodes.size());
    node.created_ms = (year.get<int64_t>() - 1970) * 365 * 24 * kHour;
  }
  return nodes;
}

std::vector<size_t> Positions(const std::vector<GroupNode>& nodes) {
  std::vector<size_t> all(nodes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

void Oldest(const Json& in, Answers* answers) {
  const std::vector<GroupNode> nodes = Created(in.at("created"));
  answers->Equal("indices", OldestFirst(nodes, Positions(nodes), in.at("count")));
}

// The nodes are all tainted, and utilisation asks for `count` of them.
void UntaintNewest(const Json& in, Answers* answers) {
  SizeOptions options;
  options.mode = SizeMode::kCompat;
  options.scale_up_percent = 100;
  options.max_nodes = options.min_nodes = in.at("count");
  if (in.at("health_feature"))
    options.health = {.grace_ms = 1, .newest_percent = 100, .max_unhealthy_percent = 99};
  GroupFacts facts;
  facts.nodes = Created(in.at("created"));
  for (size_t i = 0; i < facts.nodes.size(); ++i) {
    facts.nodes[i].node_class = NodeClass::kTainted;
    facts.nodes[i].ready = !in.at("not_ready")[i].get<bool>();
  }
  // A group of fewer nodes than its minimum gives up; cordoned ones fill it up.
  while (static_cast<int64_t>(facts.nodes.size()) < options.min_nodes) {
    facts.nodes.push_back(
        {.name = "z" + std::to_string(facts.nodes.size()), .node_class = NodeClass::kCordoned});
  }
  answers->Equal("indices", SizeGroup(options, facts, {}, kNow).untaint);
}

GroupFacts TaintedGroup(const Json& in) {
  GroupFacts facts;
  const auto add = [&](int64_t count, NodeClass node_class) {
    for (int64_t i = 0; i < count; ++i) {
      GroupNode& node = facts.nodes.emplace_back();
      node.name = "node-" + std::to_string(facts.nodes.size());
      node.node_class = node_class;
      node.allocatable = {1000, 1000};
      node.empty = in.at("empty");
      if (node_class == NodeClass::kUntainted) continue;
      const int64_t age_s = in.at("age_over_hard") ? 601 : (in.at("age_over_soft") ? 61 : 1);
      node.tainted_ms = kNow - age_s * 1000;
    }
  };
  add(in.at("tainted_nodes"), NodeClass::kTainted);
  if (!facts.nodes.empty()) facts.nodes[0].deletion_forbidden = in.at("no_delete_annotation_on_first");
  add(in.at("force_tainted_nodes"), NodeClass::kForceTainted);
  add(1, NodeClass::kUntainted);
  return facts;
}

void Reap(const Json& in, NodeClass node_class, Answers* answers) {
  SizeOptions options;
  options.mode = SizeMode::kCompat;
  options.max_nodes = options.cloud_max = 100;
  options.scale_up_percent = 70;
  options.grace = {60'000, 600'000};
  const GroupFacts facts = TaintedGroup(in);
  const SizeDecision decision = SizeGroup(options, facts, {}, kNow);
  answers->Equal("removed", std::count_if(decision.remove.begin(), decision.remove.end(),
                                          [&](size_t i) { return facts.nodes[i].node_class == node_class; }));
}

void ReapTainted(const Json& in, Answers* answers) { Reap(in, NodeClass::kTainted, answers); }
void ReapForceTainted(const Json& in, Answers* answers) { Reap(in, NodeClass::kForceTainted, answers); }

// --- escalator_inputs -------------------------------------------------------------------------------------

ResourceList List(const Json& object) {
  ResourceList list;
  list[kCpu] = Quantity::FromMilli(object.at("cpu"));
  list[kMemory] = Quantity::FromUnits(object.at("mem"));
  return list;
}

void PodRequests(const Json& in, Answers* answers) {
  CpuMemory sum;
  for (const Json& message : in.at("pods")) {
    PodResources pod;
    for (const Json& container : message.at("containers"))
      pod.containers.emplace_back().requests = List(container);
    for (const Json& init : message.at("init")) pod.init_containers.emplace_back().requests = List(init);
    pod.overhead = List(message.at("overhead"));
    const ResourceAmounts requests = ToAmounts(SimpleRequests(pod));
    sum = Plus(sum, {requests.Get(kCpu), requests.Get(kMemory)});
  }
  answers->Equal("cpu", sum.cpu);
  answers->Equal("mem", sum.memory);
}

void CapacityOfNodes(const Json& in, Answers* answers) {
  GroupSimulation group;
  group.options.mode = SizeMode::kCompat;
  for (const Json& node : in.at("nodes")) {
    group.node_size = Amounts(node);
    group.AddNodes(1, NodeClass::kUntainted, kNow);
  }
  const SizeDecision decision = group.Pass(kNow);
  answers->Equal("cpu", decision.capacity.cpu);
  answers->Equal("mem", decision.capacity.memory);
}

void Newest(const Json& in, Answers* answers) {
  std::vector<GroupNode> nodes;
  for (const Json& age : in.at("ages_min")) {
    nodes.push_back(
        {.name = "node-" + std::to_string(nodes.size()), .created_ms = kNow - age.get<int64_t>() * 60'000});
  }
  answers->Equal("indices", NewestSample(nodes, Positions(nodes), in.at("percent")));
}

void GroupHealthy(const Json& in, Answers* answers) {
  std::vector<GroupNode> nodes;
  for (int64_t i = 0; i < in.at("nodes").get<int64_t>(); ++i) {
    nodes.push_back({.name = "node-" + std::to_string(i),
                     .created_ms = kNow - in.at("node_age_s").get<int64_t>() * 1000,
                     .ready = i >= in.at("unhealthy").get<int64_t>()});
  }
  const HealthOptions options = {.grace_ms = in.at("grace_s").get<int64_t>() * 1000,
                                 .newest_percent = in.at("newest_percent"),
                                 .max_unhealthy_percent = in.at("max_unhealthy_percent")};
  answers->Equal("healthy", IsHealthy(nodes, options, kNow));
}

SelectorOperator Operator(const std::string& name) {
  if (name == "In") return SelectorOperator::kIn;
  if (name == "NotIn") return SelectorOperator::kNotIn;
  return name == "Exists" ? SelectorOperator::kExists : SelectorOperator::kDoesNotExist;
}

void Member(const Json& in, Answers* answers) {
  const Json& pod = in.at("pod");
  std::vector<Label> selector;
  for (const auto& [key, value] : pod.at("node_selector").items()) selector.push_back({key, value});
  PodRules rules;
  rules.node_selector = Labels(std::move(selector));
  for (const Json& term : pod.at("required_node_affinity")) {
    if (!rules.node_affinity.has_value()) rules.node_affinity.emplace();
    rules.node_affinity->terms.push_back(
        {.labels = {{term.at("key"), Operator(term.at("operator")), term.at("values")}}});
  }
  GroupSelector group;
  if (in.at("group").is_string()) {
    group.catch_all = true;
  } else {
    group.labels = Labels({{in.at("group").at("label_key"), in.at("group").at("label_value")}});
  }
  const Applicant applicant = {.rules = &rules,
                               .of_daemon_set = pod.at("owner_kind") == "DaemonSet",
                               .states_affinity = rules.node_affinity.has_value()};
  answers->Equal("member", IsMember(applicant, group));
}

}  // namespace

void AddEscalatorHandlers(Handlers* handlers) {
  handlers->insert({{"usage_percent", UsagePercent},
                    {"scale_up_delta", ScaleUpDelta},
                    {"above_threshold", AboveThreshold},
                    {"decide", Decide},
                    {"decide_starve", DecideStarve},
                    {"decide_age", DecideAge},
                    {"untaint", Untaint},
                    {"multi_pass", MultiPass},
                    {"cloud_increase", AskCloud},
                    {"taint_count", CountToTaint},
                    {"oldest_first", Oldest},
                    {"untaint_newest", UntaintNewest},
                    {"reap", ReapTainted},
                    {"force_reap", ReapForceTainted},
                    {"pod_requests", PodRequests},
                    {"node_capacity", CapacityOfNodes},
                    {"newest_sample", Newest},
                    {"group_healthy", GroupHealthy},
                    {"member", Member},
                    {"member_default", Member}});
}

}  // namespace loadline::vectors
