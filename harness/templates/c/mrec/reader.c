/* Reads the step numbers and times of an mrec trajectory, as far as attributes give them. What it does not read yet it
 * calls unsupported. Put the implementation that you want to test in its place. */
#define _POSIX_C_SOURCE 200809L

#include "json.h"
#include "reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    bool there;
    const Json *start, *stride; /* stride: NULL where there is none */
} Progression;

static ReadStatus say(ReadStatus status, char *reason, size_t size, const char *text, const char *about)
{
    snprintf(reason, size, text, about);
    return status;
}

static bool is_there(const char *root, const char *name)
{
    char path[4096];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", root, name);
    return stat(path, &facts) == 0;
}

/* The whole of root/name as JSON. *there says whether there is such a file. */
static Json *load(const char *root, const char *name, bool *there)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t capacity = 0;
    *there = file != NULL;
    if (file == NULL)
        return NULL;
    ssize_t length = getdelim(&text, &capacity, '\0', file); /* no JSON holds a NUL: this is all of it */
    const char *problem;
    Json *document = length > 0 ? json_parse(text, (size_t)length, &problem) : NULL;
    fclose(file);
    free(text);
    return document;
}

/* An integer as JSON spells one: no fraction, no exponent. */
static bool is_integer(const Json *value)
{
    return value != NULL && value->type == JSON_NUMBER && strpbrk(value->text, ".eE") == NULL;
}

static bool is_real(const Json *value)
{
    return value != NULL && value->type == JSON_NUMBER && isfinite(strtod(value->text, NULL));
}

/* False where it does not fit into 64 bits. */
static bool get_integer(const Json *value, int64_t *out)
{
    errno = 0;
    *out = value != NULL ? strtoll(value->text, NULL, 10) : 0;
    return errno == 0;
}

/* False where the attribute is there and malformed. */
static bool get_progression(const Json *attributes, const char *name, bool (*fits)(const Json *), Progression *out)
{
    const Json *value = json_get(attributes, name);
    out->there = value != NULL;
    out->start = json_get(value, "start");
    out->stride = json_get(value, "stride");
    return value == NULL || (fits(out->start) && (out->stride == NULL || fits(out->stride)));
}

