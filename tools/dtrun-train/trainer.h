// Trains a small network on Fashion-MNIST, data-parallel. Together with main.cc an example program to copy.
//
// Each global batch is split among the ranks, so any number of ranks sees the same images per step and takes
// the same steps up to rounding. Every rank makes the same calls, except for Save; errors are exceptions. One
// thread.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/utils.h>
#include <torch/version.h>
#include <zlib.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/torch/data_parallel.h"
#include "dtrun/torch/sampler.h"

namespace train {

using torch::Tensor;

struct Options {
  std::string model = "mlp";  // or "cnn"
  std::uint64_t epochs = 5;
  std::uint64_t batch = 128;   // images per step over all ranks
  double learning_rate = 0.1;  // peak of the one-cycle schedule
  double momentum = 0.9;
  std::uint64_t seed = 1;
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string checkpoint;  // empty: none
  std::string resume;      // empty: from the start
  int threads = 0;         // 0: OMP_NUM_THREADS, or libtorch's default
  torch::Device device = torch::kCPU;
  std::string dtype = "float32";  // of weights and gradients; or "bfloat16"
};

// Resolves --device for this rank: "auto" is "cuda" if libtorch sees a GPU, else "cpu". "cuda" is the GPU
// with the rank's number on its host, or the only visible GPU.
inline torch::Device ChooseDevice(const std::string& wanted, int local_rank) {
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (wanted == "cpu" || (wanted == "auto" && count == 0)) return torch::kCPU;
  const bool numbered = wanted.rfind("cuda:", 0) == 0;
  if (count == 0) {
    throw std::runtime_error(
        fmt::format("--device {}: libtorch {} sees no GPU; use one that is built for CUDA on a host with a "
                    "GPU, or --device cpu",
                    wanted, TORCH_VERSION));
  }
  const int index = numbered ? std::stoi(wanted.substr(5)) : count == 1 ? 0 : local_rank;
  if (index >= count) {
    throw std::runtime_error(fmt::format(
        "--device {}: there is no cuda:{} for local rank {}, because libtorch sees {} GPUs; start as "
        "many ranks on a host, or pass --device cuda:N or cpu",
        wanted, index, local_rank, count));
  }
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

// ---- Data: the four gzip files of Debian's dataset-fashion-mnist, in the IDX format of the MNIST database.

constexpr std::int64_t kSide = 28, kClasses = 10, kTestBatch = 1000;
constexpr double kPixelMean = 0.2860, kPixelDeviation = 0.3530;  // of the training images, scaled to 0..1

// Reads one file with shape [items] + `item`.
inline Tensor ReadIdx(const std::string& path, const std::vector<std::int64_t>& item) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) {
    throw std::runtime_error(
        fmt::format("open '{}': {}; apt-get install dataset-fashion-mnist, or pass --data FOLDER", path,
                    std::strerror(errno)));
  }
  const auto damaged = [&](const std::string& problem) {
    return std::runtime_error(
        fmt::format("'{}': {}; apt-get install --reinstall dataset-fashion-mnist, or pass "
                    "--data FOLDER",
                    path, problem));
  };
  std::vector<std::uint8_t> bytes;
  std::uint8_t chunk[1 << 16];
  int got = 0, code = Z_OK;
  while ((got = gzread(file.get(), chunk, sizeof chunk)) > 0) bytes.insert(bytes.end(), chunk, chunk + got);
  const std::string why = gzerror(file.get(), &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) throw damaged(why);

  // The header consists of big-endian 4-byte numbers: the type and the dimensions, then the number of items.
  const auto number = [&](std::size_t at) {
    return std::int64_t{bytes[4 * at]} << 24 | bytes[4 * at + 1] << 16 | bytes[4 * at + 2] << 8 |
           bytes[4 * at + 3];
  };
  const std::size_t header = 4 * (2 + item.size());
  const auto magic = 0x0801 + static_cast<std::int64_t>(item.size());
  if (bytes.size() < header || number(0) != magic)
    throw damaged(fmt::format("it does not start with {}", magic));
  std::vector<std::int64_t> shape{number(1)};
  std::int64_t size = shape[0];
  for (std::size_t i = 0; i < item.size(); ++i) {
    if (number(2 + i) != item[i])
      throw damaged(fmt::format("a side of {} pixels, not {}", number(2 + i), item[i]));
    shape.push_back(item[i]);
    size *= item[i];
  }
  if (size == 0 || bytes.size() - header != static_cast<std::size_t>(size)) {
    throw damaged(fmt::format("{} bytes after the header, which announces {}", bytes.size() - header, size));
  }
  return torch::from_blob(bytes.data() + header, shape, torch::kUInt8).clone();
}

