#include "core/plugin/file_id.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "core/base/text.h"

namespace dtrun::plugin {
namespace {

constexpr std::string_view kSha256 = "sha256 ";

using Digest = std::unique_ptr<EVP_MD_CTX, decltype([](EVP_MD_CTX* digest) { EVP_MD_CTX_free(digest); })>;

Error CannotHash() { return Error{DTRUN_INTERNAL, "OpenSSL gives no sha256 of the file"}; }

Result<std::string> Sha256(int file) {
  const Digest digest(EVP_MD_CTX_new());
  if (digest == nullptr || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1) return CannotHash();
  std::array<unsigned char, 65536> piece;
  for (off_t at = 0;;) {
    const ssize_t bytes = ::pread(file, piece.data(), piece.size(), at);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Error::System("read the file", errno);
    if (bytes == 0) break;
    at += bytes;
    if (EVP_DigestUpdate(digest.get(), piece.data(), static_cast<std::size_t>(bytes)) != 1)
      return CannotHash();
  }
  unsigned bytes = 0;
  if (EVP_DigestFinal_ex(digest.get(), piece.data(), &bytes) != 1) return CannotHash();
  std::string id(kSha256);
  for (unsigned i = 0; i < bytes; ++i) id += fmt::format("{:02x}", piece[i]);
  return id;
}

}  // namespace

std::string Sha256Id(std::string_view digits) { return std::string(kSha256) + Lowercase(digits); }

bool IsPin(std::string_view id) { return id.starts_with(kSha256); }

Result<std::string> FileId(const OpenedFile& file, const std::string& build_id, std::string_view like) {
  if (IsPin(like)) return Sha256(file.descriptor());
  const std::string linked = build_id.empty() ? "" : "build-id " + build_id;
  if (!linked.empty() && like.starts_with("build-id ") && like.find(',') == like.npos) return linked;
  const struct stat& info = file.info();
  return fmt::format("{}{}size {}, changed {}.{:09}", linked, linked.empty() ? "" : ", ", info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace dtrun::plugin
