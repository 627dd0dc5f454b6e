// The fields of the messages of the API, as protoc describes them.
#ifndef LOADLINE_PLUGIN_CONVERT_SCHEMA_H_
#define LOADLINE_PLUGIN_CONVERT_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace loadline {

// The fields of messages. The lite runtime, which the engine is built with, has no descriptors: it keeps
// fields that it does not know, and does not say so. Immutable: any thread.
class Schema {
 public:
  // Reads a serialized google.protobuf.FileDescriptorSet, of which the build is the author: what it takes is
  // not bounded by its size. Damaged bytes count as far as they can be read.
  explicit Schema(absl::string_view descriptor_set);

  // The schema that this engine was built with.
  static const Schema& OfThisEngine();

  // A field of a message or of those in it that has no meaning here, such as "field 1011 of
  // loadline.v1.ScorePolicy"; empty: there is none. A known field of another wire type is one as well.
  // `bytes` were parsed as a message of this type, which is in the schema. Fields of type bytes, such as
  // objects of Kubernetes, are not looked into. Cost: O(fields in `bytes`), some nanoseconds each.
  std::string UnknownField(absl::string_view type, absl::string_view bytes) const;

 private:
  class Reader;
  struct Field {
    uint8_t wire_types = 0;  // those that the field may come as, by bit; 0: there is no such field
    int32_t message = -1;    // the index of its type; -1: it is not looked into
  };
  struct Message {
    std::string name;
    std::vector<Field> fields;  // by number
  };
  // A field that its message does not have.
  struct Unknown {
    const Message* message = nullptr;
    int64_t number = 0;
  };

  // False: there is one, of which `unknown` says where.
  bool KnowsAll(const Message& message, absl::string_view bytes, Unknown* unknown) const;

  std::vector<Message> messages_;
  absl::flat_hash_map<std::string, int32_t> by_name_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SCHEMA_H_
