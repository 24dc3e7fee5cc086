#include "sdk/fake/accelerator.h"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace dtrun::fake {
namespace {

std::atomic<std::uint64_t> waits{0};
std::atomic<Ignored> ignored{Ignored::none};

std::uint64_t Mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

struct DelayTable {
  std::mutex mutex;
  Delays delays;
  std::uint64_t round = 0;  // of set_delays

  std::pair<Delays, std::uint64_t> get() {
    const std::lock_guard lock(mutex);
    return {delays, round};
  }
};
DelayTable& Table() {
  static auto& table = *new DelayTable;
  return table;
}

// A queue of work on a thread of its own.
class Queue {
 public:
  struct Task {
    std::function<void()> body;
    bool delayed;
  };

  explicit Queue(std::uint64_t number) : number_(number) {
    std::thread([this] { run(); }).detach();
  }

  void add(Task task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  bool idle() const {
    const std::lock_guard lock(mutex_);
    return tasks_.empty() && !running_;
  }
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.empty() && !running_; });
  }
  // The thread ends after the last task.
  void finish() {
    add({[this] { finishing_ = true; }, false});
  }

 private:
  void run();
  void delay() {
    const auto [delays, round] = Table().get();
    if (round != round_) count_ = 0;
    round_ = round;
    const std::uint64_t random = Mixed(Mixed(delays.seed ^ Mixed(number_)) + count_++);
    std::int64_t us = delays.always_us;
    if (delays.longest_us > 0 && random % 4 == 0) {
      us += static_cast<std::int64_t>((random >> 8) % static_cast<std::uint64_t>(delays.longest_us));
    }
    if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
  }

  const std::uint64_t number_;
  std::uint64_t count_ = 0, round_ = 0;  // of the thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool running_ = false;
  bool finishing_ = false;  // of the thread
};

struct Queues {
  std::mutex mutex;
  std::vector<Queue*> all, ended;
  std::vector<Stream*> streams;  // destroyed ones, too
  Driver driver;
  std::map<std::pair<int, int>, Queue*> shared;  // by device and number
  int made = 0;                                  // streams that share

  // REQUIRES the lock.
  Queue* Make(int device, bool of_made_stream) {
    all.push_back(new Queue(static_cast<std::uint64_t>(device) * 2 + (of_made_stream ? 1 : 0)));
    return all.back();
  }
};
Queues& All() {
  static auto& queues = *new Queues;
  return queues;
}

void Queue::run() {
  (void)::prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds: short delays are short
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !tasks_.empty(); });
    {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      running_ = true;
      lock.unlock();
      if (task.delayed) delay();
      task.body();
    }
    lock.lock();
    running_ = false;
    changed_.notify_all();
    if (finishing_) break;
  }
  lock.unlock();
  Queues& queues = All();
  const std::lock_guard all(queues.mutex);
  queues.all.erase(std::find(queues.all.begin(), queues.all.end(), this));
  queues.ended.push_back(this);  // the memory stays: another thread may be about to leave its lock
}

class Worker final : public Stream {
 public:
  Worker(int device, bool made, Queue& queue, bool shares)
      : Stream(device, made), queue_(queue), shares_(shares) {}

  void post(std::function<void()> task) override { queue_.add({std::move(task), true}); }
  void mark(std::function<void()> task) override { queue_.add({std::move(task), false}); }
  bool idle() const override { return queue_.idle(); }
  void drain() { queue_.drain(); }
  void finish() {
    if (!shares_) queue_.finish();
  }

 private:
  Queue& queue_;
  const bool shares_;
};

Worker* Make(int device, bool made) {
  Queues& queues = All();
  const std::lock_guard lock(queues.mutex);
  const int most = made ? queues.driver.queues : 0;
  Queue* queue = nullptr;
  if (most == 0) {
    queue = queues.Make(device, made);
  } else {
    Queue*& shared = queues.shared[{device, queues.made++ % most}];
    if (shared == nullptr) shared = queues.Make(device, true);
    queue = shared;
  }
  auto* const worker = new Worker(device, made, *queue, most > 0);
  queues.streams.push_back(worker);
  return worker;
}

bool AllIdle() {
  Queues& queues = All();
  const std::lock_guard lock(queues.mutex);
  return std::all_of(queues.all.begin(), queues.all.end(), [](const Queue* queue) { return queue->idle(); });
}

constexpr std::chrono::seconds kTooLong{20};
std::atomic<bool> locks{false};
std::atomic<std::uint64_t> deadlocked{0};
std::mutex& DriverLock() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

// ---- streams and events

Stream& default_stream(int device) {
  static const std::array<Worker*, kDevices> streams = [] {
    std::array<Worker*, kDevices> made{};
    for (int d = 0; d < kDevices; ++d) made[static_cast<std::size_t>(d)] = Make(d, false);
    return made;
  }();
  return *streams.at(static_cast<std::size_t>(device));
}
Stream* make_stream(int device) { return Make(device, true); }
void destroy_stream(Stream* stream) { static_cast<Worker*>(stream)->finish(); }

void Stream::wait_on_host() {
  ++waits;
  static_cast<Worker*>(this)->drain();
}

