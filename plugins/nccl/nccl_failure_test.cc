#include "nccl_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::nccl_plugin {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string TextOf(std::string_view error_string, std::string_view last_error) {
  return NcclFailure("connect 2 ranks", nccl::kSystemError, error_string, last_error).what();
}

TEST(NcclFailure, JoinsWhatNcclSaysAndWhatToDo) {
  EXPECT_THAT(TextOf("invalid usage (run with NCCL_DEBUG=WARN for details)",
                     "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n"),
              AllOf(StartsWith("nccl cannot connect 2 ranks: 'invalid usage', 'Duplicate GPU detected"),
                    Not(HasSubstr("NCCL_DEBUG")), Not(HasSubstr("\n")), HasSubstr("give each rank its own")));
}

TEST(NcclFailure, WithoutAKnownTextShowsTheWayToNcclsOwnLog) {
  EXPECT_THAT(TextOf("internal error", ""),
              EndsWith("'internal error'; NCCL_DEBUG=WARN in job.env shows all that "
                       "NCCL says"));
}

TEST(NcclFailure, CarriesNcclsNumber) {
  dtrun_error error;
  DTRUN_INIT(error);
  NcclFailure("run", nccl::kSystemError, "unhandled system error", "").CopyTo(&error);
  EXPECT_EQ(error.code, DTRUN_VENDOR);
  EXPECT_STREQ(error.vendor_domain, "nccl");
  EXPECT_EQ(error.vendor_code, 2);
  EXPECT_EQ(NcclFailure("run", nccl::kRemoteError, "remote process exited", "").code(), DTRUN_REMOTE_FAILURE);
}

TEST(NcclFailure, TellsTheSevenCausesOfAnInternalErrorApart) {
  EXPECT_THAT(MeaningOf("Bootstrap : no socket interface found"), HasSubstr("backend.options.interface"));
  EXPECT_THAT(MeaningOf("ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2)"),
              HasSubstr("no usable address"));
  EXPECT_THAT(MeaningOf("Message truncated : received 256 bytes instead of 4"),
              HasSubstr("one sent 256 bytes where 4 were expected"));
  EXPECT_THAT(MeaningOf("ncclSocketConnect: wrong socket state 7"), HasSubstr("other end was gone"));
  EXPECT_THAT(MeaningOf("Proxy Call to rank 3 failed (Setup)"), HasSubstr("for rank 3 lost its peer"));
  EXPECT_THAT(MeaningOf("Comm 0x7f91b4000d60 is in abort state"), HasSubstr("aborted already"));
  EXPECT_THAT(MeaningOf("NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and "
                        "[2]mlx5_2:1/RoCE. Try selecting NICs of only one link type using NCCL_IB_HCA"),
              HasSubstr("[0]mlx5_0:1/IB and [2]mlx5_2:1/RoCE"));
}

TEST(NcclFailure, HasAdviceForTheErrorsThatUsersMeet) {
  EXPECT_THAT(MeaningOf("Cuda failure 'peer access is not supported between these two devices'"),
              HasSubstr("p2p = \"off\""));
  EXPECT_THAT(MeaningOf("Error: failed to extend /dev/shm/nccl-abc to 33030532 bytes"),
              HasSubstr("shm = \"off\""));
  EXPECT_THAT(MeaningOf("Call to connect returned Connection refused"), HasSubstr("firewall"));
  EXPECT_EQ(MeaningOf("something new"), "");
}

}  // namespace
}  // namespace dtrun::nccl_plugin
