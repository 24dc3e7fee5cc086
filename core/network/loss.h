// Packet loss of a TCP connection, from the kernel's counters.
//
// Any thread.
#pragma once

namespace dtrun::network {

// The share of packets sent by `socket` that were retransmitted. Does not count spurious retransmissions of
// packets that had arrived, nor a single packet.
double LossOf(int socket);

// Limits the send rate from now on.
void Pace(int socket, double bits_per_s);

}  // namespace dtrun::network
