#include "core/store/relay.h"

#include <gtest/gtest.h>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "core/store/protocol.h"
#include "core/store/server.h"
#include "core/store/testing/local_store.h"

namespace dtrun::store {
namespace {

// A store with ranks behind a relay; both ends on one loop and thread.
class FarStore {
 public:
  FarStore() : server_(key_, 0, {}) {
    char name[] = "/tmp/dtrun-relay-XXXXXX";
    folder_ = ::mkdtemp(name);
    near_.emplace(loop_, Relay::Wire{[this](std::uint32_t client) { server_.Serve(*far_->Open(client)); },
                                     [this](std::uint32_t client, std::string_view bytes) {
                                       far_->Data(client, bytes);
                                     },
                                     [this](std::uint32_t client) { far_->Close(client); }});
    far_.emplace(loop_, Relay::Wire{{},
                                    [this](std::uint32_t client, std::string_view bytes) {
                                      near_->Data(client, bytes);
                                    },
                                    [this](std::uint32_t client) { near_->Close(client); }});
    listener_ = std::move(Listener::Listen(loop_, folder_ / "store", [this](Socket client) {
                  near_->Enter(std::move(client));
                })).value();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~FarStore() {
    loop_.stop();
    thread_.join();
    listener_.reset();
    std::filesystem::remove_all(folder_);
  }
  Result<std::shared_ptr<Client>> Connect(int rank, const std::string& key) {
    return Client::Connect({folder_ / "store", key, 0, rank});
  }
  const std::string& key() const { return key_; }

 private:
  boost::asio::io_context loop_;
  const std::string key_ = NewJobKey();
  Server server_;
  std::optional<Relay> near_, far_;
  std::filesystem::path folder_;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

TEST(Relay, LetsRanksElsewhereSeeOneStore) {
  FarStore store;
  auto first = store.Connect(0, store.key());
  auto second = store.Connect(1, store.key());
  ASSERT_TRUE(first && second);
  const auto writes = (*first)->Space("p/");
  const auto reads = (*second)->Space("p/");
  const std::string large(1 << 20, 'x');
  ASSERT_TRUE(writes->Set("key", large).ok());
  EXPECT_EQ(*reads->Get("key", std::chrono::nanoseconds(-1)), large);
}

TEST(Relay, CarriesARefusalAndTheEndBehindIt) {
  FarStore store;
  const auto client = store.Connect(0, NewJobKey());
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().text.find("refused the job key"), std::string::npos) << client.error().text;
}

TEST(Relay, TellsTheOtherEndWhenAClientLeaves) {
  boost::asio::io_context loop;
  std::vector<std::uint32_t> opened, closed;
  Relay relay(
      loop, {[&](std::uint32_t client) { opened.push_back(client); }, [](std::uint32_t, std::string_view) {},
             [&](std::uint32_t client) {
               closed.push_back(client);
               loop.stop();
             }});
  Socket ours(loop), theirs(loop);
  boost::asio::local::connect_pair(ours, theirs);
  relay.Enter(std::move(theirs));
  ours.close();
  loop.run();
  EXPECT_EQ(opened, closed);
  EXPECT_EQ(closed.size(), 1u);
  relay.Data(closed[0], "late");  // ignored
}

TEST(Relay, DropsAClientThatReadsNothing) {
  boost::asio::io_context loop;
  int closed = 0;
  Relay relay(
      loop, {[](std::uint32_t) {}, [](std::uint32_t, std::string_view) {}, [&](std::uint32_t) { ++closed; }});
  Socket ours(loop), theirs(loop);
  boost::asio::local::connect_pair(ours, theirs);
  relay.Enter(std::move(theirs));
  const std::string answer(kMaxValueBytes, 'x');
  for (std::size_t sent = 0; sent <= kMaxQueuedBytes; sent += answer.size()) {
    EXPECT_EQ(closed, 0);
    relay.Data(1, answer);
  }
  EXPECT_EQ(closed, 1);
  relay.Data(1, answer);  // ignored
}

}  // namespace
}  // namespace dtrun::store
