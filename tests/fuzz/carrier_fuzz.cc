// What a remote shell prints before and beside the control links that go through it, cut into lines, and
// links of several hosts in any order: bytes of a link reach the one that is open, in order, and no other.
//
// An input is a program: lines of the protocol, whole, broken or cut, and what else a shell may print.
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "core/membership/remote_shell.h"
#include "core/process/output_pipe.h"
#include "core/protocol/carrier.h"
#include "tests/fuzz/source.h"
#include "tests/fuzz/target.h"

namespace carrier_fuzz {

using namespace dtrun;
using dtrun::fuzz::Source;
using protocol::Carried;

constexpr int kHosts = 3;  // the shell starts agents on the first two

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

class Shell {
 public:
  Shell(const std::uint8_t* data, std::size_t size) : in_(data, size) {}

  void Run() {
    for (int steps = 0; !in_.empty() && steps < 200; ++steps) {
      Print();
      loop_.restart();
      loop_.poll();
      for (auto& [host, link] : open_) Receive(link);
    }
    for (auto& [host, link] : open_) Require(link.got == link.due, "all bytes of a link arrive");
  }

 private:
  // The link of a host that is open, and what should come out of it.
  struct Link {
    UniqueFd end;
    int number = 0;
    bool ended = false;
    std::string due, got;
  };

  void Print() {
    std::string text;
    switch (in_.Byte() % 8) {
      case 0: text = in_.Bytes(255); break;
      case 1: text = in_.Bytes(255) + "\n"; break;
      case 2: text = std::string(in_.Byte() * 64, 'x') + (in_.Coin() ? "\n" : ""); break;
      case 3: return Answer();
      case 4: text = Broken(ALine()); break;
      default: text = ALine();
    }
    cutter_.Feed(text, [this](const std::string& line) { OnLine(line); });
  }

  std::string ALine() {
    Carried carried;
    carried.kind = static_cast<Carried::Kind>(in_.Below(4));
    carried.host = in_.Index(kHosts);
    carried.link = in_.Index(3);
    if (carried.kind == Carried::Kind::kHere) carried.text = in_.Name();
    if (carried.kind == Carried::Kind::kData) carried.text = in_.Bytes(200);
    return ToLine(carried);
  }

  std::string Broken(std::string line) {
    line[in_.Byte() % line.size()] = static_cast<char>(in_.Byte());
    if (in_.Coin()) line.resize(in_.Byte() % line.size());
    return line;
  }

  // The other side of a link speaks, or leaves.
  void Answer() {
    const auto found = open_.find(in_.Index(kHosts));
    if (found == open_.end()) return;
    const std::string bytes = in_.Bytes(100);
    if (!bytes.empty())
      (void)!::send(found->second.end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (in_.Rarely()) queue_.clear();
    links_.OnSent();
  }

  // What a line should do, before it does.
  void OnLine(const std::string& line) {
    const auto carried = protocol::ParseCarried(line);
    if (carried) {
      const auto again = protocol::ParseCarried(WithoutEnd(ToLine(*carried)));
      Require(again && again->kind == carried->kind && again->host == carried->host &&
                  again->link == carried->link && again->text == carried->text,
              "a line that is read is written the same");
      const auto found = open_.find(carried->host);
      if (found != open_.end() && found->second.number == carried->link && !found->second.ended) {
        if (carried->kind == Carried::Kind::kData) found->second.due += carried->text;
        if (carried->kind == Carried::Kind::kEnd) found->second.ended = true;
      }
      opening_ = carried->link;
    }
    (void)links_.Take(line);
  }

  static std::string WithoutEnd(std::string line) {
    line.pop_back();
    return line;
  }

  void OnLink(int host, UniqueFd end) {
    Require(host >= 0 && host < kHosts - 1, "links of the shell's hosts only");
    Link& link = open_[host];
    link = {};
    link.end = std::move(end);
    link.number = opening_;
  }

  static void Receive(Link& link) {
    char bytes[4096];
    for (ssize_t size; (size = ::recv(link.end.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      link.got.append(bytes, static_cast<std::size_t>(size));
  }

  Source in_;
  boost::asio::io_context loop_;
  process::LineCutter cutter_{membership::RemoteShell::kLongestLine};
  std::string queue_;
  int opening_ = 0;
  std::map<int, Link> open_;
  protocol::CarriedLinks links_{
      loop_,
      {0, 1},
      {[this](const std::string& lines) { queue_ += lines; }, [this] { return queue_.size(); }, {}},
      {[](const std::string&) {},
       [this](int host, UniqueFd link, const std::string&) { OnLink(host, std::move(link)); }}};
};

DTRUN_FUZZ_TARGET(carrier)(const std::uint8_t* data, std::size_t size) {
  Shell(data, size).Run();
  return 0;
}

}  // namespace carrier_fuzz
