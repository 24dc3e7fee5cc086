// The threads that a plugin starts, as `pthread_create` of the program sees them, and whether they call
// on_start.
//
// The program's own pthread_create (tool/thread_start.cc) runs each thread in RunThread; a program without
// one sees no thread. Any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::conformance {

struct SeenThread {
  int id = 0;                            // of the kernel
  bool declared = false, ended = false;  // it has called on_start; on_stop
  bool over = false;                     // its function has returned
};

// Forgets those seen so far, and sees from now on those that have a function in the image at `address`.
void WatchThreads(const void* address);
bool ThreadsCanBeSeen();
std::vector<SeenThread> SeenThreads();

// Called by on_start and on_stop.
void NoteDeclared();
void NoteEnded();

// Of pthread_create: to be called with the caller's address, once for each thread; then it starts RunThread
// with what that returns, unless it is null.
void* WrapThread(const void* caller, void* (*function)(void*), void* argument);
void* RunThread(void* wrapped);

}  // namespace dtrun::conformance
