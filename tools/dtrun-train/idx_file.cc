#include "tools/dtrun-train/idx_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

namespace dtrun::train {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr const char* kInstall = "install it again: apt-get install --reinstall dataset-fashion-mnist";

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

Error Refuse(dtrun_status code, const std::string& path, const std::string& problem) {
  return Error{code, fmt::format("'{}': {}; {}", path, problem, kInstall)};
}

// Reads exactly `bytes`.
Status ReadAll(gzFile file, const std::string& path, void* to, std::uint64_t bytes, const char* what) {
  auto* out = static_cast<std::uint8_t*>(to);
  std::uint64_t got = 0;
  while (got < bytes) {
    const auto part = static_cast<unsigned>(std::min<std::uint64_t>(bytes - got, 1U << 24));
    const int n = gzread(file, out + got, part);
    if (n <= 0) {
      int code = Z_OK;
      const char* why = gzerror(file, &code);
      const bool end = code == Z_OK || code == Z_BUF_ERROR;
      if (code == Z_ERRNO) return Error::System(fmt::format("read '{}'", path), errno);
      return Refuse(
          DTRUN_INVALID_ARGUMENT, path,
          fmt::format("{} after {} of {} bytes of {}", end ? "the file ends" : why, got, bytes, what));
    }
    got += static_cast<std::uint64_t>(n);
  }
  return {};
}

std::uint32_t BigEndian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

}  // namespace

Result<IdxArray> ReadIdx(const std::string& path, int dimensions) {
  errno = 0;
  const GzFile file(gzopen(path.c_str(), "rb"));
  if (!file) {
    if (errno == 0) return Error{DTRUN_OUT_OF_MEMORY, fmt::format("open '{}': out of memory", path)};
    Error error = Error::System(fmt::format("open '{}'", path), errno);
    if (errno == ENOENT) error.text += "; apt-get install dataset-fashion-mnist, or pass --data FOLDER";
    return error;
  }

  std::array<std::uint8_t, 4> magic{};
  if (Status s = ReadAll(file.get(), path, magic.data(), magic.size(), "the magic number"); !s)
    return s.error();
  const std::uint32_t expected = 0x0800U | static_cast<std::uint32_t>(dimensions);
  if (BigEndian(magic.data()) != expected) {
    return Refuse(DTRUN_INVALID_ARGUMENT, path,
                  fmt::format("the magic number is 0x{:08x}, expected 0x{:08x} (bytes in {} dimensions)",
                              BigEndian(magic.data()), expected, dimensions));
  }

  IdxArray array;
  std::uint64_t bytes = 1;
  for (int i = 0; i < dimensions; ++i) {
    std::array<std::uint8_t, 4> dim{};
    if (Status s = ReadAll(file.get(), path, dim.data(), dim.size(), "a dimension"); !s) return s.error();
    array.dims.push_back(BigEndian(dim.data()));
    bytes *= array.dims.back();
    if (bytes == 0 || bytes > kMostBytes) {
      return Refuse(DTRUN_INVALID_ARGUMENT, path,
                    fmt::format("the dimensions {} make an array that is empty or above 1 GiB",
                                fmt::join(array.dims, " x ")));
    }
  }

  array.data.resize(bytes);
  if (Status s = ReadAll(file.get(), path, array.data.data(), bytes, "data"); !s) return s.error();
  std::uint8_t more = 0;
  if (gzread(file.get(), &more, 1) > 0) {
    return Refuse(DTRUN_INVALID_ARGUMENT, path,
                  fmt::format("there is more than the {} bytes that its dimensions announce", bytes));
  }
  // Only now has zlib seen the checksum at the end.
  int code = Z_OK;
  const char* why = gzerror(file.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) return Refuse(DTRUN_INVALID_ARGUMENT, path, why);
  return array;
}

}  // namespace dtrun::train
