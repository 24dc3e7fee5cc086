#include "team.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dtrun/plugin/hash.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

// Between two questions to the store.
constexpr std::chrono::milliseconds kAskEvery{500};

// Freeing a communicator is local in practice; the standard would let it wait for others.
constexpr sdk::Nanoseconds kFreeing = std::chrono::seconds(2);

std::string RankText(int rank) { return "rank " + std::to_string(rank); }

[[noreturn]] void RefuseSingleton(const sdk::CommParams& params) {
  throw Failure(
      DTRUN_FAILED_PRECONDITION,
      "'" + params.name + "' has " + std::to_string(params.size) +
          " ranks, but MPI_COMM_WORLD has only this process: it found no PMIx server; set job.pmi to "
          "\"auto\" (the default) or \"pmix\", or start the job under mpirun, for example 'mpirun -n " +
          std::to_string(params.size) + " ...'");
}

// What ranks have in common that share memory by Open MPI's ways: their namespaces, and /dev/shm. It compares
// the numbers of processes itself, which in PID namespaces mean other processes.
std::string MemoryPlace() {
  std::string place;
  for (const char* const name : {"/proc/self/ns/user", "/proc/self/ns/pid"}) {
    char text[64];
    const ssize_t size = readlink(name, text, sizeof text);
    place.append(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))).append(" ");
  }
  struct stat memory {};
  if (stat("/dev/shm", &memory) == 0) place += std::to_string(memory.st_dev);
  return place;
}

// Whether ranks of this host are in containers of their own.
bool AreApart(const sdk::CommParams& params, const sdk::Membership& members) {
  const std::string mine = MemoryPlace();
  for (int peer = 0; peer < members.size(); ++peer) {
    const bool here = params.hosts.empty() ? params.host_count == 1
                                           : params.hosts[static_cast<std::size_t>(peer)] == params.host;
    if (here && peer != members.rank() && members.Said("mpi", peer) != mine) return true;
  }
  return false;
}

// Of the job: the first communicator need not be its largest.
int LocalRanks(const sdk::CommParams& params) {
  const char* const launched = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  return std::max(params.size, launched == nullptr ? 0 : std::atoi(launched));
}

// Ranks of MPI_COMM_WORLD.
std::vector<int> ExchangeWorldRanks(const sdk::CommParams& params, const sdk::Membership& members,
                                    const World& world, const sdk::Deadline& deadline) {
  // Every process says its own before it complains, so that none waits in vain.
  const std::vector<std::string> texts =
      members.Exchange("world", std::to_string(world.rank()) + " " + std::to_string(world.size()), deadline);
  if (world.size() == 1) RefuseSingleton(params);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const int world_rank = std::stoi(texts[rank]);
    const int world_size = std::stoi(texts[rank].substr(texts[rank].find(' ')));
    const auto duplicate = std::find(ranks.begin(), ranks.end(), world_rank);
    if (world_size != world.size() || duplicate != ranks.end()) {
      throw Failure(DTRUN_FAILED_PRECONDITION,
                    "'" + params.name + "': rank " + std::to_string(rank) + " is process " +
                        std::to_string(world_rank) + " of " + std::to_string(world_size) +
                        " in its MPI job, this rank is " + std::to_string(world.rank()) + " of " +
                        std::to_string(world.size()) +
                        ": they belong to different MPI jobs; start all ranks with one mpirun");
    }
    ranks.push_back(world_rank);
  }
  return ranks;
}

// Null when some rank cannot open the page; then all do without.
std::unique_ptr<EntryBarrier> SharePage(const sdk::Host& host, const sdk::Membership& members,
                                        const sdk::Deadline& deadline) {
  constexpr char kPage[] = "page";
  std::optional<Page> page;
  std::string trouble;
  try {
    if (members.rank() == 0) {
      page = Page::Make(members.size());
      members.kv().Set(kPage, page->Address());
    } else {
      const std::string address = members.kv().Get(kPage, deadline.Left());
      if (address.empty()) throw Failure(DTRUN_SYSTEM, "rank 0 has none");
      page = Page::Open(address, members.size());
    }
  } catch (const Failure& failure) {
    if (failure.code() == DTRUN_TIMEOUT || failure.code() == DTRUN_ABORTED) throw;
    trouble = std::string("rank ") + std::to_string(members.rank()) + ": " + failure.what();
    if (members.rank() == 0) members.kv().Set(kPage, "");
  }
  for (const std::string& text : members.Exchange("page opened", trouble, deadline)) {
    if (text.empty()) continue;
    sdk::Log(host, "mpi")
        .Warn("'" + members.name() + "': ranks share no memory, so late ranks will not be named (" + text +
              ")");
    return nullptr;
  }
  return std::make_unique<EntryBarrier>(std::move(*page), members.rank(), members.size());
}

sdk::ProcessWatch OpenProcesses(const sdk::Membership& members, const sdk::Deadline& deadline) {
  sdk::ProcessWatch processes;
  const auto identities = members.Exchange("process", sdk::ProcessIdentity(), deadline);
  for (int rank = 0; rank < members.size(); ++rank)
    processes.Add(rank, identities[static_cast<std::size_t>(rank)]);
  return processes;
}

