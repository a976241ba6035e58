/* A job that says when it began: writes one byte to the FIFO named by its argument. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_WRONLY) : -1;
    return fd >= 0 && write(fd, "!", 1) == 1 ? 0 : 1;
}
