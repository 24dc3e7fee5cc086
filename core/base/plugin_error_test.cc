#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace dtrun {
namespace {

TEST(Explained, KeepsStatusAndPeerAndAddsContext) {
  PluginError cause;
  dtrun_error_set(&cause, DTRUN_TIMEOUT, 1, "connection reset");
  const Error error = Explained(DTRUN_REMOTE_FAILURE, cause, "allreduce");
  EXPECT_EQ(error.text, "allreduce: connection reset");
  EXPECT_EQ(error.code, DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(error.peer, 1);
}

TEST(Explained, NamesNobodyWhereThePluginSaidNothing) {
  const Error error = Explained(DTRUN_UNSUPPORTED, PluginError(), "");
  EXPECT_EQ(error.text, "unsupported");
  EXPECT_EQ(error.peer, -1);
}

TEST(Explained, AStatusThatDoesNotExistIsAnInternalError) {
  for (const dtrun_status status : {-7, 1, 15, 99}) {
    const Error error = Explained(status, PluginError(), "plan");
    EXPECT_EQ(error.code, DTRUN_INTERNAL);
    EXPECT_EQ(error.text, "plan: it failed and did not say why (it returned " + std::to_string(status) +
                              ", which is not the status of a failure)");
  }
}

TEST(Explained, ATextEndsWithItsStructAndHasNoControlCharacters) {
  PluginError cause;
  std::memset(cause.message, 'a', sizeof cause.message);  // without NUL
  cause.peer = -40;
  const Error error = Explained(DTRUN_SYSTEM, cause, "");
  EXPECT_EQ(error.text, std::string(DTRUN_ERROR_MESSAGE_BYTES, 'a'));
  EXPECT_EQ(error.peer, -1);
  dtrun_error_set(&cause, DTRUN_SYSTEM, -1, "\x1b[2Jred\nline");
  EXPECT_EQ(Explained(DTRUN_SYSTEM, cause, "").text, "\\u001b[2Jred\\nline");
}

}  // namespace
}  // namespace dtrun
