#include "json.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 200

typedef struct {
    const char *at;
    const char *end;
    const char *problem;
} Parser;

static Json *parse_value(Parser *p, int depth);

static void *fail(Parser *p, const char *problem)
{
    if (p->problem == NULL)
        p->problem = problem;
    return NULL;
}

static void skip_space(Parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool take(Parser *p, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static Json *make(Parser *p, JsonType type)
{
    Json *value = calloc(1, sizeof *value);
    if (value == NULL)
        return fail(p, "out of memory");
    value->type = type;
    return value;
}

void json_free(Json *value)
{
    while (value != NULL) {
        Json *next = value->next;
        json_free(value->first);
        free(value->text);
        free(value->name);
        free(value);
        value = next;
    }
}

static bool hex4(Parser *p, uint32_t *out)
{
    uint32_t value = 0;
    if (p->end - p->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *p->at++;
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A') + 10;
        else
            return false;
        value = value << 4 | digit;
    }
    *out = value;
    return true;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* Length of the UTF-8 sequence at p->at; 0 where it is none (overlong, surrogate, beyond U+10FFFF, cut). */
static size_t utf8_length(const Parser *p)
{
    const unsigned char *s = (const unsigned char *)p->at;
    size_t left = (size_t)(p->end - p->at);
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : s[0] >= 0xe0 && s[0] <= 0xef ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

/* The escape behind a backslash, decoded to `to`; 0 where it is none. Never longer than it is spelled. */
static size_t escape(Parser *p, char *to)
{
    if (p->at == p->end)
        return 0;
    char c = *p->at++;
    switch (c) {
    case '"':
    case '\\':
    case '/':
        *to = c;
        return 1;
    case 'b':
        *to = '\b';
        return 1;
    case 'f':
        *to = '\f';
        return 1;
    case 'n':
        *to = '\n';
        return 1;
    case 'r':
        *to = '\r';
        return 1;
    case 't':
        *to = '\t';
        return 1;
    case 'u': {
        uint32_t code, low;
        if (!hex4(p, &code))
            return 0;
        if (code >= 0xd800 && code <= 0xdbff) {
            if (!take(p, "\\u") || !hex4(p, &low) || low < 0xdc00 || low > 0xdfff)
                return 0;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        } else if (code >= 0xdc00 && code <= 0xdfff) {
            return 0;
        }
        return put_utf8(to, code);
    }
    default:
        return 0;
    }
}

/* A string at its opening quote; a fresh allocation with a 0 behind it. */
static char *parse_string(Parser *p, size_t *length)
{
    const char *scan = ++p->at;
    while (scan < p->end && *scan != '"')
        scan += *scan == '\\' && p->end - scan > 1 ? 2 : 1;
    char *out = malloc((size_t)(scan - p->at) + 1); /* decoding never lengthens */
    if (out == NULL)
        return fail(p, "out of memory");
    size_t used = 0;
    while (p->at < p->end && *p->at != '"') {
        size_t step;
        if (*p->at == '\\') {
            p->at++;
            step = escape(p, out + used);
            if (step == 0) {
                free(out);
                return fail(p, "a bad escape in a string");
            }
        } else {
            step = utf8_length(p);
            if (step == 0 || (unsigned char)*p->at < 0x20) {
                free(out);
                return fail(p, "a control character or bad UTF-8 in a string");
            }
            memcpy(out + used, p->at, step);
            p->at += step;
        }
        used += step;
    }
    if (p->at == p->end) {
        free(out);
        return fail(p, "a string without an end");
    }
    p->at++;
    out[used] = 0;
    *length = used;
    return out;
}

static bool digits(Parser *p)
{
    const char *start = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return p->at > start;
}

static Json *parse_number(Parser *p)
{
    const char *start = p->at;
    take(p, "-");
    if (!take(p, "0") && !digits(p))
        return fail(p, "a value that is none");
    if (take(p, ".") && !digits(p))
        return fail(p, "a number without digits behind its point");
    if (take(p, "e") || take(p, "E")) {
        if (!take(p, "+"))
            take(p, "-");
        if (!digits(p))
            return fail(p, "a number without digits in its exponent");
    }
    Json *value = make(p, JSON_NUMBER);
    if (value == NULL)
        return NULL;
    value->length = (size_t)(p->at - start);
    value->text = malloc(value->length + 1);
    if (value->text == NULL) {
        json_free(value);
        return fail(p, "out of memory");
    }
    memcpy(value->text, start, value->length);
    value->text[value->length] = 0;
    return value;
}

static bool has_member(const Json *object, const char *name, size_t length)
{
    for (const Json *member = object->first; member != NULL; member = member->next)
        if (member->name_length == length && memcmp(member->name, name, length) == 0)
            return true;
    return false;
}

/* Items up to the closing bracket, or members up to the closing brace. */
static Json *parse_container(Parser *p, int depth, JsonType type)
{
    char close = type == JSON_ARRAY ? ']' : '}';
    if (depth >= MAX_DEPTH)
        return fail(p, "too deeply nested");
    Json *container = make(p, type);
    if (container == NULL)
        return NULL;
    Json **last = &container->first;
    p->at++;
    skip_space(p);
    if (p->at < p->end && *p->at == close) {
        p->at++;
        return container;
    }
    for (;;) {
        char *name = NULL;
        size_t name_length = 0;
        skip_space(p);
        if (type == JSON_OBJECT) {
            if (p->at == p->end || *p->at != '"' || (name = parse_string(p, &name_length)) == NULL) {
                json_free(container);
                return fail(p, "an object's member without a name");
            }
            skip_space(p);
            if (has_member(container, name, name_length) || !take(p, ":")) {
                free(name);
                json_free(container);
                return fail(p, "a name that stands twice in an object, or has no colon");
            }
        }
        Json *value = parse_value(p, depth + 1);
        if (value == NULL) {
            free(name);
            json_free(container);
            return NULL;
        }
        value->name = name;
        value->name_length = name_length;
        *last = value;
        last = &value->next;
        container->count++;
        skip_space(p);
        if (p->at < p->end && *p->at == close) {
            p->at++;
            return container;
        }
        if (!take(p, ",")) {
            json_free(container);
            return fail(p, "an array or object without an end");
        }
    }
}

static Json *parse_value(Parser *p, int depth)
{
    skip_space(p);
    if (p->at == p->end)
        return fail(p, "nothing where a value is asked for");
    if (*p->at == '{')
        return parse_container(p, depth, JSON_OBJECT);
    if (*p->at == '[')
        return parse_container(p, depth, JSON_ARRAY);
    if (*p->at == '"') {
        size_t length;
        char *text = parse_string(p, &length);
        if (text == NULL)
            return NULL;
        Json *value = make(p, JSON_STRING);
        if (value == NULL) {
            free(text);
            return NULL;
        }
        value->text = text;
        value->length = length;
        return value;
    }
    if (take(p, "null"))
        return make(p, JSON_NULL);
    if (take(p, "false"))
        return make(p, JSON_BOOL);
    if (take(p, "true")) {
        Json *value = make(p, JSON_BOOL);
        if (value != NULL)
            value->truth = true;
        return value;
    }
    return parse_number(p);
}

Json *json_parse(const char *text, size_t length, const char **problem)
{
    Parser p = {text, text + length, NULL};
    Json *value = parse_value(&p, 0);
    if (value != NULL) {
        skip_space(&p);
        if (p.at != p.end) {
            json_free(value);
            value = fail(&p, "text behind the document");
        }
    }
    *problem = p.problem;
    return value;
}

const Json *json_get(const Json *value, const char *name)
{
    if (value == NULL || value->type != JSON_OBJECT)
        return NULL;
    for (const Json *member = value->first; member != NULL; member = member->next)
        if (member->name_length == strlen(name) && memcmp(member->name, name, member->name_length) == 0)
            return member;
    return NULL;
}

bool json_is(const Json *value, const char *text)
{
    return value != NULL && value->type == JSON_STRING && value->length == strlen(text) &&
           memcmp(value->text, text, value->length) == 0;
}

IntegerStatus json_u64(const Json *value, uint64_t *out)
{
    if (value == NULL || (value->type != JSON_NUMBER && value->type != JSON_STRING) || value->length == 0)
        return INTEGER_NONE;
    const char *at = value->text, *end = value->text + value->length;
    bool negative = *at == '-';
    if (negative && ++at == end)
        return INTEGER_NONE;
    uint64_t sum = 0;
    bool overflow = false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return INTEGER_NONE;
        uint64_t digit = (uint64_t)(*at - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            overflow = true;
        sum = sum * 10 + digit;
    }
    if (overflow || (negative && sum != 0))
        return INTEGER_OUT_OF_RANGE;
    *out = sum;
    return INTEGER_OK;
}
