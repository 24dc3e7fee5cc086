#include "core/launch/cluster_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "core/base/fd.h"
#include "core/base/own_file.h"
#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/hosts/allocation.h"
#include "core/launch/preparation.h"
#include "core/membership/user_secret.h"

namespace dtrun::launch {
namespace {

using Otherwise = KeyRule::Otherwise;

constexpr int kPipePatienceMs = 10'000;

// Empty if there is no home.
std::string HomeKeyFile() {
  const char* const home = std::getenv("HOME");
  return home == nullptr || *home != '/' ? "" : fmt::format("{}/.dtrun/key", home);
}

struct Digits {
  std::string text, origin;
};

// The user's key digits, if given.
Result<std::optional<Digits>> GivenDigits(const spec::JobSpec& spec) {
  if (spec.cluster.key_file.has()) {
    const std::string& path = *spec.cluster.key_file;
    const std::string origin = fmt::format("cluster.key_file '{}'", path);
    Result<std::string> text = ReadKeyFile(path, origin);
    if (!text) return text.error();
    return std::optional(Digits{*std::move(text), origin});
  }
  if (const char* value = std::getenv(kClusterKey); value != nullptr) {
    return std::optional(Digits{value, kClusterKey});
  }
  const std::string home = HomeKeyFile();
  if (home.empty() || ::access(home.c_str(), F_OK) != 0) return std::optional<Digits>();
  Result<std::string> text = ReadKeyFile(home, home);
  if (!text) return text.error();
  return std::optional(Digits{*std::move(text), home});
}

}  // namespace

Result<std::string> ReadKeyFile(const std::string& path, const std::string& name) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat info {};
  // open() fails with ENXIO for a socket.
  if (!file && (errno != ENXIO || ::stat(path.c_str(), &info) != 0))
    return Error::System(fmt::format("open {}", name), errno);
  if (file && ::fstat(file.get(), &info) != 0) return Error::System(fmt::format("read {}", name), errno);
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode)) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "{} is {}; name the file that has the key", name,
                     KindOf(info.st_mode));
  }
  if ((info.st_mode & 0077) != 0) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "{} has mode {:04o}, so others can read the key; run: chmod 600 '{}'", name,
                     info.st_mode & 07777, path);
  }
  if (IsStranger(info.st_uid)) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "{} belongs to user {}, so that user knows the key; create your own: openssl "
                     "rand -hex 32 > FILE; chmod 600 FILE",
                     name, info.st_uid);
  }
  // Wait: a shell's <(...) is the output of a command, read as a file.
  pollfd ready{file.get(), POLLIN, 0};
  if (S_ISFIFO(info.st_mode) && ::poll(&ready, 1, kPipePatienceMs) == 0) {
    return Error::Of(DTRUN_TIMEOUT, "{} is a pipe, and nothing was written to it for 10s", name);
  }
  char bytes[256];
  const ssize_t size = ::read(file.get(), bytes, sizeof bytes);
  if (size < 0) return Error::System(fmt::format("read {}", name), errno);
  return std::string(Trim({bytes, static_cast<std::size_t>(size)}));
}

bool HasClusterKey(const spec::JobSpec& spec) {
  const std::string home = HomeKeyFile();
  return spec.cluster.key_file.has() || std::getenv(kClusterKey) != nullptr ||
         (!home.empty() && ::access(home.c_str(), F_OK) == 0);
}

Result<ClusterKey> FindClusterKey(const spec::JobSpec& spec, const KeyRule& rule) {
  Result<std::optional<Digits>> given = GivenDigits(spec);
  if (!given) return given.error();
  std::optional<Digits> digits = *std::move(given);
  if (!digits && rule.otherwise == Otherwise::kThisHost) {
    Result<membership::UserSecret> secret = membership::UserSecret::Open();
    if (!secret) return secret.error();
    digits = Digits{secret->digits(), "a file of this user on this host"};
  }
  if (digits) {
    const Result<protocol::Key> key = protocol::Key::FromHex(digits->text);
    if (!key) return Error::Of(key.error().code, "{}: {}", digits->origin, key.error().text);
    return ClusterKey{rule.job.empty() ? *key : key->For(rule.job),
                      digits->origin + (rule.job_origin.empty() ? "" : ", with " + rule.job_origin)};
  }
  if (rule.otherwise == Otherwise::kText) return ClusterKey{protocol::Key::FromText(rule.text), rule.origin};
  if (!rule.refusal.empty()) return Error{DTRUN_INVALID_ARGUMENT, rule.refusal};
  const std::string& sharing = spec.hosts_from.sharing;
  return Error::Of(
      DTRUN_INVALID_ARGUMENT,
      "cluster.connect = \"manual\" needs a key that all hosts share; make it once and copy it: "
      "(umask 077; mkdir -p ~/.dtrun; openssl rand -hex 32 > ~/.dtrun/key); or put it into {} or "
      "cluster.key_file{}{}",
      kClusterKey, sharing.empty() ? "" : "; on this platform ", sharing);
}

}  // namespace dtrun::launch
