// Trains a model on Fashion-MNIST, data-parallel. The only part that knows torch, and
// nothing of it shows here.
//
// Every global batch is dealt out to the ranks, so any number of them sees the same
// images per step and makes, up to rounding, the same steps. All functions but Save are
// collective and throw std::exception. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "dtrun/torch/collectives.h"
#include "tools/dtrun-train/fashion_mnist.h"
#include "tools/dtrun-train/options.h"

namespace dtrun::train {

struct EpochResult {
  double loss = 0;            // mean over the epoch's training images
  double test_accuracy = 0;   // after the epoch
  double seconds = 0;         // of training, without the test
  std::uint64_t samples = 0;  // trained on, by all ranks
};

class Trainer {
 public:
  // `checkpoint` is what Save returned, on rank 0; empty to start anew. What it was made
  // with must be what `options` and `data` say.
  Trainer(const Options& options, const FashionMnist& data, std::shared_ptr<torch::Collectives> ranks,
          const std::string& checkpoint);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  std::uint64_t parameters() const;
  // Epochs that are behind.
  std::uint64_t epoch() const;

  // Called after each step with the images of this epoch that all ranks have trained on
  // and this rank's mean loss so far.
  using OnStep = std::function<void(std::uint64_t samples, double loss)>;
  // REQUIRES: epoch() < options.epochs. Throws when this rank's loss is not a number.
  EpochResult RunEpoch(const OnStep& on_step);

  // Weights, optimizer and position: enough to continue bit by bit as if never stopped.
  std::string Save() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Threads per rank: `requested`, or OMP_NUM_THREADS when 0, or libtorch's own choice.
// Returns what is in use.
int SetThreads(int requested);

// "1.13.1".
std::string TorchVersion();

}  // namespace dtrun::train
