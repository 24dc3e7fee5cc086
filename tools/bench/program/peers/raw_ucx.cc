// A rank of `dtrun bench` that calls UCX directly: tagged messages of UCP with UCX's own settings.
//
//   raw_ucx SOCKET FOLDER    ranks leave their addresses in FOLDER; dtrun starts it
//
// UCX has no collectives. This allreduce is a straightforward implementation: recursive doubling of whole
// vectors up to 16 KiB, a ring above (R. Thakur et al., Optimization of collective communication operations
// in MPICH, 2005, sections 4.5 and 4.6), with one message each way per step. Reductions use dtrun's kernels,
// so the columns differ only in data transport.
#include <ucp/api/ucp.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "core/contract/environment.h"
#include "dtrun/kernels.hpp"
#include "tools/bench/program/peer.h"

namespace dtrun::bench {
namespace {

constexpr std::size_t kDoublingBytes = 16 << 10;

void Require(ucs_status_t status, const char* what) {
  if (status != UCS_OK) throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
}

class UcxPeer : public Peer {
 public:
  explicit UcxPeer(std::filesystem::path folder)
      : rank_(RankVariable(contract::kRank)),
        ranks_(RankVariable(contract::kWorldSize)),
        folder_(std::move(folder)) {
    ucp_params_t context{};
    context.field_mask = UCP_PARAM_FIELD_FEATURES;
    context.features = UCP_FEATURE_TAG;
    Require(ucp_init(&context, nullptr, &context_), "ucp_init");
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    Require(ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");
    Publish();
    for (int peer = 0; peer < ranks_; ++peer) endpoints_.push_back(peer == rank_ ? nullptr : Connect(peer));
    Barrier();
  }
  // Does not notify the others: the end of the run ends all ranks.
  ~UcxPeer() override {
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  UcxPeer(const UcxPeer&) = delete;
  UcxPeer& operator=(const UcxPeer&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string description() const override {
    return std::string("UCX ") + ucp_get_version_string() + ", tagged messages";
  }

  void Run(const Call& call) override {
    switch (call.operation) {
      case Operation::kAllreduce: return Allreduce(call);
      case Operation::kSendrecv:
        return Exchange(At(1), call.send, call.shape.bytes, At(-1), call.recv, call.shape.bytes);
      case Operation::kBarrier: return Barrier();
      default: throw Unsupported("UCX has no collectives; this program has allreduce, sendrecv and barrier");
    }
  }

  void Barrier() override {
    char nothing = 0, received = 0;
    for (int distance = 1; distance < ranks_; distance *= 2)
      Exchange(At(distance), &nothing, 1, At(-distance), &received, 1);
  }

 private:
  int At(int offset) const { return (rank_ + offset % ranks_ + ranks_) % ranks_; }

  void Publish() const {
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    Require(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
    const std::filesystem::path file = AddressOf(rank_), whole = file.string() + ".new";
    std::ofstream(whole, std::ios::binary)
        .write(reinterpret_cast<const char*>(address), static_cast<std::streamsize>(bytes));
    std::filesystem::rename(whole, file);
    ucp_worker_release_address(worker_, address);
  }

  std::filesystem::path AddressOf(int peer) const { return folder_ / ("ucx" + std::to_string(peer)); }

  ucp_ep_h Connect(int peer) const {
    while (!std::filesystem::exists(AddressOf(peer))) std::this_thread::yield();
    std::ifstream in(AddressOf(peer), std::ios::binary);
    const std::vector<char> address{std::istreambuf_iterator<char>(in), {}};
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    ucp_ep_h endpoint = nullptr;
    Require(ucp_ep_create(worker_, &params, &endpoint), "ucp_ep_create");
    return endpoint;
  }

  void Wait(ucs_status_ptr_t request) const {
    if (request == nullptr) return;  // completed immediately
    if (UCS_PTR_IS_ERR(request)) Require(UCS_PTR_STATUS(request), "a message of UCX");
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
    Require(status, "a message of UCX");
  }

  // Messages between two ranks arrive in order, so the sender suffices as the tag.
  void Exchange(int to, const void* out, std::size_t out_bytes, int from, void* in,
                std::size_t in_bytes) const {
    const ucp_request_param_t plain{};
    const ucs_status_ptr_t receiving =
        ucp_tag_recv_nbx(worker_, in, in_bytes, static_cast<ucp_tag_t>(from), ~ucp_tag_t{0}, &plain);
    const ucs_status_ptr_t sending = ucp_tag_send_nbx(endpoints_[static_cast<std::size_t>(to)], out,
                                                      out_bytes, static_cast<ucp_tag_t>(rank_), &plain);
    Wait(sending);
    Wait(receiving);
  }

  void Allreduce(const Call& call) {
    if (ranks_ == 1 || call.shape.bytes > kDoublingBytes || (ranks_ & (ranks_ - 1)) != 0) return Ring(call);
    theirs_.resize(call.shape.bytes);
    std::memcpy(call.recv, call.send, call.shape.bytes);
    for (int bit = 1; bit < ranks_; bit *= 2) {
      const int peer = rank_ ^ bit;
      Exchange(peer, call.recv, call.shape.bytes, peer, theirs_.data(), call.shape.bytes);
      Add(call, call.recv, theirs_.data(), call.shape.count);
    }
  }

  void Ring(const Call& call) {
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::size_t width = call.element.size;
    const auto begin = [&](int block) { return call.shape.count * static_cast<std::size_t>(block) / ranks; };
    const auto size = [&](int block) { return begin(block + 1) - begin(block); };
    auto* const result = static_cast<std::byte*>(call.recv);
    theirs_.resize((call.shape.count / ranks + 1) * width);
    std::memcpy(result, call.send, call.shape.bytes);
    for (int step = 0; step < ranks_ - 1; ++step) {
      const int give = At(-step), take = At(-step - 1);
      Exchange(At(1), result + begin(give) * width, size(give) * width, At(-1), theirs_.data(),
               size(take) * width);
      Add(call, result + begin(take) * width, theirs_.data(), size(take));
    }
    for (int step = 0; step < ranks_ - 1; ++step) {
      const int give = At(1 - step), take = At(-step);
      Exchange(At(1), result + begin(give) * width, size(give) * width, At(-1), result + begin(take) * width,
               size(take) * width);
    }
  }

  static void Add(const Call& call, void* to, const void* what, std::size_t count) {
    const void* const sources[] = {to, what};
    kernels::ReduceFor(call.element.dtype, DTRUN_SUM)(to, sources, 2, count);
  }

  const int rank_, ranks_;
  const std::filesystem::path folder_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<ucp_ep_h> endpoints_;
  std::vector<std::byte> theirs_;
};

}  // namespace
}  // namespace dtrun::bench

int main(int argc, char** argv) {
  return dtrun::bench::ServeAsRank(argc, argv, [](int count, char** words) -> dtrun::bench::Peer* {
    if (count != 1) throw std::runtime_error("expected a folder; see dtrun bench --help");
    return new dtrun::bench::UcxPeer(words[0]);
  });
}
