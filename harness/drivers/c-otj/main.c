/* The driver: JSON Lines on standard input and output, one reply to each request. */
#define _POSIX_C_SOURCE 200809L

#include "buffer.h"
#include "json.h"
#include "otj.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static const char *const COMPONENTS[OTJ_MAX_COMPONENTS] = {"x", "y", "z", "vx", "vy", "vz"};

static OtjWriter writer;

/* The one precision that this run reads and writes ("single", "double"); NULL: both. */
static const char *precision;

/* What a request gets: the text behind its id. */
static void answer(Buffer *reply, const char *kind, const char *member, const char *text)
{
    reply->length = 0; /* whatever was being answered is dropped */
    buffer_text(reply, "\"");
    buffer_text(reply, kind);
    buffer_text(reply, "\":{\"");
    buffer_text(reply, member);
    buffer_text(reply, "\":");
    buffer_json_string(reply, text);
    buffer_text(reply, "}");
}

static void refused(Buffer *reply, const char *reason)
{
    answer(reply, "refused", "reason", reason);
}

static void error(Buffer *reply, const char *message)
{
    answer(reply, "error", "message", message);
}

static void unsupported(Buffer *reply, const char *what)
{
    answer(reply, "unsupported", "what", what);
}

static void done(Buffer *reply)
{
    buffer_text(reply, "\"ok\":{}");
}

static void outcome(Buffer *reply, OtjStatus status, const OtjProblem *problem)
{
    if (status == OTJ_OK)
        done(reply);
    else if (status == OTJ_REFUSED)
        refused(reply, problem->reason);
    else
        error(reply, problem->reason);
}

/* ---- arrays on the wire ---- */

/* An integer as JSON: a number up to 2^53, beyond it a decimal string. */
static void put_integer(Buffer *reply, uint64_t value)
{
    bool quoted = value > UINT64_C(1) << 53;
    buffer_text(reply, quoted ? "\"" : "");
    buffer_u64(reply, value);
    buffer_text(reply, quoted ? "\"" : "");
}

/* Scalars of the file as an array: `count` of them, or a single one without a shape when `count` is NULL. */
static void put_array(Buffer *reply, const OtjShape *shape, const unsigned char *data, const uint64_t *count)
{
    buffer_text(reply, shape->single ? "{\"dtype\":\"f32\",\"shape\":[" : "{\"dtype\":\"f64\",\"shape\":[");
    if (count != NULL)
        buffer_u64(reply, *count);
    buffer_text(reply, "],\"data\":\"");
    buffer_base64(reply, data, (size_t)((count != NULL ? *count : 1) * shape->scalar));
    buffer_text(reply, "\"}");
}

/* The bytes of an array of this precision and shape ([count], or [] when count is NULL), freshly allocated; NULL where
 * the value is none, with the reason. */
static unsigned char *get_array(const Json *value, const OtjShape *shape, const uint64_t *count, OtjProblem *problem)
{
    const Json *axes = json_get(value, "shape"), *data = json_get(value, "data");
    uint64_t length = 1;
    if (!json_is(json_get(value, "dtype"), shape->single ? "f32" : "f64")) {
        snprintf(problem->reason, sizeof problem->reason, "not an array of %s", shape->single ? "f32" : "f64");
        return NULL;
    }
    if (axes == NULL || axes->type != JSON_ARRAY || axes->count != (count != NULL ? 1u : 0u) ||
        (count != NULL && (json_u64(axes->first, &length) != INTEGER_OK || length != *count))) {
        if (count != NULL)
            snprintf(problem->reason, sizeof problem->reason, "not an array of %" PRIu64 " values", *count);
        else
            snprintf(problem->reason, sizeof problem->reason, "not a single value");
        return NULL;
    }
    size_t size = 0;
    unsigned char *bytes = NULL;
    if (data != NULL && data->type == JSON_STRING)
        bytes = base64_decode(data->text, data->length, &size);
    if (bytes == NULL || length > UINT64_MAX / 8 || size != length * shape->scalar) {
        free(bytes);
        snprintf(problem->reason, sizeof problem->reason, "the data are not the base64 of %" PRIu64 " values", length);
        return NULL;
    }
    return bytes;
}

/* ---- reading ---- */

