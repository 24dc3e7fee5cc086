// dtrun-train: the command line, what rank 0 prints, and the checkpoint file. trainer.h trains.
#include <fcntl.h>
#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "dtrun/dtrun.hpp"
#include "dtrun/torch/blas.h"
#include "tools/dtrun-train/trainer.h"

namespace train {
namespace {

namespace fs = std::filesystem;

void Describe(CLI::App& app, Options& options) {
  const auto text = [&](const char* name, std::string& to, const char* what, const char* type) {
    app.add_option(name, to, what)->type_name(type)->capture_default_str();
  };
  app.set_version_flag(
      "--version",
      [] {
        return fmt::format("dtrun-train {}, libtorch {}, BLAS: {}", DTRUN_VERSION, TORCH_VERSION,
                           dtrun::torch::blas_in_use().text());
      },
      "print versions and the BLAS in use");
  app.add_option("--model", options.model, "mlp: 784-256-128-10; cnn: two convolutions and two linear layers")
      ->check(CLI::IsMember({"mlp", "cnn"}).description(""))
      ->type_name("mlp|cnn")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the training images")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100000}))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "images per step, of all ranks together; a multiple of the ranks")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "peak learning rate")
      ->check(CLI::Range(1e-12, 1e6))
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "momentum of SGD")
      ->check(CLI::Range(0.0, 0.9999))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the weights and the order of images")->capture_default_str();
  text("--data", options.data, "folder of the four gzip files of dataset-fashion-mnist", "FOLDER");
  text("--checkpoint", options.checkpoint, "file that rank 0 replaces after each epoch", "FILE");
  text("--resume", options.resume, "checkpoint of the same settings to go on from; read by rank 0", "FILE");
  app.add_option("--threads", options.threads,
                 "threads of each rank (default: OMP_NUM_THREADS, else libtorch's)")
      ->check(CLI::Range(1, 1024));
}

// A crash at any moment leaves the old or the new checkpoint.
void ReplaceFile(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  std::size_t written = 0;
  ssize_t n = fd < 0 ? -1 : 0;
  while (n >= 0 && written < content.size()) {
    n = ::write(fd, content.data() + written, content.size() - written);
    if (n > 0) written += static_cast<std::size_t>(n);
  }
  const bool synced = n >= 0 && ::fsync(fd) == 0;
  const int problem = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) {
    ::unlink(temporary.c_str());
    throw std::runtime_error(fmt::format("write '{}': {}", temporary, std::strerror(problem)));
  }
  fs::rename(temporary, path);
}

std::string ReadCheckpoint(const Options& options) {
  const fs::path folder = fs::path(options.checkpoint).parent_path();
  if (!folder.empty() && !fs::is_directory(folder)) {
    throw std::runtime_error(fmt::format("--checkpoint '{}': there is no folder '{}'; create it",
                                         options.checkpoint, folder.string()));
  }
  if (options.resume.empty()) return "";
  errno = 0;
  std::ifstream file(options.resume, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!content.empty()) return content;
  throw std::runtime_error(fmt::format("--resume '{}': {}; start without --resume", options.resume,
                                       errno != 0 ? std::strerror(errno) : "the file is empty"));
}