struct Images {
  Tensor pixels;  // float, normalised, [n, 1, 28, 28]
  Tensor labels;  // int64, [n]
};

// `set`: "train" or "t10k".
inline Images ReadImages(const std::string& folder, const std::string& set) {
  const std::string prefix = folder + "/" + set;
  const Tensor pixels = ReadIdx(prefix + "-images-idx3-ubyte.gz", {kSide, kSide});
  const Tensor labels = ReadIdx(prefix + "-labels-idx1-ubyte.gz", {}).to(torch::kInt64);
  const auto highest = labels.max().item<std::int64_t>();
  if (pixels.size(0) != labels.size(0) || highest >= kClasses) {
    throw std::runtime_error(
        fmt::format("'{}-*': {} images and {} labels up to {}; expected equally many, and labels from 0 to 9",
                    prefix, pixels.size(0), labels.size(0), highest));
  }
  return {pixels.to(torch::kFloat32).div_(255).sub_(kPixelMean).div_(kPixelDeviation).unsqueeze_(1), labels};
}

// ---- Model and schedule.

// Takes images of shape [n, 1, 28, 28]. Uses libtorch's own initial distribution, drawn from a generator with
// `seed`, because the global generator belongs to the process. A bias follows its weight and shares its
// bound.
inline torch::nn::Sequential MakeModel(const std::string& kind, std::uint64_t seed) {
  using namespace torch::nn;
  Sequential model;
  if (kind == "cnn") {
    model = Sequential(Conv2d(Conv2dOptions(1, 16, 3).padding(1)), ReLU(), MaxPool2d(2),
                       Conv2d(Conv2dOptions(16, 32, 3).padding(1)), ReLU(), MaxPool2d(2), Flatten(),
                       Linear(32 * 7 * 7, 128), ReLU(), Linear(128, kClasses));
  } else {
    model = Sequential(Flatten(), Linear(kSide * kSide, 256), ReLU(), Linear(256, 128), ReLU(),
                       Linear(128, kClasses));
  }
  torch::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  double bound = 0;
  for (Tensor& parameter : model->parameters()) {
    if (parameter.dim() > 1) bound = 1 / std::sqrt(static_cast<double>(parameter[0].numel()));
    parameter.uniform_(-bound, bound, generator);
  }
  return model;
}

// The one-cycle learning rate: rises from 1/25 of `peak` over the first 30 % of `steps`, then falls to almost
// zero, both along half a cosine. REQUIRES: step < steps
inline double OneCycle(double peak, std::uint64_t step, std::uint64_t steps) {
  constexpr double kPi = 3.14159265358979323846, kRise = 0.3;
  const double at = steps > 1 ? static_cast<double>(step) / static_cast<double>(steps - 1) : 1.0;
  const auto blend = [&](double from, double to, double t) {
    return to + (from - to) * (1 + std::cos(kPi * t)) / 2;
  };
  return at < kRise ? blend(peak / 25, peak, at / kRise)
                    : blend(peak, peak / 25e4, (at - kRise) / (1 - kRise));
}

// ---- Training.

struct Epoch {
  double loss = 0;            // mean over the epoch's training images
  double accuracy = 0;        // on the test images, after the epoch
  double seconds = 0;         // training time, without the test
  std::uint64_t samples = 0;  // trained on by all ranks
};

class Trainer {
 public:
  using Ranks = std::shared_ptr<dtrun::torch::Collectives>;
  // Called after each step (on a device after some steps) with the number of images of this epoch that all
  // ranks have trained on, and this rank's mean loss.
  using OnStep = std::function<void(std::uint64_t samples, double loss)>;

