// Runs a fuzz target over its corpus once, without libFuzzer: the fuzz targets as ordinary tests.
//
//   quantity_fuzz test/fuzz/corpus/quantity
//
// Each argument is a file, or a directory whose files are taken in name order. No input at all is a failure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& argument) {
  if (!std::filesystem::is_directory(argument)) return {argument};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argument)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<std::vector<char>> Read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  return std::vector<char>(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::filesystem::path& file : FilesOf(argv[i])) {
      const std::optional<std::vector<char>> input = Read(file);
      if (!input.has_value()) {
        std::fprintf(stderr, "cannot read %s\n", file.c_str());
        return 1;
      }
      // Named before it runs: the last line tells which input ended the process.
      std::fprintf(stderr, "%s (%zu bytes)\n", file.c_str(), input->size());
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input->data()), input->size());
      ++runs;
    }
  }
  std::fprintf(stderr, "%d inputs\n", runs);
  return runs > 0 ? 0 : 1;
}
