#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <optional>
#include <set>

#include "core/base/visit.h"
#include "core/pmi/pmix_wire.h"
#include "core/pmi/server.h"
#include "core/wire/coder.h"

namespace dtrun::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using Descriptor = boost::asio::posix::stream_descriptor;

// Startup limit; it normally takes tens of milliseconds.
constexpr std::chrono::seconds kPatience{30};
constexpr std::size_t kPmixReadBytes = 64 << 10;
// Limit for different rank sets with their own fences in one generation.
constexpr std::size_t kMostGroups = 1 << 16;
constexpr std::size_t kMostOpenFences = 1 << 16;

Error Nonsense(const std::string& what) {
  return Error::Of(DTRUN_INTERNAL, "it broke its protocol with the agent: {}", what);
}

// The connection to one PMIx server process, for one generation. Kept alive by its pending operations.
class Link : public std::enable_shared_from_this<Link> {
 public:
  using Take = std::function<Status(FromPmix message)>;
  using Lost = std::function<void(const Error& why)>;

  Link(boost::asio::io_context& loop, UniqueFd socket, Take take, Lost lost)
      : socket_(loop, socket.Release()), take_(std::move(take)), lost_(std::move(lost)) {}

  // Sends synchronously, before Watch: the server reads at once.
  Status SendNow(const ToPmix& message) {
    const std::string frame = Encode(message);
    const timeval limit{kPatience.count(), 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    for (std::string_view rest = frame; !rest.empty();) {
      const ssize_t size = ::send(socket_.native_handle(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Error::System("talk to the PMIx server", errno);
      rest.remove_prefix(static_cast<std::size_t>(size));
    }
    return {};
  }

  // Receives the first message synchronously.
  Result<FromPmix> ReceiveNow() {
    const Clock::time_point deadline = Clock::now() + kPatience;
    for (;;) {
      Result<std::optional<std::string_view>> frame = reader_.Next();
      if (!frame) return frame.error();
      if (*frame) return DecodeFromPmix(**frame);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd wait{socket_.native_handle(), POLLIN, 0};
      const int ready = left.count() > 0 ? ::poll(&wait, 1, static_cast<int>(left.count())) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        return Error::Of(DTRUN_TIMEOUT, "the PMIx server has not started within {} s", kPatience.count());
      }
      const ssize_t size = ::recv(socket_.native_handle(), chunk_.data(), chunk_.size(), MSG_DONTWAIT);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size <= 0) return Error{DTRUN_INTERNAL, "the PMIx server ended while it started"};
      reader_.Append({chunk_.data(), static_cast<std::size_t>(size)});
    }
  }

  // Switches to the event loop.
  void Watch() {
    socket_.async_wait(Descriptor::wait_read,
                       [this, self = shared_from_this()](const boost::system::error_code& error) {
                         if (error || !socket_.is_open()) return;
                         TakeAll();
                         if (socket_.is_open()) Watch();
                       });
  }

  // Reads what has already arrived.
  void TakeAll() {
    while (socket_.is_open()) {
      const ssize_t size = ::recv(socket_.native_handle(), chunk_.data(), chunk_.size(), MSG_DONTWAIT);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return Fail(Error{DTRUN_INTERNAL, ""});  // its exit status tells more
      reader_.Append({chunk_.data(), static_cast<std::size_t>(size)});
      TakeFrames();
    }
  }

  void Send(const ToPmix& message) {
    if (!socket_.is_open()) return;
    waiting_.push_back(Encode(message));
    if (waiting_.size() == 1) Write(0);
  }

  void Close() {
    boost::system::error_code ignored;  // closing errors do not matter
    socket_.close(ignored);
  }

 private:
  void Write(std::size_t from) {
    socket_.async_write_some(
        boost::asio::buffer(waiting_.front().data() + from, waiting_.front().size() - from),
        [this, from, self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
          if (error || !socket_.is_open()) return;  // the read reports it
          if (from + size < waiting_.front().size()) return Write(from + size);
          waiting_.pop_front();
          if (!waiting_.empty()) Write(0);
        });
  }

  void TakeFrames() {
    while (socket_.is_open()) {
      const Result<std::optional<std::string_view>> frame = reader_.Next();
      if (!frame) return Fail(Nonsense(frame.error().text));
      if (!*frame) return;
      Result<FromPmix> message = DecodeFromPmix(**frame);
      if (!message) return Fail(Nonsense(message.error().text));
      if (const Status taken = take_(*std::move(message)); !taken) return Fail(taken.error());
    }
  }

  void Fail(const Error& why) {
    Close();
    lost_(why);
  }

  Descriptor socket_;
  const Take take_;
  const Lost lost_;
  std::array<char, kPmixReadBytes> chunk_;
  wire::FrameReader reader_{kMaxPmixFrameBytes};
  std::deque<std::string> waiting_;  // frames; the first is being written
};

class PmixServer final : public Server {
 public:
  PmixServer(boost::asio::io_context& loop, Folders folders, Events events, StartPmix start)
      : loop_(loop), folders_(std::move(folders)), events_(std::move(events)), start_(std::move(start)) {}
  ~PmixServer() override { End(); }

