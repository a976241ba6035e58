/* The physical limit: posix_spawn and wait of one program, AT_ONCE at a time.
 * Usage: cref PROGRAM COUNT AT_ONCE; prints jobs per second. Nothing is kept. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: cref PROGRAM COUNT AT_ONCE\n");
        return 2;
    }
    char *child[] = {argv[1], NULL};
    long count = atol(argv[2]), at_once = atol(argv[3]);
    long started = 0, ended = 0;
    double begin = now();
    while (ended < count) {
        while (started < count && started - ended < at_once) {
            pid_t pid;
            int error = posix_spawn(&pid, argv[1], NULL, NULL, child, environ);
            if (error) {
                fprintf(stderr, "cref: %s: %s\n", argv[1], strerror(error));
                return 1;
            }
            started++;
        }
        int status;
        if (waitpid(-1, &status, 0) < 0) {
            if (errno == EINTR)
                continue;
            perror("cref: waitpid");
            return 1;
        }
        if (status != 0) {
            fprintf(stderr, "cref: %s ended with status %d\n", argv[1], status);
            return 1;
        }
        ended++;
    }
    printf("%.3f\n", (double)count / (now() - begin));
    return 0;
}
