#include "plugin/convert/left_out.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/text.h"

namespace loadline {

std::string ReasonOf(const absl::Status& error) {
  return Printable({error.message().data(), error.message().size()}, LeftOutList::kMostReasonBytes);
}

void ReadName(absl::string_view bytes, k8s::v1::ObjectMeta* metadata) {
  k8s::v1::NamedObject object;
  if (!ParseObject(bytes, "object", &object).ok()) return;
  if (CheckName(object.metadata().name()).ok()) metadata->set_name(object.metadata().name());
  if (CheckName(object.metadata().namespace_()).ok())
    metadata->set_namespace_(object.metadata().namespace_());
}

// A resource may have the text for a name: only the end of a reason is ours.
bool IsWithoutRoom(absl::string_view reason) {
  return absl::EndsWith(reason, absl::StrCat(": ", kNoRoomForName));
}

void EncodeLeftOut(const LeftOutList& list, google::protobuf::RepeatedPtrField<v1::LeftOut>* messages) {
  for (const LeftOutObject& object : list.named()) {
    v1::LeftOut* const message = messages->Add();
    message->set_kind(Printable(object.kind, LeftOutList::kMostNameBytes));
    message->set_namespace_(Printable(object.namespace_name, LeftOutList::kMostNameBytes));
    message->set_name(Printable(object.name, LeftOutList::kMostNameBytes));
    message->set_no_room_for_name(IsWithoutRoom(object.reason));
    message->set_reason(Printable(object.reason, LeftOutList::kMostReasonBytes));
  }
}

}  // namespace loadline
