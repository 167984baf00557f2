#include "buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void buffer_free(Buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

/* Room for `more` further bytes; NULL where there is none. */
static char *reserve(Buffer *buffer, size_t more)
{
    if (buffer->failed)
        return NULL;
    if (more > buffer->capacity - buffer->length) {
        size_t capacity = buffer->capacity ? buffer->capacity : 4096;
        while (capacity - buffer->length < more) {
            if (capacity > SIZE_MAX / 2) {
                buffer->failed = true;
                return NULL;
            }
            capacity *= 2;
        }
        char *data = realloc(buffer->data, capacity);
        if (data == NULL) {
            buffer->failed = true;
            return NULL;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->length;
}

void buffer_bytes(Buffer *buffer, const char *data, size_t length)
{
    char *to = reserve(buffer, length);
    if (to == NULL)
        return;
    if (length > 0)
        memcpy(to, data, length);
    buffer->length += length;
}

void buffer_text(Buffer *buffer, const char *text)
{
    buffer_bytes(buffer, text, strlen(text));
}

void buffer_u64(Buffer *buffer, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    buffer_text(buffer, digits);
}

void buffer_json_string(Buffer *buffer, const char *text)
{
    buffer_text(buffer, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            buffer_bytes(buffer, escaped, 2);
        } else if (c < 0x20 || c > 0x7e) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
            buffer_text(buffer, escaped);
        } else {
            buffer_bytes(buffer, text, 1);
        }
    }
    buffer_text(buffer, "\"");
}

void buffer_base64(Buffer *buffer, const unsigned char *data, size_t length)
{
    if (length > (SIZE_MAX / 4 - 1) * 3) {
        buffer->failed = true;
        return;
    }
    char *to = reserve(buffer, (length / 3 + (length % 3 != 0)) * 4);
    if (to == NULL)
        return;
    char *start = to;
    size_t i = 0;
    for (; length - i >= 3; i += 3) {
        uint32_t three = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
        *to++ = ALPHABET[three >> 18];
        *to++ = ALPHABET[three >> 12 & 63];
        *to++ = ALPHABET[three >> 6 & 63];
        *to++ = ALPHABET[three & 63];
    }
    if (length - i == 1) {
        *to++ = ALPHABET[data[i] >> 2];
        *to++ = ALPHABET[(data[i] & 3) << 4];
        *to++ = '=';
        *to++ = '=';
    } else if (length - i == 2) {
        uint32_t two = (uint32_t)data[i] << 8 | data[i + 1];
        *to++ = ALPHABET[two >> 10];
        *to++ = ALPHABET[two >> 4 & 63];
        *to++ = ALPHABET[(two & 15) << 2];
        *to++ = '=';
    }
    buffer->length += (size_t)(to - start);
}

static int sextet(char c)
{
    const char *at = c ? strchr(ALPHABET, c) : NULL;
    return at ? (int)(at - ALPHABET) : -1;
}

unsigned char *base64_decode(const char *text, size_t length, size_t *size)
{
    *size = 0;
    if (length % 4 != 0)
        return NULL;
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    unsigned char *out = malloc(length / 4 * 3 + 1);
    if (out == NULL) {
        *size = 1;
        return NULL;
    }
    size_t used = 0;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < length - padding; i++) {
        int value = sextet(text[i]);
        if (value < 0) {
            free(out);
            return NULL;
        }
        bits = (bits << 6 | (uint32_t)value) & 0xffffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[used++] = (unsigned char)(bits >> held);
        }
    }
    if ((bits & ((1u << held) - 1)) != 0) { /* bits behind the last byte that are not zero */
        free(out);
        return NULL;
    }
    *size = used;
    return out;
}
