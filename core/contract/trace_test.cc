#include "core/contract/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "dtrun/abi/types.h"

namespace dtrun::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Bytes(const TraceRecord& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

TraceRecord Begin() {
  TraceRecord record;
  record.type = TraceType::kBegin;
  record.thread = kTraceMagic;
  record.bytes = kTraceVersion;
  record.number = 42;
  record.start = 1000;
  record.given = std::int64_t{1'800'000'000} * 1'000'000'000;
  return record;
}

TraceRecord OneCall(std::int64_t start, std::int64_t end) {
  TraceRecord record;
  record.type = TraceType::kCall;
  record.operation = DTRUN_ALLREDUCE;
  record.communicator = 1;
  record.start = record.given = start;
  record.end = end;
  return record;
}

TraceRecord Of(TraceType type, std::uint64_t number = 0) {
  TraceRecord record;
  record.type = type;
  record.number = number;
  return record;
}

TraceRecord Name(const char* text) {
  TraceRecord record = Of(TraceType::kCommunicator);
  record.communicator = 1;
  record.peer = 3;
  record.thread = 8;
  record.SetText(text);
  return record;
}

TEST(ReadTrace, ReadsASession) {
  const Trace trace = ReadTrace(Bytes(Begin()) + Bytes(Name("wor")) + Bytes(Name("ld\nshm+gloo")) +
                                Bytes(OneCall(10, 20)) + Bytes(Of(TraceType::kEnd)));
  ASSERT_EQ(trace.sessions.size(), 1u);
  const TraceSession& session = trace.sessions[0];
  EXPECT_EQ(session.pid, 42u);
  EXPECT_EQ(session.communicators.at(1).name, "world");
  EXPECT_EQ(session.communicators.at(1).backend, "shm+gloo");
  EXPECT_EQ(session.communicators.at(1).rank, 3);
  EXPECT_EQ(session.communicators.at(1).size, 8);
  EXPECT_EQ(session.calls.size(), 1u);
  EXPECT_THAT(Missing(session), IsEmpty());
  EXPECT_EQ(trace.damaged + trace.partial, 0u);
}

TEST(ReadTrace, TellsWhatIsMissing) {
  const std::string head = Bytes(Begin()) + Bytes(OneCall(10, 20));
  EXPECT_THAT(Missing(ReadTrace(head).sessions[0]), ElementsAre(HasSubstr("without its end")));
  EXPECT_THAT(
      Missing(ReadTrace(head + Bytes(Of(TraceType::kLost, 7)) + Bytes(Of(TraceType::kEnd))).sessions[0]),
      ElementsAre(HasSubstr("7 calls")));
  EXPECT_THAT(Missing(ReadTrace(head + Bytes(Of(TraceType::kCut))).sessions[0]),
              ElementsAre(HasSubstr("trace.size")));
}

TEST(ReadTrace, CountsAPartialRecordAndKeepsThoseBefore) {
  const std::string whole = Bytes(Begin()) + Bytes(OneCall(10, 20));
  for (std::size_t cut = 1; cut < sizeof(TraceRecord); ++cut) {
    const Trace trace = ReadTrace(whole + Bytes(OneCall(30, 40)).substr(0, cut));
    ASSERT_EQ(trace.sessions.size(), 1u);
    EXPECT_EQ(trace.sessions[0].calls.size(), 1u);
    EXPECT_EQ(trace.partial, cut);
  }
}

TEST(ReadTrace, CountsRecordsThatAreNone) {
  TraceRecord operation = OneCall(10, 20), backwards = OneCall(20, 10), magic = Begin();
  operation.operation = 200;
  magic.thread = 1;
  EXPECT_EQ(ReadTrace(Bytes(OneCall(1, 2))).damaged, 1u);  // before any session
  EXPECT_EQ(ReadTrace(Bytes(magic)).damaged, 1u);
  const Trace trace =
      ReadTrace(Bytes(Begin()) + Bytes(operation) + Bytes(backwards) + Bytes(Of(TraceType{99})));
  EXPECT_EQ(trace.damaged, 3u);
  EXPECT_THAT(trace.sessions[0].calls, IsEmpty());
}

TEST(ReadTrace, KeepsTheSessionsOfAProcessApart) {
  const std::string one = Bytes(Begin()) + Bytes(OneCall(10, 20)) + Bytes(Of(TraceType::kEnd));
  EXPECT_EQ(ReadTrace(one + one).sessions.size(), 2u);
}

TEST(ReadTrace, SurvivesAnyBytes) {
  std::mt19937 random(7);
  std::string whole = Bytes(Begin()) + Bytes(Name("world\ngloo"));
  for (int i = 0; i < 40; ++i) whole += Bytes(OneCall(i, i + 1));
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 40; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % bytes.size());
    for (const TraceSession& session : ReadTrace(bytes).sessions) {
      (void)Missing(session);
      for (const TraceRecord& call : session.calls) EXPECT_LE(call.start, call.end);
    }
  }
}

}  // namespace
}  // namespace dtrun::contract
