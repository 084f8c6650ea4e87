/* Loaded before the C library (LD_PRELOAD), this moves the wall clock of a process and lets its system calls fail, as a
   file says that may be changed while the process runs. The file's name is in PROOFGATE_SHIM; shim.py writes it.

   cc -shared -fPIC -O2 -o shim.so shim.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* As in shim.py. */
struct told {
    volatile int64_t ahead; /* nanoseconds that the wall clock is ahead of the machine's */
    volatile int32_t error; /* the errno of the calls that fail; 0: none does */
    volatile uint32_t calls; /* which fail: 1 writing, 2 syncing, 4 reading, 8 opening */
    char path[1008]; /* what the path of a file holds whose calls fail */
};
enum { WRITING = 1, SYNCING = 2, READING = 4, OPENING = 8 };

static struct told *told;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("PROOFGATE_SHIM");
    if (!name) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *found = mmap(NULL, sizeof(struct told), PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) told = found;
    close(file);
}

/* Whether a call on a file fails; errno is set then. What is told may change meanwhile: then it does not. */
static int failing(uint32_t call, const char *path) {
    int32_t error = told->error;
    if (!error || !(told->calls & call)) return 0;
    /* While the next path is written there may be none for a moment, which every path would hold. */
    if (!told->path[0] || !strstr(path, told->path)) return 0;
    __sync_synchronize();
    if (told->error != error) return 0;
    errno = error;
    return 1;
}

/* As `failing`, of an open file. */
static int fails(uint32_t call, int file) {
    if (!told || !told->error) return 0;
    char link[64], path[4096];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return failing(call, path);
}

/* As `failing`, of a path that is to be opened. */
static int barred(const char *path) {
    return told && path && failing(OPENING, path);
}

#define NEXT(type, name, ...) \
    static type (*next)(__VA_ARGS__); \
    if (!next) next = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

int clock_gettime(clockid_t clock, struct timespec *at) {
    NEXT(int, "clock_gettime", clockid_t, struct timespec *);
    int failed = next(clock, at);
    if (failed || !told || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    int64_t moved = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + told->ahead;
    at->tv_sec = moved / 1000000000;
    at->tv_nsec = moved % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    if (!failed) {
        at->tv_sec = exact.tv_sec;
        at->tv_usec = exact.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *at) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (at) *at = exact.tv_sec;
    return exact.tv_sec;
}

ssize_t write(int file, const void *bytes, size_t length) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    return fails(WRITING, file) ? -1 : next(file, bytes, length);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return fails(WRITING, file) ? -1 : next(file, bytes, length, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    return pwrite64(file, bytes, length, offset);
}

int fdatasync(int file) {
    NEXT(int, "fdatasync", int);
    return fails(SYNCING, file) ? -1 : next(file);
}

int fsync(int file) {
    NEXT(int, "fsync", int);
    return fails(SYNCING, file) ? -1 : next(file);
}

ssize_t read(int file, void *bytes, size_t length) {
    NEXT(ssize_t, "read", int, void *, size_t);
    return fails(READING, file) ? -1 : next(file, bytes, length);
}

ssize_t pread64(int file, void *bytes, size_t length, off64_t offset) {
    NEXT(ssize_t, "pread64", int, void *, size_t, off64_t);
    return fails(READING, file) ? -1 : next(file, bytes, length, offset);
}

ssize_t pread(int file, void *bytes, size_t length, off_t offset) {
    return pread64(file, bytes, length, offset);
}

/* Only a call that creates a file has a mode. */
#define OPEN(name, parameters, given) \
    int name parameters { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        static int (*next) parameters; \
        if (!next) next = (int (*) parameters)dlsym(RTLD_NEXT, #name); \
        return barred(path) ? -1 : next given; \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPEN(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode))
