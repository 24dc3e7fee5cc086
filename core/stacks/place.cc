#include "core/stacks/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/stacks/frame.h"

namespace dtrun::stacks {
namespace {

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool IsPackage(std::string_view file) {
  return Holds(file, "/site-packages/") || Holds(file, "/dist-packages/");
}

bool IsStandardLibrary(std::string_view file) {
  return !IsPackage(file) && (file.starts_with("<frozen") || Holds(file, "/lib/python3"));
}

// Files of torch, Horovod, JAX and dtrun with functions that wait for other ranks.
bool IsCollectiveFile(std::string_view file) {
  constexpr std::string_view kFiles[] = {"/torch/distributed/distributed_c10d.py",
                                         "/torch/distributed/rendezvous.py",
                                         "/torch/distributed/_functional_collectives.py",
                                         "/torch/distributed/nn/functional.py",
                                         "/dtrun/communicator.py",
                                         "/dtrun/work.py",
                                         "/horovod/torch/mpi_ops.py",
                                         "/horovod/common/",
                                         "/jax/_src/distributed.py",
                                         "/jax/experimental/multihost_utils.py"};
  return std::ranges::any_of(kFiles, [&](std::string_view known) { return Holds(file, known); });
}

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Calls of mpi4py, dtrun's library and torch's work handles, which have no Python frames inside.
bool WaitsForRanks(std::string_view callee) {
  constexpr std::array kNames = {
      "allreduce", "allgather",      "allgatherv",   "alltoall",       "alltoallv",      "barrier",
      "bcast",     "broadcast",      "gather",       "gatherv",        "reduce",         "reducescatter",
      "scatter",   "scatterv",       "recv",         "irecv",          "sendrecv",       "wait",
      "waitall",   "dtrunallreduce", "dtrunbarrier", "dtrunbroadcast", "dtrunallgather", "dtruninit"};
  return std::ranges::find(kNames, Plain(callee)) != kNames.end();
}

// Both waiting and computing ranks can be found here: the wait is in native code below.
bool MayWait(std::string_view callee) {
  constexpr std::array kNames = {
      "backward", "runbackward", "enginerunbackward", "item", "cpu", "synchronize", "numpy",
      "tolist",   "send",        "blockuntilready"};
  return std::ranges::find(kNames, Plain(callee)) != kNames.end();
}

bool Joins(const Frame& frame) {
  if (!IsCollectiveFile(frame.file)) return false;
  constexpr std::array kNames = {"initprocessgroup", "newprocessgrouphelper"};
  return Holds(frame.file, "/rendezvous.py") || Holds(frame.file, "/jax/_src/distributed.py") ||
         std::ranges::find(kNames, Plain(frame.function)) != kNames.end();
}

// What calls another function for it, and says nothing to the user.
bool Wraps(const Frame& frame) {
  const std::string_view name = LastPart(frame.function);
  return name == "wrapper" || name == "_wrapped_call_impl" || name == "_call_impl";
}

bool Trains(const Frame& frame) {
  if (Holds(frame.file, "/torch/optim/")) return true;
  if (Holds(frame.file, "/torch/autograd/") || frame.file.ends_with("/torch/_tensor.py"))
    return LastPart(frame.function) == "backward" || LastPart(frame.function) == "_engine_run_backward";
  if (Holds(frame.file, "/keras/")) return LastPart(frame.function) == "fit";
  return Holds(frame.file, "/jax/_src/pjit.py") || Holds(frame.file, "/jax/_src/interpreters/pxla.py");
}

// Native code that torch calls here waits for other ranks: the hooks of a backward, what DDP does around a
// forward.
bool WaitsBelow(const Frame& frame) {
  if (Holds(frame.file, "/torch/nn/parallel/distributed.py")) return true;
  if (Holds(frame.file, "/torch/distributed/utils.py"))
    return Holds(frame.function, "_sync_") || Holds(frame.function, "_verify_");
  return Trains(frame) && !Holds(frame.file, "/jax/") && !Holds(frame.file, "/keras/");
}

// Of a call in the program: torch.save, np.savez, json.dump.
bool SavesBy(std::string_view callee) {
  const std::string name = Plain(callee);
  return name.starts_with("save") || name == "dump";
}

bool Saves(const Frame& frame) {
  constexpr std::string_view kFiles[] = {"/torch/serialization.py", "/torch/distributed/checkpoint/",
                                         "/safetensors/"};
  return SavesBy(frame.function) &&
         std::ranges::any_of(kFiles, [&](std::string_view file) { return Holds(frame.file, file); });
}

// It polls a file lock; the holder, perhaps another rank, is not visible.
bool PollsALock(const Frame& frame) {
  return Holds(frame.file, "/filelock/") && LastPart(frame.function) == "acquire";
}

// The name of the function called on the frame's own line.
std::string CalledAt(const Frame& frame, const std::string& line) {
  const auto from = static_cast<std::size_t>(std::max(frame.column, 0));
  const auto to = static_cast<std::size_t>(std::max(frame.end_column, 0));
  if (frame.column < 0 || to <= from || to > line.size()) return {};
  const std::string_view expression = std::string_view(line).substr(from, to - from);
  // "with lock: step()" waits for the lock.
  if (!expression.ends_with(')') || expression.starts_with("with ")) return {};
  // "loader(2).next(f(x))": the function before the last pair of brackets.
  std::size_t open = expression.size();
  for (int depth = 0; open-- > 0;) {
    if (expression[open] == ')') ++depth;
    if (expression[open] == '(' && --depth == 0) break;
    if (open == 0) return {};
  }
  const std::string_view called = expression.substr(0, open);
  const auto is_name = [](char c) { return IsLetterOrDigit(c) || c == '_' || c == '.'; };
  std::size_t begin = called.size();
  while (begin > 0 && is_name(called[begin - 1])) --begin;
  std::string_view name = called.substr(begin);
  if (name.starts_with('.')) name.remove_prefix(1);
  return std::string(name);
}

// The module of Python's library that users import for it: "subprocess", and for its packages, which hand on
// what their files define, "json" or "concurrent.futures".
std::string ModuleOf(std::string_view file) {
  const auto library = file.find("/lib/python3");
  const auto begin = library == file.npos ? file.npos : file.find('/', library + sizeof "/lib/");
  if (begin == file.npos) return std::string(FileName(file));  // "<frozen runpy>"
  std::string_view path = file.substr(begin + 1);
  const auto package = path.rfind('/');
  path = path.substr(0, package == path.npos ? path.rfind('.') : package);
  std::string module(path);
  std::ranges::replace(module, '/', '.');
  return module;
}

// A library function's name as its users know it: "subprocess.Popen.wait", "all_reduce".
std::string Shown(const Frame& frame) {
  if (IsCollectiveFile(frame.file)) return std::string(LastPart(frame.function));
  if (!IsStandardLibrary(frame.file)) return frame.function;
  return fmt::format("{}.{}", ModuleOf(frame.file), frame.function);
}

// The frame that the user knows: the innermost of the program itself. If the program is a package, the
// innermost outside the standard library.
std::size_t OwnFrame(const std::vector<Frame>& frames) {
  auto found = std::ranges::find_if(frames, IsOfTheUser);
  if (found == frames.end())
    found = std::ranges::find_if(frames, [](const Frame& frame) { return IsPackage(frame.file); });
  return found == frames.end() ? 0 : static_cast<std::size_t>(found - frames.begin());
}

// Of the first `count` frames; empty: there is none, or its module is being imported.
std::string OutermostCollective(const std::vector<Frame>& frames, std::size_t count) {
  for (std::size_t i = count; i-- > 0;) {
    if (frames[i].file.starts_with("<frozen importlib")) return {};
    if (IsCollectiveFile(frames[i].file) && !Wraps(frames[i])) return Shown(frames[i]);
  }
  return {};
}

constexpr int kMostLines = 2000;  // of a function, above the current line

// The line without its indentation; empty if it is blank or a comment.
std::string_view Statement(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\f\r");
  if (begin == std::string_view::npos || line[begin] == '#') return {};
  return line.substr(begin);
}

// Whether the line is a clause of `keyword`.
bool Opens(std::string_view statement, std::string_view keyword) {
  if (!statement.starts_with(keyword)) return false;
  const std::string_view rest = statement.substr(keyword.size());
  return rest.empty() || rest.front() == ':' || rest.front() == ' ' || rest.front() == '(' ||
         rest.front() == '*';
}

std::size_t Indentation(std::string_view line) { return line.size() - Statement(line).size(); }

bool OpensFunction(std::string_view statement) {
  return Opens(statement, "def") || Opens(statement, "async def") || Opens(statement, "class");
}

bool InClause(const Frame& frame, const Source& source) {
  if (frame.file.starts_with("<frozen")) return false;
  const std::string own = frame.line > 0 ? source(frame.file, frame.line) : "";
  if (Statement(own).empty()) return true;  // for example of `python3 -c`
  if (Opens(Statement(own), "except") || Opens(Statement(own), "finally")) return true;  // all on one line
  std::size_t deepest = Indentation(own);
  for (int at = frame.line; at-- > std::max(1, frame.line - kMostLines) && deepest > 0;) {
    const std::string line = source(frame.file, at);
    const std::string_view statement = Statement(line);
    if (statement.empty() || Indentation(line) >= deepest) continue;
    if (Opens(statement, "except") || Opens(statement, "finally")) return true;
    if (OpensFunction(statement)) return false;
    deepest = Indentation(line);
  }
  return false;
}

bool Holds(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return line.find(word) != line.npos; });
}

