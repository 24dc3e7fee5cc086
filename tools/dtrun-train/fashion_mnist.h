// The four files of Fashion-MNIST, checked to belong together. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::train {

constexpr int kImageSide = 28;
constexpr int kImagePixels = kImageSide * kImageSide;
constexpr int kClasses = 10;

struct LabelledImages {
  std::vector<std::uint8_t> pixels;  // kImagePixels per image
  std::vector<std::uint8_t> labels;  // below kClasses

  std::uint64_t size() const { return labels.size(); }
};

struct FashionMnist {
  LabelledImages train;
  LabelledImages test;
};

// `folder` holds the files under the names of Debian's dataset-fashion-mnist.
Result<FashionMnist> LoadFashionMnist(const std::string& folder);

}  // namespace dtrun::train
