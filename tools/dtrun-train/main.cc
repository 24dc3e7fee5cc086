// dtrun-train: see options.h for its command line and trainer.h for what it does.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "dtrun/dtrun.hpp"
#include "dtrun/torch/collectives.h"
#include "tools/dtrun-train/atomic_file.h"
#include "tools/dtrun-train/blas.h"
#include "tools/dtrun-train/console.h"
#include "tools/dtrun-train/fashion_mnist.h"
#include "tools/dtrun-train/options.h"
#include "tools/dtrun-train/trainer.h"

namespace dtrun::train {
namespace {

std::string Describe(const Blas& blas) {
  const std::string kernels = blas.kernels.empty() ? "" : fmt::format(", {} kernels", blas.kernels);
  return blas.path.empty() ? blas.name + kernels : fmt::format("{} ({}{})", blas.name, blas.path, kernels);
}

// Found out before the training and not after its first epoch.
Status CheckCheckpointFolder(const std::string& path) {
  if (path.empty()) return {};
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code code;
  if (std::filesystem::is_directory(folder, code)) return {};
  return Error{DTRUN_NOT_FOUND,
               fmt::format("--checkpoint '{}': there is no folder '{}'; create it", path, folder.string())};
}

void PrintHeader(Console& console, const Options& options, const Communicator& world, const Trainer& trainer,
                 const FashionMnist& data, int threads) {
  const Blas blas = LoadedBlas();
  console.Line(
      fmt::format("dtrun-train {}: {} with {} parameters, {} images, batch {} over {} rank{} (backend {})",
                  DTRUN_VERSION, ModelName(options.model), trainer.parameters(), data.train.size(),
                  options.batch, world.size(), world.size() == 1 ? "" : "s", world.backend()));
  console.Line(fmt::format("libtorch {}, {} thread{} per rank, BLAS: {}", TorchVersion(), threads,
                           threads == 1 ? "" : "s", Describe(blas)));
  if (blas.slow) {
    fmt::print(stderr,
               "dtrun-train: warning: '{}' is the reference BLAS, about 25 times slower than OpenBLAS; "
               "apt-get install libopenblas0-pthread\n",
               blas.path);
  }
  const std::string better =
      BetterKernels(blas.kernels, __builtin_cpu_supports("avx2"), __builtin_cpu_supports("avx512bw"));
  if (!better.empty()) {
    fmt::print(stderr,
               "dtrun-train: warning: OpenBLAS does not know this processor and uses its {} kernels; "
               "OPENBLAS_CORETYPE={} in the environment or in job.env is several times faster\n",
               blas.kernels, better);
  }
}

Status Train(const Options& options) {
  const Session session;
  const Communicator world = session.world();
  const bool speaks = world.rank() == 0;
  const int threads = SetThreads(options.threads);
  Console console(stdout, WantsRedraw());

  const Result<FashionMnist> data = LoadFashionMnist(options.data);
  if (!data) return data.error();
  std::string checkpoint;
  if (speaks) {
    if (Status s = CheckCheckpointFolder(options.checkpoint); !s) return s;
    if (!options.resume.empty()) {
      Result<std::string> saved = ReadFile(options.resume);
      if (!saved) return saved.error();
      if (saved->empty()) {
        return Error{DTRUN_INVALID_ARGUMENT,
                     fmt::format("--resume '{}': the file is empty; start without --resume", options.resume)};
      }
      checkpoint = *std::move(saved);
    }
  }

  Trainer trainer(options, data.value(), std::make_shared<torch::CommunicatorCollectives>(world), checkpoint);
  if (speaks) PrintHeader(console, options, world, trainer, data.value(), threads);
  if (trainer.epoch() >= options.epochs) {
    if (speaks)
      console.Line(fmt::format("nothing to do: the checkpoint is of the last epoch, {}", trainer.epoch()));
    return {};
  }

  EpochResult last;
  double seconds = 0;
  while (trainer.epoch() < options.epochs) {
    const std::uint64_t epoch = trainer.epoch() + 1;
    const Console::Clock::time_point start = Console::Clock::now();
    last = trainer.RunEpoch([&](std::uint64_t samples, double loss) {
      if (!speaks) return;
      const Console::Clock::time_point now = Console::Clock::now();
      if (!console.Due(now)) return;
      const double rate = static_cast<double>(samples) / std::chrono::duration<double>(now - start).count();
      console.Progress(ProgressLine(epoch, options.epochs, samples, data->train.size(), loss, rate));
    });
    seconds += last.seconds;
    if (!speaks) continue;
    console.Line(EpochLine(epoch, options.epochs, last.loss, last.test_accuracy,
                           static_cast<double>(last.samples) / last.seconds));
    if (!options.checkpoint.empty()) {
      if (Status s = WriteFileAtomically(options.checkpoint, trainer.Save()); !s) return s;
    }
  }
  if (speaks) {
    console.Line(fmt::format("final test accuracy {:.4f} after {} epoch{}, {:.1f} s of training on {} rank{}",
                             last.test_accuracy, options.epochs, options.epochs == 1 ? "" : "s", seconds,
                             world.size(), world.size() == 1 ? "" : "s"));
  }
  return {};
}

int Main(int argc, char** argv) {
  const std::string version = fmt::format("dtrun-train {}, libtorch {}, BLAS: {}", DTRUN_VERSION,
                                          TorchVersion(), Describe(LoadedBlas()));
  const auto parsed = ParseOptions(argc, argv, version);
  if (const Exit* exit = std::get_if<Exit>(&parsed)) {
    fmt::print(exit->code == 0 ? stdout : stderr, "{}", exit->text);
    return exit->code;
  }
  std::string problem;
  try {
    const Status status = Train(std::get<Options>(parsed));
    if (status) return 0;
    problem = status.error().text;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  fmt::print(stderr, "dtrun-train: {}\n", problem);
  return 1;
}

}  // namespace
}  // namespace dtrun::train

int main(int argc, char** argv) { return dtrun::train::Main(argc, argv); }
