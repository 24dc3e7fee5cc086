#include "core/pmi/open_mpi_message.h"

#include <gtest/gtest.h>

namespace dtrun::pmi {
namespace {

using namespace std::string_literals;

const std::string kMessage =
    "\0\0\0\1\0\0\0\5file\0"
    "\0\0\0\1\0\0\0\6topic\0"
    "\0\0\0\1\1"
    "\0\0\0\1\0\0\0\6text\n\0"s;

TEST(OpenMpiMessage, IsTheTextBehindFileAndTopic) { EXPECT_EQ(OpenMpiMessage(kMessage), "text\n"); }

TEST(OpenMpiMessage, IsEmptyWhereSomethingIsMissing) {
  for (std::size_t size = 0; size < kMessage.size(); ++size) {
    EXPECT_EQ(OpenMpiMessage(kMessage.substr(0, size)), "") << size;
  }
  EXPECT_EQ(OpenMpiMessage("something else altogether"), "");
  EXPECT_EQ(OpenMpiMessage(std::string(64, '\xff')), "");
}

}  // namespace
}  // namespace dtrun::pmi
