#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>

#include "core/failures/report.h"
#include "core/process/process.h"
#include "core/verdict/facts.h"
#include "core/verdict/text.h"
#include "core/verdict/traceback.h"
#include "core/verdict/verdict.h"
#include "core/verdict/waits.h"

namespace dtrun::verdict {
namespace {

constexpr char kLessMemory[] =
    "use less memory per rank or fewer ranks per host, or raise the limit (job.memory, --mem of Slurm, the "
    "container's)";

// A launcher that starts one process per host does not set a rank number.
bool MissesItsRank(const RankFacts& rank) {
  const std::string error = ErrorIn(rank.tail);
  return error == "KeyError: 'RANK'" || error == "KeyError: 'LOCAL_RANK'";
}

// Ranks inherit the limit. The kernel kills silently if it is also the hard limit.
std::string OfTime() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return {};
  return fmt::format(
      "`ulimit -t` allows each process {} s of processor time, after which the kernel kills it; otherwise ",
      limit.rlim_max);
}

// The usual cause of such an exit and where to look, for a rank without better advice in its output; may be
// empty. REQUIRES: `rank` has ended.
std::string Hint(const RankFacts& rank) {
  if (rank.abort) return {};
  const process::Ending& ending = *rank.ending;
  if (ending.stopped_by != 0) {
    return fmt::format("dtrun did not send {}: find out what did; `kill -CONT` resumes a stopped process",
                       process::SignalName(ending.stopped_by));
  }
  if (ending.out_of_memory) return kLessMemory;
  if (ending.forwarded) {
    return fmt::format("dtrun was sent {} and forwarded it: the rank blocked it at first and had no handler",
                       process::SignalName(ending.signal));
  }
  switch (ending.signal) {
    case 0: break;
    case SIGKILL:
      return OfTime() +
             "dtrun did not send this signal: look in `dmesg` for the out-of-memory killer, or find out what "
             "did";
    case SIGABRT:
      if (std::ranges::any_of(rank.tail, [](const std::string& line) {
            return line.starts_with("terminate called after throwing");
          }))
        return "no code caught this C++ exception; `ulimit -c unlimited` keeps a core file for gdb";
      [[fallthrough]];
    case SIGSEGV:
    case SIGFPE:
      return ending.core_dumped ? "open the core file with `coredumpctl gdb` or `gdb PROGRAM core`"
                                : "run again after `ulimit -c unlimited` and open the core file with gdb";
    case SIGBUS: return "look at `df -h /dev/shm` and the disks: a mapped file may have had no room to grow";
    case SIGILL: return "the program was built for another processor; build it on this machine";
    case SIGALRM:
    case SIGVTALRM:
    case SIGPROF:
      return "a timer of the program (alarm, setitimer) expired where it had no handler, as while Python "
             "exits";
    case SIGPIPE: return "it wrote to a closed pipe or socket: look at its last output";
    case SIGXCPU:
      return "it used up the processor time that `ulimit -t` allows a process: raise that where dtrun is "
             "started, or in the scheduler's job";
    case SIGXFSZ: return "a file grew beyond `ulimit -f`: raise that where dtrun is started";
    default:
      return fmt::format("dtrun did not send {}: find out what did", process::SignalName(ending.signal));
  }
  if (SaysMemoryError(rank.tail)) return kLessMemory;
  if (MissesItsRank(rank)) {
    return "RANK is set where each rank has a process: launcher.name = \"per-process\" (the default), "
           "torchrun, "
           "mpirun or slurm. per-node, and processes = \"host\", start one process per host with NODE_RANK, "
           "and "
           "that process starts its ranks";
  }
  if (ending.signal == 0 && ending.code == 127) {
    return "127 is a shell's code for a command or script that was not found; for a command, check PATH";
  }
  if (ending.signal == 0 && ending.code == 126) {
    return "126 is a shell's code for a command that is not executable: look at its last output";
  }
  if (ending.signal == 0 && ending.code > 128 && ending.code <= 128 + SIGRTMAX) {
    return fmt::format("{} is a shell's code for a command killed by {}", ending.code,
                       process::SignalName(ending.code - 128));
  }
  return {};
}

constexpr char kMakeSameCalls[] =
    "make all ranks call the same in the same order, with as many elements of one type";

// How the rank failed, for the first line of the verdict.
std::string FailureText(const RankFacts& rank) {
  if (!rank.abort) return EndingText(*rank.ending);
  if (rank.abort->broke) return "broke PMI-1, by which its MPI library starts: " + rank.abort->message;
  // MPI libraries call MPI_Abort for their own errors too.
  if (rank.known && rank.known->recent && rank.known->finding.failure->depth == failures::Depth::kCause)
    return fmt::format("called MPI_Abort with code {}: {}", rank.abort->code, rank.known->finding.what);
  return fmt::format("called MPI_Abort with code {}{}{}", rank.abort->code,
                     rank.abort->message.empty() ? "" : ": ", rank.abort->message);
}

// "rank 3"; "the process of ranks 0-3" where one process holds several.
std::string Who(const RankFacts& process) {
  if (process.failed) return FoldRanks({process.failed->rank});
  std::vector<int> ranks;
  AddRanks(process, &ranks);
  return (process.count == 1 ? "" : "the process of ") + FoldRanks(ranks);
}

// In which phase of its life the rank failed. Unknown if the program never calls dtrun_init.
std::string PhaseText(const Facts& facts, const RankFacts& rank) {
  if (rank.left) return ", after dtrun_finalize";
  if (rank.joined) return ", after it had called dtrun_init";
  if (std::ranges::any_of(facts.ranks, &RankFacts::joined))
    return ", before dtrun_init, which other ranks had called";
  return "";
}

// Where the output of the rank is: "all of it: /runs/1/rank-1.*".
std::string KeptIn(const RankFacts& rank, const std::string& logs) {
  if (rank.log_files.empty()) return "it is not kept in a file";
  const std::string usual = fmt::format("{}/rank-{}.", logs, rank.blamed());
  std::string where = usual + "*";
  if (!rank.log_files.front().string().starts_with(usual)) {
    where.clear();
    for (const std::filesystem::path& file : rank.log_files)
      where += (where.empty() ? "" : ", ") + file.string();
  }
  return (rank.log_cut ? "its files have only the beginning: " : "all of it: ") + where;
}

// The last lines of its output that a verdict quotes. Marks below a source line are not counted.
std::vector<std::string> Quoted(const RankFacts& rank) {
  std::vector<std::string> lines = WithoutDumps(rank.tail);
  std::size_t begin = lines.size();
  for (std::size_t counted = 0; begin > 0 && counted < kTailLines; --begin)
    counted += OnlyMarks(lines[begin - 1]) ? 0 : 1;
  return {lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end()};
}

// The known failure in its output, without hiding the raw text.
std::string KnownText(const RankFacts& rank) {
  const failures::LogFinding& known = *rank.known;
  const failures::Finding& finding = known.finding;
  const std::string place = failures::PlaceText(known.file.filename().string(), finding);
  const bool shown =
      std::ranges::any_of(Quoted(rank), [&](const std::string& line) {  // in the last output above
        return line.find(finding.line) != line.npos;
      });
  return fmt::format("  {}: {} ({}{}{})\n{}", known.recent ? "known failure" : "seen long before",
                     finding.what, finding.failure->id, place.empty() ? "" : "; ", place,
                     shown ? "" : "    | " + finding.line + "\n");
}

// The evidence for the suspicion.
std::string EvidenceText(const Facts& facts, const Cause& why) {
  const RankFacts& first = facts.ranks[why.first];
  const std::string error = ErrorIn(first.tail);
  std::string text = fmt::format("  first failed exit: {} {}{}\n", Who(first), FailureText(first),
                                 error.empty() ? "" : ": " + error);
  if (why.suspicion.kind == Suspicion::Kind::kErred && facts.ranks[why.index].signal_sent != 0)
    text += fmt::format("  {} had printed its error by then and had not ended yet\n",
                        Who(facts.ranks[why.index]));
  if (first.known) text += KnownText(first);
  return text;
}

// Its reports, without those that another report of the same peer contains: "connection to rank 1 was closed"
// beside "allreduce #16: connection to rank 1 was closed".
std::vector<PeerReport> ReportsOf(const RankFacts& rank) {
  std::vector<PeerReport> telling;
  for (const PeerReport& one : rank.reports) {
    const bool held = std::ranges::any_of(rank.reports, [&](const PeerReport& other) {
      return other.peer == one.peer && other.what.size() > one.what.size() &&
             other.what.find(one.what) != std::string::npos;
    });
    if (!held) telling.push_back(one);
  }
  return telling;
}

// Empty if the text is already shown: a rank prints its error and reports it, and others repeat it as "rank 0
// gave up: ...".
std::string ReportText(const std::string& who, const PeerReport& report, std::string_view said) {
  constexpr std::string_view kPassedOn = " gave up: ";
  std::string_view what = report.what;
  if (const auto at = what.find(kPassedOn); at != std::string_view::npos)
    what.remove_prefix(at + kPassedOn.size());
  if (const auto reason = report.args.find("reason"); reason != report.args.end()) what = reason->second;
  return said.find(what) == std::string_view::npos ? fmt::format("  {} reported: {}\n", who, report.what)
                                                   : "";
}

bool AnySeen(const Facts& facts) {
  return std::ranges::any_of(
      facts.ranks, [](const RankFacts& rank) { return rank.doing.has_value() || !rank.inside.empty(); });
}

// Where the program's own code failed, from what the rank printed as it ended: "in json.loads at train.py:4".
// Empty: unknown.
std::string FailedAt(const RankFacts& rank) {
  constexpr std::chrono::seconds kExitsWithin{5};
  const bool crashed = rank.ending && !rank.abort && (rank.ending->signal != 0 || rank.ending->code > 128);
  if (std::string own = crashed ? OwnCrashPlaceIn(rank.tail) : ""; crashed)
    return own.empty() ? rank.crashed_at : own;
  if (!rank.abort && (!rank.ending || rank.ending->code != 1)) return {};
  // It may have caught that error, and exited for another reason.
  const bool recent = rank.erred_at && rank.ended_at - *rank.erred_at < kExitsWithin;
  return recent || !SaysMoreThanItsError(rank.tail) ? OwnErrorPlaceIn(rank.tail) : "";
}

// ", at train.py:4: ValueError: wrong size"; the error is missing where it would be long. Empty: unknown.
std::string FailedAtText(const RankFacts& rank) {
  constexpr std::size_t kMostOfAnError = 160;
  const std::string place = FailedAt(rank), error = ErrorIn(rank.tail);
  if (place.empty()) return {};
  const bool crashed = rank.ending && rank.ending->signal != 0;
  const bool told = !crashed && !rank.abort && !error.empty() && error.size() <= kMostOfAnError;
  return ", " + place + (told ? ": " + error : "");
}

// "rank 0 calls allreduce (float32 x 8, sum), rank 2 calls barrier", as far as the recorder, or else the
// rank, told how the calls differ; empty: they do not.
std::string DifferenceOf(const Facts& facts, const RankFacts& rank) {
  constexpr std::string_view kDiffers = " differs: ";
  if (const auto at = facts.calls_differ.find(kDiffers); at != std::string::npos)
    return facts.calls_differ.substr(at + kDiffers.size());
  if (!facts.calls_differ.empty()) return facts.calls_differ;  // the call itself is no longer remembered
  for (const std::string& line : rank.tail) {
    const auto at = line.find(kDiffers);
    if (at != line.npos && SaysCallsDiffer({line})) return line.substr(at + kDiffers.size());
  }
  return DifferingMessageText(facts, rank);
}

// The rank only detected that the calls differ. Its own call need not be the wrong one.
std::string Headline(const Facts& facts, const RankFacts& cause) {
  const std::string plugin = PluginAtFault(cause);
  const std::string text = Who(cause) + " " + FailureText(cause) + FailedAtText(cause);
  const std::string difference = DifferenceOf(facts, cause);
  if (difference.empty() && !SaysCallsDiffer(cause.tail))
    return plugin.empty() ? text : text + ": a fault of " + plugin;
  const std::string places = KnownPlacesText(facts);
  const bool several = places.find(';') != places.npos;
  std::string out = "the ranks' calls do not match: ";
  if (!difference.empty()) out += difference + "\n  ";
  // Beside the calls, only places in source files help.
  if (several && (difference.empty() || places.find(" at ") != places.npos)) out += places + "\n  ";
  return out + text;
}

}  // namespace

