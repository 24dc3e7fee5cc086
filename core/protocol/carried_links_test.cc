#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>

#include "core/protocol/carrier.h"

namespace dtrun::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using LinkEvent = Carried::Kind;

class CarriedLinksTest : public ::testing::Test {
 protected:
  bool Take(const Carried& carried) {
    std::string line = ToLine(carried);
    line.pop_back();
    return links_.Take(line);
  }
  std::string Received(int host) {
    std::string all;
    char bytes[65536];
    for (ssize_t size; (size = ::recv(opened_[host].get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      all.append(bytes, static_cast<std::size_t>(size));
    return all;
  }
  void Turn() {
    loop_.restart();
    loop_.poll();
  }

  boost::asio::io_context loop_;
  std::string sent_;
  std::vector<std::string> others_;
  std::map<int, UniqueFd> opened_;
  std::map<int, std::string> from_;
  int taken_ = 0;
  CarriedLinks links_{loop_,
                      {3, 4},
                      {[this](const std::string& lines) { sent_ += lines; }, [this] { return sent_.size(); },
                       [this] { ++taken_; }},
                      {[this](const std::string& line) { others_.push_back(line); },
                       [this](int host, UniqueFd link, const std::string& from) {
                         opened_[host] = std::move(link);
                         from_[host] = from;
                       }}};
};

TEST_F(CarriedLinksTest, OpensLinksOfItsHostsOnly) {
  EXPECT_FALSE(links_.HasStarted(3));
  EXPECT_TRUE(Take({LinkEvent::kHere, 3, 0, "10.0.0.7:22"}));
  EXPECT_TRUE(links_.HasStarted(3));
  EXPECT_TRUE(Take({LinkEvent::kOpen, 3, 1, ""}));
  EXPECT_TRUE(Take({LinkEvent::kHere, 5, 0, "10.0.0.8:22"}));
  EXPECT_TRUE(Take({LinkEvent::kOpen, 5, 1, ""}));
  EXPECT_EQ(from_[3], "10.0.0.7:22");
  EXPECT_FALSE(opened_.contains(5));
  EXPECT_FALSE(links_.HasStarted(5));
  EXPECT_TRUE(links_.Take("motd"));
  EXPECT_THAT(others_, ElementsAre("motd"));
}

TEST_F(CarriedLinksTest, BelievesNoAddressThatIsNone) {
  Take({LinkEvent::kHere, 3, 0, "\x1b[2J$(reboot)"});
  Take({LinkEvent::kOpen, 3, 1, ""});
  EXPECT_EQ(from_[3], "");
}

TEST_F(CarriedLinksTest, CarriesWhatBelongsToTheOpenLink) {
  Take({LinkEvent::kData, 3, 1, "early"});
  Take({LinkEvent::kOpen, 3, 1, ""});
  Take({LinkEvent::kData, 3, 1, "one"});
  Take({LinkEvent::kData, 3, 2, "of another link"});
  Take({LinkEvent::kData, 4, 1, "of another host"});
  EXPECT_EQ(Received(3), "one");
  Take({LinkEvent::kOpen, 3, 2, ""});
  Take({LinkEvent::kData, 3, 1, "late"});
  EXPECT_EQ(Received(3), "");
}

TEST_F(CarriedLinksTest, SaysWhenALinkIsBehindAndWhenNoneIs) {
  Take({LinkEvent::kOpen, 3, 1, ""});
  const Carried data{LinkEvent::kData, 3, 1, std::string(kCarriedBytes, 'x')};
  std::size_t sent = 0;
  for (; sent < 100'000'000 && Take(data); sent += kCarriedBytes) {
  }
  ASSERT_LT(sent, 10'000'000u);
  taken_ = 0;
  std::size_t received = 0;
  while (received < sent + kCarriedBytes) {
    received += Received(3).size();
    Turn();
  }
  EXPECT_GT(taken_, 0);
  EXPECT_TRUE(Take(data));
}

}  // namespace
}  // namespace dtrun::protocol
