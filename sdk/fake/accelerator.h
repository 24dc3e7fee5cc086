// A device that does not exist, for tests: memory of the host, and streams that are threads and delay every
// piece of work by a random time, so that a missing wait shows as a wrong number.
//
// Nothing here knows torch or dtrun: fake_device.h makes a torch device of it, device_plugin.cc and
// backend_plugin.cc dtrun plugins; all of a process share the one library. Any thread may call anything.
// Streams that are not destroyed, and memory that is not freed, end with the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#pragma GCC visibility push(default)
namespace dtrun::fake {

constexpr int kDevices = 4;

class Stream;

// A place in a stream. Recorded again it takes the new place; who waits for the old one goes on doing so.
class Event {
 public:
  void record(Stream& stream);
  // Later work on `stream` starts after it. Never recorded: it has been reached.
  void block(Stream& stream) const;
  bool reached() const;
  // Counted as a wait of the host.
  void wait_on_host() const;

 private:
  std::shared_ptr<std::atomic<bool>> reached_;
};

// Work in order, on a thread of its own. Made by default_stream and make_stream.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Queues a task, which must not throw. It starts after the earlier ones and its delay.
  virtual void post(std::function<void()> task) = 0;
  // The same without a delay: for what takes no time on a device.
  virtual void mark(std::function<void()> task) = 0;
  virtual bool idle() const = 0;
  // Counted as a wait of the host.
  void wait_on_host();

  int device() const { return device_; }
  // By make_stream: not one of torch's default streams.
  bool made() const { return made_; }

 protected:
  Stream(int device, bool made) : device_(device), made_(made) {}

 private:
  int device_;
  bool made_;
};

Stream& default_stream(int device);
Stream* make_stream(int device);
// When its work has ended; does not wait for that.
void destroy_stream(Stream* stream);

// ---- how long work takes

struct Delays {
  std::uint64_t seed = 0;  // equal seeds delay a device's streams equally
  int longest_us = 0;      // one task of four takes up to this much longer
  int always_us = 0;       // each takes
};
void set_delays(const Delays& delays);

// ---- memory: aligned to 64 bytes

// Device -1: of the host, for copies.
void* allocate(int device, std::uint64_t bytes);
void release(void* memory);
// What the host gives at most; beyond it allocate throws std::bad_alloc. No limit at first.
void limit_host_memory(std::uint64_t bytes);
// The device that owns the memory of a pointer, or -1.
int device_of(const void* pointer);

// Memory as torch's allocators for devices keep it: what is freed is used again at once by work of the stream
// that it was allocated for, and destroyed, in that stream's order, to show reads after the free.
void* cached_allocate(Stream& stream, std::uint64_t bytes);
void cached_release(void* memory);
// `stream` uses it too: its release counts from where that stream then is.
void used_on(void* memory, Stream& stream);

// ---- as a driver has it; not so at first

struct Driver {
  // Its calls exclude one another, and those that allocate and free wait, inside, until every stream is idle.
  bool locks = false;
  // Streams that are made from now on share so many queues of their device, in each of which all work runs in
  // the order of the calls; 0: a queue for each stream.
  int queues = 0;
};
void set_driver(const Driver&);

// A call of the driver, for as long as it lives. `synchronizes`: it begins when every stream is idle.
class DriverCall {
 public:
  explicit DriverCall(bool synchronizes = false);
  ~DriverCall();
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;

 private:
  bool locked_ = false;
};
// Calls that have waited for idle streams too long for any test, and went on: what the streams waited for
// needed a call of the driver itself.
std::uint64_t deadlocks();

// ---- for tests

// Waits of the host for the device, and blocking copies.
std::uint64_t host_waits();
void count_host_wait();

// Which streams ignore Event::block: to show that a test notices a missing wait.
enum class Ignored { none, waits_of_made_streams, waits_of_default_streams };
void ignore(Ignored waits);

// Every stream of every device is idle. Not counted.
void settle();

}  // namespace dtrun::fake
#pragma GCC visibility pop
