#include "subject.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include "load.h"
#include "own_process.h"
#include "rank_watch.h"
#include "stopwatch.h"
#include "text_check.h"
#include "values.h"

namespace dtrun::conformance {
namespace {

constexpr dtrun_group_params kGroup{sizeof(dtrun_group_params), 0};

std::runtime_error Broken(const std::string& what, const Outcome& outcome) {
  return std::runtime_error(what + ": " + outcome.text);
}

dtrun_mem_params MemoryOf(std::int32_t kind, std::uint64_t bytes, std::uint64_t alignment) {
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = bytes;
  params.alignment = alignment;
  params.device_kind = kind;
  params.device_index = kind == DTRUN_DEVICE_HOST ? -1 : 0;
  return params;
}

}  // namespace

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(request_, other.request_);
  return *this;
}

Pending::~Pending() {
  if (request_ == nullptr) return;
  table_->req_release(request_);
  EndIfCopied();
}

Outcome Pending::Wait(nanoseconds timeout) const {
  if (request_ == nullptr) return {};
  RankWatch::Doing("waits for a request", nullptr);
  return Ask([&](dtrun_error* error) { return table_->req_wait_host(request_, timeout.count(), error); });
}

Outcome Pending::Test(bool* done) const {
  *done = true;
  if (request_ == nullptr) return {};
  Outcome outcome = Ask([&](dtrun_error* error) { return table_->req_test(request_, error); });
  *done = outcome.code != DTRUN_PENDING;
  return *done ? outcome : Outcome{};
}

Outcome Pending::Poll() const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    bool done = false;
    Outcome outcome = Test(&done);
    if (done) return outcome;
    std::this_thread::yield();
  }
  return {DTRUN_TIMEOUT, -1, "polled in vain"};
}

const dtrun_backend* Rank::table() const { return &subject_.table(); }

Rank::~Rank() {
  const Stopwatch stopwatch;
  table()->comm_destroy(comm_);
  EndIfCopied();
  stopwatch.ExpectWithin(kDestroyBound, "comm_destroy (B21)");
}

std::unique_ptr<Pending> Rank::Start(dtrun_op op, Outcome* refusal) {
  if (op.kind != DTRUN_SEND && op.kind != DTRUN_RECV) op.sequence = ++sequence_;
  dtrun_request* const untouched = reinterpret_cast<dtrun_request*>(&op);
  dtrun_request* request = untouched;
  RankWatch::Doing("enqueues an operation", &op);
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table()->enqueue(comm_, &op, nullptr, &request, error); });
  if (refusal != nullptr) *refusal = outcome;
  if (outcome.code == DTRUN_PENDING) {
    if (refusal != nullptr) *refusal = {};
    if (request == untouched) request = nullptr;
    EXPECT_NE(request, nullptr) << "rank " << rank_ << ": DTRUN_PENDING came without a request (B6)";
    return std::make_unique<Pending>(table(), request);
  }
  EXPECT_EQ(request, untouched) << "rank " << rank_ << ": enqueue wrote to *out and returned status "
                                << outcome.code << ", which is not DTRUN_PENDING (B6, S14)";
  if (outcome.ok()) return std::make_unique<Pending>(table(), nullptr);
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
  dtrun_abort_params params;
  DTRUN_INIT(params);
  params.reason = {reason.c_str(), reason.size()};
  const Outcome outcome = Ask([&](dtrun_error* error) { return table()->comm_abort(comm_, &params, error); });
  EXPECT_TRUE(outcome.ok()) << outcome;
}

std::vector<std::string> Rank::Snapshot() const {
  std::vector<std::string> lines;
  dtrun_snapshot_sink sink;
  DTRUN_INIT(sink);
  sink.context = &lines;
  sink.line = [](void* context, dtrun_string text, dtrun_error*) -> dtrun_status {
    EXPECT_EQ(TextProblem(text), "") << "a line of snapshot (S15)";
    static_cast<std::vector<std::string>*>(context)->emplace_back(text.data == nullptr ? "" : text.data,
                                                                  text.size);
    return DTRUN_OK;
  };
  table()->snapshot(comm_, &sink);
  EndIfCopied();
  return lines;
}

Outcome Rank::GroupBegin() const {
  return Ask([&](dtrun_error* error) { return table()->group_begin(comm_, &kGroup, error); });
}
Outcome Rank::GroupEnd() const {
  return Ask([&](dtrun_error* error) { return table()->group_end(comm_, &kGroup, error); });
}

