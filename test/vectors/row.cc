#include "test/vectors/row.h"

#include <fstream>

namespace loadline::vectors {
namespace {

// Takes one line into `file`; throws what the JSON library throws.
void ReadLine(const std::string& line, bool first, RowFile* file) {
  const Json json = Json::parse(line);
  if (first) {
    file->name = json.at("_meta").at("file").get<std::string>();
    return;
  }
  file->rows.push_back(
      {json.at("id").get<std::string>(), json.at("fn").get<std::string>(), json.at("in"), json.at("want")});
}

}  // namespace

RowFile ReadRows(const std::string& path) {
  RowFile file;
  file.path = path;
  std::ifstream in(path);
  std::string line;
  int number = 0;
  while (std::getline(in, line)) {
    ++number;
    try {
      ReadLine(line, /*first=*/number == 1, &file);
    } catch (const Json::exception& error) {
      file.errors.push_back(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  if (number == 0) file.errors.push_back(path + ": cannot be read, or is empty");
  return file;
}

}  // namespace loadline::vectors
