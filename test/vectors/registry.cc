#include "test/vectors/registry.h"

#include <set>

namespace loadline::vectors {
namespace {

const Handlers& AllHandlers() {
  static const Handlers* const kHandlers = [] {
    auto* handlers = new Handlers;
    AddEstimatorHandlers(handlers);
    AddLimitScoreHandlers(handlers);
    AddPodLimitsHandlers(handlers);
    AddPriceHandlers(handlers);
    AddEscalatorHandlers(handlers);
    AddSlackHandlers(handlers);
    AddDrainPodHandlers(handlers);
    AddDrainNodeHandlers(handlers);
    AddDrainDeletionHandlers(handlers);
    AddDrainPlanHandlers(handlers);
    return handlers;
  }();
  return *kHandlers;
}

// Functions of the shim: what Go calculates, a Go test compares.
const std::map<std::string, std::string>& GoPackages() {
  static const auto* const kPackages = new std::map<std::string, std::string>{
      {"daemonset_eviction", "./autoscaler/act/drain"},
      {"delete_batch", "./autoscaler/act/drain"},
      {"drain_node", "./autoscaler/act/drain"},
      {"eviction_order", "./autoscaler/act/drain"},
      {"max_skip_time", "./autoscaler/tell"},
      {"priority_groups", "./autoscaler/act/drain"},
      {"quantise", "./extender"},
      {"soft_taints", "./autoscaler/act/drain"},
      {"start_deletion", "./autoscaler/act/drain"},
      {"wire_form", "./extender"},
  };
  return *kPackages;
}

// README.md, "What describes others".
bool IsPeer(const std::string& file_name, const std::string& fn) {
  static const auto* const kFunctions = new std::set<std::string>{
      "cpa_fixed_point", "cpa_replicas", "buffer_replicas", "extender_total", "nodes_to_score",
      "grpc_reply",      "node_order",   "unneeded_limit",  "fastpath_group"};
  return file_name == "peer_scores" || kFunctions->contains(fn);
}

}  // namespace

Owner OwnerOf(const std::string& file_name, const std::string& fn) {
  if (IsPeer(file_name, fn)) return {.kind = Owner::Kind::kPeer};
  if (const auto found = AllHandlers().find(fn); found != AllHandlers().end()) {
    return {.kind = Owner::Kind::kHandler, .handler = found->second};
  }
  if (const auto found = GoPackages().find(fn); found != GoPackages().end()) {
    return {.kind = Owner::Kind::kGo, .go_package = found->second};
  }
  return {};
}

bool IsLackedOnPurpose(const std::string& fn) {
  // A node that failed is not kept in a list with a time. Budgets are taken from within a plan, never by a
  // call.
  return fn == "unremovable_ttl" || fn == "remove_pods";
}

const char* OverruledReason(const std::string& id) {
  // Row by row: {"SC-X00", "what DESIGN or an issue says instead"}.
  static const auto* const kOverruled = new std::map<std::string, const char*>{
      {"DR-PDB-161", "the eviction API refuses a pod under several budgets: its node stays"},
      {"DR-PDB-201", "the eviction API refuses a pod under several budgets: none of them is taken from"},
      {"DR-PLAN-339", "nothing new is drained while replacements of evicted pods fit nowhere"},
      {"DR-REMOVE-215", "nodes are named by what the client has sent: nobody can ask about another one"},
      {"DR-TTL-53",
       "a node that failed is tried again when what kept it there has changed, not after a time"},
      {"DR-NODE-502", "nothing deletes a pod without an eviction"},
  };
  const auto found = kOverruled->find(id);
  return found == kOverruled->end() ? nullptr : found->second;
}

}  // namespace loadline::vectors
