/* A strict JSON reader: one document, UTF-8, no trailing text, no duplicate names, numbers kept as they are spelled so
 * that integers of any size survive. Nothing is limited but the depth of nesting. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } JsonType;

typedef struct Json Json;

struct Json {
    JsonType type;
    bool truth;    /* of a bool */
    char *text;    /* of a string (decoded) or number (as spelled), with a 0 behind it */
    size_t length; /* of text, without that 0 */
    size_t count;  /* of items or members */
    Json *first;   /* item or member */
    Json *next;    /* sibling */
    char *name;    /* of a member, with a 0 behind it */
    size_t name_length;
};

/* NULL where the text is not a JSON document; *problem then says why. */
Json *json_parse(const char *text, size_t length, const char **problem);
void json_free(Json *value);

/* Member of an object; NULL where the value is none, or has no such member. */
const Json *json_get(const Json *value, const char *name);
/* Whether it is just this string. */
bool json_is(const Json *value, const char *text);

typedef enum { INTEGER_OK, INTEGER_OUT_OF_RANGE, INTEGER_NONE } IntegerStatus;

/* An integer of the protocol: a number without fraction and exponent, or the decimal string of one. */
IntegerStatus json_u64(const Json *value, uint64_t *out);

#endif