std::string Failed(const Facts& facts, std::chrono::nanoseconds at) {
  return fmt::format("dtrun: job '{}' failed after {}{}", facts.job, FormatElapsed(at),
                     facts.restarts ? " and is started again" : "");
}

std::string Tail(const RankFacts& rank, const std::string& logs) {
  if (rank.unheard) {
    return fmt::format("  last output of {}: not recorded; look at {}/rank-{}.*\n", Who(rank), logs,
                       rank.blamed());
  }
  if (rank.tail.empty()) return fmt::format("  {} printed nothing\n", Who(rank));
  std::string text = fmt::format("  last output of {} ({}):\n", Who(rank), KeptIn(rank, logs));
  for (const std::string& line : Quoted(rank)) text += "    | " + line + "\n";
  return text;
}

std::string Around(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                   const std::string& hint, ExitClass exit_class, const std::vector<int>& told) {
  const std::pair<const char*, std::string> lines[] = {
      {"before it", Before(facts, cause, at, told)},
      {"also failed", AlsoFailed(facts, cause, at, told)},
      {"because of it", Consequences(facts, cause, at, told)},
      {"meanwhile", Meanwhile(facts, at)},
      {"unrelated", Beside(facts, at, told)},
      {"not restarted", facts.not_restarted},
      {"next", hint}};
  std::string text;
  for (const auto& [label, what] : lines) {
    if (!what.empty()) text += fmt::format("  {}: {}\n", label, what);
  }
  if (facts.names_class || exit_class != ExitClass::kUserError)
    text += fmt::format("  class: {}\n", ClassName(exit_class));
  return text + fmt::format("  logs: {}\n", facts.logs);
}

