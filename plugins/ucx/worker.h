// A UCX worker, its endpoints and the messages that are under way on it.
//
// Owned by an Engine; one thread at a time, the one that drives the engine. Endpoints are made
// when a rank first exchanges something with another, in either direction: an endpoint is
// how this rank hears that the other is gone.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "context.h"

namespace dtrun::ucx_plugin {

using Clock = sdk::Deadline::Clock;

// UCX matches messages by a 64-bit tag: 2 bits tell uses apart, 30 the sender, 32 the collective (CallTag) or
// the user's tag.
inline constexpr int kSenderBits = 30;
enum class TagUse : std::uint64_t { kCollective = 1, kMessage = 2 };
constexpr ucp_tag_t MakeTag(TagUse use, int sender, std::uint32_t low) {
  return static_cast<std::uint64_t>(use) << 62 | static_cast<std::uint64_t>(sender) << 32 | low;
}
// 24 bits of the call's number, its kind, and three bits of what else all ranks give it except the count,
// which its messages tell themselves: a rank never takes a message of another call for one of its own.
constexpr std::uint32_t CallTag(const dtrun_op& op) {
  const int given = op.dtype + 3 * op.reduce + 5 * (op.root + 1);
  return static_cast<std::uint32_t>(op.sequence) << 8 | (static_cast<std::uint32_t>(op.kind) & 31) << 3 |
         (static_cast<std::uint32_t>(given) & 7);
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

// What this process lacks itself: UCX tells of it as of a resource, a device or a peer. Empty: nothing.
inline std::string OutOfFiles() {
  const int spare = dup(0);
  const bool out = spare < 0 && errno == EMFILE;
  if (spare >= 0) close(spare);
  rlimit files{};
  if (!out || getrlimit(RLIMIT_NOFILE, &files) != 0) return "";
  return "this process has too many open files: raise `ulimit -n`, which is " +
         std::to_string(files.rlim_cur);
}

// The same of /dev/shm, of which a worker takes several MiB.
inline std::string OutOfSharedMemory() {
  constexpr double kMiB = 1 << 20, kEnough = 16;
  struct statvfs room {};
  if (statvfs("/dev/shm", &room) != 0) room = {};
  const auto mebibytes = [&](fsblkcnt_t blocks) {
    return static_cast<double>(blocks) * static_cast<double>(room.f_frsize) / kMiB;
  };
  if (mebibytes(room.f_bavail) >= kEnough) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%.1f of %.1f MiB", mebibytes(room.f_bavail), mebibytes(room.f_blocks));
  return std::string("/dev/shm has ") + text +
         " free: give the container more shared memory (--shm-size=1g), or set backend.options.transports = "
         "\"tcp,self\"";
}

class Worker {
 public:
  // `address_of` gives the address of a rank, or "" when it has left, and may throw; `context`
  // outlives the worker.
  Worker(const Context& context, int rank, int size, std::function<std::string(int)> address_of)
      : library_(context.library()),
        registrations_(context),
        rank_(rank),
        address_of_(std::move(address_of)),
        endpoints_(static_cast<std::size_t>(size)) {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    // Different threads drive it, one at a time.
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    const sdk::BlockSignals block;  // UCX starts a thread
    if (const ucs_status_t made = library_.worker_create(context.get(), &params, &worker_); made != UCS_OK) {
      const std::string files = OutOfFiles();
      throw library_.Failed(made, "make a UCX worker", files.empty() ? OutOfSharedMemory() : files);
    }
    const ucs_status_t status = library_.worker_get_efd(worker_, &event_fd_);
    if (status == UCS_OK) return;
    library_.worker_destroy(worker_);
    library_.Check(status, "get the event descriptor of a UCX worker");
  }

  ~Worker() { library_.worker_destroy(worker_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::string Address() const {
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    library_.Check(library_.worker_get_address(worker_, &address, &bytes), "get the address of a UCX worker");
    std::string copy(reinterpret_cast<const char*>(address), bytes);
    library_.worker_release_address(worker_, address);
    return copy;
  }
  int event_fd() const { return event_fd_; }

  // Start a message; it may be done at once. Throw sdk::Failure when there is no way to the peer.
  // What a rank sent before it left can still be received.
  void Send(Transfer& transfer, ucp_tag_t tag, const void* data) {
    ucp_ep_h const endpoint = Reach(transfer.peer);
    if (endpoint == nullptr) {
      throw sdk::Failure(DTRUN_REMOTE_FAILURE, "rank " + std::to_string(transfer.peer) + " has left",
                         transfer.peer);
    }
    transfer.sending = true;
    transfer.worker = this;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = &Worker::OnSent;
    param.user_data = &transfer;
    Describe(transfer, data, param);
    Started(transfer, library_.tag_send_nbx(endpoint, data, transfer.bytes, tag, &param));
  }

  void Recv(Transfer& transfer, ucp_tag_t tag, ucp_tag_t mask, void* data) {
    if (transfer.peer >= 0) Reach(transfer.peer);
    transfer.worker = this;
    ucp_request_param_t param{};
    // UCX 1.13 leaves the length of a message out when a receive is complete at once.
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv = &Worker::OnReceived;
    param.user_data = &transfer;
    Describe(transfer, data, param);
    Started(transfer, library_.tag_recv_nbx(worker_, data, transfer.bytes, tag, mask, &param));
  }

  // Whether anything happened.
  bool Progress() { return library_.worker_progress(worker_) != 0; }
  // False when there is something to do; otherwise event_fd becomes readable when there is.
  bool Arm() { return library_.worker_arm(worker_) == UCS_OK; }
  bool HasSends() const { return sends_ > 0; }
  bool HasMessages() const { return !under_way_.empty(); }
  // Those with `report` that are done since the last call.
  std::vector<Transfer*> TakeFinished() { return std::exchange(finished_, {}); }

  // Endpoints that broke since the last call.
  struct Lost {
    int peer;
    ucs_status_t status;
  };
  std::vector<Lost> TakeLost() { return std::exchange(lost_, {}); }

  // Ends every message and connection; afterwards no memory of a message is touched. False when
  // UCX did not let go of all in time.
  bool Shut(Clock::time_point deadline) {
    for (Transfer* transfer : std::vector<Transfer*>(under_way_)) {
      if (!transfer->sending) library_.request_cancel(worker_, transfer->request);
    }
    Close(deadline, UCP_EP_CLOSE_FLAG_FORCE);
    while (!under_way_.empty() && Clock::now() < deadline) {
      if (!Progress()) sched_yield();
    }
    return under_way_.empty();
  }

  // Lets what was sent arrive, unless `flags` (of UCP_EP_CLOSE) say otherwise, then closes the connections.
  void Close(Clock::time_point deadline, unsigned flags = 0) {
    std::vector<ucs_status_ptr_t> closing;
    for (std::unique_ptr<Endpoint>& endpoint : endpoints_) {
      if (!endpoint || endpoint->handle == nullptr) continue;
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = flags;
      ucs_status_ptr_t const request = library_.ep_close_nbx(endpoint->handle, &param);
      // Kept until the worker goes, for error handlers that are still to be called.
      endpoint->handle = nullptr;
      if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
    }
    while (!closing.empty() && Clock::now() < deadline) {
      if (!Progress()) sched_yield();
      std::erase_if(closing, [&](ucs_status_ptr_t request) {
        if (library_.request_check_status(request) == UCS_INPROGRESS) return false;
        library_.request_free(request);
        return true;
      });
    }
    for (ucs_status_ptr_t request : closing) library_.request_free(request);
  }

  // Over what messages to the peer go, as UCX prints it: "tcp/eth0 posix/memory"; "" before the
  // first.
  // UCX 1.13 tells the lanes of an endpoint in print only: "#  lane[0]:  2:tcp/eth0.0 md[1] -> ...".
  std::string Route(int peer) const {
    const std::unique_ptr<Endpoint>& endpoint = endpoints_[static_cast<std::size_t>(peer)];
    if (!endpoint || endpoint->handle == nullptr) return "";
    char* text = nullptr;
    std::size_t size = 0;
    FILE* const stream = open_memstream(&text, &size);
    if (stream == nullptr) return "";
    library_.ep_print_info(endpoint->handle, stream);
    std::fclose(stream);
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    std::istringstream lines(text);
    std::string route;
    for (std::string line; std::getline(lines, line);) {
      const auto lane = line.find("lane[");
      if (lane == std::string::npos) continue;
      const auto begin = line.find_first_not_of("0123456789: ", line.find(':', lane));
      if (begin == std::string::npos) continue;
      std::string name = line.substr(begin, line.find(' ', begin) - begin);
      if (const auto path = name.rfind('.'); path != std::string::npos) name.erase(path);
      if (route.find(name) == std::string::npos) route.append(route.empty() ? "" : " ").append(name);
    }
    return route;
  }

  // Of the communicator.
  Registrations& registrations() { return registrations_; }
  const Library& library() const { return library_; }

 private:
  struct Endpoint {
    Worker* worker = nullptr;
    int peer = -1;
    ucp_ep_h handle = nullptr;
  };
  ucp_ep_h Reach(int peer) {
    std::unique_ptr<Endpoint>& place = endpoints_[static_cast<std::size_t>(peer)];
    if (place) return place->handle;
    const std::string address = address_of_(peer);
    if (address.empty()) return nullptr;
    auto endpoint = std::make_unique<Endpoint>(Endpoint{this, peer, nullptr});
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    // What carries messages to oneself cannot fail, and says that it cannot handle failures.
    params.err_mode = peer == rank_ ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &Worker::OnError;
    params.err_handler.arg = endpoint.get();
    const ucs_status_t status = library_.ep_create(worker_, &params, &endpoint->handle);
    if (status != UCS_OK) {
      if (address_of_(peer).empty()) return nullptr;  // it has left since
      if (const std::string lacks = OutOfFiles(); !lacks.empty())
        throw library_.Failed(status, "UCX cannot connect rank " + std::to_string(peer), lacks, DTRUN_SYSTEM);
      throw library_.Failed(
          status, "UCX cannot reach rank " + std::to_string(peer),
          "both hosts need a transport and a device in common, see the options transports and devices",
          DTRUN_REMOTE_FAILURE, peer);
    }
    place = std::move(endpoint);
    return place->handle;
  }  // null: it has left
  // Says what kind of memory the message is in, and its registration where there is one.
  void Describe(const Transfer& transfer, const void* data, ucp_request_param_t& param) const {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type = transfer.memory;
    param.memh = registrations_.Find(data, transfer.bytes);
    if (param.memh != nullptr) param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  }
  void Started(Transfer& transfer, ucs_status_ptr_t request) {
    if (transfer.done) return;  // the callback has been called, and has freed the request
    if (request == nullptr) return Finish(transfer, UCS_OK);
    if (UCS_PTR_IS_ERR(request)) return Finish(transfer, UCS_PTR_STATUS(request));
    transfer.request = request;
    under_way_.push_back(&transfer);
    if (transfer.sending) ++sends_;
  }
  void Finish(Transfer& transfer, ucs_status_t status) {
    transfer.status = status;
    transfer.done = true;
    if (transfer.report) finished_.push_back(&transfer);
  }
  static void OnSent(void* request, ucs_status_t status, void* user_data) {
    auto& transfer = *static_cast<Transfer*>(user_data);
    Worker& worker = *transfer.worker;
    if (std::erase(worker.under_way_, &transfer) > 0 && transfer.sending) --worker.sends_;
    transfer.request = nullptr;
    worker.library_.request_free(request);
    worker.Finish(transfer, status);
  }
  static void OnReceived(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* user_data) {
    static_cast<Transfer*>(user_data)->info = *info;
    OnSent(request, status, user_data);
  }
  // Called in the middle of UCX, which allows nothing but taking note here.
  static void OnError(void* argument, ucp_ep_h, ucs_status_t status) {
    const auto& endpoint = *static_cast<Endpoint*>(argument);
    endpoint.worker->lost_.push_back({endpoint.peer, status});
  }

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