// The program's own communicators on the same processes have other tags.
int CreationTag(const sdk::CommParams& params, const World& world) {
  sdk::Fnv1a digest;
  digest.Add(params.generation);
  digest.Add(params.name);
  const std::uint64_t hash = digest.value();
  return static_cast<int>((hash ^ hash >> 32) % static_cast<std::uint64_t>(world.largest_tag()));
}

// The same processes with Open MPI's coll/sm before its other collectives. Other MPIs ignore the key.
MPI_Comm MakeBulk(const Api& api, MPI_Comm main) {
  MPI_Info info;
  MPI_Comm bulk;
  api.MPI_Info_create(&info);
  api.MPI_Info_set(info, "ompi_comm_coll_preference", "sm");
  api.MPI_Comm_dup_with_info(main, info, &bulk);
  api.MPI_Info_free(&info);
  api.MPI_Comm_set_errhandler(bulk, api.errors_return);
  return bulk;
}

Handles MakeHandles(World& world, const std::vector<int>& ranks, int tag, bool own_bulk) {
  const Api& api = world.api();
  std::unique_lock<std::timed_mutex> lock;
  if (world.gate() != nullptr) lock = std::unique_lock(*world.gate());
  MPI_Group everybody;
  MPI_Group members;
  Handles handles{};
  api.MPI_Comm_group(api.comm_world, &everybody);
  api.MPI_Group_incl(everybody, static_cast<int>(ranks.size()), ranks.data(), &members);
  api.MPI_Comm_create_group(api.comm_world, members, tag, &handles.main);
  api.MPI_Group_free(&members);
  api.MPI_Group_free(&everybody);
  api.MPI_Comm_set_errhandler(handles.main, api.errors_return);
  for (MPI_Comm* copy : {&handles.pieces, &handles.high}) {
    api.MPI_Comm_dup(handles.main, copy);
    api.MPI_Comm_set_errhandler(*copy, api.errors_return);
  }
  handles.bulk = own_bulk ? MakeBulk(api, handles.main) : handles.main;
  return handles;
}

}  // namespace

Team::Team(const sdk::Host& host, const sdk::CommParams& params, World& world, CollSm coll_sm)
    : host_(host), health_(host), members_(params), world_(world) {
  if (size() > 1) joined_ = Join(host, params, world, coll_sm);
}

void Team::Leave(bool alone, std::uint64_t calls) {
  if (EntryBarrier* const place = entry()) {
    place->Depart(Fate::kLeft, "");
  } else if (size() > 1 && !failure_) {
    TellStore([&] { members_.Leave(std::to_string(calls)); });
  }
  if (!alone || size() == 1) return;
  joined_.processes = {};
  joined_.entry.reset();
  // What a failed communicator still has under way in MPI may use its handles.
  if (failure_ || world_.stuck() || !world_.usable()) return;
  const auto free_handles = [&world = world_, handles = joined_.handles]() mutable {
    std::unique_lock<std::timed_mutex> lock;
    if (world.gate() != nullptr) lock = std::unique_lock(*world.gate());
    if (handles.bulk != handles.main) world.api().MPI_Comm_free.Try(&handles.bulk);
    for (MPI_Comm* handle : {&handles.high, &handles.pieces, &handles.main})
      world.api().MPI_Comm_free.Try(handle);
  };
  if (!world_.thread().Run(host_, free_handles, sdk::Deadline(kFreeing))) world_.SetStuck();
}

void Team::Fail(const Failure& failure, Fate fate) {
  sdk::Deadline::Clock::time_point never{};
  failed_at_.compare_exchange_strong(never, sdk::Deadline::Clock::now());  // before anybody sees a failure
  if (!failure_.Set(failure)) return;
  world_.SetShaken();
  const int culprit = failure.code() == DTRUN_REMOTE_FAILURE ? failure.peer() : -1;
  if (EntryBarrier* const place = entry()) {
    place->Depart(fate, failure.what(), culprit);
  } else if (size() > 1) {
    TellStore([&] { members_.PublishFailure(failure); });
  }
}

void Team::TellStore(const std::function<void()>& tell) noexcept {
  try {
    tell();
  } catch (const Failure& failure) {
    sdk::Log(host_, "mpi").Debug("'" + name() + "': cannot tell the other ranks: " + failure.what());
  }
}

std::optional<Failure> Team::AskStore(int needed, std::uint64_t call) {
  const auto now = sdk::Deadline::Clock::now();
  auto due = next_question_.load();
  if (now < due || !next_question_.compare_exchange_strong(due, now + kAskEvery)) return std::nullopt;
  try {
    if (const std::optional<Failure> theirs = members_.FailureOfAnother()) return theirs;
    if (needed == kNoPeer || !members_.AnyLeft()) return std::nullopt;
    int left = -1, staying = 0;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank() || (needed >= 0 && peer != needed)) continue;
      const std::optional<std::string> calls = members_.Left(peer);
      const bool gone = calls && (needed != kAll || std::strtoull(calls->c_str(), nullptr, 10) < call);
      if (gone) left = peer;
      if (!gone) ++staying;
    }
    if (needed == kEveryPeer && staying > 0) left = -1;
    // What it sent last may still be on its way.
    if (left_.exchange(left) == left && left >= 0) return members_.LeftFailure(left);
  } catch (const Failure& failure) {
    return Failure(failure.code(), std::string("the store does not answer: ") + failure.what());
  }
  return std::nullopt;
}

