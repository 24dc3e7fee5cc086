#include "tools/dtrun-train/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dtrun/torch/data_parallel.h"
#include "dtrun/torch/sampler.h"
#include "tools/dtrun-train/one_cycle.h"

namespace dtrun::train {
namespace {

namespace F = ::torch::nn::functional;
using ::torch::Tensor;

// Mean and deviation of Fashion-MNIST's training pixels, from 0 to 1.
constexpr double kPixelMean = 0.2860;
constexpr double kPixelDeviation = 0.3530;
constexpr std::int64_t kTestBatch = 1000;

// Takes normalised images of shape [n, 1, 28, 28].
struct Net : ::torch::nn::Module {
  virtual Tensor forward(const Tensor& images) = 0;
};

struct Mlp final : Net {
  Mlp()
      : a(register_module("a", ::torch::nn::Linear(kImagePixels, 256))),
        b(register_module("b", ::torch::nn::Linear(256, 128))),
        c(register_module("c", ::torch::nn::Linear(128, kClasses))) {}
  Tensor forward(const Tensor& images) override {
    return c(::torch::relu(b(::torch::relu(a(images.flatten(1))))));
  }
  ::torch::nn::Linear a, b, c;
};

struct Cnn final : Net {
  Cnn()
      : a(register_module("a", ::torch::nn::Conv2d(::torch::nn::Conv2dOptions(1, 16, 3).padding(1)))),
        b(register_module("b", ::torch::nn::Conv2d(::torch::nn::Conv2dOptions(16, 32, 3).padding(1)))),
        c(register_module("c", ::torch::nn::Linear(32 * 7 * 7, 128))),
        d(register_module("d", ::torch::nn::Linear(128, kClasses))) {}
  Tensor forward(const Tensor& images) override {
    Tensor x = ::torch::max_pool2d(::torch::relu(a(images)), 2);
    x = ::torch::max_pool2d(::torch::relu(b(x)), 2);
    return d(::torch::relu(c(x.flatten(1))));
  }
  ::torch::nn::Conv2d a, b;
  ::torch::nn::Linear c, d;
};

std::unique_ptr<Net> MakeNet(ModelKind kind) {
  if (kind == ModelKind::kCnn) return std::make_unique<Cnn>();
  return std::make_unique<Mlp>();
}

// libtorch's own initial distribution, drawn from a generator of ours: the global one
// belongs to the process. A bias follows its weight and shares its bound.
void Initialise(::torch::nn::Module& net, std::uint64_t seed) {
  ::torch::NoGradGuard no_grad;
  auto generator = ::at::detail::createCPUGenerator(seed);
  double bound = 0;
  for (Tensor& parameter : net.parameters()) {
    if (parameter.dim() > 1) bound = 1 / std::sqrt(static_cast<double>(parameter[0].numel()));
    parameter.uniform_(-bound, bound, generator);
  }
}

struct Images {
  explicit Images(const LabelledImages& from)
      : pixels(Bytes(from.pixels).to(::torch::kFloat32).div_(255).sub_(kPixelMean).div_(kPixelDeviation)),
        labels(Bytes(from.labels).to(::torch::kInt64)) {
    pixels = pixels.view({-1, 1, kImageSide, kImageSide});
  }
  static Tensor Bytes(const std::vector<std::uint8_t>& bytes) {
    // from_blob takes no const; the tensor is only read, by the conversion.
    return ::torch::from_blob(const_cast<std::uint8_t*>(bytes.data()),
                              {static_cast<std::int64_t>(bytes.size())}, ::torch::kUInt8);
  }
  Tensor pixels;
  Tensor labels;
};

// Throws `error` without libtorch's backtrace in its text.
[[noreturn]] void Rethrow(const c10::Error& error) {
  throw std::runtime_error(error.what_without_backtrace());
}

template <class Call>
auto Translated(Call&& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    Rethrow(error);
  }
}

// What must be equal for a checkpoint to fit.
std::string Settings(const Options& options, const FashionMnist& data) {
  std::ostringstream text;
  text << "--model " << ModelName(options.model) << " --epochs " << options.epochs << " --batch "
       << options.batch << " --lr " << options.learning_rate << " --momentum " << options.momentum
       << " --seed " << options.seed << " on " << data.train.size() << " images";
  return text.str();
}

// The text of rank 0 on all ranks.
std::string Shared(torch::Collectives& ranks, std::string text) {
  std::uint64_t size = text.size();
  ranks.broadcast(&size, sizeof size, 0);
  text.resize(size);
  if (size > 0) ranks.broadcast(text.data(), size, 0);
  return text;
}

std::uint64_t LocalBatch(const Options& options, int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  if (options.batch % n != 0) {
    throw std::runtime_error("--batch " + std::to_string(options.batch) + " is not a multiple of " +
                             std::to_string(n) +
                             " ranks; the next that is: " + std::to_string((options.batch / n + 1) * n));
  }
  return options.batch / n;
}

}  // namespace

