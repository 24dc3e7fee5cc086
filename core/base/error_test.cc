#include "core/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace dtrun {
namespace {

TEST(Error, SystemTextNamesActionAndCause) {
  EXPECT_EQ(Error::System("open '/x'", ENOENT).text, "open '/x': no such file or directory");
  EXPECT_THAT(Error::System("open '/x'", EMFILE).text,
              ::testing::StartsWith("open '/x': too many open files; raise `ulimit -n`, which is "));
}

TEST(Error, CopyToCutsAtAUtf8Character) {
  dtrun_error out;
  DTRUN_INIT(out);
  Error error{DTRUN_TIMEOUT, std::string(DTRUN_ERROR_MESSAGE_BYTES - 2, 'a') + "é", 3};
  EXPECT_EQ(error.CopyTo(&out), DTRUN_TIMEOUT);
  EXPECT_EQ(out.peer, 3);
  EXPECT_EQ(std::string(out.message), std::string(DTRUN_ERROR_MESSAGE_BYTES - 2, 'a'));
}

TEST(Error, CopyToANullPointerOnlyReturnsTheCode) {
  EXPECT_EQ((Error{DTRUN_BUSY, "busy"}.CopyTo(nullptr)), DTRUN_BUSY);
}

TEST(Error, FromKeepsPeerAndAddsContext) {
  dtrun_error raw;
  DTRUN_INIT(raw);
  Error{DTRUN_REMOTE_FAILURE, "connection reset", 1}.CopyTo(&raw);
  const Error error = Error::From(raw, "allreduce");
  EXPECT_EQ(error.text, "allreduce: connection reset");
  EXPECT_EQ(error.peer, 1);
}

}  // namespace
}  // namespace dtrun
