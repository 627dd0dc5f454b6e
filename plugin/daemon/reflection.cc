#include "plugin/daemon/reflection.h"

#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "grpcreflection/reflection.pb.h"

namespace loadline {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::FileDescriptorProto;

// The most bytes of a question that an error quotes.
constexpr size_t kMostQuoted = 256;

// Adds the names of a message, and of what is in it, to `names`.
void AddNames(const std::string& scope, const DescriptorProto& message, std::vector<std::string>* names) {
  const std::string name = absl::StrCat(scope, ".", message.name());
  names->push_back(name);
  for (const auto& field : message.field()) names->push_back(absl::StrCat(name, ".", field.name()));
  for (const EnumDescriptorProto& nested : message.enum_type()) {
    names->push_back(absl::StrCat(name, ".", nested.name()));
  }
  for (const DescriptorProto& nested : message.nested_type()) AddNames(name, nested, names);
}

// The names of all that a file defines.
std::vector<std::string> NamesOf(const FileDescriptorProto& file) {
  std::vector<std::string> names;
  for (const DescriptorProto& message : file.message_type()) AddNames(file.package(), message, &names);
  for (const EnumDescriptorProto& type : file.enum_type()) {
    names.push_back(absl::StrCat(file.package(), ".", type.name()));
  }
  for (const auto& service : file.service()) {
    const std::string name = absl::StrCat(file.package(), ".", service.name());
    names.push_back(name);
    for (const auto& method : service.method()) names.push_back(absl::StrCat(name, ".", method.name()));
  }
  return names;
}

void SetError(grpc::StatusCode code, const std::string& text,
              grpcreflection::ServerReflectionResponse* answer) {
  answer->mutable_error()->set_error_code(static_cast<int32_t>(code));
  answer->mutable_error()->set_error_message(text);
}

}  // namespace

Reflection::Reflection(const std::string& descriptor_set) {
  google::protobuf::FileDescriptorSet set;
  if (!set.ParseFromString(descriptor_set)) return;
  for (const FileDescriptorProto& file : set.file()) {
    files_.emplace(file.name(), file.SerializeAsString());
    imports_[file.name()].assign(file.dependency().begin(), file.dependency().end());
    for (const std::string& name : NamesOf(file)) file_of_.emplace(name, file.name());
    for (const auto& service : file.service()) {
      services_.push_back(absl::StrCat(file.package(), ".", service.name()));
    }
  }
  std::sort(services_.begin(), services_.end());
}

bool Reflection::Serves(absl::string_view method) {
  return method == "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" ||
         method == "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
}

std::string Reflection::Answer(const std::string& request) const {
  grpcreflection::ServerReflectionResponse answer;
  answer.set_original_request(request);
  grpcreflection::ServerReflectionRequest question;
  if (!question.ParseFromString(request)) {
    SetError(grpc::StatusCode::INVALID_ARGUMENT, "the request cannot be read", &answer);
    return answer.SerializeAsString();
  }
  answer.set_valid_host(question.host());
  if (question.has_list_services()) {
    for (const std::string& name : services_) answer.mutable_services()->add_service()->set_name(name);
    if (services_.empty()) answer.mutable_services();
    return answer.SerializeAsString();
  }
  std::string name = question.file_by_filename();
  if (question.has_file_containing_symbol()) {
    const auto found = file_of_.find(question.file_containing_symbol());
    name = found == file_of_.end() ? "" : found->second;
  } else if (!question.has_file_by_filename()) {
    SetError(grpc::StatusCode::UNIMPLEMENTED, "extensions are not served: there are none", &answer);
    return answer.SerializeAsString();
  }
  if (!files_.contains(name)) {
    const std::string& asked = question.has_file_containing_symbol() ? question.file_containing_symbol()
                                                                     : question.file_by_filename();
    SetError(grpc::StatusCode::NOT_FOUND, absl::StrCat("not known: ", asked.substr(0, kMostQuoted)), &answer);
    return answer.SerializeAsString();
  }
  // The file first, then each that it imports, directly or not, once.
  std::vector<std::string> names = {name};
  std::set<std::string> seen = {name};
  for (size_t i = 0; i < names.size(); ++i) {
    const auto file = files_.find(names[i]);
    if (file == files_.end()) continue;
    answer.mutable_file_descriptor()->add_file_descriptor_proto(file->second);
    for (const std::string& import : imports_.at(names[i])) {
      if (seen.insert(import).second) names.push_back(import);
    }
  }
  return answer.SerializeAsString();
}

}  // namespace loadline
