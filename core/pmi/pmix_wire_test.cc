#include "core/pmi/pmix_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::pmi {
namespace {

using ::testing::HasSubstr;

std::string PayloadOf(const std::string& frame) { return frame.substr(sizeof(std::uint32_t)); }

template <class T>
T ThroughAgent(const T& message) {
  return std::get<T>(DecodeFromPmix(PayloadOf(Encode(FromPmix(message)))).value());
}
template <class T>
T ThroughServer(const T& message) {
  return std::get<T>(DecodeToPmix(PayloadOf(Encode(ToPmix(message)))).value());
}

TEST(PmixWire, CarriesEveryMessage) {
  const PmixBegin begin =
      ThroughServer(PmixBegin{{Kind::kPmix, "job.0", {{"a", 0, 2}, {"b", 2, 1}}, 1}, "/tmp/x", "/dev/shm/x"});
  EXPECT_EQ(begin.job.name, "job.0");
  EXPECT_EQ(begin.job.hosts[1].first_rank, 2);
  EXPECT_EQ(begin.job.here, 1);
  EXPECT_EQ(begin.memory, "/dev/shm/x");
  const std::string bytes("a\0\xff", 3);
  EXPECT_EQ(ThroughServer(PmixAnswer{7, true, bytes}).bytes, bytes);
  EXPECT_EQ(ThroughAgent(PmixReady{{{{"A", "1"}}, {{"A", "2"}}}}).variables[1].at("A"), "2");
  EXPECT_EQ(ThroughAgent(PmixRefused{"no"}).why, "no");
  EXPECT_EQ(ThroughAgent(PmixStarted{3}).rank, 3);
  EXPECT_EQ(ThroughAgent(PmixFinished{3}).rank, 3);
  EXPECT_EQ(ThroughAgent(PmixAborted{3, 7, "enough"}).code, 7);
  EXPECT_EQ(ThroughAgent(PmixSaid{3, "text"}).text, "text");
  const PmixFenced fenced = ThroughAgent(PmixFenced{1, {0, 2}, bytes});
  EXPECT_EQ(fenced.ranks, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(fenced.bytes, bytes);
}

TEST(PmixWire, RefusesWhatIsNoMessage) {
  EXPECT_FALSE(DecodeFromPmix(""));
  EXPECT_THAT(DecodeFromPmix("\x7f").error().text, HasSubstr("unknown kind 127"));
  const std::string whole = PayloadOf(Encode(FromPmix(PmixFenced{1, {0, 2}, "bytes"})));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(DecodeFromPmix(whole.substr(0, size)));
  EXPECT_FALSE(DecodeFromPmix(whole + "x"));
  EXPECT_FALSE(
      DecodeFromPmix(PayloadOf(Encode(FromPmix(PmixSaid{0, std::string(kMaxPmixTextBytes + 1, 'x')})))));
}

TEST(PmixWire, KeepsNoMoreOfAListThanCame) {
  std::string lie = PayloadOf(Encode(FromPmix(PmixFenced{1, {}, ""})));
  lie.replace(1 + 8, 4, "\xff\xff\xff\xff");  // the number of ranks
  EXPECT_FALSE(DecodeFromPmix(lie));
}

}  // namespace
}  // namespace dtrun::pmi