static void put_frame(Buffer *reply, const OtjReader *reader)
{
    const OtjShape *shape = &reader->shape;
    uint64_t step = 0;
    for (int i = 7; i >= 0; i--)
        step = step << 8 | reader->frame[i];
    buffer_text(reply, "{\"step\":");
    put_integer(reply, step);
    buffer_text(reply, ",\"time\":");
    put_array(reply, shape, reader->frame + 8, NULL);
    for (unsigned i = 0; i < shape->components; i++) {
        buffer_text(reply, ",\"");
        buffer_text(reply, COMPONENTS[i]);
        buffer_text(reply, "\":");
        put_array(reply, shape, reader->frame + 8 + shape->scalar + i * shape->array, &shape->particles);
    }
    buffer_text(reply, "}");
}

static void put_trajectory(Buffer *reply, OtjReader *reader, uint64_t first, uint64_t stop, bool whole)
{
    const OtjShape *shape = &reader->shape;
    OtjProblem problem;
    OtjStatus status = OTJ_OK;
    uint64_t n = first;
    buffer_text(reply, "\"ok\":{\"format\":\"otj\",\"particles\":");
    put_integer(reply, shape->particles);
    buffer_text(reply, shape->single ? ",\"precision\":\"single\"" : ",\"precision\":\"double\"");
    buffer_text(reply, shape->velocities ? ",\"velocities\":true" : ",\"velocities\":false");
    buffer_text(reply, ",\"timestep\":");
    put_array(reply, shape, reader->header + 24, NULL);
    buffer_text(reply, ",\"masses\":");
    put_array(reply, shape, reader->header + 24 + shape->scalar, &shape->particles);
    buffer_text(reply, ",\"frames\":[");
    for (; n < stop && (status = otj_read(reader, n, &problem)) == OTJ_OK; n++) {
        buffer_text(reply, n > first ? "," : "");
        put_frame(reply, reader);
    }
    if (status == OTJ_FAILED) {
        error(reply, problem.reason);
        return;
    }
    buffer_text(reply, "]");
    if (status == OTJ_REFUSED) {
        buffer_text(reply, ",\"error\":{\"reason\":");
        buffer_json_string(reply, problem.reason);
        buffer_text(reply, "}");
    }
    if (whole) { /* a range says nothing about what lies behind it */
        uint64_t left = reader->length - (shape->header + n * shape->frame);
        buffer_text(reply, ",\"tail\":{\"state\":");
        buffer_text(reply, status == OTJ_REFUSED ? "\"damaged\"" : left > 0 ? "\"cut\"" : "\"clean\"");
        buffer_text(reply, ",\"bytes\":");
        put_integer(reply, left);
        buffer_text(reply, "}");
    }
    buffer_text(reply, "}");
}

static const char *get_path(const Json *request, Buffer *reply)
{
    const Json *path = json_get(request, "path");
    if (path == NULL || path->type != JSON_STRING || path->length == 0 || strlen(path->text) != path->length) {
        error(reply, "a request without a usable path");
        return NULL;
    }
    return path->text;
}

static bool is_otj(const Json *request, Buffer *reply)
{
    if (json_is(json_get(request, "format"), "otj"))
        return true;
    unsupported(reply, "formats other than otj");
    return false;
}

static void do_read(const Json *request, Buffer *reply)
{
    const char *path;
    const Json *range = json_get(request, "frames");
    uint64_t first = 0, stop = UINT64_MAX;
    if (!is_otj(request, reply) || (path = get_path(request, reply)) == NULL)
        return;
    if (range != NULL && (range->type != JSON_ARRAY || range->count != 2 ||
                          json_u64(range->first, &first) != INTEGER_OK ||
                          json_u64(range->first->next, &stop) != INTEGER_OK)) {
        error(reply, "frames is not a pair of integers");
        return;
    }
    OtjReader reader;
    OtjProblem problem;
    OtjStatus status = otj_open(&reader, path, &problem);
    if (status != OTJ_OK)
        outcome(reply, status, &problem);
    else if (precision != NULL && reader.shape.single != (strcmp(precision, "single") == 0))
        refused(reply, "a file of the precision that this reader was not built for");
    else
        put_trajectory(reply, &reader, first, stop < reader.frames ? stop : reader.frames, range == NULL);
    otj_close(&reader);
}

