// What a Python thread does, in terms of its user: the user's own line, the function called there, and
// whether that waits for other ranks.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stacks/frame.h"

namespace dtrun::stacks {

// How certain it is that a rank is where it is because others have not arrived.
enum class Stand : std::uint8_t {
  kUnknown,
  kWaits,      // it is in a collective, in a rendezvous, or in a wait for one
  kMayWait,    // at a location of both waiting and working ranks
  kElsewhere,  // at a location that does not wait for other ranks
};

struct Place {
  Stand stand = Stand::kUnknown;
  bool trains = false;  // in a training step: backward, an optimizer, a compiled function
  bool joins = false;   // in the rendezvous at the start
  bool saves = false;   // writes a checkpoint
  // Its innermost frame is one of torch below which native code waits for other ranks, or computes.
  bool waits_below = false;
  std::string what;   // "time.sleep", "all_reduce"; empty: the line itself
  std::string where;  // "train.py:40"
  std::string line;   // source line without indentation; empty: unknown
  // "in json.loads at lib.py:4"
  std::string Text() const { return (what.empty() ? "at " : "in " + what + " at ") + where; }
};

// Line number `line`, from 1, of a file of the process; empty if not available.
using Source = std::function<std::string(const std::string& file, int line)>;

// Whether the frame's file is the program's own: of no package, of Python's library neither, and not
// generated. The text of `python -c` is its own.
bool IsOfTheUser(const Frame& frame);

// "all_reduce", if a thread without frames of the program is in one.
std::string CollectiveIn(const std::vector<Frame>& frames);

// `frames`: innermost first, not empty.
Place PlaceOf(const std::vector<Frame>& frames, const Source& source);

// A name normalized for comparison, without its qualifier: all_reduce, Allreduce and dist.allReduce are
// equal.
std::string Plain(std::string_view name);

// "File "train.py", line 40, in main", one line each, in Python's format with the innermost frame last.
std::string FramesText(const std::vector<Frame>& frames);

// True if a line of the stack is in an `except` or `finally` clause. Also true if the script is no longer on
// the stack, for example while the interpreter exits, or if there is no source with indentation to examine.
// Otherwise the error is over.
bool MayHandleError(const PythonThread& thread, const Source& source);

// Whether the thread is in a loop of the program that asks a request whether it is done: `while not
// work.is_completed(): ...`.
bool PollsARequest(const std::vector<Frame>& frames, const Source& source);
// The same of a thread, a future, an event or a queue of the program: `while thread.is_alive(): ...`.
bool PollsAThread(const std::vector<Frame>& frames, const Source& source);

// Whether the thread waits, as the interpreter exits, for the threads that the program has started.
bool EndsThreads(const std::vector<Frame>& frames);

// Whether it waits until another thread of the program ends, or has done a piece of work: join, a future.
bool WaitsForThreads(const std::vector<Frame>& frames);

// Whether it waits, in Python's library, for another thread of the program: for a queue, a lock, a future, or
// in an event loop.
bool MayWaitForThread(const std::vector<Frame>& frames);

// torch's DataLoader: whether a thread waits for its workers, and where in the program a worker is.

// Whether the thread waits for a batch that worker processes make.
bool WaitsForLoader(const std::vector<Frame>& frames);

bool IsWorker(const std::vector<Frame>& frames);

// Where a worker works on a batch; nullopt if it waits for work or is not a worker.
std::optional<Place> PlaceInWorker(const std::vector<Frame>& frames, const Source& source);

}  // namespace dtrun::stacks
