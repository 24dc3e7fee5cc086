#include "core/network/interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace dtrun::network {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

Ip IpAt(const char* text) { return asio::ip::make_address(text); }

TEST(Interface, KindsFollowTheKernelsTypeAndTheBus) {
  EXPECT_EQ(KindOf("", true, ""), Kind::kLoopback);
  EXPECT_EQ(KindOf("", false, "0000:3b:00.0"), Kind::kPhysical);
  EXPECT_EQ(KindOf("", false, ""), Kind::kVirtual);
  EXPECT_EQ(KindOf("bond", false, ""), Kind::kBond);
  EXPECT_EQ(KindOf("vlan", false, "0000:3b:00.0"), Kind::kVlan);
  EXPECT_EQ(KindOf("bridge", false, ""), Kind::kBridge);
  EXPECT_EQ(KindOf("veth", false, ""), Kind::kVeth);
  EXPECT_EQ(KindOf("tun", false, "tun"), Kind::kTunnel);
  EXPECT_EQ(KindOf("wireguard", false, ""), Kind::kTunnel);
  EXPECT_EQ(KindOf("macvlan", false, ""), Kind::kVirtual);
}

TEST(Interface, NetworksAreComparedBitByBit) {
  EXPECT_TRUE(InNetwork(IpAt("10.0.0.5"), IpAt("10.0.0.1"), 24));
  EXPECT_FALSE(InNetwork(IpAt("10.0.1.5"), IpAt("10.0.0.1"), 24));
  EXPECT_TRUE(InNetwork(IpAt("10.0.1.5"), IpAt("10.0.0.1"), 23));
  EXPECT_TRUE(InNetwork(IpAt("9.9.9.9"), IpAt("10.0.0.1"), 0));
  EXPECT_FALSE(InNetwork(IpAt("10.0.0.5"), IpAt("10.0.0.1"), 32));
  EXPECT_TRUE(InNetwork(IpAt("fd00::5"), IpAt("fd00::1"), 64));
  EXPECT_FALSE(InNetwork(IpAt("fd00:0:0:1::5"), IpAt("fd00::1"), 64));
  EXPECT_FALSE(InNetwork(IpAt("::ffff:10.0.0.1"), IpAt("10.0.0.1"), 0));
}

TEST(Interface, LinkLocalAddressesAreKnown) {
  EXPECT_TRUE((Address{IpAt("169.254.7.1"), 16}).link_local());
  EXPECT_TRUE((Address{IpAt("fe80::1"), 64}).link_local());
  EXPECT_FALSE((Address{IpAt("fd00::1"), 64}).link_local());
}

TEST(Interface, ThisHostHasLoopback) {
  const auto all = ReadInterfaces();
  ASSERT_TRUE(all) << all.error().text;
  ASSERT_FALSE(all->empty());
  const auto lo = std::ranges::find(*all, std::string("lo"), &Interface::name);
  ASSERT_NE(lo, all->end());
  EXPECT_EQ(lo->kind, Kind::kLoopback);
  EXPECT_GE(lo->mtu, 1500);
  EXPECT_THAT(ListText(*all), HasSubstr("lo ("));
  for (const Interface& one : *all) EXPECT_GT(one.index, 0) << one.name;
}

// sysfs with two cards: one RoCE port that names its interface, one InfiniBand card.
class Rdma : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/dtrun-net-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void Card(const std::string& name, const std::string& bus, const std::string& state) {
    fs::create_directories(root_ / "devices" / bus);
    Write("class/infiniband/" + name + "/ports/1/state", state);
    fs::create_directory_symlink(root_ / "devices" / bus, root_ / "class/infiniband" / name / "device");
  }
  std::string PortOf(const char* name, const char* bus) { return RdmaPortOf(root_.string(), name, bus); }

  fs::path root_;
};

TEST_F(Rdma, AnInterfaceHasThePortThatNamesItOrSharesItsCard) {
  Card("mlx5_0", "0000:3b:00.0", "4: ACTIVE");
  Write("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "bond0");
  Card("mlx5_1", "0000:5e:00.0", "4: ACTIVE");
  EXPECT_EQ(PortOf("bond0", ""), "mlx5_0:1");
  EXPECT_EQ(PortOf("eth0", "0000:3b:00.0"), "");  // the port names another interface
  EXPECT_EQ(PortOf("ib0", "0000:5e:00.0"), "mlx5_1:1");
  EXPECT_EQ(PortOf("eth1", "0000:ff:00.0"), "");
}

TEST_F(Rdma, APortThatIsDownIsNotTaken) {
  Card("mlx5_0", "0000:3b:00.0", "1: DOWN");
  EXPECT_EQ(PortOf("eth0", "0000:3b:00.0"), "");
}

TEST_F(Rdma, AHostWithoutCardsHasNone) { EXPECT_EQ(PortOf("eth0", "0000:3b:00.0"), ""); }

}  // namespace
}  // namespace dtrun::network
