/* What a plain C program takes to read a vectors text: getline, then strtof for each number of the line.
   Prints how many numbers there were and their sum, so that nothing is left out by the compiler. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    FILE *file = fopen(argv[1], "r");
    if (!file) {
        perror(argv[1]);
        return 1;
    }
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    char *line = NULL;
    size_t room = 0;
    unsigned long numbers = 0;
    double sum = 0;
    while (getline(&line, &room, file) > 0) {
        char *space = strchr(line, ' ');
        while (space) {
            char *end;
            float number = strtof(space, &end);
            if (end == space) break;
            sum += number;
            numbers++;
            space = end;
        }
    }
    printf("%lu numbers, sum %g\n", numbers, sum);
    return 0;
}
