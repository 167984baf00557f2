#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "otj.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXED 24
#define FLAG_SINGLE 1u
#define FLAG_VELOCITIES 2u

static const unsigned char MAGIC[8] = {'O', 'R', 'R', 'E', 'R', 'Y', 'T', 'J'};

static OtjStatus say(OtjProblem *problem, OtjStatus status, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(problem->reason, sizeof problem->reason, form, arguments);
    va_end(arguments);
    return status;
}

/* Integers by shifts, so that the byte order of the machine does not matter. */
static uint64_t get(const unsigned char *at, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = size; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static void put(unsigned char *at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t fnv1a64(uint64_t state, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        state = (state ^ data[i]) * UINT64_C(0x100000001b3);
    return state;
}

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

bool otj_shape(OtjShape *shape, uint64_t particles, bool single, bool velocities)
{
    shape->particles = particles;
    shape->single = single;
    shape->velocities = velocities;
    shape->scalar = single ? 4 : 8;
    shape->components = velocities ? 6 : 3;
    if (particles > (UINT64_MAX - 64) / OTJ_MAX_COMPONENTS / shape->scalar)
        return false;
    shape->array = particles * shape->scalar;
    shape->header = 32 + shape->scalar + shape->array;
    shape->frame = 16 + shape->scalar + shape->components * shape->array;
    return true;
}

/* Read exactly `size` bytes from `offset` on. */
static OtjStatus read_at(OtjReader *reader, uint64_t offset, unsigned char *to, size_t size, OtjProblem *problem)
{
    if (fseeko(reader->file, (off_t)offset, SEEK_SET) != 0 || fread(to, 1, size, reader->file) != size)
        return say(problem, OTJ_FAILED, "cannot read %zu bytes at %" PRIu64 ": %s", size, offset,
                   ferror(reader->file) ? strerror(errno) : "the file became shorter");
    return OTJ_OK;
}

/* A breach of the format: reported where all are collected, else the reason to refuse the file. */
static OtjStatus breach(OtjReader *reader, OtjProblem *problem, const char *clause, int64_t frame, uint64_t offset,
                        const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(problem->reason, sizeof problem->reason, form, arguments);
    va_end(arguments);
    if (reader->report == NULL)
        return OTJ_REFUSED;
    reader->report(reader->to, clause, frame, offset, problem->reason);
    return OTJ_OK;
}

static OtjStatus read_header(OtjReader *reader, OtjProblem *problem)
{
    unsigned char fixed[FIXED];
    size_t have = reader->length < FIXED ? (size_t)reader->length : FIXED;
    OtjStatus status = read_at(reader, 0, fixed, have, problem);
    if (status != OTJ_OK)
        return status;
    if (memcmp(fixed, MAGIC, have < sizeof MAGIC ? have : sizeof MAGIC) != 0)
        return breach(reader, problem, "OTJ-HEADER-01", -1, 0, "not an otj file: it does not start with ORRERYTJ");
    if (have >= 12 && get(fixed + 8, 4) != 1)
        return breach(reader, problem, "OTJ-HEADER-03", -1, 8, "version %" PRIu64 " is not known", get(fixed + 8, 4));
    if (have < FIXED)
        return breach(reader, problem, "OTJ-HEADER-10", -1, 0, "the file ends inside its header, after %zu bytes", have);
    uint64_t flags = get(fixed + 12, 4), particles = get(fixed + 16, 8);
    if (flags & ~(uint64_t)(FLAG_SINGLE | FLAG_VELOCITIES))
        status = breach(reader, problem, "OTJ-FLAGS-03", -1, 12, "flags 0x%08" PRIx64 " set a reserved bit", flags);
    if (status != OTJ_OK)
        return status;
    unsigned scalar = flags & FLAG_SINGLE ? 4 : 8;
    if (reader->length < 32 + scalar || particles > (reader->length - 32 - scalar) / scalar)
        return breach(reader, problem, "OTJ-HEADER-10", -1, 16,
                      "the header of %" PRIu64 " particles does not fit into %" PRIu64 " bytes", particles,
                      reader->length);
    if (!otj_shape(&reader->shape, particles, flags & FLAG_SINGLE, flags & FLAG_VELOCITIES) ||
        reader->shape.header > SIZE_MAX)
        return say(problem, OTJ_FAILED, "%" PRIu64 " particles are too many for this machine", particles);
    size_t size = (size_t)reader->shape.header;
    reader->header = malloc(size);
    if (reader->header == NULL)
        return say(problem, OTJ_FAILED, "no memory for a header of %zu bytes", size);
    status = read_at(reader, 0, reader->header, size, problem);
    if (status != OTJ_OK)
        return status;
    reader->frames = (reader->length - reader->shape.header) / reader->shape.frame;
    if (fnv1a64(FNV_BASIS, reader->header, size - 8) != get(reader->header + size - 8, 8))
        return breach(reader, problem, "OTJ-SUM-02", -1, size - 8, "the checksum of the header is wrong");
    return OTJ_OK;
}

static OtjStatus open_file(OtjReader *reader, const char *path, OtjProblem *problem)
{
    reader->file = fopen(path, "rb");
    struct stat facts;
    if (reader->file == NULL || fstat(fileno(reader->file), &facts) != 0)
        return say(problem, OTJ_FAILED, "cannot open the file: %s", strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return say(problem, OTJ_REFUSED, "not a regular file");
    reader->length = (uint64_t)facts.st_size;
    return read_header(reader, problem);
}

OtjStatus otj_open(OtjReader *reader, const char *path, OtjProblem *problem)
{
    memset(reader, 0, sizeof *reader);
    return open_file(reader, path, problem);
}

OtjStatus otj_read(OtjReader *reader, uint64_t n, OtjProblem *problem)
{
    uint64_t length = reader->shape.frame; /* a complete frame is there, so this is no more than the file's length */
    if (length > SIZE_MAX)
        return say(problem, OTJ_FAILED, "a frame of %" PRIu64 " bytes is too large for this machine", length);
    size_t size = (size_t)length;
    if (reader->frame == NULL && (reader->frame = malloc(size)) == NULL)
        return say(problem, OTJ_FAILED, "no memory for a frame of %zu bytes", size);
    OtjStatus status = read_at(reader, reader->shape.header + n * length, reader->frame, size, problem);
    if (status != OTJ_OK)
        return status;
    if (fnv1a64(FNV_BASIS, reader->frame, size - 8) != get(reader->frame + size - 8, 8))
        return say(problem, OTJ_REFUSED, "the checksum of frame %" PRIu64 " is wrong", n);
    return OTJ_OK;
}

void otj_close(OtjReader *reader)
{
    if (reader->file != NULL)
        fclose(reader->file);
    free(reader->header);
    free(reader->frame);
    memset(reader, 0, sizeof *reader);
}

/* The time: the step as a scalar, times the timestep. The assignments round to the width of the variable, which C
 * asks for even where the machine computes wider. */
static void product(const OtjShape *shape, uint64_t step, const unsigned char *factor, unsigned char *out)
{
    uint64_t bits = get(factor, shape->scalar);
    if (shape->single) {
        uint32_t narrow = (uint32_t)bits;
        float timestep;
        memcpy(&timestep, &narrow, 4);
        volatile float count = (float)step;
        volatile float time = count * timestep;
        float result = time;
        memcpy(&narrow, &result, 4);
        bits = narrow;
    } else {
        double timestep;
        memcpy(&timestep, &bits, 8);
        volatile double count = (double)step;
        volatile double time = count * timestep;
        double result = time;
        memcpy(&bits, &result, 8);
    }
    put(out, bits, shape->scalar);
}

/* Place of a scalar among all of its width, so that neighbours differ by one; the zeros are neighbours too. */
static int64_t ordinal(uint64_t bits, unsigned size)
{
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    return bits & sign ? -1 - (int64_t)(bits ^ sign) : (int64_t)bits;
}

static bool is_nan(uint64_t bits, bool single)
{
    return single ? (bits & 0x7fffffff) > 0x7f800000 : (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

/* The time of the frame read last: the product, or a breach that says whether only its rounding is another. */
static void check_time(OtjReader *reader, uint64_t n, OtjProblem *problem)
{
    const OtjShape *shape = &reader->shape;
    unsigned char expected[8];
    product(shape, get(reader->frame, 8), reader->header + FIXED, expected);
    uint64_t right = get(expected, shape->scalar), found = get(reader->frame + 8, shape->scalar);
    bool no_number = is_nan(right, shape->single), none_found = is_nan(found, shape->single);
    if (right == found || (no_number && none_found))
        return;
    int64_t a = ordinal(right, shape->scalar), b = ordinal(found, shape->scalar);
    uint64_t apart = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    const char *clause = no_number || none_found || apart > 2 ? "OTJ-FRAME-07" : "OTJ-FRAME-08";
    breach(reader, problem, clause, (int64_t)n, shape->header + n * shape->frame + 8,
           "the time is 0x%" PRIx64 ", the product is 0x%" PRIx64, found, right);
}

OtjStatus otj_check(const char *path, OtjReport report, void *to, OtjProblem *problem)
{
    OtjReader reader;
    memset(&reader, 0, sizeof reader);
    reader.report = report;
    reader.to = to;
    OtjStatus status = open_file(&reader, path, problem);
    for (uint64_t n = 0; status == OTJ_OK && n < reader.frames; n++) {
        status = otj_read(&reader, n, problem);
        if (status == OTJ_OK)
            check_time(&reader, n, problem);
        else if (status == OTJ_REFUSED)
            status = breach(&reader, problem, "OTJ-SUM-03", (int64_t)n,
                            reader.shape.header + (n + 1) * reader.shape.frame - 8, "the checksum is wrong");
    }
    otj_close(&reader);
    return status;
}

/* Write bytes and carry the checksum on. */
static bool emit(OtjWriter *writer, uint64_t *state, const void *data, uint64_t size)
{
    if (size == 0)
        return true;
    *state = fnv1a64(*state, data, (size_t)size);
    return fwrite(data, 1, (size_t)size, writer->file) == size;
}

/* End a header or frame with its checksum, and hand all of it to the system. */
static OtjStatus seal(OtjWriter *writer, uint64_t state, bool written, OtjProblem *problem)
{
    unsigned char checksum[8];
    put(checksum, state, 8);
    if (!written || fwrite(checksum, 1, 8, writer->file) != 8 || fflush(writer->file) != 0) {
        writer->broken = true;
        return say(problem, OTJ_FAILED, "cannot write: %s", strerror(errno));
    }
    return OTJ_OK;
}

OtjStatus otj_create(OtjWriter *writer, const char *path, const OtjShape *shape, const unsigned char *timestep,
                     const unsigned char *masses, OtjProblem *problem)
{
    memset(writer, 0, sizeof *writer);
    writer->shape = *shape;
    memcpy(writer->timestep, timestep, shape->scalar);
    int handle = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (handle < 0 || (writer->file = fdopen(handle, "wb")) == NULL) {
        OtjStatus status = say(problem, OTJ_FAILED, "cannot create the file: %s", strerror(errno));
        if (handle >= 0)
            close(handle);
        return status;
    }
    unsigned char fixed[FIXED];
    memcpy(fixed, MAGIC, sizeof MAGIC);
    put(fixed + 8, 1, 4);
    put(fixed + 12, (shape->single ? FLAG_SINGLE : 0) | (shape->velocities ? FLAG_VELOCITIES : 0), 4);
    put(fixed + 16, shape->particles, 8);
    uint64_t state = FNV_BASIS;
    bool written = emit(writer, &state, fixed, FIXED) && emit(writer, &state, timestep, shape->scalar) &&
                   emit(writer, &state, masses, shape->array);
    return seal(writer, state, written, problem);
}

OtjStatus otj_append(OtjWriter *writer, uint64_t step, const unsigned char *const *components, OtjProblem *problem)
{
    if (writer->broken)
        return say(problem, OTJ_FAILED, "an earlier write failed, the file ends inside a frame");
    unsigned char start[16];
    put(start, step, 8);
    product(&writer->shape, step, writer->timestep, start + 8);
    uint64_t state = FNV_BASIS;
    bool written = emit(writer, &state, start, 8 + writer->shape.scalar);
    for (unsigned i = 0; i < writer->shape.components; i++)
        written = written && emit(writer, &state, components[i], writer->shape.array);
    return seal(writer, state, written, problem);
}

OtjStatus otj_flush(OtjWriter *writer, OtjProblem *problem)
{
    if (fflush(writer->file) != 0 || fsync(fileno(writer->file)) != 0)
        return say(problem, OTJ_FAILED, "cannot flush: %s", strerror(errno));
    return OTJ_OK;
}

OtjStatus otj_finish(OtjWriter *writer, OtjProblem *problem)
{
    OtjStatus status = otj_flush(writer, problem);
    if (fclose(writer->file) != 0 && status == OTJ_OK)
        status = say(problem, OTJ_FAILED, "cannot close: %s", strerror(errno));
    writer->file = NULL;
    return status;
}
