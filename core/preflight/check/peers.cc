#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/read_file.h"
#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

namespace fs = std::filesystem;

// PCI Express Base Specification, 7.7.8: Access Control Services.
constexpr unsigned kAcsCapability = 0x000d;
constexpr unsigned kAcsControl = 6;           // offset within it
constexpr unsigned kRedirects = 0x04 | 0x08;  // of requests and completions
constexpr std::size_t kFirstExtended = 0x100, kConfigBytes = 4096;

bool StartsLine(const fs::path& file, std::initializer_list<std::string_view> beginnings) {
  const std::string content = ReadKernelFile(file);
  return std::ranges::any_of(beginnings, [&](std::string_view one) { return content.starts_with(one); });
}

// PCI addresses of display controllers of NVIDIA and AMD.
std::vector<std::string> GpuAddresses(const fs::path& devices) {
  std::vector<std::string> found;
  for (const fs::path& device : EntriesOf(devices)) {
    if (StartsLine(device / "class", {"0x0300", "0x0302"}) &&
        StartsLine(device / "vendor", {"0x10de", "0x1002"})) {
      found.push_back(device.filename());
    }
  }
  return found;
}

// Whether a bridge redirects traffic between the devices below it; nullopt: only root may read that.
std::optional<bool> Redirects(const fs::path& bridge) {
  const std::string config = ReadKernelFile(bridge / "config");
  const auto word = [&](std::size_t at) {
    return static_cast<unsigned>(static_cast<unsigned char>(config[at])) |
           static_cast<unsigned>(static_cast<unsigned char>(config[at + 1])) << 8U;
  };
  if (config.size() < kConfigBytes) {
    // A conventional PCI bridge has only 256 bytes and no such capability; root reads all of them.
    if (config.size() >= kFirstExtended) return false;
    return std::nullopt;
  }
  std::size_t at = kFirstExtended;
  for (int guard = 0; at >= kFirstExtended && at + 8 <= config.size() && guard < 64; ++guard) {
    if (word(at) == kAcsCapability) return (word(at + kAcsControl) & kRedirects) != 0;
    at = word(at + 2) >> 4U;
  }
  return false;
}

bool IsPciAddress(const std::string& name) {
  return name.size() == 12 && name[4] == ':' && name[7] == ':' && name[10] == '.';
}

struct Bridges {
  std::set<std::string> redirecting;
  bool unknown = false;
};

void LookAbove(const fs::path& device, Bridges* to) {
  std::error_code error;
  fs::path place = fs::canonical(device, error);
  while (!error && IsPciAddress((place = place.parent_path()).filename())) {
    const std::optional<bool> redirects = Redirects(place);
    if (!redirects) to->unknown = true;
    if (redirects == true) to->redirecting.insert(place.filename());
  }
}

// "intel_iommu=on iommu=pt" from the kernel's command line; may be empty.
std::string IommuWords(const fs::path& root) {
  std::istringstream words(ReadKernelFile(root / "proc/cmdline"));
  std::string out;
  for (std::string word; words >> word;) {
    if (word.substr(0, word.find('=')).ends_with("iommu")) out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

}  // namespace

void CheckPeers(const fs::path& root, Checks* to) {
  const fs::path devices = root / "sys/bus/pci/devices";
  const std::vector<std::string> gpus = GpuAddresses(devices);
  if (gpus.size() < 2) return;
  Bridges bridges;
  std::set<std::string> translated;
  for (const std::string& gpu : gpus) {
    LookAbove(devices / gpu, &bridges);
    if (StartsLine(devices / gpu / "iommu_group/type", {"DMA"})) translated.insert(gpu);
  }
  const std::string words = IommuWords(root);
  const std::string said = words.empty() ? "" : fmt::format(" ({})", words);
  if (!translated.empty()) {
    to->push_back(
        {"gpu peers", Level::kWarning,
         fmt::format("an IOMMU translates the traffic of {} of {} GPUs{}", translated.size(), gpus.size(),
                     said),
         "boot with iommu=pt: peer copies through an IOMMU are slow, and hang on some machines; or set "
         "backend.options.p2p = \"off\""});
  }
  if (!bridges.redirecting.empty()) {
    const bool is_virtual = ReadKernelFile(root / "proc/cpuinfo").find("hypervisor") != std::string::npos;
    to->push_back(
        {"gpu peers", Level::kWarning,
         fmt::format("ACS redirects traffic between GPUs through the processor, at {}",
                     fmt::join(bridges.redirecting, ", ")),
         is_virtual
             ? "ask the machine's administrator for GPUs with peer access; or set backend.options.p2p = "
               "\"off\" when collectives hang"
             : "switch ACS off in the BIOS, or with setpci for these bridges: with ACS, peer access is "
               "claimed but is slow or hangs; or set backend.options.p2p = \"off\""});
  }
  if (!translated.empty() || !bridges.redirecting.empty()) return;
  to->push_back(
      {"gpu peers", Level::kOk,
       fmt::format(
           "no known obstacle between {} GPUs: no IOMMU that translates{}, {}", gpus.size(), said,
           bridges.unknown ? "only root can read the ACS of bridges" : "no bridge with ACS redirection")});
}

}  // namespace dtrun::preflight
