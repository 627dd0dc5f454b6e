// The messages of the API, as protoc describes them: which fields a side of a connection knows.
#ifndef LOADLINE_PLUGIN_CONVERT_SCHEMA_H_
#define LOADLINE_PLUGIN_CONVERT_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace loadline {

// Fields of messages, values of enums and methods of services. The lite runtime, which the engine is built
// with, has no descriptors: it keeps fields that it does not know, and does not say so. Immutable: any
// thread.
class Schema {
 public:
  // Reads a serialized google.protobuf.FileDescriptorSet. What is no such message counts as far as it can be
  // read.
  explicit Schema(absl::string_view descriptor_set);

  // The schema that this engine was built with.
  static const Schema& OfThisEngine();

  // A field of a message or of those in it that has no meaning here, such as "field 1011 of
  // loadline.v1.ScorePolicy"; empty: there is none. A known field of another wire type is one as well.
  // `bytes` were parsed as a message of this type, which is in the schema. Fields of type bytes, such as
  // objects of Kubernetes, are not looked into. Cost: O(fields in `bytes`), some nanoseconds each.
  std::string UnknownField(absl::string_view type, absl::string_view bytes) const;

  // Names of elements that `other` lacks, sorted: "loadline.v1.ScorePolicy.preset = 1",
  // "loadline.v1.ScorePolicy.Preset.STRICT = 1", "loadline.v1.ClusterState/Sync".
  std::vector<std::string> LackedBy(const Schema& other) const;

 private:
  class Reader;
  enum class Kind : uint8_t { kUnknown, kVarint, kFixed64, kFixed32, kBytes, kMessage };
  struct Field {
    Kind kind = Kind::kUnknown;
    bool packable = false;  // repeated, and of numbers
    int32_t message =
        -1;            // with kMessage: its index; -1: a message of another package, which is not looked into
    std::string type;  // with kMessage: its name, until all messages are read
  };
  struct Message {
    std::string name;
    std::vector<Field> fields;  // by number
  };

  std::string UnknownField(const Message& message, absl::string_view bytes) const;

  std::vector<Message> messages_;
  absl::flat_hash_map<std::string, int32_t> by_name_;
  absl::flat_hash_set<std::string> elements_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SCHEMA_H_