void Event::record(Stream& stream) {
  auto reached = std::make_shared<std::atomic<bool>>(false);
  reached_ = reached;
  stream.mark([reached] {
    *reached = true;
    reached->notify_all();
  });
}
void Event::block(Stream& stream) const {
  const Ignored which = ignored;
  if (which == (stream.made() ? Ignored::waits_of_made_streams : Ignored::waits_of_default_streams)) return;
  if (reached_) stream.mark([reached = reached_] { reached->wait(false); });
}
bool Event::reached() const { return !reached_ || *reached_; }
void Event::wait_on_host() const {
  ++waits;
  if (reached_) reached_->wait(false);
}

void set_delays(const Delays& delays) {
  DelayTable& table = Table();
  const std::lock_guard lock(table.mutex);
  table.delays = delays;
  ++table.round;
}

std::uint64_t host_waits() { return waits; }
void count_host_wait() { ++waits; }
void ignore(Ignored which) { ignored = which; }

void settle() {
  while (!AllIdle()) std::this_thread::yield();
}

// ---- the driver

void set_driver(const Driver& driver) {
  Queues& queues = All();
  const std::lock_guard lock(queues.mutex);
  queues.driver = driver;
  queues.shared.clear();  // their threads stay, for the streams that have them
  queues.made = 0;
  locks = driver.locks;
}

DriverCall::DriverCall(bool synchronizes) {
  if (!locks) return;
  DriverLock().lock();
  locked_ = true;
  const auto until = std::chrono::steady_clock::now() + kTooLong;
  while (synchronizes && !AllIdle()) {
    if (std::chrono::steady_clock::now() > until) {
      ++deadlocked;
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}
DriverCall::~DriverCall() {
  if (locked_) DriverLock().unlock();
}
std::uint64_t deadlocks() { return deadlocked; }

// ---- memory

namespace {

constexpr std::uint64_t kAlignment = 64;

struct Block {
  std::uint64_t bytes = 0;
  int device = 0;
  Stream* home = nullptr;       // of cached_allocate
  std::vector<Stream*> users;   // other streams
  std::vector<Event> released;  // what they were doing when it was freed
};

struct Memory {
  std::mutex mutex;
  std::map<const char*, Block> blocks;
  std::uint64_t host_bytes = 0, most_host_bytes = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::pair<void*, Block>> free;
};
Memory& TheMemory() {
  static auto& memory = *new Memory;
  return memory;
}

void* Aligned(std::uint64_t bytes) {
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// All bits set: not a number, in every floating type.
void Destroy(void* memory, std::uint64_t bytes) { std::memset(memory, 0xff, bytes); }

}  // namespace

void* allocate(int device, std::uint64_t bytes) {
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  if (device < 0 && memory.host_bytes + bytes > memory.most_host_bytes) throw std::bad_alloc();
  void* made = Aligned(bytes);
  Destroy(made, bytes);
  if (device < 0) memory.host_bytes += bytes;
  memory.blocks[static_cast<const char*>(made)] = {bytes, device, nullptr, {}, {}};
  return made;
}

void release(void* pointer) {
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  const auto found = memory.blocks.find(static_cast<const char*>(pointer));
  if (found == memory.blocks.end()) return;
  if (found->second.device < 0) memory.host_bytes -= found->second.bytes;
  memory.blocks.erase(found);
  std::free(pointer);
}

void limit_host_memory(std::uint64_t bytes) {
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  memory.most_host_bytes = bytes;
}

int device_of(const void* pointer) {
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  auto after = memory.blocks.upper_bound(static_cast<const char*>(pointer));
  if (after == memory.blocks.begin()) return -1;
  const auto& [begin, block] = *std::prev(after);
  const bool inside = pointer == begin || static_cast<const char*>(pointer) < begin + block.bytes;
  return inside ? block.device : -1;
}

void* cached_allocate(Stream& stream, std::uint64_t bytes) {
  Memory& memory = TheMemory();
  {
    const std::lock_guard lock(memory.mutex);
    for (std::size_t i = memory.free.size(); i-- > 0;) {
      auto& [pointer, block] = memory.free[i];
      if (block.home != &stream || block.bytes != bytes) continue;
      if (!std::all_of(block.released.begin(), block.released.end(),
                       [](const Event& e) { return e.reached(); }))
        continue;
      void* found = pointer;
      if (!block.released.empty()) stream.mark([found, bytes] { Destroy(found, bytes); });
      memory.blocks[static_cast<const char*>(found)] = {bytes, block.device, &stream, {}, {}};
      memory.free.erase(memory.free.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
  }
  void* made = Aligned(bytes);
  Destroy(made, bytes);
  const std::lock_guard lock(memory.mutex);
  memory.blocks[static_cast<const char*>(made)] = {bytes, stream.device(), &stream, {}, {}};
  return made;
}

void cached_release(void* pointer) {
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  const auto found = memory.blocks.find(static_cast<const char*>(pointer));
  if (found == memory.blocks.end()) return;
  Block block = std::move(found->second);
  memory.blocks.erase(found);
  for (Stream* user : block.users) block.released.emplace_back().record(*user);
  if (block.users.empty()) block.home->mark([pointer, bytes = block.bytes] { Destroy(pointer, bytes); });
  block.users.clear();
  memory.free.emplace_back(pointer, std::move(block));
}

void used_on(void* pointer, Stream& stream) {
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  const auto found = memory.blocks.find(static_cast<const char*>(pointer));
  if (found == memory.blocks.end() || found->second.home == &stream) return;
  auto& users = found->second.users;
  if (std::find(users.begin(), users.end(), &stream) == users.end()) users.push_back(&stream);
}

}  // namespace dtrun::fake
