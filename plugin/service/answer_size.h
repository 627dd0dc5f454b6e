// Answers that outgrow a message.
#ifndef LOADLINE_PLUGIN_SERVICE_ANSWER_SIZE_H_
#define LOADLINE_PLUGIN_SERVICE_ANSWER_SIZE_H_

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin/convert/parse.h"

namespace loadline {

// The answer, or kResourceExhausted with what the client may do about it.
template <typename Response>
absl::StatusOr<Response> Sized(Response response, absl::string_view advice) {
  if (response.ByteSizeLong() <= kMaxMessageBytes) return response;
  return absl::ResourceExhaustedError(
      absl::StrCat("the answer outgrows ", kMaxMessageBytes, " bytes; ", advice));
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_ANSWER_SIZE_H_