void Team::CheckPeers(int needed, std::uint64_t call) {
  if (failure_) return;
  if (const std::optional<Failure> trouble = FindTrouble(needed, call)) {
    Fail(*trouble, trouble->code() == DTRUN_ABORTED ? Fate::kAborted : Fate::kFailed);
  }
}

std::optional<Failure> Team::FindTrouble(int needed, std::uint64_t call) {
  EntryBarrier* const place = entry();
  if (place == nullptr) return size() > 1 ? AskStore(needed, call) : std::nullopt;
  if (const auto departure = place->FindDeparture()) {
    const int peer = departure->rank;
    switch (departure->fate) {
      case Fate::kAborted: return Failure(DTRUN_ABORTED, RankText(peer) + ": " + departure->reason, peer);
      case Fate::kFailed:
        return Failure(DTRUN_REMOTE_FAILURE,
                       RankText(peer) + " gave '" + name() + "' up: " + departure->reason,
                       departure->culprit >= 0 && departure->culprit != rank() ? departure->culprit : peer);
      default: break;
    }
    if (needed == kAll)
      return Failure(DTRUN_REMOTE_FAILURE, RankText(peer) + " has left '" + name() + "'", peer);
    if (needed >= 0 && place->FateOf(needed) == Fate::kLeft)
      return Failure(DTRUN_REMOTE_FAILURE, RankText(needed) + " has left '" + name() + "'", needed);
    if (needed == kEveryPeer && AllLeft())
      return Failure(DTRUN_REMOTE_FAILURE, "all other ranks have left '" + name() + "'", peer);
  }
  if (const auto dead = FindDeadRank()) {
    const std::string what = "the process of " + RankText(*dead) + " is gone";
    health_.ReportPeer(members_.kv(), *dead, what);
    return Failure(DTRUN_REMOTE_FAILURE, what + "; look at its log and at the verdict of the job", *dead);
  }
  return std::nullopt;
}

bool Team::AllLeft() const {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank() && joined_.entry->FateOf(peer) != Fate::kLeft) return false;
  }
  return true;
}

std::optional<int> Team::FindDeadRank() const {
  for (const int rank : joined_.processes.Ended()) {
    // Who leaves says so before its process ends.
    if (joined_.entry->FateOf(rank) == Fate::kMember) return rank;
  }
  return std::nullopt;
}

std::string Team::MissingRanks(std::uint64_t call, int* first) {
  *first = -1;
  std::string text;
  EntryBarrier* const place = entry();
  if (place == nullptr) return text;
  for (int peer = 0; peer < size(); ++peer) {
    const std::uint64_t last = place->CallOf(peer);
    if (peer == rank() || last >= call) continue;
    if (*first < 0) *first = peer;
    text += (text.empty() ? "" : ", ") + RankText(peer) + " (";
    text += last == 0 ? "has made no collective call)"
                      : "its last is " + std::string(sdk::OperationName(place->SignatureOf(peer).kind)) +
                            " " + std::to_string(last) + ")";
  }
  return text;
}

Joined Join(const sdk::Host& host, const sdk::CommParams& params, World& world, CollSm coll_sm) {
  const sdk::Deadline deadline(params.timeout);
  const sdk::Membership members(params);
  members.Join("mpi", MemoryPlace(), deadline);  // MPI would only hang on a missing rank
  const int local_ranks = params.host_count == 1 ? LocalRanks(params) : 0;
  if (AreApart(params, members)) coll_sm = CollSm::kApart;
  world.Start(host, coll_sm, local_ranks, deadline);
  const std::vector<int> ranks = ExchangeWorldRanks(params, members, world, deadline);
  Joined joined;
  if (params.host_count == 1) joined.entry = SharePage(host, members, deadline);
  if (joined.entry) joined.processes = OpenProcesses(members, deadline);
  // What the task uses must live as long as it does.
  const auto made = std::make_shared<Handles>();
  const auto make = [&world, ranks, tag = CreationTag(params, world),
                     own_bulk = coll_sm == CollSm::kAuto && EachHasAProcessor(local_ranks),
                     made] { *made = MakeHandles(world, ranks, tag, own_bulk); };
  if (!world.thread().Run(host, make, deadline)) {
    world.SetStuck();
    throw Failure(DTRUN_TIMEOUT, "'" + params.name + "': MPI_Comm_create_group did not end within " +
                                     sdk::DurationText(params.timeout) + "; some rank has left it");
  }
  joined.handles = *made;
  return joined;
}

}  // namespace dtrun::mpi_plugin
