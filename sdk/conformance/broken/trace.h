/* trace.h - faults that show in the process: a thread of each communicator, and what is late. */
#ifndef DTRUN_BROKEN_TRACE_H
#define DTRUN_BROKEN_TRACE_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "world.h"

static void pause_for(int64_t ns) {
  const struct timespec time = {ns / 1000000000, ns % 1000000000};
  nanosleep(&time, NULL);
}

/* ---- a thread that does nothing until the communicator goes */

static void* idle(void* context) {
  dtrun_backend_comm* const comm = context;
  const dtrun_threads_service* const threads = comm->host->get_service(comm->host, DTRUN_THREADS_SERVICE);
  sigset_t none;
  sigemptyset(&none);
  if (FAULT(OPEN_THREAD)) {
    threads->on_start(comm->host, "open");
    pthread_sigmask(SIG_SETMASK, &none, NULL);
  }
  pthread_mutex_lock(&lock);
  while (!comm->leaves) sleep_until(INT64_MAX);
  pthread_mutex_unlock(&lock);
  if (FAULT(OPEN_THREAD)) threads->on_stop(comm->host);
  return NULL;
}

static void start_idle(dtrun_backend_comm* comm) {
  sigset_t all, before;
  if (!FAULT(OPEN_THREAD) && !FAULT(UNDECLARED_THREAD)) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  comm->has_idle = pthread_create(&comm->idle, NULL, idle, comm) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void leak_of_create(void) {
  if (FAULT(LEAKS_DESCRIPTOR) && open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) abort();
  if (!FAULT(LEAKS_MAPPING)) return;
  if (mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) abort();
}

static void* stay(void* nothing) {
  pause_for(30000000000);
  return nothing;
}

static void stop_idle(dtrun_backend_comm* comm) {
  pthread_t thread;
  if (FAULT(THREAD_STAYS) && pthread_create(&thread, NULL, stay, NULL) == 0) pthread_detach(thread);
  if (!comm->has_idle) return;
  pthread_mutex_lock(&lock);
  comm->leaves = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(comm->idle, NULL);
}

/* ---- a process */

static void fork_and_wait(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, NULL, 0);
}

/* ---- output */

static void print(void) {
  if (FAULT(PRINTS)) printf("enqueue\n");
  if (FAULT(PRINTS_ERRORS)) fprintf(stderr, "enqueue\n");
}

/* ---- data that comes after the failure */

static void* write_late(void* into) {
  pause_for(100000000);
  memset(into, 1, 1);
  return NULL;
}

static void write_after_failure(const dtrun_request* request) {
  pthread_t thread;
  if (!FAULT(WRITES_LATE) || request->op.kind != DTRUN_RECV || request->status != DTRUN_TIMEOUT) return;
  if (pthread_create(&thread, NULL, write_late, request->op.recv) == 0) pthread_detach(thread);
}

#endif
