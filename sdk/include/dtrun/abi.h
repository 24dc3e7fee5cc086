/* abi.h - the whole plugin ABI. Read base.h first, then plugin.h.
 *
 * Self-contained C11; depends on <stddef.h>, <stdint.h> and <string.h> only.
 */
#ifndef DTRUN_ABI_H
#define DTRUN_ABI_H

#include "dtrun/abi/plugin.h"   /* IWYU pragma: export */
#include "dtrun/abi/services.h" /* IWYU pragma: export */

#endif