// Whether a loop of the program around its current line has one of these calls, above that line or in it.
bool LoopHas(std::initializer_list<std::string_view> calls, const std::vector<Frame>& frames,
             const Source& source) {
  const auto own = std::ranges::find_if(frames, IsOfTheUser);
  if (own == frames.end() || own->line <= 0) return false;
  const std::string current = source(own->file, own->line);
  bool has = Holds(current, calls);
  if (Opens(Statement(current), "while")) return has;  // all on one line
  const std::size_t depth = Indentation(current);
  for (int at = own->line; at-- > std::max(1, own->line - kMostLines) && depth > 0;) {
    const std::string line = source(own->file, at);
    const std::string_view statement = Statement(line);
    if (statement.empty()) continue;
    if (OpensFunction(statement) && Indentation(line) < depth) return false;
    has = has || Holds(statement, calls);
    if (Indentation(line) < depth && (Opens(statement, "while") || Opens(statement, "for"))) return has;
  }
  return false;
}

// Whether `function`, for example "_try_get_data", is the last part of the frame's name,
// "_MultiProcessingDataLoaderIter._try_get_data".
bool IsFunction(const Frame& frame, std::string_view file, std::string_view function) {
  return frame.file.ends_with(file) && LastPart(frame.function) == function;
}

bool IsLoop(const Frame& frame) {
  return IsFunction(frame, "/torch/utils/data/_utils/worker.py", "_worker_loop");
}

}  // namespace

