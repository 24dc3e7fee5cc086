// A UCX worker, its endpoints and the messages that are under way on it.
//
// Owned by an Engine; one thread at a time, the one that drives the engine. Endpoints are made
// when a rank first exchanges something with another, in either direction: an endpoint is
// how this rank hears that the other is gone.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context.h"

namespace dtrun::ucx_plugin {

using Clock = sdk::Deadline::Clock;

// UCX matches messages by a 64-bit tag: 2 bits tell uses apart, 30 the sender, 32 the number of
// the collective or the user's tag.
inline constexpr int kSenderBits = 30;
enum class TagUse : std::uint64_t { kCollective = 1, kMessage = 2 };
constexpr ucp_tag_t MakeTag(TagUse use, int sender, std::uint32_t low) {
  return static_cast<std::uint64_t>(use) << 62 | static_cast<std::uint64_t>(sender) << 32 | low;
}
constexpr ucp_tag_t kWholeTag = ~ucp_tag_t{0};
constexpr ucp_tag_t kAnySender = ~(((ucp_tag_t{1} << kSenderBits) - 1) << 32);
constexpr int SenderOf(ucp_tag_t tag) { return static_cast<int>(tag >> 32 & ((1u << kSenderBits) - 1)); }

// One message. Stays where it is until it is done.
struct Transfer {
  int peer = -1;  // -1: from anyone
  bool sending = false;
  bool report = false;  // when done, goes to Worker::TakeFinished
  void* owner = nullptr;
  std::size_t bytes = 0;  // expected
  ucs_memory_type_t memory = UCS_MEMORY_TYPE_HOST;

  bool done = false;
  ucs_status_t status = UCS_INPROGRESS;
  ucp_tag_recv_info_t info{};  // of a message received
  void* request = nullptr;     // UCX's, while it is under way
  class Worker* worker = nullptr;
};

class Worker {
 public:
  // `address_of` gives the address of a rank, or "" when it has left, and may throw; `context`
  // outlives the worker.
  Worker(const Context& context, int rank, int size, std::function<std::string(int)> address_of);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::string Address() const;
  int event_fd() const { return event_fd_; }

  // Start a message; it may be done at once. Throw sdk::Failure when there is no way to the peer.
  // What a rank sent before it left can still be received.
  void Send(Transfer& transfer, ucp_tag_t tag, const void* data);
  void Recv(Transfer& transfer, ucp_tag_t tag, ucp_tag_t mask, void* data);
  // Whether anything happened.
  bool Progress() { return library_.worker_progress(worker_) != 0; }
  // False when there is something to do; otherwise event_fd becomes readable when there is.
  bool Arm() { return library_.worker_arm(worker_) == UCS_OK; }
  bool HasSends() const { return sends_ > 0; }
  bool HasMessages() const { return !under_way_.empty(); }
  // Those with `report` that are done since the last call.
  std::vector<Transfer*> TakeFinished() { return std::exchange(finished_, {}); }

  // An endpoint that broke, once for each.
  struct Lost {
    int peer;
    ucs_status_t status;
  };
  std::optional<Lost> TakeLost();

  // Ends every message and connection; afterwards no memory of a message is touched. False when
  // UCX did not let go of all in time.
  bool Shut(Clock::time_point deadline);
  // Lets what was sent arrive, unless `flags` (of UCP_EP_CLOSE) say otherwise, then closes the connections.
  void Close(Clock::time_point deadline, unsigned flags = 0);

  // Over what messages to the peer go, as UCX prints it: "tcp/eth0 posix/memory"; "" before the
  // first.
  std::string Route(int peer) const;
  // Of the communicator.
  Registrations& registrations() { return registrations_; }
  const Library& library() const { return library_; }

 private:
  struct Endpoint {
    Worker* worker = nullptr;
    int peer = -1;
    ucp_ep_h handle = nullptr;
  };
  ucp_ep_h Reach(int peer);  // null: it has left
  // Says what kind of memory the message is in, and its registration where there is one.
  void Describe(const Transfer& transfer, const void* data, ucp_request_param_t& param) const;
  void Started(Transfer& transfer, ucs_status_ptr_t request);
  void Finish(Transfer& transfer, ucs_status_t status);
  static void OnSent(void* request, ucs_status_t status, void* user_data);
  static void OnReceived(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* user_data);
  static void OnError(void* argument, ucp_ep_h endpoint, ucs_status_t status);

  const Library& library_;
  Registrations registrations_;
  const int rank_;
  const std::function<std::string(int)> address_of_;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  // by rank; null until used
  std::vector<Transfer*> under_way_;
  int sends_ = 0;  // of them
  std::vector<Transfer*> finished_;
  std::vector<Lost> lost_;
};

}  // namespace dtrun::ucx_plugin
