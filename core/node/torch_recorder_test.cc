#include "core/node/torch_recorder.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/fd.h"
#include "core/process/testing.h"

namespace dtrun::node {
namespace {

using std::chrono_literals::operator""ms;

constexpr std::string_view kAnswer =
    R"json({"under_way": true, "message": false, "polled": false, "group": "default_pg", "number": 4, "name": "all_reduce", "details": "(float32 [8])",
        "signature": "all_reduce (float32 [8])", "members": [0, 2]})json";

class TorchRecorder : public ::testing::Test {
 protected:
  // Listens as process 7.
  UniqueFd Listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ / "torch.7";
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    return listener;
  }

  auto AskOneThatSays(const std::string& text) {
    const UniqueFd listener = Listen();
    std::thread rank([&] {
      const UniqueFd asker(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ::send(asker.get(), text.data(), text.size(), MSG_NOSIGNAL);
    });
    auto call = AskTorch(folder_.path(), 7, 60'000ms);
    rank.join();
    std::filesystem::remove(folder_ / "torch.7");
    return call;
  }

  const process::testing::ScratchDir folder_;
};

TEST_F(TorchRecorder, SaysWhichCallIsUnderWay) {
  const auto call = AskOneThatSays(std::string(kAnswer));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->call.Text(), "all_reduce #4 on 'default_pg' (float32 [8])");
  EXPECT_EQ(call->call.signature, "all_reduce (float32 [8])");
  EXPECT_EQ(call->members, (std::vector<int>{0, 2}));
}

TEST_F(TorchRecorder, IsNotBelievedBeyondItsForm) {
  const std::string answer(kAnswer);
  for (const std::string& text : {std::string(), std::string("null"), std::string("{"), answer.substr(0, 40),
                                  std::string(R"({"under_way": 3})"), std::string(1 << 20, 'x')}) {
    EXPECT_FALSE(AskOneThatSays(text)) << text.substr(0, 60);
  }
  std::string escape = answer;
  escape.replace(escape.find("default_pg"), 10, R"(\u001b[31m)");
  EXPECT_FALSE(AskOneThatSays(escape));
}

TEST_F(TorchRecorder, IsNotAwaitedBeyondTheLimit) {
  const UniqueFd silent = Listen();
  EXPECT_FALSE(AskTorch(folder_.path(), 7, 20ms));
  EXPECT_FALSE(AskTorch(folder_.path(), 8, 20ms));  // no socket
}

}  // namespace
}  // namespace dtrun::node
