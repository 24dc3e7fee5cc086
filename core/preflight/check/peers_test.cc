#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A system's files: GPUs 0000:02:00.0 and 0000:03:00.0 below a switch with a port for each.
class Peers : public ::testing::Test {
 protected:
  Peers() {
    char name[] = "/tmp/dtrun-peers-XXXXXX";
    root_ = ::mkdtemp(name);
    Write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet\n");
    Write("proc/cpuinfo", "flags : fpu sse\n");
    for (const char* const bridge :
         {"0000:00:01.0", "0000:00:01.0/0000:01:00.0", "0000:00:01.0/0000:01:01.0"})
      Write(At(bridge) + "/config", Config(0));
  }
  ~Peers() override { fs::remove_all(root_); }

  static std::string At(const std::string& path) { return "sys/devices/pci0000:00/" + path; }

  // Configuration space with ACS and this control register as its second extended capability.
  static std::string Config(int control) {
    std::string bytes(4096, '\0');
    const auto put = [&](std::size_t at, unsigned word) {
      bytes[at] = static_cast<char>(word & 0xffU);
      bytes[at + 1] = static_cast<char>(word >> 8U);
    };
    put(0x100, 0x0001);  // error reporting
    put(0x102, 0x1481);  // the next capability is at 0x148
    put(0x148, 0x000d);
    put(0x14e, static_cast<unsigned>(control));
    return bytes;
  }

  void Write(const std::string& file, const std::string& content) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << content;
  }
  void AddGpu(const std::string& bridge, const std::string& pci, const std::string& type) const {
    const std::string place = At("0000:00:01.0/" + bridge + "/" + pci);
    Write(place + "/class", "0x030200\n");
    Write(place + "/vendor", "0x10de\n");
    if (!type.empty()) Write(place + "/iommu_group/type", type + "\n");
    fs::create_directories(root_ / "sys/bus/pci/devices");
    fs::create_symlink(root_ / place, root_ / "sys/bus/pci/devices" / pci);
  }
  void AddBoth(const std::string& type = "") const {
    AddGpu("0000:01:00.0", "0000:02:00.0", type);
    AddGpu("0000:01:01.0", "0000:03:00.0", type);
  }
  Checks Look() const {
    Checks checks;
    CheckPeers(root_, &checks);
    return checks;
  }

  fs::path root_;
};

TEST_F(Peers, OfFewerThanTwoGpusNothingIsSaid) {
  EXPECT_THAT(Look(), IsEmpty());
  AddGpu("0000:01:00.0", "0000:02:00.0", "DMA");
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(Peers, NothingStandsBetweenThem) {
  AddBoth("identity");
  Write("proc/cmdline", "quiet intel_iommu=on iommu=pt\n");
  const Checks checks = Look();
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].level, Level::kOk);
  EXPECT_EQ(checks[0].what,
            "no known obstacle between 2 GPUs: no IOMMU that translates (intel_iommu=on iommu=pt), no bridge "
            "with ACS redirection");
}

TEST_F(Peers, ABridgeThatRedirectsIsNamed) {
  AddBoth();
  Write(At("0000:00:01.0/0000:01:01.0/config"), Config(0x1d));
  const Checks checks = Look();
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].level, Level::kWarning);
  EXPECT_EQ(checks[0].what, "ACS redirects traffic between GPUs through the processor, at 0000:01:01.0");
  EXPECT_THAT(checks[0].fix, HasSubstr("BIOS"));
}

TEST_F(Peers, AGuestCannotSwitchAcsOff) {
  AddBoth();
  Write(At("0000:00:01.0/config"), Config(0x04));
  Write("proc/cpuinfo", "flags : fpu hypervisor sse\n");
  EXPECT_THAT(Look().at(0).fix, HasSubstr("ask the machine's administrator"));
}

TEST_F(Peers, AnIommuThatTranslatesIsAWarning) {
  AddBoth("DMA-FQ");
  Write("proc/cmdline", "amd_iommu=on\n");
  const Checks checks = Look();
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].what, "an IOMMU translates the traffic of 2 of 2 GPUs (amd_iommu=on)");
  EXPECT_THAT(checks[0].fix, HasSubstr("iommu=pt"));
}

TEST_F(Peers, WhatOnlyRootMayReadIsSaid) {
  AddBoth();
  Write(At("0000:00:01.0/config"), Config(0).substr(0, 64));
  EXPECT_THAT(Look().at(0).what, HasSubstr("only root can read the ACS of bridges"));
}

}  // namespace
}  // namespace dtrun::preflight
