#include "core/stacks/doing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/stacks/kernel.h"
#include "core/stacks/memory.h"
#include "core/stacks/place.h"
#include "core/stacks/python.h"
#include "core/stacks/source.h"

namespace dtrun::stacks {
namespace {

constexpr std::size_t kMostProcesses = 16;
// Much longer than a Python thread keeps the lock when another requests it.
constexpr std::chrono::milliseconds kLockPatience{50};
constexpr std::chrono::milliseconds kLongestLockPatience{
    500};  // on a machine with more runnable threads than CPUs
constexpr std::chrono::milliseconds kLockPause{10};
constexpr std::size_t kMostWorkersNamed = 3;

struct Look {
  pid_t pid = 0;
  Detail detail = Detail::kAll;
  std::vector<Task> tasks;  // kPlace: the main thread alone
  Python python;
  bool is_python = false;
};

// The readers of earlier looks: a process with torch has thousands of mappings, and the kernel takes
// milliseconds to list them. A look takes its reader out, because another may be stuck with it. Any thread.
class KnownPythons {
 public:
  std::unique_ptr<PythonReader> Take(pid_t pid) {
    const std::lock_guard lock(mutex_);
    const auto found = readers_.find(pid);
    return found == readers_.end() ? nullptr : std::move(found->second);
  }
  void Keep(pid_t pid, std::unique_ptr<PythonReader> reader) {
    const std::lock_guard lock(mutex_);
    if (readers_.size() >= kMost) readers_.clear();
    readers_[pid] = std::move(reader);
  }

