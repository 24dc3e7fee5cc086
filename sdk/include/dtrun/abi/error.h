/* error.h - why a call failed, in a buffer that the caller owns.
 *
 * The caller puts a dtrun_error on its stack, runs DTRUN_ERROR_INIT on it and passes its
 * address (or NULL when it does not care). A failing callee fills it with dtrun_error_set;
 * one that returns DTRUN_OK or DTRUN_PENDING leaves it alone. A callee never runs
 * DTRUN_INIT on it: the caller's struct may be longer than its own. It
 * allocates nothing, so it works out of memory and during abort. One thread at a time.
 *
 * Messages are lower case, quote values, give the exact cause rather than a guess,
 * include the system's own error text, and end with the next step when there is one.
 */
#ifndef DTRUN_ABI_ERROR_H
#define DTRUN_ABI_ERROR_H

#include "dtrun/abi/base.h"

enum { DTRUN_ERROR_MESSAGE_BYTES = 512, DTRUN_ERROR_DOMAIN_BYTES = 16 };

typedef struct dtrun_error {
  uint32_t struct_size;
  uint32_t flags;
  dtrun_status code;
  int32_t peer;        /* rank that failed or went away; -1 when unknown */
  int64_t vendor_code; /* meaning depends on vendor_domain: errno, ncclResult_t, ... */
  char vendor_domain[DTRUN_ERROR_DOMAIN_BYTES]; /* "errno", "gloo", ...; empty when none */
  char message[DTRUN_ERROR_MESSAGE_BYTES];      /* UTF-8, NUL-terminated, cut at a character */
} dtrun_error;

/* Sizes and empties `error`, an lvalue, for a call that may fill it. No peer is known yet. */
#define DTRUN_ERROR_INIT(error) (DTRUN_INIT(error), (void)((error).peer = -1))

/* NOLINTBEGIN(modernize-use-nullptr): this is C too */
/* Fills a caller's error, which may be NULL, and returns `code`. `text` has `bytes` bytes and may be NULL; it
 * is cut at a character where it does not fit. flags and the vendor's part become zero. */
static inline dtrun_status dtrun_error_set_text(dtrun_error* error, dtrun_status code, int32_t peer,
                                                const char* text, uint64_t bytes) {
  if (error == NULL) return code;
  error->flags = 0;
  error->code = code;
  error->peer = peer;
  error->vendor_code = 0;
  memset(error->vendor_domain, 0, sizeof error->vendor_domain);
  if (text == NULL) bytes = 0;
  if (bytes > sizeof error->message - 1) {
    bytes = sizeof error->message - 1;
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80) --bytes;
  }
  if (bytes > 0) memcpy(error->message, text, (size_t)bytes);
  error->message[bytes] = '\0';
  return code;
}

/* The same with a text that ends with NUL, or NULL. */
static inline dtrun_status dtrun_error_set(dtrun_error* error, dtrun_status code, int32_t peer,
                                           const char* message) {
  return dtrun_error_set_text(error, code, peer, message, message == NULL ? 0 : strlen(message));
}

/* Adds the vendor library's own number to an error that was set: ("nccl", result). */
static inline void dtrun_error_set_vendor(dtrun_error* error, const char* domain, int64_t vendor_code) {
  size_t bytes;
  if (error == NULL) return;
  error->vendor_code = vendor_code;
  bytes = strlen(domain);
  if (bytes > sizeof error->vendor_domain - 1) bytes = sizeof error->vendor_domain - 1;
  memset(error->vendor_domain, 0, sizeof error->vendor_domain);
  memcpy(error->vendor_domain, domain, bytes);
}
/* NOLINTEND(modernize-use-nullptr) */

#endif
