// Reads the gzip-compressed IDX files that MNIST and its successors come in. Pure
// function of the file; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::train {

// Unsigned bytes in row-major order.
struct IdxArray {
  std::vector<std::uint32_t> dims;
  std::vector<std::uint8_t> data;
};

// The file must be an array of bytes with `dimensions` dimensions, complete, with nothing
// behind it and at most 1 GiB. Uncompressed files are read too.
Result<IdxArray> ReadIdx(const std::string& path, int dimensions);

}  // namespace dtrun::train
