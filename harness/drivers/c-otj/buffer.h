/* A text that grows, for replies of any size. A failed allocation is remembered, not acted on: look at `failed` once,
 * before the text is used. */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *data;
    size_t length;
    size_t capacity;
    bool failed;
} Buffer;

void buffer_free(Buffer *buffer);
void buffer_bytes(Buffer *buffer, const char *data, size_t length);
void buffer_text(Buffer *buffer, const char *text);
void buffer_u64(Buffer *buffer, uint64_t value);
/* A JSON string with its quotes. Bytes that are no printable ASCII are escaped one by one; reasons are ASCII anyway. */
void buffer_json_string(Buffer *buffer, const char *text);
/* Base64 without line breaks, padded. */
void buffer_base64(Buffer *buffer, const unsigned char *data, size_t length);

/* Decode base64 into a fresh allocation, *size bytes. NULL where the text is not strict base64 (then *size is 0) or
 * memory is short (then *size is 1). */
unsigned char *base64_decode(const char *text, size_t length, size_t *size);

#endif
