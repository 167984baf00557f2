/* A unit test of a reader of otj against exported vectors, with nothing but the C library.
 *
 *   trajconform vectors export vectors-out --format otj
 *   gcc -std=c99 -O2 -I ../../drivers/c-otj -o test_export test_export.c ../../drivers/c-otj/otj.c
 *   ./test_export vectors-out
 *
 * The reader under test is otj.c; to test another one, rewrite read_file() and put_frame(). Every line of index.tsv is
 * a case; what a case expects stands in expected.tsv, one value a line. This program writes what it has read in the
 * same form and compares the text, so it needs no parser. Exit status: 0 all as expected, 1 not, 2 no usable export. */
#define _POSIX_C_SOURCE 200809L

#include "otj.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *text;
    size_t length, room;
} Text;

typedef struct {
    Text header, frames; /* as in expected.tsv; the line with the number of frames stands between them */
    uint64_t count;
    char *refused; /* the reason, where the reader refused the file */
} Read;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "test_export: %s: %s\n", what, which);
    exit(2);
}

static void add(Text *to, const char *text, size_t length)
{
    if (length > to->room - to->length || to->text == NULL) {
        to->room = 2 * (to->length + length) + 256;
        to->text = realloc(to->text, to->room + 1);
        if (to->text == NULL)
            die("no memory", "for a text");
    }
    memcpy(to->text + to->length, text, length);
    to->text[to->length += length] = '\0';
}

static void say(Text *to, const char *text)
{
    add(to, text, strlen(text));
}

static void say_number(Text *to, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    say(to, digits);
}

/* One line for an array: path, dtype, shape (a minus for a scalar), the bytes as they are in the file. */
static void say_array(Text *to, const char *path, const OtjShape *shape, bool scalar, const unsigned char *data)
{
    size_t size = (size_t)(scalar ? shape->scalar : shape->array);
    say(to, path);
    say(to, shape->single ? "\tf32\t" : "\tf64\t");
    if (scalar)
        say(to, "-");
    else
        say_number(to, shape->particles);
    say(to, size > 0 ? "\t" : "\t-");
    for (size_t i = 0; i < size; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", data[i]);
        add(to, digits, 2);
    }
    say(to, "\n");
}

static void put_header(Text *to, const OtjReader *reader)
{
    const OtjShape *shape = &reader->shape;
    say(to, "/format\ttext\t-\t\"otj\"\n/particles\tint\t-\t");
    say_number(to, shape->particles);
    say(to, shape->single ? "\n/precision\ttext\t-\t\"single\"\n" : "\n/precision\ttext\t-\t\"double\"\n");
    say(to, shape->velocities ? "/velocities\tflag\t-\t1\n" : "/velocities\tflag\t-\t0\n");
    say_array(to, "/timestep", shape, true, reader->header + 24);
    say_array(to, "/masses", shape, false, reader->header + 24 + shape->scalar);
}

static void put_frame(Text *to, const OtjReader *reader, uint64_t number)
{
    static const char *const names[OTJ_MAX_COMPONENTS] = {"x", "y", "z", "vx", "vy", "vz"};
    const OtjShape *shape = &reader->shape;
    const unsigned char *at = reader->frame;
    uint64_t step = 0;
    for (int i = 8; i-- > 0;)
        step = step << 8 | at[i];
    char path[64];
    snprintf(path, sizeof path, "/frames/%" PRIu64 "/step\tint\t-\t%" PRIu64 "\n", number, step);
    say(to, path);
    snprintf(path, sizeof path, "/frames/%" PRIu64 "/time", number);
    say_array(to, path, shape, true, at + 8);
    at += 8 + shape->scalar;
    for (unsigned i = 0; i < shape->components; i++, at += shape->array) {
        snprintf(path, sizeof path, "/frames/%" PRIu64 "/%s", number, names[i]);
        say_array(to, path, shape, false, at);
    }
}

/* Whether the frame read last is one of those that may follow, from *next on; *next is then the one after it. */
static bool may_follow(const OtjReader *reader, const char *allowed, uint64_t *next)
{
    Text frame = {0};
    bool found = false;
    if (allowed == NULL)
        return false;
    for (;; ++*next) {
        char first[64];
        snprintf(first, sizeof first, "\n/frames/%" PRIu64 "/", *next);
        if (strstr(allowed, first) == NULL)
            break;
        frame.length = 0;
        say(&frame, "\n");
        put_frame(&frame, reader, *next);
        if ((found = strstr(allowed, frame.text) != NULL)) {
            ++*next;
            break;
        }
    }
    free(frame.text);
    return found;
}

/* Read a file, or its frames from `first` up to `stop`. Beyond `expected` frames those that may follow are let by. */
static Read read_file(const char *path, uint64_t first, uint64_t stop, uint64_t expected, const char *allowed)
{
    Read read = {0};
    OtjReader reader;
    OtjProblem problem;
    uint64_t next = 0;
    OtjStatus status = otj_open(&reader, path, &problem);
    if (status == OTJ_OK) {
        put_header(&read.header, &reader);
        for (uint64_t n = first; n < stop && n < reader.frames; n++) {
            status = otj_read(&reader, n, &problem);
            if (status != OTJ_OK)
                break; /* a damaged frame ends what is read, and is no refusal of the file */
            if (read.count >= expected && may_follow(&reader, allowed, &next))
                continue;
            put_frame(&read.frames, &reader, read.count++);
        }
    } else {
        read.refused = strdup(problem.reason);
    }
    otj_close(&reader);
    if (status == OTJ_FAILED)
        die(path, problem.reason);
    return read;
}

