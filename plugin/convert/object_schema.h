// The fields of Kubernetes' objects that the engine reads, by their names in JSON and by their numbers.
#ifndef LOADLINE_PLUGIN_CONVERT_OBJECT_SCHEMA_H_
#define LOADLINE_PLUGIN_CONVERT_OBJECT_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace loadline {

// Holds what proto/loadline/k8s/v1 says of them. Immutable: any thread.
class ObjectSchema {
 public:
  enum class Kind {
    kText,
    kBool,
    kInt32,
    kInt64,
    kMessage,
    kQuantity,  // text or number in JSON, a message with text on the wire
    kTime,      // RFC 3339 in JSON, a message with seconds on the wire
    kMap,       // an object in JSON, repeated entries on the wire
  };

  struct Field {
    std::string json_name;
    int64_t number = 0;
    Kind kind = Kind::kText;
    bool repeated = false;
    int32_t message = -1;    // its type, of kMessage; of kMap that of the entry; -1: it has none
    int64_t inlined_in = 0;  // the number of the field whose fields are those of the object in JSON; 0: none
    Kind value = Kind::kText;  // of kMap
  };

  struct Message {
    std::string name;           // without the package
    std::vector<Field> fields;  // in the order of the file, without those whose fields are inlined
    absl::flat_hash_map<std::string, size_t> by_json_name;
    // Fields that are known and not read.
    absl::flat_hash_set<std::string> unread;
    // Filters of a scheduler read it: a field that is not known may be a rule of placement.
    bool judged = false;
    std::vector<int32_t> message_of;  // by number: -2: no such field, -1: no message, else its type
  };

  // Reads a serialized google.protobuf.FileDescriptorSet, of which the build is the author.
  explicit ObjectSchema(absl::string_view descriptor_set);

  // The schema that this engine was built with.
  static const ObjectSchema& OfThisEngine();

  // By its full name, such as "loadline.k8s.v1.Pod"; nullptr: it is none of these.
  const Message* Find(absl::string_view name) const;
  const Message& message(int32_t index) const { return messages_[static_cast<size_t>(index)]; }

  // Returns `bytes`, which were parsed as a message of this type, without the fields that are not read.
  std::string KeepRead(const Message& message, absl::string_view bytes) const;

 private:
  class Reader;

  void Keep(const Message& message, absl::string_view bytes, std::string* out) const;

  std::vector<Message> messages_;
  absl::flat_hash_map<std::string, int32_t> by_name_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_OBJECT_SCHEMA_H_