bool IsOfTheUser(const Frame& frame) {
  // Classes that dataclasses and namedtuple generate have functions such as __init__ in a file of that name.
  if (frame.file.starts_with('<'))
    return !frame.function.starts_with("__") && (frame.file == "<string>" || frame.file == "<stdin>");
  return !IsPackage(frame.file) && !IsStandardLibrary(frame.file) && !IsCollectiveFile(frame.file);
}

std::string Plain(std::string_view name) {
  std::string out;
  for (const char c : LastPart(name)) {
    if (c != '_') out.push_back(ToLower(c));
  }
  return out;
}

std::string CollectiveIn(const std::vector<Frame>& frames) {
  return OutermostCollective(frames, frames.size());
}

Place PlaceOf(const std::vector<Frame>& frames, const Source& source) {
  Place place;
  const std::size_t own = OwnFrame(frames);
  const Frame& frame = frames[own];
  place.where = fmt::format("{}:{}", FileName(frame.file), frame.line);
  const std::string line = frame.line > 0 ? source(frame.file, frame.line) : "";
  place.line = Trim(line);
  place.trains = std::ranges::any_of(frames, Trains);
  place.joins = std::ranges::any_of(frames, Joins);
  place.saves = std::ranges::any_of(frames, Saves);
  place.waits_below = WaitsBelow(frames.front());
  // A collective inside the user's frame.
  if (std::string collective = OutermostCollective(frames, own); !collective.empty()) {
    place.stand = Stand::kWaits;
    place.what = std::move(collective);
    return place;
  }
  if (own > 0) {
    std::size_t called = own - 1;
    while (called > 0 && (Wraps(frames[called]) || frames[called].file.starts_with('<'))) --called;
    place.what = Shown(frames[called]);
    const Frame& front = frames.front();
    const std::string inner = CalledAt(front, front.line > 0 ? source(front.file, front.line) : "");
    const bool in_package = IsPackage(frames[called].file);
    const bool may =
        place.trains || place.waits_below || (in_package && (MayWait(place.what) || MayWait(inner))) ||
        std::any_of(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(own), PollsALock);
    place.stand = may ? Stand::kMayWait : Stand::kElsewhere;
    return place;
  }
  place.what = CalledAt(frame, line);
  place.saves = place.saves || SavesBy(place.what);
  place.stand = Stand::kElsewhere;
  if (MayWait(place.what)) place.stand = Stand::kMayWait;
  if (WaitsForRanks(place.what)) place.stand = Stand::kWaits;
  return place;
}

