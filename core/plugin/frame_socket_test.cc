#include "core/plugin/frame_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dtrun::plugin {
namespace {

class FrameSocketTest : public ::testing::Test {
 protected:
  FrameSocketTest() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    near_.emplace(UniqueFd(fds[0]));
    far_ = UniqueFd(fds[1]);
  }
  static std::string Frame(std::string_view payload) {
    wire::Writer writer;
    writer.Rest("payload", payload);
    return std::move(writer).Frame();
  }
  void Feed(std::string_view text) {
    ASSERT_EQ(::write(far_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::optional<FrameSocket> near_;
  UniqueFd far_;
};

TEST_F(FrameSocketTest, SplitsFramesAndEndsWithTheStream) {
  Feed(Frame("one") + Frame("two") + Frame("rest").substr(0, 6));
  far_.Reset();
  EXPECT_EQ(near_->Receive(std::nullopt, -1, nullptr).value(), "one");
  EXPECT_EQ(near_->Receive(std::nullopt, -1, nullptr).value(), "two");
  EXPECT_EQ(near_->Receive(std::nullopt, -1, nullptr).value(), std::nullopt);
}

TEST_F(FrameSocketTest, EndsAtTheDeadlineWithoutAWholeFrame) {
  Feed(Frame("half").substr(0, 6));
  const auto frame = near_->Receive(std::chrono::steady_clock::now(), -1, nullptr);
  ASSERT_FALSE(frame.ok());
  EXPECT_EQ(frame.error().code, DTRUN_TIMEOUT);
}

TEST_F(FrameSocketTest, SaysThatThePeerIsGone) {
  far_.Reset();
  const Status status = near_->Send("x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, DTRUN_REMOTE_FAILURE);
}

TEST_F(FrameSocketTest, KeepsTheTailOfTheOtherStream) {
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd reader(fds[0]), writer(fds[1]);
  const std::string text = std::string(3 * FrameSocket::kTailBytes, 'a') + "end";
  ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  writer.Reset();
  Feed(Frame("frame"));
  std::string tail;
  EXPECT_TRUE(near_->Receive(std::nullopt, reader.get(), &tail).ok());
  EXPECT_FALSE(DrainTail(reader.get(), &tail));
  EXPECT_EQ(tail.size(), FrameSocket::kTailBytes);
  EXPECT_THAT(tail, ::testing::EndsWith("end"));
}

}  // namespace
}  // namespace dtrun::plugin
