/* Preloaded into a program, makes its calls on some files fail (e2e/faults.py says which, and compiles this).
 *
 * $PROOFGATE_FAULTS names a file with one line: the kind of call (read, write or open), an errno, and a part of the path of the
 * files concerned. While it is empty or not there, all calls are as ever; it is read again at each call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The errno with which a call on a path is to fail; 0 for none. */
static int fault(const char *call, const char *path) {
    const char *control = getenv("PROOFGATE_FAULTS");
    char line[PATH_MAX + 64], kind[16], part[PATH_MAX];
    int number = 0;
    if (!control || !path) return 0;
    int file = syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    long length = syscall(SYS_read, file, line, sizeof line - 1);
    syscall(SYS_close, file);
    if (length <= 0) return 0;
    line[length] = 0;
    if (sscanf(line, "%15s %d %4095s", kind, &number, part) != 3) return 0;
    return !strcmp(kind, call) && strstr(path, part) ? number : 0;
}

static int fault_of(const char *call, int descriptor) {
    char link[64], path[PATH_MAX];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return fault(call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(number) do { int found = (number); if (found) { errno = found; return -1; } } while (0)

ssize_t read(int fd, void *to, size_t n) { FAIL(fault_of("read", fd)); return REAL(read)(fd, to, n); }
ssize_t pread(int fd, void *to, size_t n, off_t at) { FAIL(fault_of("read", fd)); return REAL(pread)(fd, to, n, at); }
ssize_t pread64(int fd, void *to, size_t n, off64_t at) { FAIL(fault_of("read", fd)); return REAL(pread64)(fd, to, n, at); }
ssize_t pwrite(int fd, const void *of, size_t n, off_t at) { FAIL(fault_of("write", fd)); return REAL(pwrite)(fd, of, n, at); }
ssize_t pwrite64(int fd, const void *of, size_t n, off64_t at) {
    FAIL(fault_of("write", fd));
    return REAL(pwrite64)(fd, of, n, at);
}

/* Only a call that creates a file has a mode. */
#define MODE(flags) ({ mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } mode; })

int open(const char *path, int flags, ...) { FAIL(fault("open", path)); return REAL(open)(path, flags, MODE(flags)); }
int open64(const char *path, int flags, ...) { FAIL(fault("open", path)); return REAL(open64)(path, flags, MODE(flags)); }
int openat(int at, const char *path, int flags, ...) {
    FAIL(fault("open", path));
    return REAL(openat)(at, path, flags, MODE(flags));
}
int openat64(int at, const char *path, int flags, ...) {
    FAIL(fault("open", path));
    return REAL(openat64)(at, path, flags, MODE(flags));
}
