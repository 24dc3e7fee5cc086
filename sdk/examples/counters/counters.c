/* counters.c - each rank sends the next one three messages of 1000 bytes, and prints what the transport
 * counted.
 *
 *   cc -o counters counters.c $(pkg-config --cflags --libs dtrun)
 *   dtrun --plugin-dir out --set backend.name=tcp_c --set comm.local=none -n 2 -- ./counters
 *
 * `out` has the backend of ../tcp_c.
 */
#include "../tcp_c/counters.h"

#include <inttypes.h>
#include <stdio.h>

#include "dtrun/dtrun.h"

enum { COUNT = 3, BYTES = 1000 };

static int fail(const dtrun_error* error) {
  fprintf(stderr, "%s\n", error->message);
  return 1;
}

int main(void) {
  char out[BYTES] = {0}, in[BYTES];
  dtrun_comm* world;
  dtrun_extension found;
  link_counts counts;
  dtrun_error error;
  int32_t rank, size, i;
  DTRUN_ERROR_INIT(error);
  if (dtrun_init(&error) != DTRUN_OK) return fail(&error);
  world = dtrun_world();
  rank = dtrun_rank();
  size = dtrun_world_size();
  DTRUN_INIT(found);
  if (dtrun_comm_extension(world, LINK_COUNTERS, &found, &error) != DTRUN_OK) return fail(&error);
  for (i = 0; i < COUNT; ++i) {
    if (dtrun_group_begin(world, &error) != DTRUN_OK ||
        dtrun_send(world, out, BYTES, DTRUN_UINT8, (rank + 1) % size, 0, NULL, &error) != DTRUN_OK ||
        dtrun_recv(world, in, BYTES, DTRUN_UINT8, (rank + size - 1) % size, 0, NULL, &error) != DTRUN_OK ||
        dtrun_group_end(world, NULL, &error) != DTRUN_OK)
      return fail(&error);
  }
  if (found.comm == NULL) {
    printf("rank %d: another rank speaks for its host\n", (int)rank);
  } else {
    DTRUN_INIT(counts);
    if (((const link_counters*)found.table)->read(found.comm, &counts, &error) != DTRUN_OK)
      return fail(&error);
    printf("rank %d over %s: sent %" PRIu64 " messages, %" PRIu64 " bytes; received %" PRIu64
           " messages, %" PRIu64 " bytes\n",
           (int)rank, found.backend, counts.messages_sent, counts.bytes_sent, counts.messages_received,
           counts.bytes_received);
  }
  dtrun_finalize();
  return 0;
}
