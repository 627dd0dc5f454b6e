// Encodes the objects that were left out.
#ifndef LOADLINE_PLUGIN_CONVERT_LEFT_OUT_H_
#define LOADLINE_PLUGIN_CONVERT_LEFT_OUT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/cluster/left_out.h"
#include "google/protobuf/repeated_field.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/cluster_state.pb.h"

namespace loadline {

// The text of an error as the reason why an object was left out.
std::string ReasonOf(const absl::Status& error);

// Reads name and namespace of an object whose bytes are too many to read all of it; empty if they are no
// object.
void ReadName(absl::string_view bytes, k8s::v1::ObjectMeta* metadata);

void EncodeLeftOut(const LeftOutList& list, google::protobuf::RepeatedPtrField<v1::LeftOut>* messages);

// Into an answer.
template <typename Response>
void TellLeftOut(const LeftOutList& list, Response* response) {
  EncodeLeftOut(list, response->mutable_left_out());
  response->set_left_out_total(list.total());
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_LEFT_OUT_H_
