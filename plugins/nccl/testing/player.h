// The plugin and its ranks, with the raw communicator at hand for what conformance::Rank does
// not offer: groups and streams.
#pragma once

#include <functional>
#include <memory>

#include "sdk/conformance/subject.h"

namespace dtrun::nccl_test {

// A request on a stream; released on destruction.
class StreamRequest {
 public:
  StreamRequest(const dtrun_backend& table, dtrun_request* request) : table_(table), request_(request) {}
  ~StreamRequest() { table_.req_release(request_); }
  StreamRequest(const StreamRequest&) = delete;
  StreamRequest& operator=(const StreamRequest&) = delete;
  dtrun_request* get() const { return request_; }

 private:
  const dtrun_backend& table_;
  dtrun_request* const request_;
};

class Player {
 public:
  // Loads the plugin and makes an instance; throws std::runtime_error with the reason.
  explicit Player(const conformance::BackendUnderTest& backend) : subject_(backend) {}

  const dtrun_backend& table() const { return subject_.table(); }

  using Body = std::function<void(conformance::Rank&, dtrun_backend_comm*)>;
  // Plays `size` ranks of a fresh world on as many threads.
  void Play(int size, const Body& body) const;
  // Makes rank `rank` of a world; null when it fails.
  dtrun_backend_comm* Join(dtrun_kv* kv, int rank, int size, int host_count,
                           conformance::Outcome* outcome) const;

  // Starts `op` on a CUDA stream of device 0; null when it is refused.
  std::unique_ptr<StreamRequest> Start(dtrun_backend_comm* comm, const dtrun_op& op, void* stream) const;
  // Starts one without a request.
  conformance::Outcome StartDetached(dtrun_backend_comm* comm, const dtrun_op& op, void* stream) const;
  dtrun_status OrderAfter(const StreamRequest& request, void* stream) const;

 private:
  const conformance::Subject subject_;
};

}  // namespace dtrun::nccl_test