struct Trainer::State {
  State(const Options& o, const FashionMnist& data, std::shared_ptr<torch::Collectives> r,
        const std::string& checkpoint)
      : options(o),
        settings(Settings(o, data)),
        ranks(std::move(r)),
        local_batch(LocalBatch(o, ranks->size())),
        train(data.train),
        test(data.test),
        sampler(data.train.size(), ranks->rank(), ranks->size(), SamplerOptions(o)),
        net(MakeNet(o.model)) {
    Initialise(*net, options.seed);
    optimizer = std::make_unique<::torch::optim::SGD>(
        net->parameters(), ::torch::optim::SGDOptions(options.learning_rate).momentum(options.momentum));
    const std::string saved = Shared(*ranks, checkpoint);
    if (!saved.empty()) Load(saved);
    dp = std::make_unique<torch::DataParallel>(*net, ranks);
  }

  static torch::SamplerOptions SamplerOptions(const Options& options) {
    torch::SamplerOptions sampling;
    sampling.seed = options.seed;
    return sampling;
  }

  void Load(const std::string& saved) {
    std::istringstream stream(saved);
    ::torch::serialize::InputArchive archive;
    c10::IValue made_with;
    try {
      archive.load_from(stream);
      archive.read("settings", made_with);
    } catch (const c10::Error&) {
      throw std::runtime_error("the checkpoint is damaged or not one of dtrun-train; start without --resume");
    }
    if (made_with.toStringRef() != settings) {
      throw std::runtime_error("the checkpoint was made with " + made_with.toStringRef() + "; this run has " +
                               settings + "; use the same settings to resume");
    }
    c10::IValue finished;
    archive.read("epoch", finished);
    epoch = static_cast<std::uint64_t>(finished.toInt());
    ::torch::serialize::InputArchive part;
    archive.read("model", part);
    net->load(part);
    archive.read("optimizer", part);
    optimizer->load(part);
  }

  std::string Save() const {
    ::torch::serialize::OutputArchive archive;
    archive.write("settings", c10::IValue(settings));
    archive.write("epoch", c10::IValue(static_cast<std::int64_t>(epoch)));
    ::torch::serialize::OutputArchive model(archive.compilation_unit());
    net->save(model);
    archive.write("model", model);
    ::torch::serialize::OutputArchive sgd(archive.compilation_unit());
    optimizer->save(sgd);
    archive.write("optimizer", sgd);
    std::ostringstream stream;
    archive.save_to(stream);
    return stream.str();
  }

  std::uint64_t StepsPerEpoch() const { return (sampler.samples_per_rank() + local_batch - 1) / local_batch; }

  // The loss of one step of this rank.
  double Step(const std::vector<std::int64_t>& samples, std::uint64_t number) {
    auto& group = static_cast<::torch::optim::SGDOptions&>(optimizer->param_groups()[0].options());
    group.lr(OneCycle(options.learning_rate, number, options.epochs * StepsPerEpoch()));
    const Tensor index = ::torch::from_blob(const_cast<std::int64_t*>(samples.data()),
                                            {static_cast<std::int64_t>(samples.size())}, ::torch::kInt64);
    dp->zero_grad();
    const Tensor loss = F::cross_entropy(net->forward(train.pixels.index_select(0, index)),
                                         train.labels.index_select(0, index));
    const double value = loss.item<double>();
    if (!std::isfinite(value)) {
      std::ostringstream text;
      text << "rank " << ranks->rank() << ": the loss is "
           << (std::isnan(value) ? "not a number" : "infinite") << " in epoch " << epoch + 1 << ", step "
           << number % StepsPerEpoch() + 1 << "; try a smaller --lr than " << options.learning_rate;
      throw std::runtime_error(text.str());
    }
    loss.backward();
    optimizer->step();
    return value;
  }

