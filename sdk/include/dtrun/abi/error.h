/* error.h - why a call failed, in a buffer that the caller owns.
 *
 * The caller puts a dtrun_error on its stack, runs DTRUN_INIT on it and passes its
 * address (or NULL when it does not care). A failing callee fills it; a succeeding one
 * leaves it alone. It allocates nothing, so it works out of memory and during abort. One
 * thread at a time.
 *
 * Messages are lower case, quote values, give the exact cause rather than a guess,
 * include the system's own error text, and end with the next step when there is one.
 */
#ifndef DTRUN_ABI_ERROR_H
#define DTRUN_ABI_ERROR_H

#include "dtrun/abi/base.h"

enum { DTRUN_ERROR_MESSAGE_BYTES = 512, DTRUN_ERROR_DOMAIN_BYTES = 16 };

/* Bits of dtrun_error.flags. */
enum { DTRUN_ERROR_RETRYABLE = 1 }; /* the same call may succeed later */

typedef struct dtrun_error {
  uint32_t struct_size;
  uint32_t flags;
  dtrun_status code;
  int32_t peer;        /* rank that failed or went away; -1 when unknown */
  int64_t vendor_code; /* meaning depends on vendor_domain: errno, ncclResult_t, ... */
  char vendor_domain[DTRUN_ERROR_DOMAIN_BYTES]; /* "errno", "gloo", ...; empty when none */
  char message[DTRUN_ERROR_MESSAGE_BYTES];      /* UTF-8, NUL-terminated, cut at a character */
} dtrun_error;

#endif
