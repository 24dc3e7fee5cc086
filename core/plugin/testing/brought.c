/* A library that a plugin brings along. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

void crash_on_a_thread(void);

static char* volatile nowhere = (char*)8;

static void* crash(void* unused) {
  *nowhere = 1;
  return unused;
}

/* The thread that crashes has no function of the plugin on its stack. */
void crash_on_a_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, crash, NULL) != 0) abort();
  for (;;) pause();
}
