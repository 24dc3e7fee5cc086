#include "tools/dtrun-train/options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <sstream>

namespace dtrun::train {

const char* ModelName(ModelKind kind) { return kind == ModelKind::kMlp ? "mlp" : "cnn"; }

std::variant<Options, Exit> ParseOptions(int argc, const char* const* argv, const std::string& version) {
  Options options;
  CLI::App app(
      "Trains a model on Fashion-MNIST, data-parallel over the ranks that dtrun starts.\n"
      "Started without dtrun it trains as one rank.",
      "dtrun-train");
  app.set_version_flag("--version", version, "print versions and the BLAS in use");
  const std::map<std::string, ModelKind> models{{"mlp", ModelKind::kMlp}, {"cnn", ModelKind::kCnn}};
  app.add_option("--model", options.model, "mlp: 784-256-128-10; cnn: two convolutions and two linear layers")
      ->transform(CLI::CheckedTransformer(models).description(""))
      ->type_name("mlp|cnn")
      ->default_str("mlp");
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
  app.add_option("--data", options.data, "folder of the four gzip files of dataset-fashion-mnist")
      ->type_name("FOLDER")
      ->capture_default_str();
  app.add_option("--checkpoint", options.checkpoint, "file that rank 0 replaces after each epoch")
      ->type_name("FILE");
  app.add_option("--resume", options.resume, "checkpoint of the same settings to go on from; read by rank 0")
      ->type_name("FILE");
  app.add_option("--threads", options.threads,
                 "threads of each rank (default: OMP_NUM_THREADS, else libtorch's)")
      ->check(CLI::Range(1, 1024));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const bool wrong = app.exit(error, out, err) != 0;
    return Exit{wrong ? 2 : 0, wrong ? "dtrun-train: " + err.str() : out.str()};
  }
  return options;
}

}  // namespace dtrun::train
