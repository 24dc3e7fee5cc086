// How the control link goes through the connection that has started the agent: as lines between the stdin
// and stdout of `dtrun agent`, beside whatever a login shell prints there.
//
// For networks in which an agent reaches its root by no address: a firewall, NAT, a container. A line holds
// less than Slurm passes on in one piece, so one srun carries the links of all its agents: the number in it
// says whose it is. What travels is the same TLS as over a network, so that a line which something else
// prints can break a link and not speak for it.
//
// Each end has a Carrier, which turns a socket into such lines and back. Owned by the agent, or by the root
// with the remote shell; loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::protocol {

// What a line of a carried link says.
struct Carried {
  enum class Kind {
    kHere,  // the agent runs; `text`: the address and port where its remote shell has reached it, or empty
    kOpen,  // a new link begins, and those before it are over
    kData,  // `text`: bytes of it
    kEnd,   // nothing more will come
  };
  Kind kind = Kind::kHere;
  int host = -1;
  int link = 0;  // counts the links of that agent
  std::string text;
};

// Bytes that an end holds for its peer before it reads no more of the link.
inline constexpr std::size_t kMostUntaken = 1 << 20;

// One line with its end. REQUIRES: at most kCarriedBytes of data.
inline constexpr std::size_t kCarriedBytes = 690;
std::string ToLine(const Carried& carried);
// Unset: a line of somebody else.
std::optional<Carried> ParseCarried(std::string_view line);

class Carrier {
 public:
  struct Wire {
    std::function<void(const std::string& line)> send;  // a whole line, for the other side
    std::function<std::size_t()> queued;                // bytes of lines that wait to be sent
    std::function<void()> taken;                        // untaken_bytes is none again
  };

  Carrier(boost::asio::io_context& loop, int host, Wire wire);
  ~Carrier() { Close(); }
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // Begins the link of this number: the end of its socket for this process.
  Result<UniqueFd> Open(int link);
  // What a line of the other side says: kData or kEnd; of another link than this nothing.
  void Take(const Carried& carried);
  int host() const { return host_; }
  // Lines have left the queue.
  void OnSent() { Read(); }
  // Bytes that this process has not taken yet.
  std::size_t untaken_bytes() const { return incoming_.size(); }

 private:
  using Socket = boost::asio::posix::stream_descriptor;

  void Read();
  void ReadOnce();
  void Deliver();
  void Close();

  boost::asio::io_context& loop_;
  const int host_;
  const Wire wire_;
  int link_ = 0;
  std::shared_ptr<Socket> socket_;  // shared with nobody: handlers ask whether it is still there
  std::string incoming_;
  bool reading_ = false, delivering_ = false;
  bool ended_ = false;     // nothing more comes from the other side
  bool finished_ = false;  // nor from this one
};

}  // namespace dtrun::protocol
