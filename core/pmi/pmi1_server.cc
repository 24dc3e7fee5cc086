#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/number.h"
#include "core/pmi/pmi1_wire.h"
#include "core/pmi/server.h"

namespace dtrun::pmi {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

constexpr std::size_t kPmi1ReadBytes = 4096;
// Limit for the data that a host's ranks put in a generation: MPI libraries need a few kilobytes per rank.
constexpr std::size_t kMaxPutBytes = std::size_t{64} << 20;

class Pmi1Server;

// The connection of one rank, kept alive by its pending read.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Pmi1Server& server, boost::asio::io_context& loop, int rank, UniqueFd socket)
      : server_(&server), socket_(loop, socket.Release()), rank_(rank) {}

  void Read();
  void Send(const std::string& line);
  void Close();
  // Disconnects a rank that violates PMI-1 and reports the reason.
  void Break(const std::string& why);

  int rank() const { return rank_; }
  bool open() const { return socket_.is_open(); }

  bool waits = false;     // in the barrier
  bool finished = false;  // with MPI; the rank may start another MPI program

 private:
  Pmi1Server* server_;
  Descriptor socket_;
  const int rank_;
  std::array<char, kPmi1ReadBytes> chunk_;
  Pmi1Reader reader_;
};

class Pmi1Server final : public Server {
 public:
  Pmi1Server(boost::asio::io_context& loop, Events events) : loop_(loop), events_(std::move(events)) {}
  ~Pmi1Server() override { End(); }

  Status Begin(const Job& job) override {
    End();
    job_ = job;
    keys_ = {{"PMI_process_mapping", ProcessMapping(job.hosts)}};
    return {};
  }

  Result<Admission> Admit(int rank) override {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return Error::System("make a socket pair for PMI", errno);
    }
    sessions_.push_back(std::make_shared<Session>(*this, loop_, rank, UniqueFd(ends[0])));
    sessions_.back()->Read();
    return Admission{{}, {}, UniqueFd(ends[1])};
  }

  void Complete(const std::string& exchange, const Result<std::string>& all) override {
    if (exchange != BarrierName() || !offered_) return;
    offered_ = false;
    ++barriers_;
    Result<std::map<std::string, std::string>> pairs = all ? DecodePairs(*all) : all.error();
    if (!pairs) {  // a PMI-1 barrier cannot fail, but clients notice a closed connection
      for (const auto& session : sessions_) session->Close();
      return;
    }
    for (auto& [key, value] : *pairs) keys_[key] = std::move(value);
    for (const auto& session : sessions_) {
      if (std::exchange(session->waits, false)) session->Send("cmd=barrier_out rc=0\n");
    }
  }

  void End() override {
    for (const auto& session : sessions_) session->Close();
    sessions_.clear();
    keys_.clear();
    fresh_.clear();
    put_bytes_ = 0;
    barriers_ = 0;
    offered_ = false;
  }

  void Broke(int rank, const std::string& why) { events_.broke(rank, why); }

  // Handles one request and returns its answer; empty: none. An error if it is invalid now: the rank would be
  // counted twice, or wait for something the others do not wait for.
  Result<std::string> Answer(Session& session, const Pmi1Request& request) {
    const std::string& command = request.command;
    if (session.waits && command != "abort") {
      return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' while it waits in a barrier",
                       command.substr(0, kMaxKeyBytes));
    }
    if (command != "barrier_in") return Answer(session.rank(), command, request, &session.finished);
    if (session.finished) return Error{DTRUN_INVALID_ARGUMENT, "'barrier_in' after 'finalize'"};
    session.waits = true;
    EnterBarrier();
    return std::string();
  }

 private:
  std::string Answer(int rank, const std::string& command, const Pmi1Request& request, bool* finished) {
    if (command == "init") {
      *finished = false;
      events_.started(rank);
      return "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
    }
    if (command == "get_maxes") {
      return fmt::format("cmd=maxes rc=0 kvsname_max={} keylen_max={} vallen_max={}\n", kMaxNameBytes,
                         kMaxKeyBytes, kMaxValueBytes);
    }
    if (command == "get_appnum") return "cmd=appnum rc=0 appnum=0\n";
    if (command == "get_universe_size") {
      return fmt::format("cmd=universe_size rc=0 size={}\n", job_.size());
    }
    if (command == "get_my_kvsname") return fmt::format("cmd=my_kvsname rc=0 kvsname={}\n", job_.name);
    if (command == "put") return Put(request);
    if (command == "get") return Get(request);
    if (command == "finalize") {
      *finished = true;
      events_.finished(rank);
      return "cmd=finalize_ack rc=0\n";
    }
    if (command == "abort") {
      std::string_view code = request.Field("exitcode");
      events_.aborted(rank, TakeNumber<int>(&code).value_or(1), "");
      return {};  // the rank waits for the barrier to end
    }
    if (command == "spawn") {
      // Answer once, after the last part.
      const bool last = request.Field("totspawns") == request.Field("spawnssofar");
      return last ? "cmd=spawn_result rc=-1 status=unsupported\n" : "";
    }
    for (const char* const name : {"publish", "unpublish", "lookup"}) {
      if (command == std::string(name) + "_name") {
        return fmt::format("cmd={}_result rc=-1 msg=unsupported\n", name);
      }
    }
    return fmt::format("cmd={}_result rc=-1 msg=unknown_command\n", command);
  }

  std::string BarrierName() const { return fmt::format("pmi1/{}", barriers_); }

  std::string Put(const Pmi1Request& request) {
    const std::string key(request.Field("key"));
    const std::string_view value = request.Field("value");
    if (key.empty() || key.size() > kMaxKeyBytes || value.size() > kMaxValueBytes) {
      return "cmd=put_result rc=-1 msg=key_or_value_too_long\n";
    }
    if (put_bytes_ + key.size() + value.size() > kMaxPutBytes)
      return "cmd=put_result rc=-1 msg=no_room_left\n";
    put_bytes_ += key.size() + value.size();
    keys_[key] = fresh_[key] = value;
    return "cmd=put_result rc=0 msg=success\n";
  }

  std::string Get(const Pmi1Request& request) {
    const auto found = keys_.find(std::string(request.Field("key")));
    if (found == keys_.end()) return "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
    return fmt::format("cmd=get_result rc=0 msg=success value={}\n", found->second);
  }

  void EnterBarrier() {
    const auto waiting = std::ranges::count_if(sessions_, [](const auto& session) { return session->waits; });
    if (waiting < job_.host().local_size) return;
    Part part{BarrierName(), {}, EncodePairs(fresh_)};
    for (std::size_t host = 0; host < job_.hosts.size(); ++host) part.hosts.push_back(static_cast<int>(host));
    fresh_.clear();
    offered_ = true;
    events_.offered(std::move(part));
  }

  boost::asio::io_context& loop_;
  const Events events_;
  Job job_;
  std::vector<std::shared_ptr<Session>> sessions_;
  std::map<std::string, std::string> keys_;   // of all ranks up to the last barrier, and of this host
  std::map<std::string, std::string> fresh_;  // of this host since the last barrier
  std::size_t put_bytes_ = 0;                 // by ranks of this host
  std::uint64_t barriers_ = 0;                // completed
  bool offered_ = false;                      // this host has offered its part of the current one
};

