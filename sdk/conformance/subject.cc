#include "subject.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <utility>

namespace dtrun::conformance {
namespace {

Outcome Read(dtrun_status status, const dtrun_error& error) {
  if (status == DTRUN_OK) return {};
  return {status, error.peer, error.message};
}

// Calls with a fresh error and reads it.
template <class Call>
Outcome Ask(Call&& call) {
  dtrun_error error;
  DTRUN_INIT(error);
  error.peer = -1;
  const dtrun_status status = call(&error);
  return Read(status, error);
}

std::runtime_error Broken(const std::string& what, const Outcome& outcome) {
  return std::runtime_error(what + ": " + outcome.text);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << "status " << outcome.code << ", peer " << outcome.peer << ": " << outcome.text;
}

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(request_, other.request_);
  return *this;
}

Pending::~Pending() {
  if (request_ != nullptr) table_->req_release(request_);
}

Outcome Pending::Wait(nanoseconds timeout) const {
  return Ask([&](dtrun_error* error) { return table_->req_wait_host(request_, timeout.count(), error); });
}

Outcome Pending::Test(bool* done) const {
  std::int32_t flag = 0;
  const Outcome outcome = Ask([&](dtrun_error* error) { return table_->req_test(request_, &flag, error); });
  *done = flag != 0;
  return outcome;
}

Outcome Pending::Poll() const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    bool done = false;
    const Outcome outcome = Test(&done);
    if (done) return outcome;
    std::this_thread::yield();
  }
  return {DTRUN_TIMEOUT, -1, "polled in vain"};
}

std::unique_ptr<Pending> Rank::Start(dtrun_op op, Outcome* refusal) {
  if (op.kind != DTRUN_SEND && op.kind != DTRUN_RECV) op.sequence = ++sequence_;
  dtrun_request* request = nullptr;
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table_->enqueue(comm_, &op, nullptr, &request, error); });
  if (refusal != nullptr) *refusal = outcome;
  if (outcome.ok()) return std::make_unique<Pending>(table_, request);
  if (refusal == nullptr) ADD_FAILURE() << "rank " << rank_ << ": enqueue failed: " << outcome;
  return nullptr;
}

Outcome Rank::Do(const dtrun_op& op) {
  Outcome refusal;
  const std::unique_ptr<Pending> pending = Start(op, &refusal);
  return pending ? pending->Wait() : refusal;
}

Outcome Rank::Barrier() { return Do(MakeOp(DTRUN_BARRIER)); }

void Rank::Abort(const std::string& reason) const {
  table_->comm_abort(comm_, dtrun_string{reason.c_str(), reason.size()});
}

std::vector<std::string> Rank::Snapshot() const {
  std::vector<std::string> lines;
  dtrun_snapshot_sink sink;
  DTRUN_INIT(sink);
  sink.context = &lines;
  sink.line = [](void* context, dtrun_string text) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(text.data, text.size);
  };
  table_->snapshot(comm_, &sink);
  return lines;
}

Subject::Subject(const BackendUnderTest& under_test) {
  void* const image = dlopen(under_test.plugin.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (image == nullptr) throw std::runtime_error(std::string("load the plugin: ") + dlerror());
  const auto entry = reinterpret_cast<dtrun_plugin_entry>(dlsym(image, DTRUN_PLUGIN_ENTRY_SYMBOL));
  if (entry == nullptr) throw std::runtime_error(under_test.plugin + " has no " DTRUN_PLUGIN_ENTRY_SYMBOL);
  Outcome outcome = Ask([&](dtrun_error* error) { return entry(Host(), &plugin_, error); });
  if (!outcome.ok()) throw Broken("entry", outcome);
  options_ = MakeOptions(*plugin_, under_test.options);
  outcome = Ask([&](dtrun_error* error) { return plugin_->init(Host(), options_.get(), &instance_, error); });
  if (!outcome.ok()) throw Broken("init", outcome);
}

Subject::~Subject() {
  if (instance_ != nullptr) plugin_->shutdown(instance_);
}

dtrun_backend_caps Subject::Caps() const {
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table().query_caps(instance_, &caps, error); });
  if (!outcome.ok()) throw Broken("query_caps", outcome);
  return caps;
}

Subject::Launch Subject::LaunchInfo(int host_count) const {
  Launch launch;
  dtrun_launch_query query;
  DTRUN_INIT(query);
  query.host_count = host_count;
  query.local_ranks = 1;
  dtrun_launch_sink sink;
  DTRUN_INIT(sink);
  sink.context = &launch;
  sink.fact = [](void* context, const char* key, const char* value) {
    static_cast<Launch*>(context)->facts[key] = value;
  };
  sink.env = [](void* context, const char* name, const char* value) {
    static_cast<Launch*>(context)->env[name] = value;
  };
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table().launch_info(instance_, &query, &sink, error); });
  if (!outcome.ok()) throw Broken("launch_info", outcome);
  return launch;
}

std::unique_ptr<Rank> Subject::Join(dtrun_kv* kv, int rank, int size, nanoseconds timeout,
                                    Outcome* outcome) const {
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = rank;
  params.size = size;
  params.host_count = 1;
  params.name = {"world", 5};
  params.kv = kv;
  params.timeout_ns = timeout.count();
  dtrun_backend_comm* comm = nullptr;
  *outcome = Ask([&](dtrun_error* error) { return table().comm_create(instance_, &params, &comm, error); });
  if (!outcome->ok()) return nullptr;
  return std::make_unique<Rank>(&table(), comm, rank, size);
}

void Subject::Play(int size, const std::function<void(Rank&)>& body) const {
  ThreadKv kv;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome outcome;
      const std::unique_ptr<Rank> member = Join(&kv, rank, size, kPatience, &outcome);
      if (member == nullptr) {
        ADD_FAILURE() << "rank " << rank << " could not join: " << outcome;
        return;
      }
      body(*member);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

dtrun_op MakeOp(std::int32_t kind) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.root = -1;
  op.peer = -1;
  op.timeout_ns = -1;
  return op;
}

dtrun_op AllreduceOp(const void* send, void* recv, std::uint64_t count, std::int32_t dtype,
                     std::int32_t reduce) {
  dtrun_op op = MakeOp(DTRUN_ALLREDUCE);
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  op.reduce = reduce;
  return op;
}

dtrun_op SendOp(const void* send, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag) {
  dtrun_op op = MakeOp(DTRUN_SEND);
  op.send = send;
  op.count = count;
  op.dtype = dtype;
  op.peer = peer;
  op.tag = tag;
  return op;
}

dtrun_op RecvOp(void* recv, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag) {
  dtrun_op op = MakeOp(DTRUN_RECV);
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  op.peer = peer;
  op.tag = tag;
  return op;
}

}  // namespace dtrun::conformance
