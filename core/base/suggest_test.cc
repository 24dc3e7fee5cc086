#include <gtest/gtest.h>

#include "core/base/text.h"

namespace dtrun {
namespace {

TEST(EditDistance, CountsEditsAndSwapsAndIgnoresCase) {
  EXPECT_EQ(EditDistance("gloo", "gloo"), 0);
  EXPECT_EQ(EditDistance("glo", "gloo"), 1);
  EXPECT_EQ(EditDistance("golo", "gloo"), 1);
  EXPECT_EQ(EditDistance("GLOO", "gloo"), 0);
  EXPECT_EQ(EditDistance("", "mpi"), 3);
}

TEST(Nearest, FindsTheSlipAndNothingFarAway) {
  const std::vector<std::string> names = {"gloo", "mpi", "ucx", "nccl"};
  EXPECT_EQ(Nearest("golo", names), "gloo");
  EXPECT_EQ(Nearest("ncl", names), "nccl");
  EXPECT_EQ(Nearest("infiniband", names), std::nullopt);
  EXPECT_EQ(Nearest("x", names), std::nullopt);
}

TEST(Nearest, KnowsTheOneNameThatIsAbbreviated) {
  const std::vector<std::string> names = {"processes_per_host", "program", "master_port"};
  EXPECT_EQ(Nearest("procs_per_host", names), "processes_per_host");
  EXPECT_EQ(Nearest("ppn", names), std::nullopt);
  EXPECT_EQ(Nearest("procm", {"processes_machine", "process_memory"}), std::nullopt);
}

}  // namespace
}  // namespace dtrun
