#include "tools/dtrun-train/fashion_mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/dtrun-train/idx_file.h"

namespace dtrun::train {
namespace {

Result<LabelledImages> LoadPart(const std::string& folder, const std::string& prefix) {
  const std::string image_path = fmt::format("{}/{}-images-idx3-ubyte.gz", folder, prefix);
  const std::string label_path = fmt::format("{}/{}-labels-idx1-ubyte.gz", folder, prefix);
  Result<IdxArray> images = ReadIdx(image_path, 3);
  if (!images) return images.error();
  Result<IdxArray> labels = ReadIdx(label_path, 1);
  if (!labels) return labels.error();
  if (images->dims[1] != kImageSide || images->dims[2] != kImageSide) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("'{}': images of {} x {} pixels, expected {} x {}; pass --data with the folder of "
                    "fashion-mnist",
                    image_path, images->dims[1], images->dims[2], kImageSide, kImageSide)};
  }
  if (images->dims[0] != labels->dims[0]) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("'{}' has {} labels, but '{}' has {} images; take both from one release",
                             label_path, labels->dims[0], image_path, images->dims[0])};
  }
  const auto wrong =
      std::find_if(labels->data.begin(), labels->data.end(), [](int l) { return l >= kClasses; });
  if (wrong != labels->data.end()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("'{}': label {} of image {}, expected 0 to {}; pass --data with the folder of "
                             "fashion-mnist",
                             label_path, int{*wrong}, wrong - labels->data.begin(), kClasses - 1)};
  }
  return LabelledImages{std::move(images->data), std::move(labels->data)};
}

}  // namespace

Result<FashionMnist> LoadFashionMnist(const std::string& folder) {
  Result<LabelledImages> train = LoadPart(folder, "train");
  if (!train) return train.error();
  Result<LabelledImages> test = LoadPart(folder, "t10k");
  if (!test) return test.error();
  return FashionMnist{std::move(*train), std::move(*test)};
}

}  // namespace dtrun::train
