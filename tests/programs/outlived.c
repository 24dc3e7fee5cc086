// Rank 0 sends to rank 1, which is stopped, and ends; rank 1 goes on when the process of rank 0 is gone, or
// after 3 s.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dtrun/dtrun.h"
static void await_end_of(const char* file) {
  for (int tenths = 0, pid = 0; tenths < 30; ++tenths, usleep(100000)) {
    FILE* const said = fopen(file, "r");
    if (said == NULL) continue;
    if (fscanf(said, "%d", &pid) == 1 && kill(pid, 0) != 0) return;
    fclose(said);
  }
}
int main(int argc, char** argv) {
  static char data[1000];
  const char* const file = argv[argc - 1];
  dtrun_status status;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  if (dtrun_init(&error) != DTRUN_OK) return 3;
  if (dtrun_rank() == 0) {
    FILE* const says = fopen(file, "w");
    status = dtrun_send(dtrun_world(), data, sizeof data, DTRUN_UINT8, 1, 0, NULL, &error);
    fprintf(says, "%d", (int)getpid());
    fclose(says);
  } else {
    if (fork() == 0) {
      await_end_of(file);
      kill(getppid(), SIGCONT);
      _exit(0);
    }
    raise(SIGSTOP);
    usleep(300000); /* mostly the backend's thread has taken the message now, before its receive */
    status = dtrun_recv(dtrun_world(), data, sizeof data, DTRUN_UINT8, 0, 0, NULL, &error);
  }
  printf("status %d %s\n", status, error.message);
  dtrun_finalize();
  return status;
}
