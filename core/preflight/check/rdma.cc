#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/read_file.h"
#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

namespace fs = std::filesystem;

struct Obstacle {
  std::string what;  // empty: none
  std::string fix;
};

// Why programs cannot open the device.
Obstacle ObstacleTo(const fs::path& root, const std::string& device) {
  for (const fs::path& verbs : EntriesOf(root / "sys/class/infiniband_verbs")) {
    if (FirstLineOf(verbs / "ibdev") != device) continue;
    const fs::path file = fs::path("dev/infiniband") / verbs.filename();
    if (::access((root / file).c_str(), R_OK | W_OK) == 0) return {};
    return {fmt::format("/{} cannot be opened: {}", file.string(), std::strerror(errno)),
            "let the user of the ranks read and write it; give it to a container with --device"};
  }
  return {"it has no verbs device", "load the kernel module ib_uverbs"};
}

bool HasGid(const fs::path& port) {
  const std::vector<fs::path> gids = EntriesOf(port / "gids");
  return std::ranges::any_of(gids, [](const fs::path& gid) {
    return FirstLineOf(gid).find_first_not_of("0:") != std::string::npos;
  });
}

Obstacle ObstacleAt(const fs::path& port) {
  if (FirstLineOf(port / "state").find("ACTIVE") == std::string::npos) {
    return {"it is not active",
            "check cable and subnet manager; until it is active, let programs use the other ports"};
  }
  if (!HasGid(port)) return {"it has no GID", "give its network interface an address, and switch it on"};
  return {};
}

// Checks the usable backends that have facts about RDMA.
void CheckUse(const std::vector<BackendAnswer>& backends, Checks* to) {
  std::vector<std::string> users;
  std::vector<std::string> others;
  for (const BackendAnswer& backend : backends) {
    const std::string rdma = FactOf(backend.info.facts, "rdma");
    if (rdma.empty() || !backend.why_not.empty()) continue;
    constexpr std::string_view kNo = "no: ";
    if (rdma.starts_with(kNo)) {
      others.push_back(fmt::format("not by {}: {}", backend.name, rdma.substr(kNo.size())));
    } else {
      users.push_back(backend.name);
    }
  }
  if (users.empty() && others.empty()) return;
  if (!users.empty())
    others.insert(others.begin(), fmt::format("would be used by {}", fmt::join(users, ", ")));
  to->push_back(
      {"rdma", users.empty() ? Level::kWarning : Level::kOk,
       fmt::format("{}; found, not tested to reach other hosts", fmt::join(others, "; ")),
       users.empty() ? "fix the cause given there; until then traffic between hosts goes over TCP" : ""});
}

}  // namespace

void CheckRdma(const fs::path& root, const std::vector<BackendAnswer>& backends, Checks* to) {
  const std::vector<fs::path> devices = EntriesOf(root / "sys/class/infiniband");
  if (devices.empty()) {
    to->push_back({"rdma", Level::kOk, "no devices"});
    return;
  }
  bool usable = false;
  for (const fs::path& device : devices) {
    const std::string name = device.filename();
    const Obstacle closed = ObstacleTo(root, name);
    for (const fs::path& port : EntriesOf(device / "ports")) {
      const Obstacle obstacle = closed.what.empty() ? ObstacleAt(port) : closed;
      const std::string what = fmt::format("{} port {}: {}, {}", name, port.filename().string(),
                                           FirstLineOf(port / "link_layer"), FirstLineOf(port / "state"));
      if (obstacle.what.empty()) {
        usable = true;
        to->push_back({"rdma", Level::kOk, what});
      } else {
        to->push_back(
            {"rdma", Level::kWarning, fmt::format("{}; not used: {}", what, obstacle.what), obstacle.fix});
      }
    }
  }
  if (usable) CheckUse(backends, to);
}

}  // namespace dtrun::preflight
