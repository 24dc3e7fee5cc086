// Makes IDX files for tests, whole or broken.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace dtrun::train {

inline std::string BigEndianBytes(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// The content of an array of bytes, before compression.
inline std::string Idx(const std::vector<std::uint32_t>& dims, const std::string& data) {
  std::string content = BigEndianBytes(0x0800U | static_cast<std::uint32_t>(dims.size()));
  for (const std::uint32_t dim : dims) content += BigEndianBytes(dim);
  return content + data;
}

inline void WriteGz(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb1");
  const bool ok = file != nullptr && (content.empty() || gzwrite(file, content.data(),
                                                                 static_cast<unsigned>(content.size())) > 0);
  if (file == nullptr || gzclose(file) != Z_OK || !ok) throw std::runtime_error("cannot write " + path);
}

}  // namespace dtrun::train
