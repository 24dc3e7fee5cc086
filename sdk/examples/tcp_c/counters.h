/* counters.h - the extension "dtrun_examples.counters/1": what a communicator of tcp_c has sent and received
 * on this rank.
 *
 * A program gets the table by dtrun_comm_extension and passes its members the `comm` that comes with it. All
 * members may be called by any thread, beside operations and after a failure, until the program's
 * communicator ends. Structs grow as those of dtrun/abi.
 */
#ifndef TCP_COUNTERS_H
#define TCP_COUNTERS_H

#include "dtrun/abi/backend.h"

#define LINK_COUNTERS "dtrun_examples.counters/1"

/* Messages are those of send and receive, and those that collectives are made of; bytes are their payload. */
typedef struct link_counts {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t messages_sent; /* handed to the transport */
  uint64_t bytes_sent;
  uint64_t messages_received; /* arrived, also those without a receive so far */
  uint64_t bytes_received;
} link_counts;

typedef struct link_counters {
  uint32_t struct_size;
  uint32_t flags;
  /* Since the communicator was made. */
  dtrun_status (*read)(dtrun_backend_comm* comm, link_counts* out, dtrun_error* err);
} link_counters;

#endif