  // Images of this rank's share of the test set that are classified right.
  std::int64_t TestShare() {
    ::torch::NoGradGuard no_grad;
    const Tensor mine = ::torch::arange(ranks->rank(), test.labels.size(0), ranks->size(), ::torch::kInt64);
    std::int64_t correct = 0;
    for (const Tensor& index : mine.split(kTestBatch)) {
      if (index.numel() == 0) continue;
      const Tensor guess = net->forward(test.pixels.index_select(0, index)).argmax(1);
      correct += guess.eq(test.labels.index_select(0, index)).sum().item<std::int64_t>();
    }
    return correct;
  }

  EpochResult RunEpoch(const OnStep& on_step) {
    struct Share {
      double loss_sum = 0;
      std::int64_t samples = 0;
      std::int64_t correct = 0;
    };
    Share mine;
    const auto start = std::chrono::steady_clock::now();
    sampler.set_epoch(epoch);
    std::uint64_t number = epoch * StepsPerEpoch();
    for (auto samples = sampler.next(local_batch); !samples.empty(); samples = sampler.next(local_batch)) {
      mine.loss_sum += Step(samples, number++) * static_cast<double>(samples.size());
      mine.samples += static_cast<std::int64_t>(samples.size());
      on_step(sampler.position(), mine.loss_sum / static_cast<double>(mine.samples));
    }
    EpochResult result;
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    mine.correct = TestShare();

    std::vector<Share> shares(static_cast<std::size_t>(ranks->size()));
    ranks->allgather(&mine, shares.data(), sizeof mine);
    std::int64_t correct = 0;
    for (const Share& share : shares) {
      result.loss += share.loss_sum;
      result.samples += static_cast<std::uint64_t>(share.samples);
      correct += share.correct;
    }
    result.loss /= static_cast<double>(result.samples);
    result.test_accuracy = static_cast<double>(correct) / static_cast<double>(test.labels.size(0));
    ++epoch;
    return result;
  }

  Options options;
  std::string settings;
  std::shared_ptr<torch::Collectives> ranks;
  std::uint64_t local_batch;
  Images train;
  Images test;
  torch::Sampler sampler;
  std::unique_ptr<Net> net;
  std::unique_ptr<::torch::optim::SGD> optimizer;
  std::unique_ptr<torch::DataParallel> dp;
  std::uint64_t epoch = 0;
};

Trainer::Trainer(const Options& options, const FashionMnist& data, std::shared_ptr<torch::Collectives> ranks,
                 const std::string& checkpoint)
    : state_(
          Translated([&] { return std::make_unique<State>(options, data, std::move(ranks), checkpoint); })) {}
Trainer::~Trainer() = default;

std::uint64_t Trainer::parameters() const {
  std::int64_t count = 0;
  for (const Tensor& parameter : state_->net->parameters()) count += parameter.numel();
  return static_cast<std::uint64_t>(count);
}

std::uint64_t Trainer::epoch() const { return state_->epoch; }

EpochResult Trainer::RunEpoch(const OnStep& on_step) {
  return Translated([&] { return state_->RunEpoch(on_step); });
}

std::string Trainer::Save() const {
  return Translated([&] { return state_->Save(); });
}

int SetThreads(int requested) {
  if (requested == 0) {
    const char* omp = std::getenv("OMP_NUM_THREADS");
    if (omp != nullptr) requested = static_cast<int>(std::strtol(omp, nullptr, 10));
  }
  if (requested > 0) ::torch::set_num_threads(requested);
  return ::torch::get_num_threads();
}

std::string TorchVersion() { return TORCH_VERSION; }

}  // namespace dtrun::train
