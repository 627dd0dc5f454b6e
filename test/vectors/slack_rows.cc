// slack_size.jsonl and slack_loop.jsonl: reading U, the proposal's literal formulas, and PlaceholderSet.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/slack/placeholder_set.h"
#include "core/slack/slack_size.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

CpuMemory Amounts(const Json& object) { return {object.at("cpu"), object.at("mem")}; }
Json Pair(const CpuMemory& amounts) { return {amounts.cpu, amounts.memory}; }

int64_t Rate(const Json& in) {
  return std::llround(in.at("rate").get<double>() * static_cast<double>(kWholeRate));
}

std::vector<CpuMemory> List(const Json& objects) {
  std::vector<CpuMemory> list;
  for (const Json& object : objects) list.push_back(Amounts(object));
  return list;
}

struct Nodes {
  CpuMemory sum;
  CpuMemory node;  // the last kind
  int64_t count = 0;
};

Nodes Sum(const Json& sets) {
  Nodes nodes;
  for (const Json& set : sets) {
    nodes.node = Amounts(set);
    nodes.sum = Plus(nodes.sum, Times(nodes.node, set.at("count")));
    nodes.count += set.at("count").get<int64_t>();
  }
  return nodes;
}

Pieces ShareOf(const CpuMemory& room, const CpuMemory& node, const Json& in) {
  return Share(room, LargestPiece(node, in.at("granularity"), std::nullopt)).value_or(Pieces{-1, {}});
}

void Standard(const Json& in, Answers* answers) {
  const Nodes nodes = Sum(in.at("node_sets"));
  const CpuMemory extra = ExtraRoom(nodes.sum, Rate(in));
  const Pieces pieces = ShareOf(extra, nodes.node, in);
  answers->Equal("extra", Pair(extra));
  answers->Equal("n", pieces.count);
  answers->Equal("size", Pair(pieces.size));
  answers->Equal("total", Pair(Times(pieces.size, pieces.count)));
  const LiteralSlack literal = LiteralStandard(nodes.sum, nodes.count, in.at("granularity"));
  const double count = static_cast<double>(literal.count);
  answers->Equal("literal_count", literal.count);
  answers->Equal("literal_total", Json{literal.cpu * count, literal.memory * count});
}

void StandardPerClass(const Json& in, Answers* answers) {
  const Nodes all = Sum(in.at("node_sets"));
  const LiteralSlack literal = LiteralStandard(all.sum, all.count, in.at("granularity"));
  answers->Equal("avg_unit", Json{literal.cpu, literal.memory});
  Json per_class = Json::array();
  CpuMemory total;
  bool fits_any = false;
  for (const Json& set : in.at("node_sets")) {
    const Nodes nodes = Sum(Json::array({set}));
    const Pieces pieces = ShareOf(ExtraRoom(nodes.sum, Rate(in)), nodes.node, in);
    per_class.push_back({{"n", pieces.count}, {"size", Pair(pieces.size)}});
    total = Plus(total, Times(pieces.size, pieces.count));
    const CpuMemory average = {std::llround(literal.cpu), std::llround(literal.memory)};
    fits_any |= Within(average, nodes.node);
  }
  answers->Equal("fits_any", fits_any);
  answers->Equal("per_class", per_class);
  answers->Equal("total", Pair(total));
}

void WithReserve(const Json& in, Answers* answers) {
  const Nodes nodes = Sum(in.at("node_sets"));
  const std::vector<CpuMemory> reserve = List(in.at("reserve"));
  const LiteralRoom literal = LiteralRemaining(nodes.sum, Rate(in), reserve);
  answers->Equal("remaining_literal", Json{literal.cpu, literal.memory});
  const CpuMemory reserved = SumOfReserve(reserve, in.at("dedupe"));
  const Pieces pieces = ShareOf(Minus(ExtraRoom(nodes.sum, Rate(in)), reserved), nodes.node, in);
  answers->Equal("n", pieces.count);
  answers->Equal("size", Pair(pieces.size));
  answers->Equal("total", Pair(Plus(reserved, Times(pieces.size, pieces.count))));
}

void HoleFits(const Json& in, Answers* answers) {
  answers->Equal("fits", FitsOneOf(Amounts(in.at("pod")), List(in.at("holes"))));
}

void PieceFits(const Json& in, Answers* answers) {
  answers->Equal("fits", FitsOneOf(Amounts(in.at("piece")), List(in.at("empty_nodes"))));
}

void FixedPoint(const Json& in, Answers* answers) {
  const SlackBasis basis = in.at("basis") == "capacity" ? SlackBasis::kCapacity : SlackBasis::kRequested;
  const std::optional<int64_t> nodes =
      NodesAtRest(in.at("requested_mcpu"), in.at("node_mcpu"), Rate(in), basis);
  answers->Equal("nodes", nodes.has_value() ? Json(*nodes) : Json());
}