/* ---- checking ---- */

static void put_violation(void *to, const char *clause, int64_t frame, uint64_t offset, const char *message)
{
    Buffer *reply = to;
    buffer_text(reply, reply->data[reply->length - 1] == '[' ? "" : ",");
    buffer_text(reply, "{\"clause\":\"");
    buffer_text(reply, clause);
    if (frame < 0) {
        buffer_text(reply, "\",\"path\":\"header\"");
    } else {
        buffer_text(reply, "\",\"path\":\"frame\",\"index\":");
        buffer_u64(reply, (uint64_t)frame);
    }
    buffer_text(reply, ",\"offset\":");
    buffer_u64(reply, offset);
    buffer_text(reply, ",\"message\":");
    buffer_json_string(reply, message);
    buffer_text(reply, "}");
}

static void do_check(const Json *request, Buffer *reply)
{
    const char *path;
    OtjProblem problem;
    if (!is_otj(request, reply) || (path = get_path(request, reply)) == NULL)
        return;
    buffer_text(reply, "\"ok\":{\"violations\":[");
    if (reply->failed)
        return;
    OtjStatus status = otj_check(path, put_violation, reply, &problem);
    if (status == OTJ_OK)
        buffer_text(reply, "]}");
    else
        outcome(reply, status, &problem);
}

/* ---- writing ---- */

static void drop_writer(void)
{
    OtjProblem problem;
    if (writer.file != NULL)
        otj_finish(&writer, &problem);
}

static void do_create(const Json *request, Buffer *reply)
{
    const Json *declaration = json_get(request, "declaration");
    const char *path;
    uint64_t particles = 0;
    if (!is_otj(request, reply) || (path = get_path(request, reply)) == NULL)
        return;
    if (declaration == NULL) {
        unsupported(reply, "deriving a declaration from frames");
        return;
    }
    drop_writer();
    const Json *velocities = json_get(declaration, "velocities");
    bool single = json_is(json_get(declaration, "precision"), "single");
    if (precision != NULL && !json_is(json_get(declaration, "precision"), precision)) {
        unsupported(reply, "writing the other precision");
        return;
    }
    if (json_u64(json_get(declaration, "particles"), &particles) != INTEGER_OK) {
        refused(reply, "particles is not an integer from 0 to 2^64 - 1");
        return;
    }
    if (!single && !json_is(json_get(declaration, "precision"), "double")) {
        refused(reply, "precision is neither single nor double");
        return;
    }
    if (velocities == NULL || velocities->type != JSON_BOOL) {
        refused(reply, "velocities is neither true nor false");
        return;
    }
    OtjShape shape;
    if (!otj_shape(&shape, particles, single, velocities->truth)) {
        refused(reply, "so many particles make a frame that 64 bits cannot count");
        return;
    }
    OtjProblem problem;
    unsigned char *timestep = get_array(json_get(declaration, "timestep"), &shape, NULL, &problem);
    unsigned char *masses =
        timestep ? get_array(json_get(declaration, "masses"), &shape, &shape.particles, &problem) : NULL;
    if (masses == NULL) {
        char reason[320];
        snprintf(reason, sizeof reason, "%s: %s", timestep ? "masses" : "timestep", problem.reason);
        refused(reply, reason);
    } else {
        outcome(reply, otj_create(&writer, path, &shape, timestep, masses, &problem), &problem);
    }
    free(timestep);
    free(masses);
}

static bool has_writer(Buffer *reply)
{
    if (writer.file != NULL)
        return true;
    error(reply, "no file is being written");
    return false;
}

