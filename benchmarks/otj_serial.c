/* The peer for otj: verify every frame of a file with the checksum as it is defined, one byte after the other.
 *
 *   cc -O3 -o otj_serial otj_serial.c && ./otj_serial FILE [read]
 *
 * Prints the number of frames whose checksum is right. With "read" it reads the file and adds up its bytes by eights,
 * which is what verifying costs when verifying is free.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t fnv(const unsigned char *data, size_t size)
{
    uint64_t state = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        state = (state ^ data[i]) * 0x100000001b3u;
    return state;
}

static uint64_t sum(const unsigned char *data, size_t size)
{
    uint64_t total = 0, word;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        memcpy(&word, data + i, 8);
        total += word;
    }
    return total;
}

int main(int count, char **arguments)
{
    unsigned char fixed[24];
    int file = count > 1 ? open(arguments[1], O_RDONLY) : -1;
    struct stat state;
    if (file < 0 || fstat(file, &state) || read(file, fixed, 24) != 24)
        return 2;
    uint32_t flags;
    uint64_t particles;
    memcpy(&flags, fixed + 12, 4);
    memcpy(&particles, fixed + 16, 8);
    uint64_t scalar = flags & 1 ? 4 : 8;
    uint64_t header = 24 + scalar + particles * scalar + 8;
    uint64_t frame = 16 + scalar + (flags & 2 ? 6 : 3) * particles * scalar;
    uint64_t frames = ((uint64_t)state.st_size - header) / frame;
    uint64_t batch = frame > 1 << 20 ? 1 : (1 << 20) / frame;
    unsigned char *buffer = malloc(batch * frame);
    uint64_t sound = 0, total = 0;
    int only_read = count > 2 && !strcmp(arguments[2], "read");
    for (uint64_t first = 0; first < frames; first += batch) {
        uint64_t now = frames - first < batch ? frames - first : batch;
        if (pread(file, buffer, now * frame, (off_t)(header + first * frame)) != (ssize_t)(now * frame))
            return 2;
        if (only_read) {
            total += sum(buffer, now * frame);
            continue;
        }
        for (uint64_t i = 0; i < now; i++) {
            uint64_t stored;
            memcpy(&stored, buffer + (i + 1) * frame - 8, 8);
            sound += stored == fnv(buffer + i * frame, frame - 8);
        }
    }
    printf("%llu\n", (unsigned long long)(only_read ? total : sound));
    return 0;
}