 private:
  static constexpr std::size_t kMost = 1024;
  std::mutex mutex_;
  std::map<pid_t, std::unique_ptr<PythonReader>> readers_;
};

// The thread that answers dtrun itself.
bool IsOfDtrun(const PythonThread& thread) {
  return std::ranges::any_of(thread.frames, [](const Frame& frame) {
    return std::string_view(frame.file).ends_with("/dtrun/torch/recorder.py");
  });
}

void LeaveOutDtrun(Look* look) {
  std::erase_if(look->python.threads, [look](const PythonThread& thread) {
    if (!IsOfDtrun(thread)) return false;
    std::erase_if(look->tasks, [&thread](const Task& task) { return task.id == thread.id; });
    return true;
  });
}

Look ReadLook(pid_t pid, Detail detail) {
  static KnownPythons& known = *new KnownPythons;  // threads may use it until the process ends
  Look look{pid, detail, detail == Detail::kAll ? TasksOf(pid) : MainTaskOf(pid), {}};
  const ProcessMemory memory(pid);
  std::unique_ptr<PythonReader> reader = known.Take(pid);
  if (reader) look.python = reader->Read(memory);
  if (look.python.threads.empty()) {  // it is another program now
    reader = std::make_unique<PythonReader>(memory, ReadKernelFile(fmt::format("/proc/{}/maps", pid)));
    look.python = reader->Read(memory);
  }
  look.is_python = reader->is_python();
  if (!look.python.threads.empty()) known.Keep(pid, std::move(reader));
  return look;
}

Look LookInto(pid_t pid, Detail detail) {
  Look look = ReadLook(pid, detail);
  LeaveOutDtrun(&look);
  return look;
}

// Whether it is a parent of the program that only waits for it.
bool IsWrapper(const Look& look) {
  constexpr std::array<std::string_view, 6> kShells = {"sh", "bash", "dash", "ksh", "zsh", "timeout"};
  return !look.tasks.empty() && look.tasks.front().waits == "wait for a child" &&
         std::ranges::find(kShells, look.tasks.front().name) != kShells.end();
}

// The program that the user is interested in.
const Look& Chosen(const std::vector<Look>& looks) {
  auto found = std::ranges::find_if(looks, [](const Look& look) { return !look.python.threads.empty(); });
  if (found == looks.end()) found = std::ranges::find_if_not(looks, IsWrapper);
  return found == looks.end() ? looks.front() : *found;
}

std::string TaskText(const Task& task) {
  return fmt::format("{} \"{}\", state {}{}", task.id, task.name, task.state,
                     task.waits.empty() ? "" : ", in " + task.waits);
}

std::string TextOf(const Look& look) {
  std::string text = fmt::format("process {}\n", look.pid);
  if (look.is_python && look.python.threads.empty())
    text +=
        "  no Python stack: its memory may not be read here, or its Python is one that dtrun does not know\n";
  for (const PythonThread& thread : look.python.threads) {
    const auto task = std::ranges::find(look.tasks, thread.id, &Task::id);
    text +=
        fmt::format("  thread {}{}\n", task == look.tasks.end() ? std::to_string(thread.id) : TaskText(*task),
                    thread.holds_gil ? ", holds Python's lock (GIL)" : "");
    text += FramesText(thread.frames);
    if (thread.cut) text += "    ...\n";
  }
  for (const Task& task : look.tasks) {
    if (std::ranges::find(look.python.threads, task.id, &PythonThread::id) != look.python.threads.end())
      continue;
    text += fmt::format("  thread {}\n", TaskText(task));
  }
  return text;
}

// The thread that holds the GIL, if it is not the first one.
const PythonThread* OtherHolder(const Look& look) {
  const auto& threads = look.python.threads;
  const auto holder = std::ranges::find_if(threads, &PythonThread::holds_gil);
  return holder == threads.end() || holder == threads.begin() ? nullptr : &*holder;
}

// Whether the first thread waits for the GIL. It renews its wait every 5 ms (take_gil of CPython's
// ceval_gil.c), and on a busy machine a look often finds it between two waits, at any location.
enum class Asks { kNo, kUnclear, kYes };
Asks AsksForLock(const Look& look) {
  if (look.tasks.empty()) return Asks::kNo;
  const Task& task = look.tasks.front();
  if (task.waits.empty()) return Asks::kUnclear;
  const bool yes = task.waits == "futex" && task.argument >= look.python.lock_begin &&
                   task.argument < look.python.lock_end;
  return yes ? Asks::kYes : Asks::kNo;
}

// The thread that keeps the GIL from the first one: every look finds it as the holder, and more than one
// finds the first thread waiting.
const PythonThread* KeeperOfLock(const Look& look) {
  const PythonThread* const keeper = OtherHolder(look);
  if (keeper == nullptr) return nullptr;
  const auto begin = std::chrono::steady_clock::now();
  int asked = 0;
  for (Look now = look;; now = LookInto(look.pid, look.detail)) {
    const PythonThread* const holder = OtherHolder(now);
    const Asks asks = AsksForLock(now);
    if (holder == nullptr || holder->id != keeper->id || asks == Asks::kNo) return nullptr;
    if (asks == Asks::kYes) ++asked;
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (asked > 1 && passed >= kLockPatience) return keeper;
    if (passed >= kLongestLockPatience) return nullptr;
    std::this_thread::sleep_for(kLockPause);
  }
}

// Whether the first thread sleeps until another one wakes it, and none of them works. Of a process that uses
// a GPU that is not known.
bool SleepsAlone(const Look& look) {
  if (look.tasks.empty() || look.tasks.front().waits != "futex") return false;
  return std::ranges::none_of(
      look.detail == Detail::kAll ? look.tasks : TasksOf(look.pid), [](const Task& task) {
        return task.state == 'R' || task.state == 'D' || task.name.starts_with("cuda");
      });
}

// The place of a thread that the main thread may wait for: one that runs the program's code, best in a
// collective. If all such threads are in collectives, nothing else of the process can end the main thread's
// wait for a thread.
void FillFromThreads(const Look& look, const Source& source, Doing* doing) {
  bool one_waits = false, all_wait = true;
  for (auto one = look.python.threads.begin() + 1; one != look.python.threads.end(); ++one) {
    const bool of_the_user = std::ranges::any_of(one->frames, IsOfTheUser);
    const std::string collective = of_the_user ? "" : CollectiveIn(one->frames);  // the thread's function
    if (!of_the_user && collective.empty()) continue;
    const Place place = PlaceOf(one->frames, source);
    // Not by the name of a call alone: a socket has a recv, too.
    const bool waits =
        !collective.empty() || (place.stand == Stand::kWaits && !IsOfTheUser(one->frames.front()));
    all_wait = all_wait && waits;
    if (waits ? !one_waits : doing->beside.empty())
      doing->beside = "a thread is " + (collective.empty() ? place.Text() : "in " + collective);
    one_waits = one_waits || waits;
  }
  if (!one_waits) return;
  if (doing->stand == Stand::kElsewhere) doing->stand = Stand::kMayWait;
  const std::vector<Frame>& main = look.python.threads.front().frames;
  const bool naps = doing->naps;  // then it sleeps in no futex
  const bool for_them = naps ? PollsAThread(main, source) : WaitsForThreads(main) && SleepsAlone(look);
  if (all_wait && for_them && !WaitsForLoader(main)) doing->stand = Stand::kWaits;
}

// A thread in a collective, while the main thread sleeps: between two looks at it, or for its own reasons.
void FillFromSleep(const Look& look, const Source& source, Doing* doing) {
  Doing polls = *doing;
  FillFromThreads(look, source, &polls);
  if (polls.stand != Stand::kElsewhere) *doing = polls;
}

void FillFromPython(const Look& look, Doing* doing) {
  const Source source = SourceOf(look.pid);
  const Place place = PlaceOf(look.python.threads.front().frames, source);
  doing->stand = place.stand;
  doing->awaited = look.python.awaited;
  if (place.stand == Stand::kMayWait && place.waits_below && SleepsAlone(look)) doing->stand = Stand::kWaits;
  doing->trains = place.trains;
  doing->joins = place.joins;
  doing->saves = place.saves;
  if (look.detail == Detail::kAll) doing->may_handle = MayHandleError(look.python.threads.front(), source);
  doing->what = place.what;
  doing->where = place.where;
  const Task* const task = look.tasks.empty() ? nullptr : &look.tasks.front();
  if (place.what.empty() && !place.line.empty()) doing->more = fmt::format("`{}`", place.line);
  if (task != nullptr && task->elsewhere && task->waits.find("descriptor") != std::string::npos)
    doing->more = task->waits;
  // A socket call, not a call with the same name that waits for ranks: those do not block in the kernel's
  // call.
  const std::string called = place.what.substr(place.what.rfind('.') + 1);
  const bool named = called == "recv" || called == "send";
  if (task != nullptr && named &&
      (task->waits.starts_with("recv of") || task->waits.starts_with("send of"))) {
    doing->stand = Stand::kElsewhere;
    doing->more = task->waits;
  }
  const std::vector<Frame>& main = look.python.threads.front().frames;
  const bool sleeps = task != nullptr && task->waits.ends_with("nanosleep");
  if (sleeps && doing->stand == Stand::kElsewhere) {
    if (doing->naps && PollsARequest(main, source))
      doing->stand = Stand::kWaits;
    else
      FillFromSleep(look, source, doing);
  }
  if (EndsThreads(main)) doing->what = "the wait for its threads at exit";
  if (EndsThreads(main) || MayWaitForThread(main)) FillFromThreads(look, source, doing);
  const PythonThread* const keeper = KeeperOfLock(look);
  if (keeper == nullptr) return;
  doing->stand = Stand::kElsewhere;
  doing->more =
      fmt::format("thread {} keeps Python's lock, {}", keeper->id, PlaceOf(keeper->frames, source).Text());
}

// A program without Python frames that naps may do so between two looks at a request of a library.
void MayPoll(Doing* doing) {
  const bool sleeps = doing->what.find("sleep") != std::string::npos;
  if (!doing->python && doing->naps && sleeps && doing->stand == Stand::kElsewhere)
    doing->stand = Stand::kMayWait;
}

void FillFromKernel(const Look& look, Doing* doing) {
  if (look.tasks.empty()) return;
  const Task& task = look.tasks.front();
  doing->what = task.waits;
  if (task.elsewhere) doing->stand = Stand::kElsewhere;
  MayPoll(doing);
}

// The holder of the lock may be another rank: if it is unknown, the process may wait for a rank.
void FillFromLock(const Look& look, Doing* doing) {
  if (look.tasks.empty()) return;
  const std::string& waits = look.tasks.front().waits;
  if (!waits.starts_with("flock") && !waits.starts_with("fcntl")) return;
  doing->lock_holder = HolderOfLock(look.pid);
  if (doing->lock_holder == 0 && doing->stand == Stand::kElsewhere) doing->stand = Stand::kMayWait;
}

// "; a worker is in time.sleep at data.py:6, another at data.py:9"
std::string WorkersText(const std::vector<Look>& looks, pid_t but) {
  std::vector<std::string> places;
  for (const Look& look : looks) {
    if (look.pid == but || look.python.threads.empty() || look.tasks.empty()) continue;
    const std::vector<Frame>& frames = look.python.threads.front().frames;
    const auto place = PlaceInWorker(frames, SourceOf(look.pid));
    const char state = look.tasks.front().state;
    const bool stopped = (state == 'T' || state == 't') && IsWorker(frames);
    if (!place && !stopped) continue;
    std::string text = stopped ? "stopped" : "";
    if (place) text += (text.empty() ? "" : ", ") + place->Text();
    if (std::ranges::find(places, text) == places.end()) places.push_back(std::move(text));
  }
  places.resize(std::min(places.size(), kMostWorkersNamed));
  return places.empty() ? "" : fmt::format("; a worker is {}", fmt::join(places, ", another "));
}

// "gdb (pid 12)"; empty: it has none, or one of another container.
std::string TracerOf(pid_t pid) {
  constexpr std::string_view kKey = "\nTracerPid:\t";
  const std::string status = ReadKernelFile(fmt::format("/proc/{}/status", pid));
  const auto at = status.find(kKey);
  if (at == status.npos) return {};
  const pid_t tracer = std::atoi(status.c_str() + at + kKey.size());
  const std::string name = tracer > 0 ? FirstLineOf(fmt::format("/proc/{}/comm", tracer)) : "";
  return name.empty() ? "" : fmt::format("{} (pid {})", Printable(name), tracer);
}

}  // namespace

Doing LookAt(pid_t pid, const std::vector<pid_t>& below, const Attached& attached, Detail detail) {
  std::vector<Look> looks{LookInto(pid, detail)};
  for (const pid_t other : below) {
    if (looks.size() == kMostProcesses) break;
    looks.push_back(LookInto(other, detail));
  }
  const Look& chosen = Chosen(looks);
  Doing doing;
  doing.pid = chosen.pid;
  doing.python = chosen.is_python;
  if (!chosen.tasks.empty()) {
    const char state = chosen.tasks.front().state;
    doing.runs = state == 'R';
    doing.naps = chosen.tasks.front().naps;
    if (!chosen.is_python) doing.spot = chosen.tasks.front().spot;
    doing.stopped = (state == 'T' || state == 't') && !attached.Has(chosen.pid);
    if (doing.stopped && state == 't') doing.tracer = TracerOf(chosen.pid);
  }
  chosen.python.threads.empty() ? FillFromKernel(chosen, &doing) : FillFromPython(chosen, &doing);
  FillFromLock(chosen, &doing);
  doing.loads = !chosen.python.threads.empty() && WaitsForLoader(chosen.python.threads.front().frames);
  if (doing.loads) doing.beside = "waits for its data loader" + WorkersText(looks, chosen.pid);
  if (doing.stopped) doing.stand = Stand::kElsewhere;
  if (detail == Detail::kPlace) return doing;
  for (const Look& look : looks) doing.text += TextOf(look);
  return doing;
}

void LookClosely(const Unwinder& unwinder, Unwinder::Clock::time_point deadline, Doing* doing) {
  if (!doing->tracer.empty() || doing->pid == 0) return;
  const Unwound unwound = unwinder.Unwind(doing->pid, deadline);
  if (unwound.frames.empty()) {
    doing->text += fmt::format("  no native stack: {}\n", unwound.trouble);
    // Ranks at one place, of which the tool has read some, would seem to be at two.
    if (unwound.late && !doing->python) doing->stand = Stand::kUnknown;
    return;
  }
  doing->text += fmt::format("  native, by {}:\n{}", unwinder.name(), unwound.text);
  const auto place = PlaceOf(unwound.frames);
  if (doing->python || !place) return;
  if (doing->what.find(" of descriptor ") != std::string::npos) doing->more = doing->what;
  doing->what = place->what;
  doing->where = place->where;
  if (place->where.empty() && place->what.empty()) doing->what = place->within;
  if (place->where.empty() && !place->what.empty() && doing->more.empty())
    doing->more = "called by " + place->within;
  if (doing->stopped) return;  // what it was in is no wait for ranks
  const bool own_wait = (place->waits_for_thread || place->waits_for_peer) && !unwound.any_waits;
  if (place->what.empty() || own_wait) doing->stand = Stand::kElsewhere;  // in its own code
  if (place->waits) doing->stand = Stand::kWaits;
  MayPoll(doing);
}

std::string PhraseOf(const Doing& doing) {
  std::string text;
  if (!doing.what.empty()) text = "in " + doing.what;
  if (!doing.where.empty()) text += (text.empty() ? "at " : " at ") + doing.where;
  if (!doing.more.empty()) text += text.empty() ? doing.more : fmt::format(" ({})", doing.more);
  if (doing.stopped) {
    const std::string how = doing.tracer.empty() ? "stopped" : kStoppedBy + doing.tracer;
    text = how + (text.empty() ? "" : ", " + text);
  }
  if (text.empty()) return doing.runs ? kRunning : kUnknownPlace;
  return text;
}

}  // namespace dtrun::stacks
