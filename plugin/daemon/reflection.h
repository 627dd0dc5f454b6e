// gRPC's server reflection: tells clients which services there are, and their messages.
#ifndef LOADLINE_PLUGIN_DAEMON_REFLECTION_H_
#define LOADLINE_PLUGIN_DAEMON_REFLECTION_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline {

// Answers from the descriptors that the engine states. Immutable: any thread.
class Reflection {
 public:
  // Reads a serialized google.protobuf.FileDescriptorSet. Bytes that are none have no services.
  explicit Reflection(const std::string& descriptor_set);

  // Returns whether a method is that of the reflection service, of either version.
  static bool Serves(absl::string_view method);

  // Answers a serialized ServerReflectionRequest. A question that nobody here knows gets an error in the
  // answer.
  std::string Answer(const std::string& request) const;

 private:
  std::map<std::string, std::string> files_;                 // serialized, by name
  std::map<std::string, std::vector<std::string>> imports_;  // by file
  std::map<std::string, std::string, std::less<>> file_of_;  // by symbol
  std::vector<std::string> services_;                        // by name
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_REFLECTION_H_
