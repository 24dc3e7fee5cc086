// What a TCP connection of ours lost on its way, by the kernel's own count.
//
// Any thread.
#pragma once

namespace dtrun::network {

// The share of the packets sent by `socket` that had to be sent again. What the other end had got already
// (the kernel was impatient) does not count, nor does a single packet.
double LossOf(int socket);

// Sends no faster than that from now on.
void Pace(int socket, double bits_per_s);

}  // namespace dtrun::network
