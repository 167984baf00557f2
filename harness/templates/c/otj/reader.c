/* Reads otj with the C library alone. Put the implementation that you want to test in its place. */
#include "reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAMES[] = {"x", "y", "z", "vx", "vy", "vz"};

static uint64_t get(const unsigned char *at, int size)
{
    uint64_t value = 0;
    while (size-- > 0)
        value = value << 8 | at[size];
    return value;
}

/* Whether the eight bytes behind these are their 64-bit FNV-1a hash. */
static bool is_sound(const unsigned char *data, uint64_t size)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < size; i++)
        state = (state ^ data[i]) * UINT64_C(0x100000001b3);
    return state == get(data + size, 8);
}

/* All of a file, freshly allocated; NULL with errno set. */
static unsigned char *load(const char *path, uint64_t *length)
{
    unsigned char *data = NULL;
    size_t capacity = 0, size = 0, got;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    do {
        unsigned char *larger = capacity > size ? data : realloc(data, capacity = 2 * capacity + 65536);
        if (larger == NULL)
            break;
        data = larger;
        size += got = fread(data + size, 1, capacity - size, file);
    } while (got > 0);
    if (ferror(file) || !feof(file)) {
        free(data);
        data = NULL;
    }
    fclose(file);
    *length = size;
    return data;
}

/* A number up to 2^53, beyond it a decimal string. */
static void put_integer(Buffer *out, uint64_t value)
{
    bool quoted = value > UINT64_C(1) << 53;
    buffer_text(out, quoted ? "\"" : "");
    buffer_u64(out, value);
    buffer_text(out, quoted ? "\"" : "");
}

/* The bytes as they stand in the file; no shape where count is NULL. */
static void put_array(Buffer *out, const unsigned char *data, uint64_t scalar, const uint64_t *count)
{
    buffer_text(out, scalar == 4 ? "{\"dtype\":\"f32\",\"shape\":[" : "{\"dtype\":\"f64\",\"shape\":[");
    if (count != NULL)
        buffer_u64(out, *count);
    buffer_text(out, "],\"data\":\"");
    buffer_base64(out, data, (size_t)((count != NULL ? *count : 1) * scalar));
    buffer_text(out, "\"}");
}

static ReadStatus put_trajectory(const unsigned char *data, uint64_t length, Buffer *out, char *reason, size_t size)
{
    if (length < 24 || memcmp(data, "ORRERYTJ", 8) != 0) {
        snprintf(reason, size, "not an otj file, or one that ends in its first fields");
        return READ_REFUSED;
    }
    uint64_t flags = get(data + 12, 4), particles = get(data + 16, 8);
    if (get(data + 8, 4) != 1) {
        snprintf(reason, size, "version %" PRIu64 " is not known", get(data + 8, 4));
        return READ_REFUSED;
    }
    if (flags & ~UINT64_C(3)) {
        snprintf(reason, size, "flags 0x%08" PRIx64 " set a reserved bit", flags);
        return READ_REFUSED;
    }
    uint64_t scalar = flags & 1 ? 4 : 8, components = flags & 2 ? 6 : 3;
    if (length < 32 + scalar || particles > (length - 32 - scalar) / scalar) { /* a division cannot overflow */
        snprintf(reason, size, "the header of %" PRIu64 " particles does not fit", particles);
        return READ_REFUSED;
    }
    uint64_t array = particles * scalar;
    uint64_t header = 32 + scalar + array, frame = 16 + scalar + components * array;
    if (!is_sound(data, header - 8)) {
        snprintf(reason, size, "the checksum of the header is wrong");
        return READ_REFUSED;
    }
    buffer_text(out, "{\"format\":\"otj\",\"particles\":");
    put_integer(out, particles);
    buffer_text(out, flags & 1 ? ",\"precision\":\"single\"" : ",\"precision\":\"double\"");
    buffer_text(out, flags & 2 ? ",\"velocities\":true" : ",\"velocities\":false");
    buffer_text(out, ",\"timestep\":");
    put_array(out, data + 24, scalar, NULL);
    buffer_text(out, ",\"masses\":");
    put_array(out, data + 24 + scalar, scalar, &particles);
    buffer_text(out, ",\"frames\":[");
    for (uint64_t n = 0; n < (length - header) / frame; n++) {
        const unsigned char *at = data + header + n * frame;
        if (!is_sound(at, frame - 8))
            break; /* the frames before a damaged one are handed back */
        buffer_text(out, n > 0 ? ",{\"step\":" : "{\"step\":");
        put_integer(out, get(at, 8));
        buffer_text(out, ",\"time\":");
        put_array(out, at + 8, scalar, NULL);
        for (uint64_t i = 0; i < components; i++) {
            buffer_text(out, ",\"");
            buffer_text(out, NAMES[i]);
            buffer_text(out, "\":");
            put_array(out, at + 8 + scalar + i * array, scalar, &particles);
        }
        buffer_text(out, "}");
    }
    buffer_text(out, "]}");
    return READ_OK;
}

ReadStatus read_trajectory(const char *path, Buffer *out, char *reason, size_t size)
{
    uint64_t length = 0;
    unsigned char *data = load(path, &length);
    if (data == NULL) {
        snprintf(reason, size, "cannot read the file: %s", strerror(errno));
        return READ_FAILED;
    }
    ReadStatus status = put_trajectory(data, length, out, reason, size);
    free(data);
    return status;
}
