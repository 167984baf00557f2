/* The driver @NAME@: one JSON object a line on standard input, one reply to each on standard output. */
#define _POSIX_C_SOURCE 200809L

#include "buffer.h"
#include "json.h"
#include "reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static const char HELLO[] = "\"ok\":{\"name\":\"@NAME@\",\"version\":\"0.1\",\"language\":\"C\","
                            "\"formats\":{\"@FORMAT@\":[\"read\"]},\"features\":[]}";

/* A reply that is not ok; what was being answered is dropped. */
static void say(Buffer *reply, const char *kind, const char *member, const char *text)
{
    reply->length = 0;
    buffer_text(reply, "\"");
    buffer_text(reply, kind);
    buffer_text(reply, "\":{\"");
    buffer_text(reply, member);
    buffer_text(reply, "\":");
    buffer_json_string(reply, text);
    buffer_text(reply, "}");
}

static void do_hello(const Json *request, Buffer *reply)
{
    uint64_t protocol = 0;
    if (json_u64(json_get(request, "protocol"), &protocol) == INTEGER_OK && protocol == 1)
        buffer_text(reply, HELLO);
    else
        say(reply, "error", "message", "this driver speaks protocol 1");
}

static void do_read(const Json *request, Buffer *reply)
{
    const Json *path = json_get(request, "path");
    char reason[256] = "";
    if (!json_is(json_get(request, "format"), "@FORMAT@")) {
        say(reply, "unsupported", "what", "formats other than @FORMAT@");
        return;
    }
    if (path == NULL || path->type != JSON_STRING) {
        say(reply, "error", "message", "a request without a path");
        return;
    }
    buffer_text(reply, "\"ok\":");
    switch (read_trajectory(path->text, reply, reason, sizeof reason)) {
    case READ_OK:
        break;
    case READ_REFUSED:
        say(reply, "refused", "reason", reason);
        break;
    case READ_UNSUPPORTED:
        say(reply, "unsupported", "what", reason);
        break;
    case READ_FAILED:
        say(reply, "error", "message", reason);
        break;
    }
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool going = true;
    while (going && (length = getline(&line, &capacity, stdin)) >= 0) {
        const char *problem = NULL;
        Json *request = json_parse(line, (size_t)length, &problem);
        const Json *op = json_get(request, "op");
        uint64_t id = 0;
        Buffer reply = {0};
        if (json_u64(json_get(request, "id"), &id) != INTEGER_OK) {
            fprintf(stderr, "not a request: %s\n", request ? "no id" : problem); /* standard error is the log */
            return 1;
        }
        if (json_is(op, "hello"))
            do_hello(request, &reply);
        else if (json_is(op, "read"))
            do_read(request, &reply);
        else if (json_is(op, "bye"))
            buffer_text(&reply, "\"ok\":{}");
        else
            say(&reply, "unsupported", "what", "this operation");
        printf("{\"id\":%" PRIu64 ",", id);
        if (reply.failed)
            fputs("\"error\":{\"message\":\"out of memory\"}", stdout);
        else
            fwrite(reply.data, 1, reply.length, stdout);
        fputs("}\n", stdout);
        fflush(stdout);
        going = !json_is(op, "bye");
        buffer_free(&reply);
        json_free(request);
    }
    free(line);
    return 0;
}