void Session::Read() {
  socket_.async_read_some(
      boost::asio::buffer(chunk_),
      [this, self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        if (error || !open()) return Close();
        reader_.Append({chunk_.data(), size});
        for (;;) {
          Result<std::optional<Pmi1Request>> request = reader_.Next();
          if (!request) return Break(request.error().text);
          if (!*request) return Read();
          const Result<std::string> answer = server_->Answer(*this, **request);
          if (!answer) return Break(answer.error().text);
          if (!answer->empty()) Send(*answer);
          if (!open()) return;
        }
      });
}

void Session::Send(const std::string& line) {
  if (!open()) return;
  const ssize_t size = ::send(socket_.native_handle(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (size == static_cast<ssize_t>(line.size())) return;
  const bool full = size >= 0 || errno == EAGAIN;
  full ? Break("it does not read its answers") : Close();  // or it has ended
}

void Session::Break(const std::string& why) {
  Close();
  server_->Broke(rank_, why);
}

void Session::Close() {
  boost::system::error_code ignored;  // closing errors do not matter
  socket_.close(ignored);
}

}  // namespace

std::unique_ptr<Server> MakePmi1Server(boost::asio::io_context& loop, Events events) {
  return std::make_unique<Pmi1Server>(loop, std::move(events));
}

std::string ProcessMapping(const std::vector<JobHost>& hosts) {
  std::string text = "(vector";
  for (std::size_t first = 0; first < hosts.size();) {
    std::size_t end = first;
    while (end < hosts.size() && hosts[end].local_size == hosts[first].local_size) ++end;
    text += fmt::format(",({},{},{})", first, end - first, hosts[first].local_size);
    first = end;
  }
  return text + ")";
}

}  // namespace dtrun::pmi