std::string Count(std::uint64_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

// Rank 0's lines on stdout; progress overwrites itself where somebody watches, else it is left out.
class Console {
 public:
  void Line(const std::string& text) {
    fmt::print("{}{}\n", shown_ ? "\r\x1b[K" : "", text);
    std::fflush(stdout);
    shown_ = false;
  }
  void Progress(const std::string& text) {
    fmt::print("\r{}\x1b[K", text);
    std::fflush(stdout);
    shown_ = true;
    next_ = Clock::now() + std::chrono::milliseconds(100);
  }
  bool Due() const { return redraws_ && Clock::now() >= next_; }

 private:
  using Clock = std::chrono::steady_clock;
  static bool
  Redraws() {  // what DTRUN_CONSOLE says, or whether stdout is a terminal when dtrun did not start us
    const char* console = std::getenv("DTRUN_CONSOLE");
    return console != nullptr ? std::strcmp(console, "terminal") == 0 : ::isatty(STDOUT_FILENO) == 1;
  }
  bool redraws_ = Redraws(), shown_ = false;
  Clock::time_point next_{};
};

void Train(const Options& options) {
  const dtrun::Session session;  // joins the job
  const dtrun::Communicator world = session.world();
  const bool first = world.rank() == 0;
  const char* omp = std::getenv("OMP_NUM_THREADS");
  const int threads = options.threads > 0 ? options.threads : omp != nullptr ? std::atoi(omp) : 0;
  if (threads > 0) torch::set_num_threads(threads);

  Trainer trainer(options, ReadImages(options.data, "train"), ReadImages(options.data, "t10k"),
                  std::make_shared<dtrun::torch::CommunicatorCollectives>(world),
                  first ? ReadCheckpoint(options) : "");
  Console console;
  const std::string ranks = Count(static_cast<std::uint64_t>(world.size()), "rank");
  if (first) {
    const dtrun::torch::Blas blas = dtrun::torch::blas_in_use();
    console.Line(fmt::format(
        "dtrun-train {}: {} with {} parameters, {} images, batch {} over {} (backend {})", DTRUN_VERSION,
        options.model, trainer.parameters(), trainer.size(), options.batch, ranks, world.backend()));
    console.Line(fmt::format("libtorch {}, {} per rank, BLAS: {}", TORCH_VERSION,
                             Count(static_cast<std::uint64_t>(torch::get_num_threads()), "thread"),
                             blas.text()));
    const std::string slow = dtrun::torch::why_slow(blas);
    if (!slow.empty()) fmt::print(stderr, "dtrun-train: warning: {}\n", slow);
    if (trainer.epoch() >= options.epochs) {
      console.Line(fmt::format("nothing to do: the checkpoint is of the last epoch, {}", trainer.epoch()));
    }
  }
  Epoch last;
  double seconds = 0;
  while (trainer.epoch() < options.epochs) {
    const std::string name = fmt::format("epoch {}/{}", trainer.epoch() + 1, options.epochs);
    const auto start = std::chrono::steady_clock::now();
    last = trainer.RunEpoch([&](std::uint64_t samples, double loss) {
      if (!first || !console.Due()) return;
      const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      console.Progress(fmt::format("{}  {:3}%  loss {:.4f}  {:.0f} samples/s", name,
                                   samples * 100 / trainer.size(), loss,
                                   static_cast<double>(samples) / elapsed));
    });
    seconds += last.seconds;
    if (!first) continue;
    console.Line(fmt::format("{}  loss {:.4f}  test accuracy {:.4f}  {:.0f} samples/s", name, last.loss,
                             last.accuracy, static_cast<double>(last.samples) / last.seconds));
    if (!options.checkpoint.empty()) ReplaceFile(options.checkpoint, trainer.Save());
    if (trainer.epoch() < options.epochs) continue;
    console.Line(fmt::format("final test accuracy {:.4f} after {}, {:.1f} s of training on {}", last.accuracy,
                             Count(options.epochs, "epoch"), seconds, ranks));
  }
}

}  // namespace
}  // namespace train

int main(int argc, char** argv) {
  train::Options options;
  CLI::App app(
      "Trains a model on Fashion-MNIST, data-parallel over the ranks that dtrun starts.\n"
      "Started without dtrun it trains as one rank.",
      "dtrun-train");
  train::Describe(app, options);
  try {
    app.parse(argc, argv);
    train::Train(options);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) fmt::print(stderr, "dtrun-train: ");
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const c10::Error& error) {
    fmt::print(stderr, "dtrun-train: {}\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    fmt::print(stderr, "dtrun-train: {}\n", error.what());
  }
  return 1;
}
