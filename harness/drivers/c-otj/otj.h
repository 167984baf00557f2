/* The Orrery trajectory format, version 1: reading by arithmetic, writing front to back. Scalars stay the bytes that
 * they are in the file; only a time is ever computed with. */
#ifndef OTJ_H
#define OTJ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OTJ_MAX_COMPONENTS 6

typedef enum {
    OTJ_OK,
    OTJ_REFUSED, /* the file, or what is to be written, breaks the format; reason says how */
    OTJ_FAILED   /* the system does not play along (no such file, disk full, no memory); reason says how */
} OtjStatus;

typedef struct {
    char reason[256];
} OtjProblem;

/* What the flags and the count say, and the lengths that follow: header H, frame F. */
typedef struct {
    uint64_t particles;
    bool single;
    bool velocities;
    unsigned scalar;     /* R */
    unsigned components; /* 3 or 6 */
    uint64_t array;      /* N x R */
    uint64_t header;     /* H */
    uint64_t frame;      /* F */
} OtjShape;

/* What a check finds: the clause that a file breaks, the frame (-1: the header), the byte, and why. */
typedef void (*OtjReport)(void *to, const char *clause, int64_t frame, uint64_t offset, const char *message);

typedef struct {
    FILE *file;
    uint64_t length;
    OtjShape shape;
    uint64_t frames;       /* complete frames, sound or damaged */
    unsigned char *header; /* H bytes; NULL where the file has no header to go by */
    unsigned char *frame;  /* F bytes, the frame read last */
    OtjReport report;      /* where breaches go when all are collected; NULL: the first one refuses the file */
    void *to;
} OtjReader;

typedef struct {
    FILE *file;
    OtjShape shape;
    unsigned char timestep[8];
    bool broken; /* a write failed: the file ends inside a frame */
} OtjWriter;

/* False where a length does not fit into 64 bits. */
bool otj_shape(OtjShape *shape, uint64_t particles, bool single, bool velocities);

OtjStatus otj_open(OtjReader *reader, const char *path, OtjProblem *problem);
/* Read frame n < reader->frames into reader->frame. OTJ_REFUSED where its checksum is wrong. */
OtjStatus otj_read(OtjReader *reader, uint64_t n, OtjProblem *problem);
void otj_close(OtjReader *reader);

/* Report every breach of a clause on files. */
OtjStatus otj_check(const char *path, OtjReport report, void *to, OtjProblem *problem);

/* Create a file that must not exist yet and write its header: R bytes of timestep, N x R bytes of masses. */
OtjStatus otj_create(OtjWriter *writer, const char *path, const OtjShape *shape, const unsigned char *timestep,
                     const unsigned char *masses, OtjProblem *problem);
/* Append a frame: 3 or 6 components of N x R bytes each. */
OtjStatus otj_append(OtjWriter *writer, uint64_t step, const unsigned char *const *components, OtjProblem *problem);
OtjStatus otj_flush(OtjWriter *writer, OtjProblem *problem);
OtjStatus otj_finish(OtjWriter *writer, OtjProblem *problem);

#endif
