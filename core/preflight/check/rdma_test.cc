#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A system's files: the card mlx5_0 with an active port.
class Rdma : public ::testing::Test {
 protected:
  Rdma() {
    char name[] = "/tmp/dtrun-rdma-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~Rdma() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& content) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << content << '\n';
  }
  void AddCard() const {
    Write(kPort + "state", "4: ACTIVE");
    Write(kPort + "link_layer", "InfiniBand");
    Write(kPort + "gids/0", "fe80:0000:0000:0000:0002:c903:0001:2345");
    Write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0");
    Write("dev/infiniband/uverbs0", "");
  }
  Checks Look(const std::vector<BackendAnswer>& backends = {}) const {
    Checks checks;
    CheckRdma(root_, backends, &checks);
    return checks;
  }

  const std::string kPort = "sys/class/infiniband/mlx5_0/ports/1/";
  fs::path root_;
};

TEST_F(Rdma, MostHostsHaveNone) { EXPECT_EQ(Look().at(0).what, "no devices"); }

TEST_F(Rdma, SaysWhoWouldUseThePortAndWhoWouldNot) {
  AddCard();
  const Checks checks = Look({{"ucx", "", "", {{{"rdma", "yes"}}, {}}},
                              {"nccl", "", "", {{{"rdma", "no: NCCL_IB_DISABLE=1"}}, {}}},
                              {"gloo", "", "", {}}});
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].what, "mlx5_0 port 1: InfiniBand, 4: ACTIVE");
  EXPECT_EQ(checks[1].level, Level::kOk);
  EXPECT_EQ(checks[1].what,
            "would be used by ucx; not by nccl: NCCL_IB_DISABLE=1; found, not tested to reach other hosts");
}

TEST_F(Rdma, ThatNobodyUsesIsAWarningWithTheReason) {
  AddCard();
  const Checks checks = Look(
      {{"ucx", "", "", {{{"rdma", "no: UCX offers none of the devices"}}, {}}}, {"nccl", "no GPU", "", {}}});
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[1].level, Level::kWarning);
  EXPECT_THAT(checks[1].what, HasSubstr("not by ucx: UCX offers none of the devices"));
}

TEST_F(Rdma, APortThatIsDownClosedOrWithoutAddressIsNotUsed) {
  AddCard();
  Write(kPort + "gids/0", "0000:0000:0000:0000:0000:0000:0000:0000");
  EXPECT_THAT(Look().at(0).what, HasSubstr("not used: it has no GID"));
  Write(kPort + "state", "1: DOWN");
  EXPECT_THAT(Look().at(0).what, HasSubstr("1: DOWN; not used: it is not active"));
  fs::remove(root_ / "dev/infiniband/uverbs0");
  EXPECT_THAT(Look().at(0).what, HasSubstr("/dev/infiniband/uverbs0 cannot be opened: No such file"));
  fs::remove_all(root_ / "sys/class/infiniband_verbs");
  EXPECT_THAT(Look().at(0).what, HasSubstr("no verbs device"));
  for (const Check& check : Look()) EXPECT_FALSE(check.fix.empty());
}

}  // namespace
}  // namespace dtrun::preflight
