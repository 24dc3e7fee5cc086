// Ways to hang, of a program that calls dtrun's API, or MPI with -DWITH_MPI: in its fourth step rank 1 does
// what the first argument says, and the others wait for it. The second is a folder of its own.
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#ifdef WITH_MPI
#include <mpi.h>

namespace {

int Start(int* argc, char*** argv) {
  int rank = 0;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void Reduce() {
  float in[10] = {}, out[10];
  MPI_Allreduce(in, out, 10, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

void Meet() { MPI_Barrier(MPI_COMM_WORLD); }
#else
#include "dtrun/dtrun.h"

namespace {

void Check(dtrun_status status, const dtrun_error& error) {
  if (status == DTRUN_OK) return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(4);
}

int Start(int*, char***) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  Check(dtrun_init(&error), error);
  return dtrun_rank();
}

void Reduce() {
  float values[10] = {};
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  Check(dtrun_allreduce(dtrun_world(), values, values, 10, DTRUN_FLOAT32, DTRUN_SUM, nullptr, &error), error);
}

void Meet() {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  Check(dtrun_barrier(dtrun_world(), nullptr, &error), error);
}
#endif

void* Sleep(void*) {
  sleep(10000);
  return nullptr;
}

void LockFile(const std::string& file) {
  const int lock = open(file.c_str(), O_CREAT | O_RDWR, 0600);
  flock(lock, LOCK_EX);
}

// False: goes on with the next step, without this one's collectives.
bool Differ(const std::string& way, const std::string& place) {
  char byte = 0;
  int ends[2] = {-1, -1};
  if (way == "sleep") {
    sleep(10000);
  } else if (way == "loop") {
    for (volatile int i = 0;; i = i + 1) {
    }
  } else if (way == "stop") {
    raise(SIGSTOP);
  } else if (way == "lock") {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  } else if (way == "condition") {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
  } else if (way == "thread") {
    pthread_t thread;
    pthread_create(&thread, nullptr, Sleep, nullptr);
    pthread_join(thread, nullptr);
  } else if (way == "fifo") {
    mkfifo((place + "/fifo").c_str(), 0600);
    open((place + "/fifo").c_str(), O_RDONLY);
  } else if (way == "pipe" && pipe(ends) == 0) {
    return read(ends[0], &byte, 1) == 1;
  } else if (way == "socket" && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
    recv(ends[0], &byte, 1, 0);
  } else if (way == "child") {
    if (fork() == 0) Sleep(nullptr);
    wait(nullptr);
  } else if (way == "flock" && pipe(ends) == 0) {
    if (fork() == 0) {
      LockFile(place + "/lock");
      if (write(ends[1], &byte, 1) == 1) sleep(10000);
    }
    if (read(ends[0], &byte, 1) == 1) LockFile(place + "/lock");
  } else if (way == "left") {
    _exit(0);
  } else if (way == "skip") {
    return false;
  } else if (way == "order") {
    Meet();
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = Start(&argc, &argv);
  for (int step = 0; step < 6; ++step) {
    if (rank == 1 && step == 3 && !Differ(argv[1], argv[2])) continue;
    Reduce();
    Meet();
  }
  sleep(10000);
}
