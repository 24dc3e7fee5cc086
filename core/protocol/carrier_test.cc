#include "core/protocol/carrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>

#include "core/process/output_pipe.h"

namespace dtrun::protocol {
namespace {

using LinkEvent = Carried::Kind;

std::string Everything(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  return bytes;
}

TEST(Carried, SurvivesItsLine) {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, kCarriedBytes}) {
    const std::string line = ToLine(Carried{LinkEvent::kData, 12345, 2, Everything(size)});
    EXPECT_LT(line.size(), 1000u);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    const auto parsed = ParseCarried(std::string_view(line).substr(0, line.size() - 1));
    ASSERT_TRUE(parsed) << line;
    EXPECT_EQ(parsed->kind, LinkEvent::kData);
    EXPECT_EQ(parsed->host, 12345);
    EXPECT_EQ(parsed->link, 2);
    EXPECT_EQ(parsed->text, Everything(size));
  }
  const auto here = ParseCarried("dtrun-link 3 0 here 10.0.0.7:22");
  ASSERT_TRUE(here);
  EXPECT_EQ(here->kind, LinkEvent::kHere);
  EXPECT_EQ(here->text, "10.0.0.7:22");
  EXPECT_TRUE(ParseCarried("dtrun-link 3 1 end "));
  EXPECT_TRUE(ParseCarried("dtrun-link 3 1 open"));
}

TEST(Carried, IsNoLineOfSomebodyElse) {
  for (const char* line :
       {"", "dtrun-link", "dtrun-link ", "dtrun-link x 1 data AAAA", "dtrun-link 1 data AAAA",
        "dtrun-link 1 1 data", "dtrun-link 1 1 data AAA", "dtrun-link 1 1 data A?AA",
        "dtrun-link 1 1 more AAAA", "dtrun-link 99999999999999999999 1 data AAAA", "motd",
        "dtrun: node1: cannot reach 10.0.0.1:1: no answer"}) {
    EXPECT_FALSE(ParseCarried(line)) << line;
  }
}

// Both ends and the lines between them, which are delivered a few at a time.
class CarrierTest : public ::testing::Test {
 protected:
  struct Side {
    Side(boost::asio::io_context& loop, int host)
        : carrier(loop, host,
                  {[this](const std::string& line) { lines += line; }, [this] { return lines.size(); }, {}}) {
    }
    std::string lines;  // sent lines
    Carrier carrier;
    UniqueFd end;
    std::string got;
  };

  void Carry(Side& from, Side& to, std::size_t bytes) {
    const std::string some = from.lines.substr(0, bytes);
    from.lines.erase(0, some.size());
    process::LineCutter& cutter = &from == &root_ ? down_ : up_;
    cutter.Feed(some, [&](const std::string& line) {
      const auto carried = ParseCarried(line);
      ASSERT_TRUE(carried) << line;
      to.carrier.Take(*carried);
    });
    from.carrier.OnSent();
  }

  static void Receive(Side& side) {
    char bytes[100'000];
    const ssize_t size = ::recv(side.end.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (size > 0) side.got.append(bytes, static_cast<std::size_t>(size));
    if (size == 0) side.got += "<end>";
  }

  boost::asio::io_context loop_;
  Side root_{loop_, 3}, agent_{loop_, 3};
  process::LineCutter down_{4096}, up_{4096};
};

TEST_F(CarrierTest, CarriesBytesBothWaysInBoundedMemory) {
  root_.end = *root_.carrier.Open(1);
  agent_.end = *agent_.carrier.Open(1);
  const std::string sent = Everything(5'000'000);
  std::size_t at = 0, most = 0;
  while (root_.got.size() < sent.size()) {
    const ssize_t size = ::send(agent_.end.get(), sent.data() + at, sent.size() - at, MSG_DONTWAIT);
    if (size > 0) at += static_cast<std::size_t>(size);
    loop_.restart();
    loop_.poll();
    most = std::max(most, agent_.lines.size());
    if (at == sent.size() || agent_.lines.size() > 500'000) Carry(agent_, root_, 300'001);
    loop_.poll();
    Receive(root_);
  }
  EXPECT_TRUE(root_.got == sent);
  EXPECT_LT(most, 1'200'000u);
  ASSERT_EQ(::send(root_.end.get(), "back", 4, 0), 4);
  while (agent_.got.empty()) {
    loop_.restart();
    loop_.poll();
    Carry(root_, agent_, 100);
    Receive(agent_);
  }
  EXPECT_EQ(agent_.got, "back");
}

TEST_F(CarrierTest, CarriesTheEndAndForgetsALinkThatIsOver) {
  root_.end = *root_.carrier.Open(1);
  agent_.end = *agent_.carrier.Open(1);
  ASSERT_EQ(::send(root_.end.get(), "old", 3, 0), 3);
  loop_.poll();
  agent_.end = *agent_.carrier.Open(2);  // before the first link's bytes arrive
  Carry(root_, agent_, 1000);
  Receive(agent_);
  EXPECT_EQ(agent_.got, "");
  root_.end = *root_.carrier.Open(2);
  ASSERT_EQ(::send(root_.end.get(), "new", 3, 0), 3);
  root_.end.Reset();
  loop_.restart();
  loop_.poll();
  Carry(root_, agent_, 1000);
  while (!agent_.got.ends_with("<end>")) {
    loop_.restart();
    loop_.poll();
    Carry(root_, agent_, 1000);
    Receive(agent_);
  }
  EXPECT_EQ(agent_.got, "new<end>");
}

}  // namespace
}  // namespace dtrun::protocol