  // `checkpoint`: the result of Save, on rank 0; empty: start from scratch. Its settings must match
  // `options`.
  Trainer(const Options& options, Images train, Images test, Ranks ranks, std::string checkpoint)
      : options_(options),
        ranks_(std::move(ranks)),
        train_(std::move(train)),
        test_(std::move(test)),
        sampler_(size(), ranks_->rank(), ranks_->size(), {options.seed}),
        model_(MakeModel(options.model, options.seed)),
        optimizer_(model_->parameters(),
                   torch::optim::SGDOptions(options.learning_rate).momentum(options.momentum)) {
    const auto n = static_cast<std::uint64_t>(ranks_->size());
    if (options.batch % n != 0) {
      throw std::runtime_error(fmt::format("--batch {} is not a multiple of {} ranks; the next one is: {}",
                                           options.batch, n, (options.batch / n + 1) * n));
    }
    model_->to(options.device, options.dtype == "bfloat16" ? torch::kBFloat16 : torch::kFloat32);
    const auto type = model_->parameters()[0].scalar_type();
    for (Images* images : {&train_, &test_}) {
      images->pixels = images->pixels.to(options.device, type);
      images->labels = images->labels.to(options.device);
    }
    std::uint64_t bytes = checkpoint.size();
    ranks_->broadcast(&bytes, sizeof bytes, 0);
    checkpoint.resize(bytes);
    if (bytes > 0) {
      ranks_->broadcast(checkpoint.data(), bytes, 0);
      Load(checkpoint);
    }
    parallel_ = std::make_unique<dtrun::torch::DataParallel>(*model_, ranks_);
  }

  std::uint64_t size() const { return static_cast<std::uint64_t>(train_.labels.size(0)); }
  std::uint64_t epoch() const { return epoch_; }  // completed epochs
  std::int64_t parameters() const {
    std::int64_t count = 0;
    for (const Tensor& parameter : model_->parameters()) count += parameter.numel();
    return count;
  }

  // REQUIRES: epoch() < options.epochs. Throws if this rank's loss is not finite.
  Epoch RunEpoch(const OnStep& on_step) {
    struct Share {
      double loss_sum = 0;
      std::int64_t samples = 0, correct = 0;
    } mine;
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t local_batch = options_.batch / static_cast<std::uint64_t>(ranks_->size());
    const std::uint64_t steps = (sampler_.samples_per_rank() + local_batch - 1) / local_batch;
    std::uint64_t step = 0;
    sampler_.set_epoch(epoch_);
    std::vector<std::pair<Tensor, std::size_t>> losses;  // unread, with the steps' numbers of images
    const auto read = [&] {
      for (const auto& [tensor, images] : losses) {
        const auto loss = tensor.item<double>();
        if (!std::isfinite(loss)) {
          throw std::runtime_error(fmt::format(
              "rank {}: the loss is {} in epoch {}, step {}; try a smaller --lr than {}", ranks_->rank(),
              std::isnan(loss) ? "not a number" : "infinite", epoch_ + 1, step, options_.learning_rate));
        }
        mine.loss_sum += loss * static_cast<double>(images);
        mine.samples += static_cast<std::int64_t>(images);
      }
      losses.clear();
      on_step(sampler_.position(), mine.loss_sum / static_cast<double>(mine.samples));
    };
    for (auto samples = sampler_.next(local_batch); !samples.empty(); samples = sampler_.next(local_batch)) {
      const double rate = OneCycle(options_.learning_rate, epoch_ * steps + step++, options_.epochs * steps);
      const Tensor loss = Forward(samples);
      losses.emplace_back(loss.detach(), samples.size());
      // Reading a result waits for the device, which would leave it idle in every step.
      constexpr std::uint64_t kStepsBetween = 50;
      if (options_.device.is_cpu() || step % kStepsBetween == 0) read();
      Backward(loss, rate);
    }
    if (!losses.empty()) read();
    Epoch result;
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    mine.correct = CorrectOfMyShare();

    std::vector<Share> shares(static_cast<std::size_t>(ranks_->size()));
    ranks_->allgather(&mine, shares.data(), sizeof mine);
    for (const Share& share : shares) {
      result.loss += share.loss_sum;
      result.samples += static_cast<std::uint64_t>(share.samples);
      result.accuracy += static_cast<double>(share.correct) / static_cast<double>(test_.labels.size(0));
    }
    result.loss /= static_cast<double>(result.samples);
    ++epoch_;
    return result;
  }