SlackNode ReadNode(const Json& in, const std::string& name) {
  SlackNode node;
  node.name = name;
  node.allocatable = Amounts(in.at("capacity"));
  node.real = Amounts(in.at("real"));
  return node;
}

// Ids of rows are a letter and a number, or count from 1 where placeholders of two kinds are numbered apart.
struct NamedPlaceholders {
  std::vector<Placeholder> list;
  std::vector<std::string> names;  // by id
};

NamedPlaceholders ReadPlaceholders(const Json& in) {
  NamedPlaceholders read;
  for (const Json& object : in) {
    Placeholder placeholder;
    placeholder.id = static_cast<int64_t>(read.names.size());
    read.names.push_back(object.at("id"));
    placeholder.size = Amounts(object);
    if (object.value("mirrored", false)) placeholder.kind = PlaceholderKind::kMirrored;
    if (object.contains("node") && !object.at("node").is_null()) placeholder.node = object.at("node");
    read.list.push_back(placeholder);
  }
  return read;
}

void PushedOutOfNode(const Json& in, Answers* answers) {
  const NamedPlaceholders placeholders = ReadPlaceholders(in.at("placeholders"));
  std::vector<const Placeholder*> all;
  for (const Placeholder& placeholder : placeholders.list) all.push_back(&placeholder);
  const PushedOut out = PushOut(ReadNode(in, "node"), all);
  Json pushed = Json::array(), kept = Json::array();
  for (const size_t i : out.pushed) pushed.push_back(placeholders.names[i]);
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::find(out.pushed.begin(), out.pushed.end(), i) == out.pushed.end())
      kept.push_back(placeholders.names[i]);
  }
  answers->Equal("pushed", pushed);
  answers->Equal("kept", kept);
  answers->Equal("over", out.over);
}

void Step(const Json& in, Answers* answers) {
  PlaceholderSet set;
  size_t number = 0;
  for (const Json& node : in.at("nodes")) set.SetNode(number++, ReadNode(node, node.at("name")));
  const NamedPlaceholders before = ReadPlaceholders(in.at("placeholders"));
  for (const Placeholder& placeholder : before.list) set.Restore(placeholder);
  set.PushOutAll();
  const int64_t desired = in.at("desired");
  const PlaceholderGroup group{PlaceholderKind::kStandard, "", Amounts(in.at("size"))};
  if (!before.list.empty()) {
    const Placeholder& any = before.list.front();
    set.Trim({any.kind, any.owner, any.size}, set.size() - desired);
  }
  for (int64_t id = static_cast<int64_t>(before.names.size()); set.size() < desired; ++id) set.Add(group, id);
  const std::vector<int32_t> classes = {0};
  const PlaceholderSet::Groups groups = set.groups();
  for (const auto& [of, members] : groups) set.Place(of, classes);
  Json assign = Json::object(), unplaced = Json::array();
  int moves = 0;
  for (const Placeholder& placeholder : set.Export()) {
    const size_t id = static_cast<size_t>(placeholder.id);
    const std::string name = id < before.names.size() ? before.names[id] : "p" + std::to_string(id + 1);
    assign[name] = placeholder.node.empty() ? Json() : Json(placeholder.node);
    if (placeholder.node.empty()) {
      unplaced.push_back(name);
    } else if (id < before.list.size() && !before.list[id].node.empty()) {
      moves += placeholder.node != before.list[id].node ? 1 : 0;
    }
  }
  answers->Equal("assign", assign);
  answers->Equal("moves", moves);
  answers->Equal("unplaced", unplaced);
}

void Order(const Json& in, Answers* answers) {
  SlackNode node;
  node.name = "node";
  node.allocatable = Amounts(in.at("free"));
  PlaceholderSet set;
  set.SetNode(0, node);
  const CpuMemory pod = Amounts(in.at("pending_real"));
  const bool real_placed = set.BestFit(0, pod) == 0;
  if (real_placed) {
    node.real = pod;
    set.SetNode(0, node);
  }
  const PlaceholderGroup group{PlaceholderKind::kStandard, "", Amounts(in.at("placeholder"))};
  set.Add(group, 1);
  const std::vector<int32_t> classes = {0};
  answers->Equal("real_placed", real_placed);
  answers->Equal("placeholder_placed", set.Place(group, classes) == 1);
  answers->Equal("demand", set.Find(group)->unplaced.size());
}

}  // namespace

void AddSlackHandlers(Handlers* handlers) {
  handlers->insert({{"standard", Standard},
                    {"standard_per_class", StandardPerClass},
                    {"with_reserve", WithReserve},
                    {"hole_fits", HoleFits},
                    {"piece_fits", PieceFits},
                    {"fixed_point", FixedPoint},
                    {"push_out", PushedOutOfNode},
                    {"step", Step},
                    {"order", Order}});
}

}  // namespace loadline::vectors