void* Rank::Alloc(std::uint64_t bytes) const {
  const dtrun_mem_params params = MemoryOf(DTRUN_DEVICE_HOST, bytes, 64);
  void* memory = nullptr;
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table()->mem_alloc(comm_, &params, &memory, error); });
  EXPECT_TRUE(outcome.ok()) << bytes << " bytes: " << outcome;
  return outcome.ok() ? memory : nullptr;
}
void Rank::Free(void* memory) const { table()->mem_free(comm_, memory); }
Outcome Rank::Register(void* memory, std::uint64_t bytes, std::int32_t device_kind) const {
  const dtrun_mem_params params = MemoryOf(device_kind, bytes, 0);
  return Ask([&](dtrun_error* error) { return table()->mem_register(comm_, &params, memory, error); });
}
void Rank::Deregister(void* memory) const { table()->mem_deregister(comm_, memory); }

std::unique_ptr<Rank> Rank::Further(const std::string& name, const std::vector<int>& members) const {
  auto kv = std::make_unique<PartKv>(kv_, "further/" + name + "/", true);
  kv->ranks = members;
  const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
  const int rank = static_cast<int>(place), size = static_cast<int>(members.size());
  Outcome outcome;
  std::unique_ptr<Rank> further =
      subject_.Create({kv.get(), rank, size, kPatience, Subject::Hosts::kGiven, this}, &outcome);
  EXPECT_NE(further, nullptr) << "rank " << rank << " of " << size << " of '" << name << "': " << outcome;
  if (further != nullptr) further->own_kv_ = std::move(kv);
  return further;
}

void Rank::Tell(const std::string& word) const { kv_->Set("suite/" + word, "told"); }

void Rank::Await(const std::string& word) const {
  RankWatch::Doing("waits for a word of another rank", nullptr);
  EXPECT_TRUE(kv_->WaitFor({"suite/" + word}, std::chrono::steady_clock::now() + kPatience))
      << "rank " << rank_ << " waited in vain for '" << word << "'";
}

bool Rank::IsTold(const std::string& word, std::chrono::milliseconds within) const {
  return kv_->WaitFor({"suite/" + word}, std::chrono::steady_clock::now() + within);
}

void Rank::Meet(const std::string& word) const {
  Tell(word + "/" + std::to_string(rank_));
  for (int other = 0; other < size_; ++other) Await(word + "/" + std::to_string(other));
}

std::int64_t Rank::Count(const std::string& word, std::int64_t amount) const {
  const std::string key = "suite/" + word;
  std::int64_t sum = 0;
  const dtrun_string name{key.c_str(), key.size()};
  const Outcome outcome = Ask([&](dtrun_error* error) {
    return KvService()->add(Host(DTRUN_KIND_BACKEND), kv_, name, amount, &sum, error);
  });
  EXPECT_TRUE(outcome.ok()) << outcome;
  return sum;
}

Subject::Subject(const BackendUnderTest& under_test)
    : process_(under_test.process), most_ranks_(under_test.most_ranks) {
  plugin_ = LoadPlugin(under_test.plugin, DTRUN_KIND_BACKEND);
  if (plugin_->backend == nullptr) throw std::runtime_error("the table has no backend");
  options_ = MakeOptions(*plugin_, under_test.options);
  const Outcome outcome = Ask([&](dtrun_error* error) {
    return sdk::InitPlugin(*plugin_, Host(DTRUN_KIND_BACKEND), options_.get(), &instance_, error);
  });
  if (!outcome.ok()) throw Broken("init", outcome);
  if (instance_ == nullptr) throw std::runtime_error("init returned DTRUN_OK and left *out untouched");
}

Subject::~Subject() {
  if (instance_ != nullptr) plugin_->shutdown(instance_);
  EndIfCopied();
}

dtrun_backend_caps Subject::Caps() const {
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table().query_caps(instance_, &caps, error); });
  if (!outcome.ok()) throw Broken("query_caps", outcome);
  return caps;
}

bool Subject::SumsAreLossy() const { return (Caps().features & DTRUN_CAP_LOSSY) != 0; }

