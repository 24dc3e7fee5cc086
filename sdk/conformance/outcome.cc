#include "outcome.h"

#include <gtest/gtest.h>

#include <cstring>

#include "own_process.h"
#include "text_check.h"

namespace dtrun::conformance {

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << "status " << outcome.code << ", peer " << outcome.peer << ": " << outcome.text;
}

Outcome ReadOutcome(dtrun_status status, const dtrun_error& error) {
  if (status == DTRUN_OK || status == DTRUN_PENDING) {
    EXPECT_TRUE(error.code == DTRUN_OK && error.peer == -1 && error.message[0] == '\0')
        << "status " << status << " is no failure and filled the error (E3)";
  } else {
    EXPECT_EQ(error.code, status) << "the code of the error is not the status that was returned (E3)";
  }
  if (status == DTRUN_OK) return {};
  EXPECT_TRUE(status > DTRUN_OK && status <= DTRUN_MISMATCH) << "status " << status << " does not exist (E2)";
  const bool ends = std::memchr(error.message, '\0', sizeof error.message) != nullptr;
  EXPECT_TRUE(ends) << "an error's message does not end with NUL (E5)";
  EXPECT_TRUE(!ends || IsUtf8(error.message)) << "an error's message is no UTF-8 (E5)";
  EXPECT_TRUE(status == DTRUN_PENDING || error.message[0] != '\0')
      << "status " << status << " came without a text (E3)";
  return {status, error.peer, ends ? error.message : ""};
}

Outcome Thrown(const std::string& what) {
  ADD_FAILURE() << "an exception left the plugin (E1): " << what;
  return {DTRUN_INTERNAL, -1, "an exception left the plugin: " + what};
}

LongerError::LongerError() {
  DTRUN_ERROR_INIT(known);
  known.struct_size = sizeof(LongerError);
  std::memset(later, 0, sizeof later);
}

void ExpectIntact(const LongerError& error) {
  EndIfCopied();
  EXPECT_EQ(error.known.struct_size, sizeof error) << "the struct_size of an error was changed (E4)";
}

}  // namespace dtrun::conformance
