#include "worker.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

namespace dtrun::ucx_plugin {

using sdk::Failure;

namespace {

// What this process lacks itself: UCX tells of it as of a resource, a device or a peer. Empty: nothing.
std::string OutOfFiles() {
  const int spare = dup(0);
  const bool out = spare < 0 && errno == EMFILE;
  if (spare >= 0) close(spare);
  rlimit files{};
  if (!out || getrlimit(RLIMIT_NOFILE, &files) != 0) return "";
  return "this process has too many open files: raise `ulimit -n`, which is " + std::to_string(files.rlim_cur);
}

// The same of /dev/shm, of which a worker takes several MiB.
std::string OutOfSharedMemory() {
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

}  // namespace

Worker::Worker(const Context& context, int rank, int size, std::function<std::string(int)> address_of)
    : library_(context.library()),
      registrations_(context),
      rank_(rank),
      address_of_(std::move(address_of)),
      endpoints_(static_cast<std::size_t>(size)) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Different threads drive it, one at a time.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const ucs_status_t made = library_.worker_create(context.get(), &params, &worker_); made != UCS_OK) {
    const std::string files = OutOfFiles(), lacks = files.empty() ? OutOfSharedMemory() : files;
    throw Failure(DTRUN_VENDOR, "make a UCX worker: " + library_.StatusText(made) + Library::TakeLastWords() +
                                    (lacks.empty() ? "" : "; " + lacks))
        .Vendor("ucx", made);
  }
  const ucs_status_t status = library_.worker_get_efd(worker_, &event_fd_);
  if (status == UCS_OK) return;
  library_.worker_destroy(worker_);
  library_.Check(status, "get the event descriptor of a UCX worker");
}

Worker::~Worker() { library_.worker_destroy(worker_); }

std::string Worker::Address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  library_.Check(library_.worker_get_address(worker_, &address, &bytes), "get the address of a UCX worker");
  std::string copy(reinterpret_cast<const char*>(address), bytes);
  library_.worker_release_address(worker_, address);
  return copy;
}

ucp_ep_h Worker::Reach(int peer) {
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
    if (const std::string lacks = OutOfFiles(); !lacks.empty()) {
      throw Failure(DTRUN_SYSTEM, "UCX cannot connect rank " + std::to_string(peer) + ": " +
                                      library_.StatusText(status) + Library::TakeLastWords() + "; " + lacks)
          .Vendor("ucx", status);
    }
    throw Failure(DTRUN_REMOTE_FAILURE,
                  "UCX cannot reach rank " + std::to_string(peer) + ": " + library_.StatusText(status) +
                      Library::TakeLastWords() +
                      "; both hosts need a transport and a device in common, see the options transports "
                      "and devices",
                  peer)
        .Vendor("ucx", status);
  }
  place = std::move(endpoint);
  return place->handle;
}

void Worker::Describe(const Transfer& transfer, const void* data, ucp_request_param_t& param) const {
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = transfer.memory;
  param.memh = registrations_.Find(data, transfer.bytes);
  if (param.memh != nullptr) param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
}

void Worker::Send(Transfer& transfer, ucp_tag_t tag, const void* data) {
  ucp_ep_h const endpoint = Reach(transfer.peer);
  if (endpoint == nullptr) {
    throw Failure(DTRUN_REMOTE_FAILURE, "rank " + std::to_string(transfer.peer) + " has left", transfer.peer);
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

void Worker::Recv(Transfer& transfer, ucp_tag_t tag, ucp_tag_t mask, void* data) {
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

void Worker::Started(Transfer& transfer, ucs_status_ptr_t request) {
  if (transfer.done) return;  // the callback has been called, and has freed the request
  if (request == nullptr) return Finish(transfer, UCS_OK);
  if (UCS_PTR_IS_ERR(request)) return Finish(transfer, UCS_PTR_STATUS(request));
  transfer.request = request;
  under_way_.push_back(&transfer);
  if (transfer.sending) ++sends_;
}

void Worker::Finish(Transfer& transfer, ucs_status_t status) {
  transfer.status = status;
  transfer.done = true;
  if (transfer.report) finished_.push_back(&transfer);
}

void Worker::OnSent(void* request, ucs_status_t status, void* user_data) {
  auto& transfer = *static_cast<Transfer*>(user_data);
  Worker& worker = *transfer.worker;
  if (std::erase(worker.under_way_, &transfer) > 0 && transfer.sending) --worker.sends_;
  transfer.request = nullptr;
  worker.library_.request_free(request);
  worker.Finish(transfer, status);
}

void Worker::OnReceived(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                        void* user_data) {
  static_cast<Transfer*>(user_data)->info = *info;
  OnSent(request, status, user_data);
}

// Called in the middle of UCX, which allows nothing but taking note here.
void Worker::OnError(void* argument, ucp_ep_h, ucs_status_t status) {
  const auto& endpoint = *static_cast<Endpoint*>(argument);
  endpoint.worker->lost_.push_back({endpoint.peer, status});
}

std::optional<Worker::Lost> Worker::TakeLost() {
  if (lost_.empty()) return std::nullopt;
  const Lost first = lost_.front();
  lost_.erase(lost_.begin());
  return first;
}

void Worker::Close(Clock::time_point deadline, unsigned flags) {
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

bool Worker::Shut(Clock::time_point deadline) {
  for (Transfer* transfer : std::vector<Transfer*>(under_way_)) {
    if (!transfer->sending) library_.request_cancel(worker_, transfer->request);
  }
  Close(deadline, UCP_EP_CLOSE_FLAG_FORCE);
  while (!under_way_.empty() && Clock::now() < deadline) {
    if (!Progress()) sched_yield();
  }
  return under_way_.empty();
}

// UCX 1.13 tells the lanes of an endpoint in print only: "#  lane[0]:  2:tcp/eth0.0 md[1] -> ...".
std::string Worker::Route(int peer) const {
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

}  // namespace dtrun::ucx_plugin
