#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nccl_api.h"

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
                    Not(HasSubstr("NCCL_DEBUG")), Not(HasSubstr("\n")),
                    EndsWith("'; `dtrun explain` tells what that means")));
}

TEST(NcclFailure, WithoutATextShowsTheWayToNcclsOwnLog) {
  EXPECT_THAT(TextOf("internal error", ""),
              EndsWith("'internal error'; NCCL_DEBUG=WARN in job.env shows all that "
                       "NCCL says"));
}

TEST(NcclFailure, CarriesNcclsNumber) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  NcclFailure("run", nccl::kSystemError, "unhandled system error", "").CopyTo(&error);
  EXPECT_EQ(error.code, DTRUN_VENDOR);
  EXPECT_STREQ(error.vendor_domain, "nccl");
  EXPECT_EQ(error.vendor_code, 2);
  EXPECT_EQ(NcclFailure("run", nccl::kRemoteError, "remote process exited", "").code(), DTRUN_REMOTE_FAILURE);
}

}  // namespace
}  // namespace dtrun::nccl_plugin