bool Subject::Reduces(const dtrun_backend_caps& caps, std::int32_t dtype, std::int32_t reduce) const {
  if (!Has(caps.reduce_dtypes, dtype) || !Has(caps.reduces, reduce) || !HasMeaning(TypeOf(dtype), reduce))
    return false;
  if (table().query_support == nullptr) return true;
  dtrun_support_query query;
  DTRUN_INIT(query);
  query.kind = DTRUN_ALLREDUCE;
  query.dtype = dtype;
  query.reduce = reduce;
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table().query_support(instance_, &query, error); });
  if (!outcome.ok() && outcome.code != DTRUN_UNSUPPORTED) throw Broken("query_support", outcome);
  return outcome.ok();
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
  sink.fact = [](void* context, const char* key, dtrun_string text, dtrun_error*) -> dtrun_status {
    const std::string name = key == nullptr ? "" : key;
    EXPECT_EQ(TextProblem(key), "") << "the key of fact '" << name << "' (B26, S15)";
    EXPECT_NE(name, "") << "a fact has no key (B26)";
    EXPECT_EQ(TextProblem(text), "") << "the text of fact '" << name << "' (S15)";
    static_cast<Launch*>(context)->facts[name] =
        std::string(text.data == nullptr ? "" : text.data, text.size);
    return DTRUN_OK;
  };
  sink.env = [](void* context, const char* name, const char* value, dtrun_error*) -> dtrun_status {
    const std::string variable = name == nullptr ? "" : name;
    EXPECT_TRUE(!variable.empty() && variable.find('=') == variable.npos)
        << "a variable is called '" << variable << "' (B26)";
    EXPECT_NE(value, nullptr) << "the value of '" << variable << "' is NULL (B26)";
    EXPECT_TRUE(value == nullptr || IsUtf8(value)) << "the value of '" << variable << "' is no UTF-8 (S15)";
    static_cast<Launch*>(context)->env[variable] = value == nullptr ? "" : value;
    return DTRUN_OK;
  };
  const Outcome outcome =
      Ask([&](dtrun_error* error) { return table().launch_info(instance_, &query, &sink, error); });
  if (!outcome.ok()) throw Broken("launch_info", outcome);
  return launch;
}

std::unique_ptr<Rank> Subject::Create(const Making& making, Outcome* outcome) const {
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = making.rank;
  params.size = making.size;
  params.host_count = 1;
  const std::vector<std::int32_t> hosts(static_cast<std::size_t>(making.size), 0);
  if (making.hosts == Hosts::kGiven) params.hosts = hosts.data();
  params.local_rank = making.rank;
  params.device_kind = DTRUN_DEVICE_HOST;
  params.device_index = -1;
  params.name = {"world", 5};
  params.local_processors = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  params.kv = making.kv;
  params.timeout_ns = making.timeout.count();
  if (making.parent != nullptr) {
    params.parent = making.parent->raw();
    params.parent_ranks = making.kv->ranks.data();
  }
  dtrun_backend_comm* comm = nullptr;
  *outcome = Ask([&](dtrun_error* error) { return table().comm_create(instance_, &params, &comm, error); });
  if (outcome->ok() && comm == nullptr) {
    ADD_FAILURE() << "comm_create returned DTRUN_OK and left *out untouched (B17)";
    *outcome = {DTRUN_INTERNAL, -1, "comm_create made no communicator"};
  }
  if (!outcome->ok()) {
    if (outcome->code != DTRUN_TIMEOUT)
      SetInVain(making.kv->Making(), {outcome->peer, "rank " + std::to_string(making.rank) +
                                                         " cannot make the communicator: " + outcome->text});
    return nullptr;
  }
  return std::make_unique<Rank>(*this, comm, making.kv, making.rank, making.size);
}

std::unique_ptr<Rank> Subject::Join(dtrun_kv* kv, int rank, int size, nanoseconds timeout, Outcome* outcome,
                                    Hosts known) const {
  return Create({kv, rank, size, timeout, known, nullptr}, outcome);
}

void Subject::Play(int size, const std::function<void(Rank&)>& body) const {
  PlayWithoutJoining(size, [&](dtrun_kv* kv, int rank) {
    Outcome outcome;
    const std::unique_ptr<Rank> member = Join(kv, rank, size, kPatience, &outcome);
    if (member == nullptr) {
      ADD_FAILURE() << "rank " << rank << " could not join: " << outcome;
      return;
    }
    body(*member);
  });
}

void Subject::PlayWithoutJoining(int size, const std::function<void(dtrun_kv* kv, int rank)>& body) const {
  const int run = ++runs_;
  if (most_ranks_ > 0 && size > most_ranks_) {
    wanted_ = size;
    return;
  }
  if (process_.size > 1 && process_.size == size) {
    played_ = true;
    FolderKv kv(process_.folder + "/" + case_ + "." + std::to_string(run));
    return body(&kv, process_.rank);
  }
  if (process_.size != 0 && process_.size != size) {
    wanted_ = size;
    return;
  }
  played_ = true;
  ThreadKv kv;
  RankWatch watch(case_, size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      watch.Enter(rank);
      try {
        body(&kv, rank);
      } catch (const std::exception& error) {
        RankWatch::EndProcess(rank, error);
      }
      watch.Leave(rank);
    });
  }
  watch.Await(RankTimeLimit());
  for (std::thread& thread : threads) thread.join();
}

bool Subject::TakePlayed(int* wanted) {
  *wanted = std::exchange(wanted_, 0);
  return std::exchange(played_, false);
}

void Subject::EnterCase(const std::string& name) {
  case_ = name;
  runs_ = 0;
}

}  // namespace dtrun::conformance
