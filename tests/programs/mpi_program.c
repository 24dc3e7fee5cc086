// An MPI program that knows nothing of dtrun, and what can go wrong with one.
//
//   mpi_program                      adds rank + 1 over all ranks
//   mpi_program abort RANK           RANK calls MPI_Abort with code 7
//   mpi_program die-before RANK      RANK is killed before MPI_Init
//   mpi_program leave-before RANK    RANK exits with 0 before MPI_Init
//   mpi_program leave-after RANK     RANK exits with 0 before MPI_Finalize
//   mpi_program stay RANK            RANK stays away from the sum
//   mpi_program wait [FILE]          prints "ready" after MPI_Init, and waits for FILE or its end
//   mpi_program wait-sum             adds, and waits for its end before MPI_Finalize
//   mpi_program turns                the ranks sleep half a second in turn, ten times; the others poll an
//   allreduce mpi_program wait-after FILE      prints "finalized" after MPI_Finalize, and waits for FILE
//
// The rank of one that has no MPI yet is DTRUN_RANK.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for(const char* file) {
  while (file == NULL || access(file, F_OK) != 0) usleep(5000);
}

static void take_turns(int rank, int size) {
  for (int step = 0; step < 10; ++step) {
    int one = 1, all = 0, done = 0;
    MPI_Request request;
    if (step % size == rank) usleep(500000);
    MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    while (!done) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (!done) usleep(20000);
    }
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const char* name = getenv("DTRUN_RANK");
  const int me = argc > 2 && name != NULL && atoi(argv[2]) == atoi(name);
  if (me && strcmp(what, "die-before") == 0) raise(SIGKILL);
  if (me && strcmp(what, "leave-before") == 0) return 0;

  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, length = 0, sum = 0;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  if (me && strcmp(what, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
  if (me && strcmp(what, "leave-after") == 0) _exit(0);
  if (me && strcmp(what, "stay") == 0) wait_for(NULL);
  if (strcmp(what, "wait") == 0) {
    printf("ready\n");
    fflush(stdout);
    wait_for(argc > 2 ? argv[2] : NULL);
  }
  if (strcmp(what, "turns") == 0) take_turns(rank, size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d on %s: sum %d\n", rank, size, host, sum);
  fflush(stdout);
  if (strcmp(what, "wait-sum") == 0) wait_for(NULL);
  MPI_Finalize();
  if (strcmp(what, "wait-after") == 0) {
    printf("finalized\n");
    fflush(stdout);
    wait_for(argv[2]);
  }
  return 0;
}