  // Weights, optimizer and position: enough to continue bit for bit.
  std::string Save() const {
    torch::serialize::OutputArchive archive;
    torch::serialize::OutputArchive model(archive.compilation_unit()), optimizer(archive.compilation_unit());
    model_->save(model);
    optimizer_.save(optimizer);
    archive.write("settings", c10::IValue(Settings()));
    archive.write("epoch", c10::IValue(static_cast<std::int64_t>(epoch_)));
    archive.write("model", model);
    archive.write("optimizer", optimizer);
    std::ostringstream stream;
    archive.save_to(stream);
    return stream.str();
  }

 private:
  // What must match for a checkpoint to fit. The number of epochs may differ and then changes the remaining
  // schedule.
  std::string Settings() const {
    return fmt::format("--model {} --batch {} --lr {} --momentum {} --seed {}{} on {} images", options_.model,
                       options_.batch, options_.learning_rate, options_.momentum, options_.seed,
                       options_.dtype == "float32" ? "" : " --dtype " + options_.dtype, size());
  }

  void Load(const std::string& checkpoint) {
    std::istringstream stream(checkpoint);
    torch::serialize::InputArchive archive, part;
    c10::IValue settings, epoch;
    try {
      archive.load_from(stream, options_.device);
      archive.read("settings", settings);
    } catch (const c10::Error&) {
      throw std::runtime_error("the checkpoint is damaged or not one of dtrun-train; start without --resume");
    }
    if (settings.toStringRef() != Settings()) {
      throw std::runtime_error(
          fmt::format("the checkpoint was made with {}; this run has {}; use the same settings to resume",
                      settings.toStringRef(), Settings()));
    }
    archive.read("epoch", epoch);
    epoch_ = static_cast<std::uint64_t>(epoch.toInt());
    archive.read("model", part);
    model_->load(part);
    archive.read("optimizer", part);
    optimizer_.load(part);
  }

  // The loss of one step on these training images.
  Tensor Forward(const std::vector<std::int64_t>& samples) {
    const Tensor index = torch::tensor(samples).to(options_.device, /*non_blocking=*/true);
    parallel_->zero_grad();
    const Tensor out = model_->forward(train_.pixels.index_select(0, index)).to(torch::kFloat32);
    return torch::nn::functional::cross_entropy(out, train_.labels.index_select(0, index));
  }
  void Backward(const Tensor& loss, double learning_rate) {
    static_cast<torch::optim::SGDOptions&>(optimizer_.param_groups()[0].options()).lr(learning_rate);
    loss.backward();  // returns with averaged gradients
    optimizer_.step();
  }

  // The number of correctly classified test images in this rank's share.
  std::int64_t CorrectOfMyShare() {
    torch::NoGradGuard no_grad;
    const Tensor mine = torch::arange(ranks_->rank(), test_.labels.size(0), ranks_->size(),
                                      torch::TensorOptions(options_.device).dtype(torch::kInt64));
    std::int64_t correct = 0;
    for (const Tensor& index : mine.split(kTestBatch)) {
      if (index.numel() == 0) continue;
      const Tensor guess = model_->forward(test_.pixels.index_select(0, index)).argmax(1);
      correct += guess.eq(test_.labels.index_select(0, index)).sum().item<std::int64_t>();
    }
    return correct;
  }

  Options options_;
  Ranks ranks_;
  Images train_, test_;
  dtrun::torch::Sampler sampler_;
  torch::nn::Sequential model_;
  torch::optim::SGD optimizer_;
  std::unique_ptr<dtrun::torch::DataParallel> parallel_;
  std::uint64_t epoch_ = 0;
};

}  // namespace train