/* An integer of either sign: a number up to 2^53 in magnitude, beyond it a decimal string. */
static void put_integer(Buffer *out, int64_t value)
{
    bool quoted = value > INT64_C(1) << 53 || value < -(INT64_C(1) << 53);
    buffer_text(out, quoted ? "\"" : "");
    buffer_text(out, value < 0 ? "-" : "");
    buffer_u64(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
    buffer_text(out, quoted ? "\"" : "");
}

static void put_scalar(Buffer *out, double value)
{
    uint64_t bits;
    unsigned char bytes[8];
    memcpy(&bits, &value, 8);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    buffer_text(out, "{\"dtype\":\"f64\",\"shape\":[],\"data\":\"");
    buffer_base64(out, bytes, 8);
    buffer_text(out, "\"}");
}

static void put_frames(Buffer *out, int64_t nstep, int64_t first, int64_t step_stride, const Progression *times)
{
    double start = times->there ? strtod(times->start->text, NULL) : 0;
    double stride = times->there && times->stride ? strtod(times->stride->text, NULL) : 0;
    buffer_text(out, "{\"format\":\"mrec\",\"nstep\":");
    put_integer(out, nstep);
    buffer_text(out, ",\"frames\":[");
    for (int64_t i = 0; i < nstep && !out->failed; i++) {
        buffer_text(out, i > 0 ? ",{\"step\":" : "{\"step\":");
        put_integer(out, (int64_t)(first + (__int128)i * step_stride));
        if (times->there) {
            volatile double passed = (double)i * stride; /* rounded before it is added: no fused multiply-add */
            buffer_text(out, ",\"time\":");
            put_scalar(out, nstep == 1 ? start : start + passed);
        }
        buffer_text(out, ",\"meta\":{},\"blocks\":{}}");
    }
    buffer_text(out, "]}");
}

static ReadStatus put_trajectory(const char *root, const Json *meta, const Json *trajectory, Buffer *out, char *reason,
                                 size_t size)
{
    const Json *version = json_get(json_get(meta, "attributes"), "molrec_version");
    if (version != NULL && (version->type != JSON_NUMBER || strcmp(version->text, "1") != 0))
        return say(READ_REFUSED, reason, size, "the %s is not known", "molrec_version");
    const Json *format = json_get(trajectory, "zarr_format");
    if (format == NULL || format->type != JSON_NUMBER || strcmp(format->text, "3") != 0 ||
        !json_is(json_get(trajectory, "node_type"), "group"))
        return say(READ_REFUSED, reason, size, "%s is not a Zarr V3 group", "trajectory");

    const Json *attributes = json_get(trajectory, "attributes"), *count = json_get(attributes, "nstep");
    bool has_step = is_there(root, "trajectory/step"), has_time = is_there(root, "trajectory/time");
    int64_t nstep = 0, first = 0, stride = 0;
    Progression steps, times;
    if (count != NULL && (!is_integer(count) || count->text[0] == '-' || !get_integer(count, &nstep)))
        return say(READ_REFUSED, reason, size, "%s is no count", "nstep");
    if (!get_progression(attributes, "step_progression", is_integer, &steps))
        return say(READ_REFUSED, reason, size, "%s is malformed", "step_progression");
    if (!get_progression(attributes, "time_progression", is_real, &times))
        return say(READ_REFUSED, reason, size, "%s is malformed", "time_progression");
    if (count == NULL && (steps.there || times.there))
        return say(READ_REFUSED, reason, size, "a progression without %s", "nstep");
    if (nstep >= 2 && ((steps.there && steps.stride == NULL) || (times.there && times.stride == NULL)))
        return say(READ_REFUSED, reason, size, "a progression has no %s", "stride");
    if ((count == NULL && has_step) || (nstep > 0 && ((!steps.there && has_step) || (!times.there && has_time))))
        return say(READ_UNSUPPORTED, reason, size, "%s", "arrays");
    if (nstep > 0 && !steps.there)
        return say(READ_REFUSED, reason, size, "nothing numbers the %s", "frames");
    bool fits = nstep == 0 || (get_integer(steps.start, &first) && (nstep == 1 || get_integer(steps.stride, &stride)));
    __int128 last = (__int128)stride * (nstep - 1) + first; /* the way may be longer than 64 bits, the step may not */
    if (!fits || (nstep > 0 && (last < INT64_MIN || last > INT64_MAX)))
        return say(READ_REFUSED, reason, size, "a step number is outside the 64-bit %s", "integers");

    const Json *declared = json_get(attributes, "sequence_schema");
    if (declared == NULL)
        return say(READ_UNSUPPORTED, reason, size, "a trajectory without a %s", "declaration");
    if (declared->type != JSON_OBJECT)
        return say(READ_REFUSED, reason, size, "%s is not an object", "sequence_schema");
    const Json *blocks = json_get(declared, "blocks"), *keys = json_get(declared, "meta");
    if (blocks != NULL && blocks->count > 0)
        return say(READ_UNSUPPORTED, reason, size, "%s", "blocks");
    if (keys != NULL && keys->count > 0)
        return say(READ_UNSUPPORTED, reason, size, "%s per step", "metadata");
    if (is_there(root, "trajectory/box"))
        return say(READ_UNSUPPORTED, reason, size, "%s", "cells");
    put_frames(out, nstep, first, stride, &times);
    return READ_OK;
}

ReadStatus read_trajectory(const char *path, Buffer *out, char *reason, size_t size)
{
    struct stat facts;
    bool meta_there, there;
    if (stat(path, &facts) != 0)
        return say(READ_FAILED, reason, size, "cannot open the record: %s", strerror(errno));
    if (!S_ISDIR(facts.st_mode))
        return say(READ_UNSUPPORTED, reason, size, "packed %s", "records");
    Json *meta = load(path, "meta/zarr.json", &meta_there);
    Json *trajectory = load(path, "trajectory/zarr.json", &there);
    ReadStatus status;
    if (!there)
        status = say(READ_REFUSED, reason, size, "there is no group %s", "trajectory");
    else if (trajectory == NULL || (meta_there && meta == NULL))
        status = say(READ_REFUSED, reason, size, "%s is not JSON", "a zarr.json");
    else
        status = put_trajectory(path, meta, trajectory, out, reason, size);
    json_free(meta);
    json_free(trajectory);
    return status;
}