static char *load(const char *folder, const char *name)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        die("the path is too long", name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        die("cannot open", path);
    Text text = {0};
    char part[65536];
    size_t got;
    while ((got = fread(part, 1, sizeof part, file)) > 0)
        add(&text, part, got);
    if (ferror(file) || text.text == NULL)
        die("cannot read", path);
    fclose(file);
    return text.text;
}

/* Compare with the expected lines up to the part about what lies behind the frames; print the first that differs. */
static bool same(const char *name, const Read *read, const char *expected)
{
    Text found = {0};
    if (read->refused != NULL) {
        printf("FAIL %s: refused: %s\n", name, read->refused);
        return false;
    }
    say(&found, read->header.text);
    say(&found, "/frames\tcount\t-\t");
    say_number(&found, read->count);
    say(&found, "\n");
    if (read->count > 0)
        say(&found, read->frames.text);
    const char *end = strstr(expected, "\n/tail/"), *error = strstr(expected, "\n/error");
    if (error != NULL && (end == NULL || error < end))
        end = error;
    size_t length = end == NULL ? strlen(expected) : (size_t)(end - expected) + 1;
    bool equal = found.length == length && memcmp(found.text, expected, length) == 0;
    if (!equal) {
        size_t at = 0;
        for (size_t i = 0; i < length && i < found.length && found.text[i] == expected[i]; i++)
            if (expected[i] == '\n')
                at = i + 1;
        printf("FAIL %s\n  expected %.*s\n  read     %.*s\n", name, (int)strcspn(expected + at, "\n"), expected + at,
               (int)strcspn(found.text + at, "\n"), found.text + at);
    }
    free(found.text);
    return equal;
}

/* Whether a case needs nothing but what this reader has. */
static bool can(const char *needs)
{
    static const char *const features[] = {"-", "double", "range", "single"};
    for (const char *at = needs; *at != '\0';) {
        size_t length = strcspn(at, ",");
        bool known = false;
        for (size_t i = 0; i < sizeof features / sizeof *features; i++)
            known = known || (strlen(features[i]) == length && strncmp(features[i], at, length) == 0);
        if (!known)
            return false;
        at += length + (at[length] == ',');
    }
    return true;
}

enum { CASE, ROLE, EXPECT, INPUT, EXPECTED, MAY_FOLLOW, FRAMES, NEEDS, COLUMNS };

static bool run_case(const char *folder, char *const *row)
{
    bool accepted = strcmp(row[EXPECT], "accepted") == 0;
    uint64_t first = 0, stop = UINT64_MAX, count = 0;
    char path[4096];
    if (strcmp(row[FRAMES], "-") != 0 && sscanf(row[FRAMES], "%" SCNu64 "-%" SCNu64, &first, &stop) != 2)
        die("not a range of frames", row[FRAMES]);
    if (snprintf(path, sizeof path, "%s/%s", folder, row[INPUT]) >= (int)sizeof path)
        die("the path is too long", row[INPUT]);
    char *expected = accepted ? load(folder, row[EXPECTED]) : NULL;
    char *allowed = strcmp(row[MAY_FOLLOW], "-") != 0 ? load(folder, row[MAY_FOLLOW]) : NULL;
    if (accepted) {
        const char *line = strstr(expected, "\n/frames\tcount\t-\t");
        if (line == NULL || sscanf(line, "\n/frames\tcount\t-\t%" SCNu64, &count) != 1)
            die("no number of frames in", row[EXPECTED]);
    }
    Read read = read_file(path, first, stop, count, allowed);
    bool passed;
    if (accepted)
        passed = same(row[CASE], &read, expected);
    else if (!(passed = read.refused != NULL))
        printf("FAIL %s: accepted what a reader refuses, with %" PRIu64 " frames\n", row[CASE], read.count);
    free(read.header.text);
    free(read.frames.text);
    free(read.refused);
    free(expected);
    free(allowed);
    return passed;
}

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0, skipped = 0;
    if (argc != 2)
        die("usage", "test_export FOLDER, an export of the otj vectors");
    char *index = load(argv[1], "index.tsv"), *rest = NULL;
    for (char *line = strtok_r(index, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *row[COLUMNS], *field = NULL;
        int columns = 0;
        if (line[0] == '#')
            continue;
        for (char *at = strtok_r(line, "\t", &field); at != NULL && columns < COLUMNS; at = strtok_r(NULL, "\t", &field))
            row[columns++] = at;
        if (columns != COLUMNS)
            die("index.tsv: not the columns that this test knows", row[CASE]);
        if (strncmp(row[CASE], "otj/", 4) != 0 || strcmp(row[ROLE], "reader") != 0)
            continue;
        if (strcmp(row[EXPECT], "informative") == 0 || !can(row[NEEDS]))
            skipped++;
        else if (run_case(argv[1], row))
            passed++;
        else
            failed++;
    }
    free(index);
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    if (passed + failed == 0)
        die("no case of an otj reader in", argv[1]);
    return failed > 0;
}
