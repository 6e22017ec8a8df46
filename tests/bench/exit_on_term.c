/* A worker that ends at once on SIGTERM, so that restarts are measured and not the workers.
 *
 * exit_on_term [ms]: with a number, the rank whose turn it is (restart count modulo world size) fails after so many
 * milliseconds; all others sleep until they are stopped. Without, all sleep. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void leave(int number) {
    (void)number;
    _exit(0);
}

static long number_of(const char* name) {
    const char* text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

int main(int argc, char** argv) {
    struct sigaction action = {0};
    action.sa_handler = leave;
    sigaction(SIGTERM, &action, NULL);
    const long size = number_of("WORLD_SIZE");
    if (argc > 1 && size > 0 && number_of("RANK") == number_of("TORCHELASTIC_RESTART_COUNT") % size) {
        const long delay = strtol(argv[1], NULL, 10);
        const struct timespec pause_for = {delay / 1000, delay % 1000 * 1000000L};
        nanosleep(&pause_for, NULL);
        return 1;
    }
    for (;;) {
        pause();
    }
}
