// Runs a fuzz target without libFuzzer: every file of the folders given, then mutations
// of them with a fixed seed, so that each build and compiler sees the same inputs.
//
//   fuzz_NAME FOLDER... [--mutations=N]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int kDefaultMutations = 5000;
constexpr std::uint32_t kSeed = 20240229;
constexpr int kMaxEdits = 8;

using Random = std::mt19937;

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

// A number below `bound`, the same on every platform, which distributions are not.
std::size_t Below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

// Changes, removes, doubles or splices a few bytes.
std::string Mutate(Random& random, const std::vector<std::string>& corpus) {
  std::string input = corpus[Below(random, corpus.size())];
  const std::size_t edits = 1 + Below(random, kMaxEdits);
  for (std::size_t i = 0; i < edits; ++i) {
    const std::size_t at = Below(random, input.size() + 1);
    const std::size_t length = Below(random, std::min<std::size_t>(input.size() - at, 32) + 1);
    switch (Below(random, 5)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(random() & 0xff);
        break;
      case 1: input.erase(at, length); break;
      case 2: input.insert(at, input.substr(at, length)); break;
      case 3: input.insert(at, 1, static_cast<char>(random() & 0x7f)); break;
      default: {
        const std::string& other = corpus[Below(random, corpus.size())];
        const std::size_t from = Below(random, other.size() + 1);
        input.insert(at, other.substr(from, Below(random, 32)));
      }
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kMutations = "--mutations=";
  int mutations = kDefaultMutations;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, kMutations.size()) == kMutations) {
      mutations = std::atoi(argv[i] + kMutations.size());
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argument)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FOLDER... [--mutations=N]; no input found\n", argv[0]);
    return 2;
  }
  std::vector<std::string> corpus;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    Run(corpus.back());
  }
  Random random(kSeed);
  for (int i = 0; i < mutations; ++i) Run(Mutate(random, corpus));
  std::printf("%zu files and %d mutations\n", corpus.size(), mutations);
  return 0;
}
