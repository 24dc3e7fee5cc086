// Runs a fuzz target without libFuzzer: every file of a folder, then mutations of them with a fixed seed, so
// that each build and compiler sees the same inputs.
//
//   fuzz_replay TARGET FOLDER [MUTATIONS]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

using dtrun::fuzz::Target;

constexpr int kDefaultMutations = 5000;
constexpr std::uint32_t kSeed = 20240229;
constexpr int kMaxEdits = 8;

using Random = std::mt19937;

std::map<std::string, Target>& Targets() {
  static std::map<std::string, Target> targets;
  return targets;
}

void Run(Target target, const std::string& input) {
  target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
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

bool dtrun::fuzz::Register(const char* name, Target target) { return Targets().emplace(name, target).second; }

int main(int argc, char** argv) {
  const auto target = argc > 2 ? Targets().find(argv[1]) : Targets().end();
  std::vector<std::filesystem::path> files;
  if (target != Targets().end()) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[2])) files.push_back(entry.path());
  }
  if (files.empty()) {
    std::fprintf(stderr, "usage: fuzz_replay TARGET FOLDER [MUTATIONS]; FOLDER must not be empty; targets:");
    for (const auto& [name, unused] : Targets()) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    Run(target->second, corpus.back());
  }
  const int mutations = argc > 3 ? std::atoi(argv[3]) : kDefaultMutations;
  Random random(kSeed);
  for (int i = 0; i < mutations; ++i) Run(target->second, Mutate(random, corpus));
  std::printf("%zu files and %d mutations\n", corpus.size(), mutations);
  return 0;
}