static void do_append(const Json *request, Buffer *reply)
{
    const Json *frame = json_get(request, "frame");
    uint64_t step = 0;
    if (!has_writer(reply))
        return;
    IntegerStatus status = json_u64(json_get(request, "step"), &step);
    if (status == INTEGER_NONE) {
        error(reply, "step is not an integer");
        return;
    }
    if (status == INTEGER_OUT_OF_RANGE) {
        refused(reply, "step is not in 0 to 2^64 - 1");
        return;
    }
    unsigned char *components[OTJ_MAX_COMPONENTS] = {NULL};
    OtjProblem problem;
    bool good = true;
    for (unsigned i = 0; i < OTJ_MAX_COMPONENTS && good; i++) {
        const Json *values = json_get(frame, COMPONENTS[i]);
        char reason[320];
        if (i >= writer.shape.components) {
            if (values == NULL)
                continue;
            snprintf(reason, sizeof reason, "%s: this file carries no velocities", COMPONENTS[i]);
            good = false;
        } else {
            components[i] = get_array(values, &writer.shape, &writer.shape.particles, &problem);
            good = components[i] != NULL;
            snprintf(reason, sizeof reason, "%s: %s", COMPONENTS[i], good ? "" : values ? problem.reason : "missing");
        }
        if (!good)
            refused(reply, reason);
    }
    if (good)
        outcome(reply, otj_append(&writer, step, (const unsigned char *const *)components, &problem), &problem);
    for (unsigned i = 0; i < OTJ_MAX_COMPONENTS; i++)
        free(components[i]);
}

static void do_flush(Buffer *reply)
{
    OtjProblem problem;
    if (has_writer(reply))
        outcome(reply, otj_flush(&writer, &problem), &problem);
}

static void do_close(Buffer *reply)
{
    OtjProblem problem;
    if (has_writer(reply))
        outcome(reply, otj_finish(&writer, &problem), &problem);
}

/* ---- the conversation ---- */

static void do_hello(const Json *request, Buffer *reply)
{
    uint64_t protocol = 0;
    if (json_u64(json_get(request, "protocol"), &protocol) != INTEGER_OK || protocol != 1) {
        error(reply, "this driver speaks protocol 1");
        return;
    }
    buffer_text(reply, "\"ok\":{\"name\":\"c-otj");
    buffer_text(reply, precision == NULL ? "" : "-");
    buffer_text(reply, precision == NULL ? "" : precision);
    buffer_text(reply, "\",\"version\":\"1.0\",\"language\":\"C\","
                       "\"formats\":{\"otj\":[\"read\",\"write\"]},\"features\":[\"range\"");
    if (precision == NULL) {
        buffer_text(reply, ",\"single\",\"double\",\"check:otj\"");
    } else {
        buffer_text(reply, ",");
        buffer_json_string(reply, precision);
    }
    buffer_text(reply, "]}");
}

static void dispatch(const Json *request, Buffer *reply)
{
    const Json *op = json_get(request, "op");
    if (json_is(op, "hello"))
        do_hello(request, reply);
    else if (json_is(op, "read"))
        do_read(request, reply);
    else if (json_is(op, "check"))
        do_check(request, reply);
    else if (json_is(op, "create"))
        do_create(request, reply);
    else if (json_is(op, "append"))
        do_append(request, reply);
    else if (json_is(op, "flush"))
        do_flush(reply);
    else if (json_is(op, "close"))
        do_close(reply);
    else if (json_is(op, "bye"))
        done(reply);
    else
        unsupported(reply, "this operation");
}

static void send_reply(uint64_t id, const Buffer *reply)
{
    printf("{\"id\":%" PRIu64 ",", id);
    if (reply->failed)
        fputs("\"error\":{\"message\":\"out of memory\"}", stdout);
    else
        fwrite(reply->data, 1, reply->length, stdout);
    fputs("}\n", stdout);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "--precision") == 0 &&
        (strcmp(arguments[2], "single") == 0 || strcmp(arguments[2], "double") == 0)) {
        precision = arguments[2];
    } else if (count != 1) {
        fprintf(stderr, "usage: c-otj [--precision single|double]\n");
        return 2;
    }
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int status = 0;
    bool going = true;
    while (going && (length = getline(&line, &capacity, stdin)) >= 0) {
        const char *problem = NULL;
        Json *request = json_parse(line, (size_t)length, &problem);
        uint64_t id = 0;
        if (json_u64(json_get(request, "id"), &id) != INTEGER_OK || id == 0) {
            fprintf(stderr, "c-otj: not a request: %s\n", request ? "no id" : problem);
            json_free(request);
            status = 1;
            break;
        }
        Buffer reply = {0};
        dispatch(request, &reply);
        send_reply(id, &reply);
        going = !json_is(json_get(request, "op"), "bye");
        buffer_free(&reply);
        json_free(request);
    }
    drop_writer();
    free(line);
    return status;
}
