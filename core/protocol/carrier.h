// Carries the control link through the connection that has started the agent: as lines on stdin and stdout of
// `dtrun agent`, mixed with whatever a login shell prints there.
//
// For networks in which an agent cannot reach its root by any address: a firewall, NAT, a container. A line
// is shorter than what Slurm forwards in one piece, so one srun carries the links of all its agents; the host
// number in a line identifies its link. The content is the same TLS as over a network, so a foreign line can
// break a link but not forge its content.
//
// Each end has a Carrier, which converts between a socket and such lines. Owned by the agent, or on the root
// by the owner of the remote shell; loop thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::protocol {

// Content of a line of a carried link.
struct Carried {
  enum class Kind {
    kHere,  // the agent runs; `text`: the address and port where its remote shell has reached it, or empty
    kOpen,  // a new link begins, and earlier ones are over
    kData,  // `text`: bytes of it
    kEnd,   // nothing more will come
  };
  Kind kind = Kind::kHere;
  int host = -1;
  int link = 0;  // number of the link, counted per agent
  std::string text;
};

// Bytes that an end buffers for its peer before it stops reading the link.
inline constexpr std::size_t kMostUntaken = 1 << 20;

// One line including its line ending. REQUIRES: at most kCarriedBytes of data.
inline constexpr std::size_t kCarriedBytes = 690;
std::string ToLine(const Carried& carried);
// nullopt: not a line of a carried link.
std::optional<Carried> ParseCarried(std::string_view line);

class Carrier {
 public:
  struct Wire {
    std::function<void(const std::string& line)> send;  // sends a whole line to the other side
    std::function<std::size_t()> queued;                // bytes of unsent lines
    std::function<void()> taken;                        // called when untaken_bytes is 0 again
  };

  Carrier(asio::io_context& loop, int host, Wire wire);
  ~Carrier() { Close(); }
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // Begins link number `link` and returns this process's end of its socket.
  Result<UniqueFd> Open(int link);
  // Handles kData or kEnd from the other side. Ignores lines of other links.
  void Take(const Carried& carried);
  int host() const { return host_; }
  // Call when lines have left the queue.
  void OnSent() { Read(); }
  // Received bytes that this process has not read yet.
  std::size_t untaken_bytes() const { return incoming_.size(); }

 private:
  using Socket = asio::posix::stream_descriptor;

  void Read();
  void ReadOnce();
  void Deliver();
  void Close();

  asio::io_context& loop_;
  const int host_;
  const Wire wire_;
  int link_ = 0;
  std::shared_ptr<Socket> socket_;  // the only owner; handlers check whether it still exists
  std::string incoming_;
  bool reading_ = false, delivering_ = false;
  bool ended_ = false;     // the other side sends nothing more
  bool finished_ = false;  // this side sends nothing more
};

// The control links that come through one remote shell. Parses the lines that the shell prints: which agents
// have started, which link a line belongs to, and which lines belong to none.
//
// Any program on the other side may print a line, for example a login shell or an attacker. Such a line can
// break a link of the hosts that this shell starts, or end it, but the content of links is encrypted and
// authenticated. When Take returns false, the caller must stop reading the shell; this bounds the buffered
// bytes. Owned by the agent's shell; loop thread.
class CarriedLinks {
 public:
  struct Handlers {
    // A printed line that is not part of a link.
    std::function<void(const std::string& line)> on_line;
    // A link that the agent of `host` has opened; `from` is the address where the shell has reached it, or
    // empty.
    std::function<void(int host, UniqueFd link, const std::string& from)> on_link;
  };

  // `hosts`: numbers of the hosts that the shell starts agents on. `wire`: for the lines of all links;
  // `taken` is called once no link is behind.
  CarriedLinks(asio::io_context& loop, const std::vector<int>& hosts, Carrier::Wire wire, Handlers handlers)
      : loop_(loop),
        hosts_(hosts.begin(), hosts.end()),
        wire_(std::move(wire)),
        handlers_(std::move(handlers)) {}

  // Handles a line that the shell has printed. False: its link is behind, so pass no more lines until
  // `taken`.
  bool Take(const std::string& line);
  // Call when lines have left the queue of the wire.
  void OnSent();
  // Whether the agent there has reported that it runs.
  bool HasStarted(int host) const { return where_.contains(host); }

 private:
  bool behind() const;
  void Open(const Carried& carried);

  asio::io_context& loop_;
  const std::set<int> hosts_;
  const Carrier::Wire wire_;
  const Handlers handlers_;
  std::map<int, std::string> where_;  // host with a running agent -> address where the shell has reached it
  std::map<int, std::unique_ptr<Carrier>> carriers_;
};

}  // namespace dtrun::protocol
