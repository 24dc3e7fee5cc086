// Writes the trace of this rank: every call that it makes on a communicator (core/contract/trace.h).
//
// A call costs its thread a few stores into a buffer of its own; the writer's thread carries the buffers to
// the agent's pipe ten times a second. Bounded: a buffer that is full drops calls and counts them, and the
// trace ends at its limit. Owned by the runtime; outlives the communicators. Note from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/comm/environment.h"
#include "core/contract/trace.h"

namespace dtrun::comm {

class TraceWriter {
 public:
  static constexpr std::uint32_t kBufferRecords = 4096;  // of each thread

  // `limit`: bytes that it may write. An error: nothing reads `pipe`.
  static Result<std::unique_ptr<TraceWriter>> Open(const std::filesystem::path& pipe, std::uint64_t limit,
                                                   std::uint64_t generation);
  // Writes the rest, within a second if the agent does not read.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // The number of a new communicator, for its calls.
  std::uint16_t AddCommunicator(const std::string& name, const std::string& backend, int rank, int size);
  // Keeps a call or a wait.
  void Note(const contract::TraceRecord& record);
  // The calling thread, in the kernel's numbers.
  std::uint32_t Thread() { return BufferHere().thread; }

 private:
  // Of one thread, which alone writes `head`; the writer alone writes `tail`.
  struct Buffer {
    std::uint32_t thread = 0;
    std::string name;
    std::atomic<std::uint32_t> head{0};
    std::atomic<std::uint32_t> tail{0};
    std::atomic<std::uint64_t> lost{0};
    std::atomic<bool> retired{false};  // its thread has ended
    bool named = false;                // of the writer
    std::uint64_t told = 0;            // of `lost`
    std::unique_ptr<std::byte[]> records;
  };
  // Marks the buffer when its thread ends.
  struct Owner {
    std::uint64_t writer = 0;
    std::shared_ptr<Buffer> buffer;
    ~Owner() {
      if (buffer) buffer->retired = true;
    }
  };

  TraceWriter(UniqueFd pipe, std::uint64_t limit, std::uint64_t generation);
  Buffer& BufferHere();
  void Run();
  // Of the writer's thread.
  void Carry();
  void Take(Buffer& buffer, std::string* out);
  void Write(std::string_view bytes);
  // Ends the writer's thread. Idempotent.
  void Finish();
  static void FinishAtExit();

  const std::uint64_t id_;  // unique in this process
  const pid_t pid_;
  UniqueFd pipe_;
  std::uint64_t left_;              // of the limit
  std::atomic<bool> full_ = false;  // nothing more is written
  std::atomic<bool> hurry_ = false;
  std::atomic<std::int64_t> until_{0};  // when the writer gives up, once it is to end
  std::uint64_t noted_ = 0;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::string names_;  // records that are not of a thread
  std::uint16_t communicators_ = 0;
  bool end_ = false;
  std::mutex finishing_;
  std::thread thread_;
};

// The writer of this rank; null: it is not traced, or cannot be, which `warn` says.
std::unique_ptr<TraceWriter> OpenTrace(const Environment& environment, void (*warn)(const std::string&));

}  // namespace dtrun::comm
