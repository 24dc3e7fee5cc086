#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/executor_work_guard.hpp>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include "core/base/fd.h"
#include "core/control/address.h"
#include "core/control/client.h"
#include "core/control/server.h"

namespace dtrun::control {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kPatience = 60s;

// A job that answers each question with its state, or as `handler` does.
class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    std::string path = testing::TempDir() + "control-XXXXXX";
    folder_ = ::mkdtemp(path.data());
    folder_ /= std::string(120, 'x');  // longer than a socket's path may be
    fs::create_directory(folder_);
    open_ = UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~ControlTest() override {
    Close();
    fs::remove_all(folder_.parent_path());
  }

  void Serve(Server::Handler handler = {}) {
    if (!handler) {
      handler = [this](const Question& question, const Server::Reply& reply) {
        asked_.set_value(question);
        Answer answer;
        answer.job = "train";
        answer.state = "running";
        answer.ranks = {{.rank = 3, .count = 1, .host = "a", .pid = 7, .joined = true, .ended = false}};
        verdict::RankDoing& doing = answer.places.emplace_back();
        doing.rank = 3;
        doing.phrase = "in all_reduce at train.py:8";
        reply(answer);
      };
    }
    auto server = Server::Open(*loop_, open_.get(), std::move(handler));
    ASSERT_TRUE(server.ok()) << server.error().text;
    server_ = *std::move(server);
    thread_ = std::thread([this] {
      const auto work = boost::asio::make_work_guard(*loop_);
      loop_->run();
    });
  }
  void Close() {
    if (!thread_.joinable()) return;
    loop_->stop();
    thread_.join();
    server_.reset();
    loop_.reset();
  }

  // What the server answers to raw bytes.
  std::string Send(const std::string& bytes) const {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = AddressIn(open_.get());
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return "refused";
    if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return "closed";
    ::shutdown(socket.get(), SHUT_WR);
    std::string all(1 << 16, '\0');
    const ssize_t got = ::recv(socket.get(), all.data(), all.size(), MSG_WAITALL);
    all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return all;
  }

  fs::path folder_;
  UniqueFd open_;
  std::unique_ptr<boost::asio::io_context> loop_ = std::make_unique<boost::asio::io_context>();
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::promise<Question> asked_;
};

TEST_F(ControlTest, AQuestionReachesTheJobAndItsAnswerComesBack) {
  Serve();
  const auto answer = AskJob(folder_, {.what = What::kPlaces, .native = {1, 2}, .grace = 3s}, kPatience);
  ASSERT_TRUE(answer.ok()) << answer.error().text;
  EXPECT_EQ(answer->job, "train");
  EXPECT_EQ(answer->dtrun, DTRUN_VERSION);
  ASSERT_EQ(answer->ranks.size(), 1U);
  EXPECT_EQ(answer->ranks[0].host, "a");
  ASSERT_EQ(answer->places.size(), 1U);
  EXPECT_EQ(answer->places[0].phrase, "in all_reduce at train.py:8");
  const Question asked = asked_.get_future().get();
  EXPECT_EQ(asked.what, What::kPlaces);
  EXPECT_EQ(asked.native, (std::vector<int>{1, 2}));
  EXPECT_EQ(asked.grace, std::optional<std::chrono::nanoseconds>(3s));
}

TEST_F(ControlTest, TheSocketIsForItsOwnerAndGoesWithTheJob) {
  Serve();
  struct stat info {};
  ASSERT_EQ(::stat((folder_ / kSocket).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  Close();
  EXPECT_FALSE(fs::exists(folder_ / kSocket));
}

TEST_F(ControlTest, WithoutAJobTheFolderIsNamed) {
  const auto answer = AskJob(folder_, {}, kPatience);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, DTRUN_NOT_FOUND);
  EXPECT_NE(answer.error().text.find(folder_.string()), std::string::npos);
}

TEST_F(ControlTest, ASocketThatAKilledJobLeftIsNoJobAndIsReplaced) {
  const UniqueFd left(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressIn(open_.get());
  ASSERT_EQ(::bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(AskJob(folder_, {}, kPatience).error().code, DTRUN_NOT_FOUND);
  Serve();
  EXPECT_TRUE(AskJob(folder_, {}, kPatience).ok());
}

TEST_F(ControlTest, AJobOfAnotherVersionSaysSo) {
  Serve();
  const auto answer = AskJob(folder_, {.version = kVersion + 1}, kPatience);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().text.find("the job runs dtrun " DTRUN_VERSION), std::string::npos);
}

TEST_F(ControlTest, GarbageIsRefusedAndTheNextIsServed) {
  Serve();
  for (const char* const garbage : {"\n", "[]\n", "{\"version\": 1, \"what\": \"fly\"}\n", "\xff\xfe\n",
                                    "{\"version\": 1, \"what\": \"places\", \"native\": [-1]}\n"}) {
    EXPECT_NE(Send(garbage).find("\"error\":\""), std::string::npos) << garbage;
  }
  EXPECT_EQ(Send("no end"), "");
  EXPECT_EQ(Send(std::string(std::size_t{2} << 20, 'x')).find("running"), std::string::npos);
  EXPECT_TRUE(AskJob(folder_, {}, kPatience).ok());
}

TEST_F(ControlTest, AJobThatDoesNotAnswerInTimeIsNamed) {
  const UniqueFd silent(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const fs::path stopped =
      folder_.parent_path() / "stopped";  // a dtrun under SIGSTOP accepts and says nothing
  fs::create_directory(stopped);
  const UniqueFd open(::open(stopped.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const sockaddr_un address = AddressIn(open.get());
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  const auto answer = AskJob(stopped, {}, 100ms);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, DTRUN_TIMEOUT);
  EXPECT_NE(answer.error().text.find(stopped.string()), std::string::npos);
}

TEST_F(ControlTest, AStopReturnsOnceTheJobHasEnded) {
  std::promise<void> asked;
  Serve([&](const Question&, const Server::Reply& reply) {
    reply({});
    asked.set_value();
  });
  auto stop =
      std::async(std::launch::async, [&] { return AskJob(folder_, {.what = What::kStop}, kPatience).ok(); });
  asked.get_future().wait();
  EXPECT_EQ(stop.wait_for(50ms), std::future_status::timeout);
  Close();
  EXPECT_TRUE(stop.get());
}

}  // namespace
}  // namespace dtrun::control
