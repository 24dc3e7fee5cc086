#include "core/comm/trace_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/contract/environment.h"
#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::comm {
namespace {

using contract::TraceRecord;
using contract::TraceType;

constexpr std::chrono::milliseconds kTracePeriod{contract::kTracePeriodMs};
constexpr std::int64_t kPatienceAtEnd = 1'000'000'000;

std::int64_t TimeOf(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void AppendRecord(const TraceRecord& record, std::string* out) {
  out->append(reinterpret_cast<const char*>(&record), sizeof record);
}

// As many records as the text needs.
void AppendText(TraceRecord record, std::string_view text, std::string* out) {
  do {
    record.SetText(text);
    text.remove_prefix(std::min(text.size(), TraceRecord::kTextBytes));
    AppendRecord(record, out);
  } while (!text.empty());
}

std::atomic<TraceWriter*>& OpenWriter() {
  static std::atomic<TraceWriter*> open{nullptr};
  return open;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::Open(const std::filesystem::path& pipe, std::uint64_t limit,
                                                       std::uint64_t generation) {
  UniqueFd end(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!end) return Error::System(fmt::format("open the pipe '{}' to the agent", pipe.string()), errno);
  std::unique_ptr<TraceWriter> writer(new TraceWriter(std::move(end), limit, generation));
  // A program may end without dtrun_finalize.
  static const int at_exit = std::atexit(&TraceWriter::FinishAtExit);
  static_cast<void>(at_exit);
  OpenWriter() = writer.get();
  return writer;
}

std::unique_ptr<TraceWriter> OpenTrace(const Environment& environment, void (*warn)(const std::string&)) {
  const Environment& e = environment;
  if (e.trace_bytes == 0) return nullptr;
  const auto pipe = std::filesystem::path(e.store).replace_filename(contract::TracePipe(e.local_rank));
  auto writer = TraceWriter::Open(pipe, e.trace_bytes, e.generation);
  if (writer) return *std::move(writer);
  warn(fmt::format("the calls of rank {} will not be in its trace: {}", e.rank, writer.error().text));
  return nullptr;
}

TraceWriter::TraceWriter(UniqueFd pipe, std::uint64_t limit, std::uint64_t generation)
    : id_([] {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
      }()),
      pid_(::getpid()),
      pipe_(std::move(pipe)),
      left_(limit) {
  TraceRecord begin;
  begin.type = TraceType::kBegin;
  begin.thread = contract::kTraceMagic;
  begin.bytes = contract::kTraceVersion;
  begin.number = static_cast<std::uint64_t>(pid_);
  begin.start = TimeOf(CLOCK_MONOTONIC);
  begin.given = TimeOf(CLOCK_REALTIME);
  begin.end = static_cast<std::int64_t>(generation);
  AppendRecord(begin, &names_);
  const sdk::BlockSignals block;  // the program's signals stay with its own threads; SIGPIPE is of none
  thread_ = std::thread([this] { Run(); });
}

TraceWriter::~TraceWriter() {
  TraceWriter* self = this;
  OpenWriter().compare_exchange_strong(self, nullptr);
  Finish();
}

void TraceWriter::FinishAtExit() {
  TraceWriter* const open = OpenWriter().exchange(nullptr);
  if (open != nullptr && open->pid_ == ::getpid()) open->Finish();  // a forked child has no such thread
}

void TraceWriter::Finish() {
  const std::lock_guard once(finishing_);
  if (!thread_.joinable()) return;
  until_ = TimeOf(CLOCK_MONOTONIC) + kPatienceAtEnd;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::uint16_t TraceWriter::AddCommunicator(const std::string& name, const std::string& backend, int rank,
                                           int size) {
  const std::lock_guard lock(mutex_);
  TraceRecord record;
  record.type = TraceType::kCommunicator;
  record.communicator = ++communicators_;
  record.peer = rank;
  record.thread = static_cast<std::uint32_t>(size);
  AppendText(record, name + "\n" + backend, &names_);
  return communicators_;
}

TraceWriter::Buffer& TraceWriter::BufferHere() {
  static thread_local Owner here;
  if (here.writer == id_) [[likely]]
    return *here.buffer;
  if (here.buffer) here.buffer->retired = true;
  auto buffer = std::make_shared<Buffer>();
  buffer->thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  char name[16] = {};
  if (::pthread_getname_np(::pthread_self(), name, sizeof name) == 0) buffer->name = name;
  // Not zeroed: pages that no call needs are never touched.
  buffer->records.reset(new std::byte[std::size_t{kBufferRecords} * sizeof(TraceRecord)]);
  const std::lock_guard lock(mutex_);
  buffers_.push_back(buffer);
  here.writer = id_;
  here.buffer = std::move(buffer);
  return *here.buffer;
}

void TraceWriter::Note(const TraceRecord& record) {
  if (full_.load(std::memory_order_relaxed)) return;
  Buffer& buffer = BufferHere();
  const std::uint32_t head = buffer.head.load(std::memory_order_relaxed);
  const std::uint32_t used = head - buffer.tail.load(std::memory_order_acquire);
  if (used >= kBufferRecords) {
    buffer.lost.store(buffer.lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  std::memcpy(buffer.records.get() + std::size_t{head % kBufferRecords} * sizeof record, &record,
              sizeof record);
  buffer.head.store(head + 1, std::memory_order_release);
  if (used == kBufferRecords / 2) [[unlikely]] {
    hurry_ = true;
    wake_.notify_one();  // missed at worst until the next period
  }
}

void TraceWriter::Run() {
  std::unique_lock lock(mutex_);
  while (!end_) {
    wake_.wait_for(lock, kTracePeriod, [this] { return end_ || hurry_.load(); });
    hurry_ = false;
    lock.unlock();
    Carry();
    lock.lock();
  }
  lock.unlock();
  Carry();
  TraceRecord end;
  end.type = TraceType::kEnd;
  end.number = noted_;
  std::string last;
  AppendRecord(end, &last);
  Write(last);
}

void TraceWriter::Carry() {
  std::string out;
  std::vector<std::shared_ptr<Buffer>> buffers;
  {
    const std::lock_guard lock(mutex_);
    out.swap(names_);
    buffers = buffers_;
  }
  for (const auto& buffer : buffers) {
    const bool over = buffer->retired.load(std::memory_order_acquire);
    Take(*buffer, &out);
    if (!over) continue;
    const std::lock_guard lock(mutex_);
    std::erase(buffers_, buffer);
  }
  Write(out);
}

void TraceWriter::Take(Buffer& buffer, std::string* out) {
  const std::uint32_t head = buffer.head.load(std::memory_order_acquire);
  std::uint32_t tail = buffer.tail.load(std::memory_order_relaxed);
  if (head != tail && !std::exchange(buffer.named, true)) {
    TraceRecord record;
    record.type = TraceType::kThread;
    record.thread = buffer.thread;
    AppendText(record, buffer.name, out);
  }
  noted_ += head - tail;
  for (; tail != head; ++tail)
    out->append(reinterpret_cast<const char*>(buffer.records.get()) +
                    std::size_t{tail % kBufferRecords} * sizeof(TraceRecord),
                sizeof(TraceRecord));
  buffer.tail.store(tail, std::memory_order_release);
  const std::uint64_t lost = buffer.lost.load(std::memory_order_relaxed);
  if (lost == buffer.told) return;
  TraceRecord record;
  record.type = TraceType::kLost;
  record.thread = buffer.thread;
  record.number = lost - std::exchange(buffer.told, lost);
  AppendRecord(record, out);
}

void TraceWriter::Write(std::string_view bytes) {
  if (full_ || bytes.empty()) return;
  std::string cut;
  if (bytes.size() > left_) {
    cut = bytes.substr(0, left_ / sizeof(TraceRecord) * sizeof(TraceRecord));
    TraceRecord record;
    record.type = TraceType::kCut;
    AppendRecord(record, &cut);
    bytes = cut;
    full_ = true;
  } else {
    left_ -= bytes.size();
  }
  while (!bytes.empty()) {
    const ssize_t size = ::write(pipe_.get(), bytes.data(), bytes.size());
    if (size > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(size));
    } else if (size < 0 && errno != EAGAIN && errno != EINTR) {
      full_ = true;  // the agent is gone, and soon this process
      return;
    } else {
      pollfd writable{pipe_.get(), POLLOUT, 0};
      static_cast<void>(::poll(&writable, 1, contract::kTracePeriodMs));
      const std::int64_t until = until_.load();
      if (until != 0 && TimeOf(CLOCK_MONOTONIC) > until) {
        full_ = true;
        return;
      }
    }
  }
}

}  // namespace dtrun::comm
