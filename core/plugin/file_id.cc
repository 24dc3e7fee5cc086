#include "core/plugin/file_id.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "core/base/fd.h"
#include "core/base/text.h"

namespace dtrun::plugin {
namespace {

constexpr std::string_view kSha256 = "sha256 ";

using Digest = std::unique_ptr<EVP_MD_CTX, decltype([](EVP_MD_CTX* digest) { EVP_MD_CTX_free(digest); })>;

Error CannotHash(const std::filesystem::path& path) {
  return Error{DTRUN_INTERNAL, fmt::format("OpenSSL gives no sha256 of '{}'", path.string())};
}

Result<std::string> Sha256(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error::System(fmt::format("open '{}'", path.string()), errno);
  const Digest digest(EVP_MD_CTX_new());
  if (digest == nullptr || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1)
    return CannotHash(path);
  std::array<unsigned char, 65536> piece;
  for (;;) {
    const ssize_t bytes = ::read(file.get(), piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Error::System(fmt::format("read '{}'", path.string()), errno);
    if (bytes == 0) break;
    if (EVP_DigestUpdate(digest.get(), piece.data(), static_cast<std::size_t>(bytes)) != 1)
      return CannotHash(path);
  }
  unsigned bytes = 0;
  if (EVP_DigestFinal_ex(digest.get(), piece.data(), &bytes) != 1) return CannotHash(path);
  std::string id(kSha256);
  for (unsigned i = 0; i < bytes; ++i) id += fmt::format("{:02x}", piece[i]);
  return id;
}

}  // namespace

std::string Sha256Id(std::string_view digits) { return std::string(kSha256) + Lowercase(digits); }

bool IsPin(std::string_view id) { return id.starts_with(kSha256); }

Result<std::string> FileId(const std::filesystem::path& path, const std::string& build_id,
                           std::string_view like) {
  if (IsPin(like)) return Sha256(path);
  if (!build_id.empty()) return "build-id " + build_id;
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Error::System(fmt::format("stat '{}'", path.string()), errno);
  return fmt::format("size {}, changed {}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace dtrun::plugin
