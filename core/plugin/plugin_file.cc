#include "core/plugin/plugin_file.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>

#include "core/base/read_file.h"
#include "core/base/text.h"

namespace dtrun::plugin {
namespace {

bool IsSame(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

// A path that was never passed to the loader before. The loader remembers each path by which it found a
// library, and descriptor numbers are reused. Slashes may be repeated, which makes the path unique.
std::string FreshName(int descriptor) {
  static std::atomic<std::size_t> uses{0};
  return "/proc/self/fd" + std::string(++uses, '/') + std::to_string(descriptor);
}

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

Result<OpenedFile> OpenedFile::Open(const std::filesystem::path& path) {
  Result<UniqueFd> fd = OpenForeignFile(path);
  if (!fd) return fd.error();
  struct stat info;
  if (::fstat(fd->get(), &info) != 0) return Error::System(fmt::format("stat '{}'", path.string()), errno);
  return OpenedFile(*std::move(fd), info);
}

bool OpenedFile::IsUnchanged() const {
  struct stat now;
  return ::fstat(fd_.get(), &now) == 0 && now.st_size == info_.st_size &&
         IsSame(now.st_mtim, info_.st_mtim) && IsSame(now.st_ctim, info_.st_ctim);
}

bool OpenedFile::IsStillAt(const std::filesystem::path& path) const {
  struct stat there;
  return ::stat(path.c_str(), &there) == 0 && there.st_dev == info_.st_dev && there.st_ino == info_.st_ino &&
         IsUnchanged();
}

bool OpenedFile::IsLoadedAs(void* library) const {
  if (::access("/proc/self/fd", X_OK) != 0) {
    link_map* loaded = nullptr;
    return ::dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0 && IsStillAt(loaded->l_name);
  }
  void* const same = ::dlopen(FreshName(fd_.get()).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (same != nullptr) ::dlclose(same);  // only decrements the reference count
  return same != nullptr && same == library;
}

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

const char* KindText(Kind kind) {
  switch (kind) {
    case Kind::kBackend: return "backend";
    case Kind::kLauncher: return "launcher";
    case Kind::kDevice: return "device";
  }
  return "unknown";
}

std::optional<Kind> KindOf(std::string_view text) {
  for (const Kind kind : kKinds) {
    if (text == KindText(kind)) return kind;
  }
  return std::nullopt;
}

std::string AbiText(std::uint32_t major, std::uint32_t minor) { return fmt::format("{}.{}", major, minor); }

Error Identity::Refuse(dtrun_status code, std::string_view why, std::string_view action) const {
  const auto known = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
  return Error{
      code, fmt::format("{} plugin '{}' (name '{}', version {}, build-id {}, ABI {}; this dtrun has ABI {}): "
                        "{}; {}",
                        KindText(file.kind), file.path.string(), file.name, known(Printable(version)),
                        build_id.empty() ? "none" : build_id, known(abi),
                        AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR), Printable(why), action)};
}

}  // namespace dtrun::plugin
