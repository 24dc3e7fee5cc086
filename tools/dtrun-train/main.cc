// dtrun-train: the command line, rank 0's output, and the checkpoint file. trainer.h does the training.
#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "dtrun/dtrun.hpp"
#include "dtrun/torch/blas.h"
#include "trainer.h"

namespace train {
namespace {

namespace fs = std::filesystem;

void Describe(CLI::App& app, Options& options, std::string& device) {
  const auto option = [&](const char* name, auto& to, const char* what) {
    return app.add_option(name, to, what)->capture_default_str();
  };
  const auto number = [&](const char* name, auto& to, auto least, auto most, const char* what) {
    const auto bounds = [range = CLI::Range(least, most), least, most](const std::string& text) {
      std::string copy = text;  // a validator may change it
      if (range(copy).empty()) return std::string();
      return fmt::format("'{}' is not a number from {} to {}", text, least, most);
    };
    return app.add_option(name, to, what)->check(bounds)->type_name("N");
  };
  app.set_version_flag(
      "--version",
      [] {
        return fmt::format("dtrun-train {}, libtorch {}, BLAS: {}", DTRUN_VERSION, TORCH_VERSION,
                           dtrun::torch::blas_in_use().text());
      },
      "print versions and the BLAS in use");
  option("--model", options.model, "mlp: 784-256-128-10; cnn: two convolutions and two linear layers")
      ->check(CLI::IsMember({"mlp", "cnn"}).description(""))
      ->type_name("mlp|cnn");
  number("--epochs", options.epochs, 1, 100000, "passes over the training images")->capture_default_str();
  number("--batch", options.batch, 1, 1000000,
         "images per step, of all ranks together; a multiple of the ranks")
      ->capture_default_str();
  number("--lr", options.learning_rate, 1e-12, 1e6, "peak learning rate")->capture_default_str();
  number("--momentum", options.momentum, 0.0, 0.9999, "momentum of SGD, below 1")->capture_default_str();
  option("--seed", options.seed, "of the weights and the order of images")->type_name("N");
  option("--data", options.data, "folder of the four gzip files of dataset-fashion-mnist")
      ->type_name("FOLDER");
  option("--checkpoint", options.checkpoint, "file that rank 0 replaces after each epoch")->type_name("FILE");
  option("--resume", options.resume,
         "checkpoint to continue from, read by rank 0; the file of --checkpoint need not exist yet")
      ->type_name("FILE");
  option("--device", device,
         "auto: cuda where libtorch sees a GPU, else cpu; cuda: the GPU with the rank's number on its host")
      ->check([](const std::string& text) {
        const bool numbered = text.rfind("cuda:", 0) == 0 && text.size() > 5 && text.size() < 9 &&
                              text.find_first_not_of("0123456789", 5) == std::string::npos;
        return numbered || text == "auto" || text == "cpu" || text == "cuda"
                   ? ""
                   : fmt::format("'{}' is not a device; write auto, cpu, cuda or cuda:N", text);
      })
      ->type_name("auto|cpu|cuda|cuda:N");
  option("--dtype", options.dtype, "of weights and gradients")
      ->check(CLI::IsMember({"float32", "bfloat16"}).description(""))
      ->type_name("float32|bfloat16");
  number("--threads", options.threads, 1, 1024,
         "threads of each rank (default: OMP_NUM_THREADS, else libtorch's)");
}

// A crash at any moment leaves the old or the new checkpoint.
void ReplaceFile(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wbe"),
                                                             std::fclose);
  if (!file || std::fwrite(content.data(), 1, content.size(), file.get()) != content.size() ||
      std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0) {
    const int problem = errno;
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
  // A restarted job has both options; on its first start there is no checkpoint.
  if (errno == ENOENT && options.resume == options.checkpoint) return "";
  throw std::runtime_error(fmt::format("--resume '{}': {}; start without --resume", options.resume,
                                       errno != 0 ? std::strerror(errno) : "the file is empty"));
}

std::string Count(std::uint64_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

// Whether progress may overwrite itself: according to DTRUN_CONSOLE, or, without dtrun, whether stdout is a
// terminal.
bool Watched() {
  const char* console = std::getenv("DTRUN_CONSOLE");
  return console != nullptr ? std::strcmp(console, "terminal") == 0 : ::isatty(STDOUT_FILENO) == 1;
}

// The device and the backend for gradients: "cpu, backend gloo", or "cuda:0, nccl".
std::string Carrier(const dtrun::Communicator& world, const torch::Device& device,
                    const std::string& wanted) {
  if (device.is_cpu()) {
    return fmt::format("cpu{}, backend {}", wanted == "auto" ? ", as libtorch sees no GPU" : "",
                       world.backend());
  }
  if (world.size() == 1) return device.str();
  return device.str() + ", " + world.route(dtrun::torch::kind_of_device(device.type()));
}

void Train(Options options, const std::string& device) {
  const dtrun::Session session;  // joins the job
  const dtrun::Communicator world = session.world();
  options.device = ChooseDevice(device, dtrun_local_rank());
  if (!options.device.is_cpu()) c10::impl::VirtualGuardImpl(options.device.type()).setDevice(options.device);
  const bool first = world.rank() == 0;
  const char* omp = std::getenv("OMP_NUM_THREADS");
  const int threads = options.threads > 0 ? options.threads : omp != nullptr ? std::atoi(omp) : 0;
  if (threads > 0) torch::set_num_threads(threads);

  Trainer trainer(options, ReadImages(options.data, "train"), ReadImages(options.data, "t10k"),
                  std::make_shared<dtrun::torch::CommunicatorCollectives>(world),
                  first ? ReadCheckpoint(options) : "");
  using Clock = std::chrono::steady_clock;
  const bool watched = first && Watched();
  const auto print = [&](const std::string& text, const char* end = "\n") {
    fmt::print("{}{}{}", watched ? "\r\x1b[K" : "", text, end);
    std::fflush(stdout);
  };
  const std::string ranks = Count(static_cast<std::uint64_t>(world.size()), "rank");
  if (first) {
    const dtrun::torch::Blas blas = dtrun::torch::blas_in_use();
    print(fmt::format("dtrun-train {}: {} with {} parameters, {} images, batch {} over {} ({})",
                      DTRUN_VERSION, options.model, trainer.parameters(), trainer.size(), options.batch,
                      ranks, Carrier(world, options.device, device)));
    print(fmt::format("libtorch {}, {} per rank, BLAS: {}", TORCH_VERSION,
                      Count(static_cast<std::uint64_t>(torch::get_num_threads()), "thread"), blas.text()));
    const std::string slow = dtrun::torch::why_slow(blas);
    if (!slow.empty()) fmt::print(stderr, "dtrun-train: warning: {}\n", slow);
    if (trainer.epoch() > 0)
      print(fmt::format("continues after epoch {} of '{}'", trainer.epoch(), options.resume));
    if (trainer.epoch() >= options.epochs) {
      print(fmt::format("nothing to do: the checkpoint is of the last epoch, {}", trainer.epoch()));
    }
  }
  Epoch last;
  double seconds = 0;
  while (trainer.epoch() < options.epochs) {
    const std::string name = fmt::format("epoch {}/{}", trainer.epoch() + 1, options.epochs);
    const auto start = Clock::now();
    auto next = start;
    last = trainer.RunEpoch([&](std::uint64_t samples, double loss) {
      if (!watched || Clock::now() < next) return;
      next = Clock::now() + std::chrono::milliseconds(100);
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      print(fmt::format("{}  {:3}%  loss {:.4f}  {:.0f} samples/s", name, samples * 100 / trainer.size(),
                        loss, static_cast<double>(samples) / elapsed),
            "");
    });
    seconds += last.seconds;
    if (!first) continue;
    print(fmt::format("{}  loss {:.4f}  test accuracy {:.4f}  {:.0f} samples/s", name, last.loss,
                      last.accuracy, static_cast<double>(last.samples) / last.seconds));
    if (!options.checkpoint.empty()) ReplaceFile(options.checkpoint, trainer.Save());
    if (trainer.epoch() < options.epochs) continue;
    print(fmt::format("final test accuracy {:.4f} after {}, {:.1f} s of training on {}", last.accuracy,
                      Count(options.epochs, "epoch"), seconds, ranks));
  }
}

// Keeps control characters in arguments and file names away from the terminal.
void Complain(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    shown += (byte < 0x20 && c != '\n') || byte == 0x7f ? fmt::format("\\u{:04x}", byte) : std::string(1, c);
  }
  fmt::print(stderr, "dtrun-train: {}\n", shown);
}

}  // namespace
}  // namespace train

int main(int argc, char** argv) {
  train::Options options;
  CLI::App app(
      "Trains a model on Fashion-MNIST, data-parallel over the ranks that dtrun starts.\n"
      "Started without dtrun it trains as one rank.",
      "dtrun-train");
  std::string device = "auto";
  train::Describe(app, options, device);
  try {
    app.parse(argc, argv);
    train::Train(options, device);
    return 0;
  } catch (const CLI::ExtrasError&) {
    train::Complain(
        fmt::format("unknown argument '{}'; dtrun-train --help lists the options", app.remaining().front()));
    return 2;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    train::Complain(fmt::format("{}; dtrun-train --help lists the options", error.what()));
    return 2;
  } catch (const c10::Error& error) {
    train::Complain(error.what_without_backtrace());
  } catch (const std::exception& error) {
    train::Complain(error.what());
  }
  return 1;
}
