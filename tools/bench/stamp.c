/* stamp: prints "stamp RANK PID NANOSECONDS", CLOCK_MONOTONIC at its first instruction, and
 * with an argument sleeps until it is killed. The user program of tools/bench/launch.py. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const char* rank = getenv("RANK");
  if (rank == NULL) rank = getenv("OMPI_COMM_WORLD_RANK");
  printf("stamp %s %d %lld\n", rank == NULL ? "0" : rank, (int)getpid(),
         now.tv_sec * 1000000000LL + now.tv_nsec);
  fflush(stdout);
  (void)argv;
  if (argc < 2) return 0;
  for (;;) pause();
}
