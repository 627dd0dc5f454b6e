// The product function that answers each `fn`.
#ifndef LOADLINE_TEST_VECTORS_REGISTRY_H_
#define LOADLINE_TEST_VECTORS_REGISTRY_H_

#include <map>
#include <string>

#include "test/vectors/answers.h"
#include "test/vectors/row.h"

namespace loadline::vectors {

// Asks the product for its result for `in`. Converts, and calculates nothing. May throw what the JSON library
// throws when a row is not of its form.
using Handler = void (*)(const Json& in, Answers* answers);
using Handlers = std::map<std::string, Handler>;

// One per file of rows, each beside its handlers.
void AddEstimatorHandlers(Handlers* handlers);      // estimator_rows.cc
void AddLimitScoreHandlers(Handlers* handlers);     // limit_score_rows.cc
void AddPodLimitsHandlers(Handlers* handlers);      // pod_limits_rows.cc
void AddPriceHandlers(Handlers* handlers);          // price_rows.cc
void AddEscalatorHandlers(Handlers* handlers);      // escalator_rows.cc
void AddSlackHandlers(Handlers* handlers);          // slack_rows.cc
void AddDrainPodHandlers(Handlers* handlers);       // drain_pod_rows.cc
void AddDrainNodeHandlers(Handlers* handlers);      // drain_node_rows.cc
void AddDrainDeletionHandlers(Handlers* handlers);  // drain_deletion_rows.cc
void AddDrainPlanHandlers(Handlers* handlers);      // drain_plan_rows.cc

// The part that answers for the rows of one `fn`.
struct Owner {
  enum class Kind {
    kHandler,  // `handler`
    kGo,       // a test of the Go package `go_package` below shim/
    kPeer,     // describes another program: nobody
    kUnknown,
  };
  Kind kind = Kind::kUnknown;
  Handler handler = nullptr;
  std::string go_package;
};

Owner OwnerOf(const std::string& file_name, const std::string& fn);

// Returns whether the product has no such function, on purpose: all its rows are overruled.
bool IsLackedOnPurpose(const std::string& fn);

// Why a row is overruled on purpose; nullptr if it is not. It is run all the same, and must differ: a row
// that passes is not overruled any more.
const char* OverruledReason(const std::string& id);

}  // namespace loadline::vectors

#endif  // LOADLINE_TEST_VECTORS_REGISTRY_H_
