/* failure.h - what a failure is, for programs: an id and the ranks that it is about.
 *
 * Complements dtrun.h: its calls fill a dtrun_error with a status and a text for people. docs/python.md lists the
 * ids; ids stay, texts may change. Both functions know the struct that the calling thread's last failed call
 * filled; of any other they say what its code and peer do. Any thread.
 */
#ifndef DTRUN_FAILURE_H
#define DTRUN_FAILURE_H

#include "dtrun/dtrun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "comm.timeout", ..., or the name of the code, such as "invalid_argument"; never NULL. */
DTRUN_API const char* dtrun_error_id(const dtrun_error* err);
/* Ranks of the communicator that was called: writes the first `capacity` of them and returns how many there are.
 * NULL with 0 only counts. */
DTRUN_API int32_t dtrun_error_ranks(const dtrun_error* err, int32_t* ranks, int32_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DTRUN_FAILURE_H */