  // Starting the server takes longer than starting two ranks. It runs in parallel with the agent's other
  // work, and the first Admit waits for the rest.
  Status Begin(const Job& job) override {
    End();
    job_ = job;
    begun_ = true;
    for (const std::filesystem::path& folder : {folders_.disk, folders_.memory}) {
      if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)  // in the private folder of the job
        return Error::System(fmt::format("make the folder '{}'", folder.string()), errno);
    }
    const std::filesystem::path segments = folders_.memory / job.name;
    if (::mkdir(segments.c_str(), 0700) != 0)
      return Error::System(fmt::format("make the folder '{}'", segments.string()), errno);
    Result<UniqueFd> socket = start_();
    if (!socket) return socket.error();
    link_ = std::make_shared<Link>(
        loop_, *std::move(socket),
        [this](FromPmix message) { return Visit([this](auto& one) { return On(one); }, message); },
        [this](const Error& why) { events_.lost(why.text); });
    return link_->SendNow(PmixBegin{job, folders_.disk.string(), folders_.memory.string()});
  }

  Result<Admission> Admit(int rank) override {
    if (variables_.empty()) {
      if (Status ready = AwaitReady(); !ready) return ready.error();
    }
    Admission admission;
    admission.variables = variables_.at(static_cast<std::size_t>(rank - job_.host().first_rank));
    // By default these files are in /dev/shm itself, where they would be left behind.
    admission.defaults["OMPI_MCA_btl_vader_backing_directory"] = (folders_.memory / job_.name).string();
    return admission;
  }

  void Complete(const std::string& exchange, const Result<std::string>& all) override {
    const auto found = fences_.extract(exchange);
    if (found.empty() || link_ == nullptr) return;
    link_->Send(PmixAnswer{found.mapped(), all.ok(), all ? *all : ""});
  }

  void Look() override {
    if (const std::shared_ptr<Link> link = link_; link != nullptr && !variables_.empty()) link->TakeAll();
  }

  void End() override {
    if (!std::exchange(begun_, false)) return;
    if (link_ != nullptr) link_->Close();
    link_ = nullptr;
    variables_.clear();
    started_.clear();
    fences_.clear();
    fence_count_.clear();
    next_fence_ = 0;
    for (const std::filesystem::path& folder : {folders_.disk, folders_.memory}) {
      std::error_code error;  // removing the parent folder reports what cannot be removed
      std::filesystem::remove_all(folder / job_.name, error);
    }
  }

 private:
  Status AwaitReady() {
    Result<FromPmix> first = link_->ReceiveNow();
    if (!first) return first.error();
    if (const auto* refused = std::get_if<PmixRefused>(&*first))
      return Error{DTRUN_FAILED_PRECONDITION, refused->why};
    auto* const ready = std::get_if<PmixReady>(&*first);
    if (ready == nullptr || ready->variables.size() != static_cast<std::size_t>(job_.host().local_size))
      return Nonsense("its first message says nothing of the ranks");
    variables_ = std::move(ready->variables);
    link_->Watch();
    return {};
  }

