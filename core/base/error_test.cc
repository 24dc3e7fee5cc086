#include "core/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/error_id.h"

namespace dtrun {
namespace {

TEST(Error, SystemTextNamesActionAndCause) {
  EXPECT_EQ(Error::System("open '/x'", ENOENT).text, "open '/x': no such file or directory");
  EXPECT_THAT(Error::System("open '/x'", EMFILE).text,
              ::testing::StartsWith("open '/x': too many open files; raise `ulimit -n`, which is "));
}

TEST(Error, CopyToCutsAtAUtf8Character) {
  dtrun_error out;
  DTRUN_ERROR_INIT(out);
  Error error{DTRUN_TIMEOUT, std::string(DTRUN_ERROR_MESSAGE_BYTES - 2, 'a') + "é", 3};
  EXPECT_EQ(error.CopyTo(&out), DTRUN_TIMEOUT);
  EXPECT_EQ(out.peer, 3);
  EXPECT_EQ(std::string(out.message), std::string(DTRUN_ERROR_MESSAGE_BYTES - 2, 'a'));
}

TEST(Error, CopyToANullPointerOnlyReturnsTheCode) {
  EXPECT_EQ((Error{DTRUN_BUSY, "busy"}.CopyTo(nullptr)), DTRUN_BUSY);
}

// Callers built against a later version of the ABI pass longer structs.
TEST(Error, CopyToWritesWhatTheCallersStructHolds) {
  struct Longer {
    dtrun_error error;
    char more[64];
  } longer;
  for (const std::size_t size : {sizeof(dtrun_error), sizeof longer}) {
    std::memset(&longer, 'x', sizeof longer);
    longer.error.struct_size = static_cast<std::uint32_t>(size);
    Error{DTRUN_TIMEOUT, std::string(600, 'a'), 3}.CopyTo(&longer.error);
    EXPECT_EQ(longer.error.code, DTRUN_TIMEOUT);
    EXPECT_EQ(longer.error.peer, 3);
    EXPECT_EQ(longer.error.struct_size, size);
    EXPECT_EQ(std::string(longer.error.message), std::string(DTRUN_ERROR_MESSAGE_BYTES - 1, 'a'));
    EXPECT_EQ(std::string(longer.more, sizeof longer.more), std::string(sizeof longer.more, 'x'));
  }
}

TEST(Error, HasTheIdOfItsCodeUntilItHasItsOwn) {
  EXPECT_EQ((Error{DTRUN_INVALID_ARGUMENT, "x"}.Id()), "invalid_argument");
  EXPECT_EQ((Error{DTRUN_TIMEOUT, "x", -1, ErrorId::kTimeout}.Id()), "comm.timeout");
  EXPECT_EQ(ErrorIdOf("comm.absent"), ErrorId::kAbsent);
  EXPECT_EQ(ErrorIdOf("comm.unheard_of"), ErrorId::kNone);
}

TEST(Error, RenumbersItsRanksAndForgetsThoseOutside) {
  const Error error =
      Error{DTRUN_TIMEOUT, "rank 1 is missing", 1, ErrorId::kTimeout, {1, 7, 0}}.Renumbered({4, 9});
  EXPECT_EQ(error.peer, 9);
  EXPECT_EQ(error.ranks, (std::vector<int>{9, 4}));
  EXPECT_EQ(error.text, "rank 1 is missing");
  EXPECT_EQ((Error{DTRUN_TIMEOUT, "x", 2}.Ranks()), std::vector<int>{2});
}

TEST(Error, IsKnownToTheThreadThatCopiedIt) {
  dtrun_error out;
  DTRUN_ERROR_INIT(out);
  Error{DTRUN_TIMEOUT, std::string(600, 'a'), 3, ErrorId::kTimeout, {3, 4}}.CopyTo(&out);
  EXPECT_EQ(Error::LastCopied(out).Ranks(), (std::vector<int>{3, 4}));
  dtrun_error_set(&out, DTRUN_REMOTE_FAILURE, 5, "from elsewhere");
  EXPECT_EQ(Error::LastCopied(out).Id(), "remote_failure");
  EXPECT_EQ(Error::LastCopied(out).Ranks(), std::vector<int>{5});
}

}  // namespace
}  // namespace dtrun
