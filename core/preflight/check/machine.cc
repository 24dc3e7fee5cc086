#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/read_file.h"
#include "core/binding/gpu.h"
#include "core/network/interface.h"
#include "core/preflight/check/checks.h"
#include "core/preflight/gpu_access.h"

namespace dtrun::preflight {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfAKind = 6;

void CheckProcessors(const Request& request, Checks* to) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  utsname system{};
  ::uname(&system);
  const std::string what = fmt::format("{} processors for {} rank{}, Linux {}", count, request.local_ranks,
                                       request.local_ranks == 1 ? "" : "s", system.release);
  if (count > 0 && count < request.local_ranks) {
    to->push_back({"processors", Level::kWarning, what,
                   "lower job.processes_per_host, or accept that ranks take turns"});
  } else {
    to->push_back({"processors", Level::kOk, what});
  }
}

// The BLAS library that numpy, torch and MPI programs of the distribution use.
void CheckBlas(Checks* to) {
  for (const char* const name : {"/usr/lib/x86_64-linux-gnu/libblas.so.3", "/usr/lib64/libblas.so.3"}) {
    std::error_code error;
    const std::string target = fs::canonical(name, error).string();
    if (error) continue;
    const bool reference = target.find("openblas") == target.npos && target.find("mkl") == target.npos &&
                           target.find("blis") == target.npos && target.find("atlas") == target.npos;
    to->push_back(
        {"blas", reference ? Level::kWarning : Level::kOk,
         fmt::format("libblas.so.3 is {}{}", target, reference ? ", the slow reference" : ""),
         reference ? "apt install libopenblas0-pthread: training on processors gets many times faster" : ""});
    return;
  }
  to->push_back({"blas", Level::kOk, "no libblas.so.3 of the system; programs bring their own"});
}

void CheckGpus(Checks* to) {
  const binding::Gpus gpus = binding::ReadGpus("/");
  const auto visible = binding::VisibleGpus(gpus, [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (gpus.devices.empty()) {
    to->push_back({"gpus", Level::kOk, "none"});
    return;
  }
  std::string what = fmt::format("{} {}, {} visible to ranks", gpus.devices.size(),
                                 gpus.vendor == binding::Vendor::kNvidia ? "NVIDIA" : "AMD", visible.size());
  const std::string driver = FirstLineOf("/proc/driver/nvidia/version");
  if (!driver.empty()) what += "; " + driver;
  if (const std::string forbidden = ForbiddenGpu(); !forbidden.empty()) {
    to->push_back({"gpus", Level::kWarning, what + "; " + forbidden, kAllowGpu});
    return;
  }
  const bool hidden = visible.empty();
  to->push_back({"gpus", hidden ? Level::kWarning : Level::kOk, what,
                 hidden ? fmt::format("unset {} to show them", binding::ListVariable(gpus.vendor)) : ""});
}

void CheckInterfaces(const Request& request, Checks* to) {
  const Result<std::vector<network::Interface>> interfaces = network::ReadInterfaces();
  if (!interfaces) {
    to->push_back({"network", Level::kProblem, interfaces.error().text, "look at `ip address`"});
    return;
  }
  std::vector<network::Interface> running;
  std::ranges::copy_if(*interfaces, std::back_inserter(running), [](const network::Interface& one) {
    return one.kind != network::Kind::kLoopback && one.up && one.carrier && !one.addresses.empty();
  });
  // Important ones first: the rest of a kind is only counted.
  std::ranges::stable_sort(running, {}, [](const network::Interface& one) {
    return std::pair(!one.default_route, std::ranges::all_of(one.addresses, &network::Address::link_local));
  });
  std::string what;
  std::map<network::Kind, std::size_t> shown, more;
  for (const network::Interface& one : running) {
    if (++shown[one.kind] > kMostOfAKind) {
      ++more[one.kind];
      continue;
    }
    what += fmt::format("{}{} ({}, MTU {})", what.empty() ? "" : ", ", one.name, one.addresses.front().Text(),
                        one.mtu);
  }
  for (const auto& [kind, count] : more)
    what += fmt::format(", {} more of kind {}", count, network::KindText(kind));
  if (!what.empty()) {
    to->push_back({"network", Level::kOk, "running: " + what});
  } else {
    const bool alone = request.host_count == 1;
    to->push_back({"network", alone ? Level::kOk : Level::kProblem, "loopback only",
                   alone ? "" : "no other host is reached: look at `ip address`"});
  }
}

}  // namespace

void CheckMachine(const Request& request, Checks* to) {
  CheckInterfaces(request, to);
  CheckProcessors(request, to);
  CheckBlas(to);
  CheckGpus(to);
  CheckPeers("/", to);
}

}  // namespace dtrun::preflight