  Status On(const PmixReady&) { return Nonsense("it says twice that it is ready"); }
  Status On(const PmixRefused& refused) { return Error{DTRUN_INTERNAL, refused.why}; }

  Status On(const PmixStarted& started) {
    if (!IsHere(started.rank)) return NotHere(started.rank);
    started_.insert(started.rank);
    events_.started(started.rank);
    return {};
  }
  Status On(const PmixFinished& finished) {
    if (!started_.contains(finished.rank))
      return Nonsense(fmt::format("rank {} finishes what it has not begun", finished.rank));
    events_.finished(finished.rank);
    return {};
  }
  Status On(const PmixAborted& aborted) {
    if (!IsHere(aborted.rank)) return NotHere(aborted.rank);
    events_.aborted(aborted.rank, aborted.code, aborted.message);
    return {};
  }
  Status On(const PmixSaid& said) {
    if (!IsHere(said.rank)) return NotHere(said.rank);
    events_.said(said.rank, said.text);
    return {};
  }

  Status On(PmixFenced& fenced) {
    if (fenced.fence != next_fence_++) return Nonsense("its fences do not count up");
    const std::set<int> ranks(fenced.ranks.begin(), fenced.ranks.end());
    if (!std::ranges::equal(ranks, fenced.ranks) ||
        (!ranks.empty() && (*ranks.begin() < 0 || *ranks.rbegin() >= job_.size()))) {
      return Nonsense(fmt::format("a fence of ranks {}", fmt::join(fenced.ranks, ",")));
    }
    std::vector<int> hosts = HostsOf(ranks);
    if (!std::ranges::binary_search(hosts, job_.here)) return Nonsense("a fence of other hosts' ranks alone");
    const std::string members = fmt::format("{}", fmt::join(ranks, ","));
    if (fences_.size() >= kMostOpenFences ||
        (fence_count_.size() >= kMostGroups && !fence_count_.contains(members))) {
      return Nonsense("more fences than ranks can have");
    }
    // Fences of the same ranks happen in the same order on every host.
    const std::string exchange = fmt::format("pmix/{}/{}", members, fence_count_[members]++);
    fences_[exchange] = fenced.fence;
    events_.offered({exchange, std::move(hosts), std::move(fenced.bytes)});
    return {};
  }

  bool IsHere(int rank) const {
    const JobHost& host = job_.host();
    return rank >= host.first_rank && rank < host.first_rank + host.local_size;
  }
  static Error NotHere(int rank) { return Nonsense(fmt::format("rank {} is not on this host", rank)); }

  std::vector<int> HostsOf(const std::set<int>& ranks) const {
    std::vector<int> hosts;
    for (std::size_t i = 0; i < job_.hosts.size(); ++i) {
      const JobHost& host = job_.hosts[i];
      const auto first = ranks.lower_bound(host.first_rank);
      if (ranks.empty() || (first != ranks.end() && *first < host.first_rank + host.local_size)) {
        hosts.push_back(static_cast<int>(i));
      }
    }
    return hosts;
  }

  boost::asio::io_context& loop_;
  const Folders folders_;
  const Events events_;
  const StartPmix start_;
  Job job_;
  bool begun_ = false;
  std::shared_ptr<Link> link_;
  std::vector<std::map<std::string, std::string>> variables_;  // by rank of this host; empty: not ready
  std::set<int> started_;
  std::map<std::string, std::uint64_t> fences_;       // number, by exchange
  std::map<std::string, std::uint64_t> fence_count_;  // by members
  std::uint64_t next_fence_ = 0;
};

}  // namespace

std::unique_ptr<Server> MakePmixServer(boost::asio::io_context& loop, Folders folders, Events events,
                                       StartPmix start) {
  return std::make_unique<PmixServer>(loop, std::move(folders), std::move(events), std::move(start));
}

std::unique_ptr<Server> MakeServer(Kind kind, boost::asio::io_context& loop, Folders folders, Events events,
                                   StartPmix start) {
  if (kind == Kind::kPmix)
    return MakePmixServer(loop, std::move(folders), std::move(events), std::move(start));
  return MakePmi1Server(loop, std::move(events));
}

}  // namespace dtrun::pmi
