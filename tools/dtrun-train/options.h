// dtrun-train's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace dtrun::train {

enum class ModelKind { kMlp, kCnn };
const char* ModelName(ModelKind kind);

struct Options {
  ModelKind model = ModelKind::kMlp;
  std::uint64_t epochs = 5;
  std::uint64_t batch = 128;   // of all ranks together
  double learning_rate = 0.1;  // peak of the one-cycle schedule
  double momentum = 0.9;
  std::uint64_t seed = 1;
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string checkpoint;  // empty: none
  std::string resume;      // empty: from the start
  int threads = 0;         // 0: OMP_NUM_THREADS, or what libtorch takes
};

// The process ends with `code` after printing `text`: help and version to stdout, usage
// errors (code 2) to stderr.
struct Exit {
  int code = 0;
  std::string text;
};

std::variant<Options, Exit> ParseOptions(int argc, const char* const* argv, const std::string& version);

}  // namespace dtrun::train
