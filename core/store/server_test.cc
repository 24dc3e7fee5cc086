#include "core/store/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "core/base/fd.h"
#include "core/store/protocol.h"
#include "core/store/testing/local_store.h"

namespace dtrun::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LocalStore;

// A client that sends arbitrary bytes.
class RawClient {
 public:
  explicit RawClient(const Address& to) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, to.socket.c_str());
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void Send(const std::string& bytes) {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server has closed; tests notice in Receive
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Reads until the server closes.
  std::string ReceiveAll() {
    std::string all;
    char chunk[4096];
    for (ssize_t got = 0; (got = ::recv(fd_.get(), chunk, sizeof chunk, 0)) > 0;) {
      all.append(chunk, static_cast<std::size_t>(got));
    }
    return all;
  }
  Reply ReceiveReply() {
    char chunk[4096];
    for (;;) {
      const auto payload = frames_.Next();
      if (payload.ok() && payload->has_value()) return *DecodeReply(**payload);
      const ssize_t got = ::recv(fd_.get(), chunk, sizeof chunk, 0);
      if (got <= 0) return Reply{.status = DTRUN_REMOTE_FAILURE};
      frames_.Append({chunk, static_cast<std::size_t>(got)});
    }
  }
  void HangUp() { fd_.Reset(); }

 private:
  UniqueFd fd_;
  wire::FrameReader frames_{kMaxFrameBytes};
};

Hello HelloOf(const Address& address) {
  return Hello{kProtocolVersion, address.job_key, address.generation, address.rank, false};
}

void ExpectNothingStored(const LocalStore& store) {
  EXPECT_EQ(store.Connect()->Space("")->TryGet("k").error().code, DTRUN_NOT_FOUND);
}

TEST(Server, HangsUpOnGarbage) {
  LocalStore store;
  RawClient client(store.AddressOf(0));
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.ReceiveAll(), "");
}

TEST(Server, HangsUpOnARequestBeforeHelloAndDoesNotCarryItOut) {
  LocalStore store;
  RawClient client(store.AddressOf(0));
  client.Send(Encode(Request{1, Set{"k", "v"}}));
  EXPECT_EQ(client.ReceiveAll(), "");
  ExpectNothingStored(store);
}

TEST(Server, IgnoresWhatFollowsARefusedKey) {
  LocalStore store;
  Address address = store.AddressOf(0);
  address.job_key.back() = address.job_key.back() == '0' ? '1' : '0';
  RawClient client(address);
  client.Send(Encode(Request{1, HelloOf(address)}) + Encode(Request{2, Set{"k", "v"}}));
  EXPECT_EQ(client.ReceiveReply().status, DTRUN_FAILED_PRECONDITION);
  EXPECT_EQ(client.ReceiveAll(), "");
  ExpectNothingStored(store);
}

TEST(Server, RefusesAShorterOrEmptyKey) {
  LocalStore store;
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}}) {
    Hello hello = HelloOf(store.AddressOf(0));
    hello.job_key.resize(size);
    RawClient client(store.AddressOf(0));
    client.Send(Encode(Request{1, hello}));
    EXPECT_EQ(client.ReceiveReply().status, DTRUN_FAILED_PRECONDITION);
  }
}

TEST(Server, RefusesAnotherProtocolVersionWithAReason) {
  LocalStore store;
  Hello hello = HelloOf(store.AddressOf(0));
  hello.version = 99;
  RawClient client(store.AddressOf(0));
  client.Send(Encode(Request{1, hello}));
  EXPECT_THAT(client.ReceiveReply().value, HasSubstr("protocol 99"));
}

TEST(Server, HangsUpOnASecondHelloAnOversizedFrameAndAMalformedOne) {
  LocalStore store;
  const std::string hello = Encode(Request{1, HelloOf(store.AddressOf(0))});
  for (const std::string& bad :
       {hello, std::string("\xff\xff\xff\x7f", 4), std::string("\1\0\0\0\x3f", 5), std::string(4, '\0')}) {
    RawClient client(store.AddressOf(0));
    client.Send(hello);
    EXPECT_EQ(client.ReceiveReply().status, DTRUN_OK);
    client.Send(bad);
    EXPECT_EQ(client.ReceiveAll(), "");
  }
}

TEST(Server, AnswersRequestsBehindAWaitBeforeTheWait) {
  LocalStore store;
  RawClient client(store.AddressOf(0));
  client.Send(Encode(Request{1, HelloOf(store.AddressOf(0))}) + Encode(Request{2, Get{"k", -1}}) +
              Encode(Request{3, TryGet{"x"}}) + Encode(Request{4, Set{"k", "v"}}));
  EXPECT_EQ(client.ReceiveReply().id, 1u);
  EXPECT_EQ(client.ReceiveReply().id, 3u);
  const Reply woken = client.ReceiveReply();
  EXPECT_EQ(woken.id, 2u);
  EXPECT_EQ(woken.value, "v");
  EXPECT_EQ(client.ReceiveReply().id, 4u);
}

TEST(Server, SurvivesAClientThatLeavesWhileItWaits) {
  LocalStore store;
  const std::string hello = Encode(Request{1, HelloOf(store.AddressOf(0))});
  RawClient client(store.AddressOf(0));
  client.Send(hello + Encode(Request{2, Get{"k", -1}}) + Encode(Request{3, WaitMany{{"k", "l"}, 1'000'000}}));
  EXPECT_EQ(client.ReceiveReply().id, 1u);
  client.HangUp();
  const auto other = store.Connect();
  ASSERT_TRUE(other->Space("")->Set("k", "v").ok());
  EXPECT_EQ(*other->Space("")->TryGet("k"), "v");
}

TEST(Server, DropsAClientThatAsksForMoreThanItReads) {
  LocalStore store;
  ASSERT_TRUE(store.Connect()->Space("")->Set("big", std::string(DTRUN_KV_MAX_VALUE_BYTES, 'v')).ok());
  RawClient client(store.AddressOf(0));
  std::string requests = Encode(Request{1, HelloOf(store.AddressOf(0))});
  for (std::uint32_t id = 2; id < 12; ++id) requests += Encode(Request{id, TryGet{"big"}});
  client.Send(requests);
  // Ten values were requested; the queue holds fewer than four.
  EXPECT_LT(client.ReceiveAll().size(), std::size_t{10} * DTRUN_KV_MAX_VALUE_BYTES);
  EXPECT_EQ(store.Connect()->Space("")->TryGet("big")->size(), std::size_t{DTRUN_KV_MAX_VALUE_BYTES});
}

TEST(JobKey, IsSixtyFourHexDigitsAndNeverTheSame) {
  const std::string key = NewJobKey();
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(key, NewJobKey());
}

}  // namespace
}  // namespace dtrun::store