std::string FramesText(const std::vector<Frame>& frames) {
  std::string text;
  for (const Frame& frame : frames) {
    text += fmt::format("    File \"{}\", line {}, in {}\n", frame.file, frame.line, frame.function);
  }
  return text;
}

bool MayHandleError(const PythonThread& thread, const Source& source) {
  const auto is_script = [](const Frame& frame) { return frame.function == "<module>"; };
  if (!thread.cut && std::ranges::none_of(thread.frames, is_script)) return true;
  return std::ranges::any_of(thread.frames, [&](const Frame& frame) { return InClause(frame, source); });
}

bool PollsARequest(const std::vector<Frame>& frames, const Source& source) {
  return LoopHas({".is_completed(", ".test(", ".Test(", ".testall(", ".Testall(", ".iprobe(", ".Iprobe("},
                 frames, source);
}

bool PollsAThread(const std::vector<Frame>& frames, const Source& source) {
  return LoopHas({".is_alive(", ".done(", ".is_set(", ".empty("}, frames, source);
}

bool WaitsForLoader(const std::vector<Frame>& frames) {
  return std::ranges::any_of(frames, [](const Frame& frame) {
    return IsFunction(frame, "/torch/utils/data/dataloader.py", "_try_get_data");
  });
}

bool EndsThreads(const std::vector<Frame>& frames) {
  return std::ranges::any_of(
      frames, [](const Frame& frame) { return IsFunction(frame, "/threading.py", "_shutdown"); });
}

bool WaitsForThreads(const std::vector<Frame>& frames) {
  return EndsThreads(frames) || std::ranges::any_of(frames, [](const Frame& frame) {
           return IsFunction(frame, "/threading.py", "join") || IsFunction(frame, "/threading.py", "wait") ||
                  IsFunction(frame, "/concurrent/futures/_base.py", "result") ||
                  IsFunction(frame, "/concurrent/futures/thread.py", "shutdown");
         });
}

bool MayWaitForThread(const std::vector<Frame>& frames) {
  constexpr std::string_view kFiles[] = {"/threading.py", "/queue.py", "/selectors.py",
                                         "/concurrent/futures/_base.py"};
  const std::string_view file = frames.front().file;
  return IsStandardLibrary(file) &&
         std::ranges::any_of(kFiles, [&](std::string_view known) { return file.ends_with(known); });
}

bool IsWorker(const std::vector<Frame>& frames) { return std::ranges::any_of(frames, IsLoop); }

std::optional<Place> PlaceInWorker(const std::vector<Frame>& frames, const Source& source) {
  const auto loop = std::ranges::find_if(frames, IsLoop);
  // Outer frames belong to the rank that forked the worker.
  if (loop == frames.end() || loop == frames.begin()) return std::nullopt;
  if (IsFunction(*(loop - 1), "/multiprocessing/queues.py", "get")) return std::nullopt;
  return PlaceOf(std::vector<Frame>(frames.begin(), loop), source);
}

}  // namespace dtrun::stacks
