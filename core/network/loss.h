// Packet loss of a TCP connection, from the kernel's counters.
//
// Any thread.
#pragma once

#include <cstdint>

namespace dtrun::network {

// Counts from its construction on: those packets that made the connection are too few for a share.
class LossMeter {
 public:
  explicit LossMeter(int socket);
  // The share of packets sent that were retransmitted. Does not count spurious retransmissions of packets
  // that had arrived, nor a single packet.
  double Share() const;

 private:
  struct Counts {
    std::int64_t sent = 0, lost = 0;
  };
  static Counts Read(int socket);

  int socket_;
  Counts before_;
};

// Limits the send rate from now on.
void Pace(int socket, double bits_per_s);

}  // namespace dtrun::network
