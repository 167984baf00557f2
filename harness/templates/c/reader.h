#ifndef READER_H
#define READER_H

#include "buffer.h"

typedef enum {
    READ_OK,
    READ_REFUSED,     /* the input is not what the format allows */
    READ_UNSUPPORTED, /* there is no way to do this, whatever the input */
    READ_FAILED       /* something went wrong that is no refusal: no memory, a disk that fails */
} ReadStatus;

/* Append the reply to a read request (what stands under "ok") to a buffer, or say why not. */
ReadStatus read_trajectory(const char *path, Buffer *out, char *reason, size_t reason_size);

#endif
