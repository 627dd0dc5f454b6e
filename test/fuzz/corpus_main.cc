// Runs a fuzz target over its corpus once, without libFuzzer: the fuzz targets as ordinary tests.
//
//   quantity_fuzz test/fuzz/corpus/quantity
//
// Each argument is a file, or a directory whose files are taken in name order. No input at all is a failure,
// and so is a directory where less than half of the inputs have a question that is answered: refusals check
// nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "test/fuzz/answers.h"

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

// Returns whether the target answered any question of the input; nullopt: it cannot be read.
std::optional<bool> Run(const std::filesystem::path& file) {
  const std::optional<std::vector<char>> input = Read(file);
  if (!input.has_value()) {
    std::fprintf(stderr, "cannot read %s\n", file.c_str());
    return std::nullopt;
  }
  // Named before it runs: the last line tells which input ended the process.
  std::fprintf(stderr, "%s (%zu bytes)", file.c_str(), input->size());
  const loadline::FuzzAnswers before = loadline::fuzz_answers;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input->data()), input->size());
  const loadline::FuzzAnswers& after = loadline::fuzz_answers;
  std::fprintf(stderr, ": %lld answered, %lld refused\n",
               static_cast<long long>(after.answered - before.answered),
               static_cast<long long>(after.refused - before.refused));
  return after.answered > before.answered;
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 0;
  bool half_answered = true;
  for (int i = 1; i < argc; ++i) {
    int inputs = 0;
    int answered = 0;
    for (const std::filesystem::path& file : FilesOf(argv[i])) {
      const std::optional<bool> any = Run(file);
      if (!any.has_value()) return 1;
      ++inputs;
      answered += *any ? 1 : 0;
    }
    std::fprintf(stderr, "%d of %d inputs of %s are answered\n", answered, inputs, argv[i]);
    if (std::filesystem::is_directory(argv[i])) half_answered = half_answered && 2 * answered >= inputs;
    runs += inputs;
  }
  if (!half_answered) std::fprintf(stderr, "less than half of a corpus is answered\n");
  return runs > 0 && half_answered ? 0 : 1;
}