std::string StacksText(const Facts& facts) {
  return facts.stacks ? fmt::format("  stacks: {}/{}\n", facts.logs, kStacksFile) : "";
}

std::string RankText(const Facts& facts, const Cause& why) {
  const RankFacts& cause = facts.ranks[why.index];
  const RankFacts& first = facts.ranks[why.first];
  const bool suspected = why.suspicion.kind != Suspicion::Kind::kNone;
  const std::vector<int> locked_out = LockedOutBy(facts, why.index);
  const bool cut_off = !suspected && why.exit_class == ExitClass::kNetwork && !facts.apart.empty();
  const bool apart = !suspected && why.exit_class == ExitClass::kHang && locked_out.empty();
  std::string text =
      fmt::format("{}: {}\n", Failed(facts, first.ended_at),
                  suspected ? SuspicionText(facts, why.suspicion)
                  : cut_off ? fmt::format("{}\n  {}", facts.apart, Headline(facts, cause))
                  : apart   ? fmt::format("{}\n  {}", ApartText(facts, why.index), Headline(facts, cause))
                            : Headline(facts, cause));
  text += fmt::format("  host {}, pid {}{}\n", cause.host, cause.failed ? cause.failed->pid : cause.pid,
                      PhaseText(facts, cause));
  const std::vector<int> told =
      suspected ? RanksThatLeft(facts, why.suspicion) : FailedAlike(facts, why.first);
  text += suspected ? EvidenceText(facts, why) : AlikeText(facts, why.first, text);
  text += Tail(cause, facts.logs);
  for (const PeerReport& report : ReportsOf(cause)) text += ReportText("it", report, text);
  for (const RankFacts& rank : facts.ranks) {
    if (&rank == &cause) continue;
    for (const PeerReport& report : ReportsOf(rank)) {
      if (report.peer >= cause.rank && report.peer < cause.rank + cause.count)
        text += ReportText(Who(rank), report, text);
    }
  }
  std::string hint = suspected ? SuspicionHint(facts, why.suspicion.kind) : Hint(cause);
  if (cause.known) {
    const bool shown = suspected && first.known && first.known->finding.line == cause.known->finding.line &&
                       first.known->finding.failure->id == cause.known->finding.failure->id;
    if (!shown) text += KnownText(cause);
    // Advice for a symptom is for ranks that are not the cause.
    const bool fits = !suspected || (cause.known->finding.failure->depth == failures::Depth::kCause &&
                                     why.suspicion.kind != Suspicion::Kind::kOverrode);
    // A report tells less than what dtrun observed of the rank.
    const bool tells = cause.known->recent && cause.known->finding.failure->depth != failures::Depth::kReport;
    if (fits && (tells || hint.empty())) hint = cause.known->finding.fix;
  }
  if (why.exit_class == ExitClass::kPlugin) {
    hint = fmt::format(
        "report it to the author of {}{}, or choose another", PluginAtFault(cause),
        suspected || cause.ending->signal == 0 ? "" : ", if the program frees no buffer during a call");
    if (!suspected && cause.ending->signal == SIGBUS)
      hint = "if the plugin's file was overwritten during the job, replace it by mv and start again; else " +
             hint;
  }
  if (!DifferenceOf(facts, cause).empty()) hint = kMakeSameCalls;
  if (!DifferingMessageText(facts, cause).empty())
    hint = "make type, count and tag of the send and of its receive the same";
  if (!suspected && NeededRanksThatHadFinished(facts, why.index)) {
    hint = fmt::format(
        "{} called a collective that needs ranks which had finished: give all ranks equally many batches and "
        "epochs, and let none leave before the last collective",
        Who(cause));
  }
  if (const std::string overrides = OverridesText(facts);
      !suspected && !overrides.empty() && FailedToJoin(cause)) {
    text += fmt::format("  {}\n", overrides);
    hint = SuspicionHint(facts, Suspicion::Kind::kOverrode);
  }
  if (!locked_out.empty())
    text +=
        fmt::format("  {} waited for the lock of a file that {} held\n", FoldRanks(locked_out), Who(cause));
  if (!suspected && why.exit_class == ExitClass::kHang) {
    hint = locked_out.empty() ? ApartHint(facts, why.index)
                              : "release that lock before the call in which it waited for the others";
  }
  if (cut_off) hint = "find what separates these hosts: `dtrun doctor` checks them again";
  const bool seen = AnySeen(facts) && (!suspected || why.suspicion.kind == Suspicion::Kind::kErred);
  if (seen ? !apart : !locked_out.empty() && why.exit_class == ExitClass::kHang) {
    const std::string places = KnownPlacesText(facts);
    if (!places.empty() && text.find(places) == text.npos)
      text += fmt::format("  when {} failed: {}\n", suspected ? Who(first) : "it", places);
  }
  return text + StacksText(facts) + Around(facts, &cause, first.ended_at, hint, why.exit_class, told);
}

}  // namespace dtrun::verdict
