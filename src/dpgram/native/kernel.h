/* One pass over bounded rows: cells to grid points, points to exact sums. See rows/clip.py and rows/gram_sum.py, whose results
 * these functions give to the bit; tests compare the two. */
#ifndef DPGRAM_KERNEL_H
#define DPGRAM_KERNEL_H

#include <stdint.h>

/* Times are ticks since 1970 in 64 bits, and read as days; eight truth values are packed into a byte of BITS. */
enum cells { F64, F32, I8, I16, I32, I64, U8, U16, U32, U64, TIME_S, TIME_MS, TIME_US, TIME_NS, BITS };
enum rule { CONSTANT_ONE, NUMBER, TRUTH, LEVEL, ABSENT };

/* One encoded column of some rows. */
struct column {
    const void *data;       /* its first cell */
    int64_t stride;         /* bytes from one cell to the next; BITS: the place of the first row's bit */
    const uint8_t *valid;   /* one bit per row, zero where the cell is missing; NULL if none is */
    int64_t first_valid;    /* the place of the first row's bit */
    int32_t cells, rule;
    int32_t drop;           /* whether a row does not count where this cell is missing */
    double lower, upper;    /* NUMBER: clamped to this, in own units */
    double centre, half;    /* NUMBER: then (x - centre) / half */
    double fill;            /* what a missing cell becomes, in own units; LEVEL: a missing cell is NaN or NO_LEVEL */
    double level;           /* LEVEL: one where the cell is this, else zero */
};                          /* ABSENT: one where the cell is missing or not finite, else zero */

/* A public map of d columns, by which rows of grid points are multiplied before the clip, and the scales of the clip but the first. */
struct map {
    const double *panels;  /* panels of four rows, then of three: their numbers side by side, by columns; zero from row d on */
    const int64_t *spans;  /* of every panel the first column in which one of its rows is not zero, and the one after the last */
    const double *scales;  /* powers of two, rising */
    int64_t fours, threes; /* how many panels there are of each kind; their rows are at most d rounded up to MAP_PANEL */
    int64_t outer;         /* how many scales there are, at most MOST_OUTER; rows have one clip where it is zero */
};

enum {
    LINE = 64,         /* bytes of a line of the cache */
    BLOCK_ROWS = 4096, /* sums over so many rows stay below 2^53 */
    GRAM_ROWS = 480,   /* rows multiplied at a time, a multiple of MAP_ROWS: their points stay in the second cache */
    LEAST_SUB_ROWS = 64, MOST_SUB_ROWS = 256, SUB_POINTS = 2560, /* rows made at a time: their points stay in the first cache */
    PANEL = 48,        /* rows of points that stay in the second cache while they are multiplied; a multiple of 12 */
    PAD = 12,
    MAP_PANEL = 4,     /* rows of a map that are multiplied at a time, at most */
    MAP_STEP = 24,     /* rows of points that every instruction set can multiply with them in whole steps */
    MAP_ROWS = 96,     /* rows mapped at a time, a multiple of that */
    MAP_AHEAD = 3 * MAP_ROWS, /* how far from rows that are mapped the cells lie that are fetched meanwhile: encode asks for nearer ones */
    MAP_LD = MAP_ROWS + 8, /* doubles from one of their columns to the next: an odd number of cache lines */
    MOST_OUTER = 7,
    OUTER_ROWS = 2 * GRAM_ROWS, /* long rows gathered for a scale before they are multiplied */
    OUTER_LD = OUTER_ROWS + 8
};

/* Long rows of each scale, as grid points in its units: OUTER_LD doubles from one column to the next, `apart` from one scale to the next. */
struct gathered {
    double *points;
    int64_t apart, held[MOST_OUTER];
};

#define GRID 1048576.0                                    /* 2^20 */
#define MAPPED 2097152.0                                  /* 2^21: mapped points are below it before the clip */
#define MAPPED_BITS 21
#define JUST_BELOW_ONE (1.0 - 1.0 / 1125899906842624.0)   /* 1 - 2^-50 */

#define NO_LEVEL 65535.0                                  /* a cell of a LEVEL that is in none of them */

#define SWITCH 0.8                                        /* of a scale: longer squares go to the next one */
#define LEAST_POWER (1.0 / GRID)                          /* of two: what was scaled by less is beyond every scale */
#define MOST_TOGETHER (1.0 - 1.0 / 2251799813685248.0)    /* 1 - 2^-51 */

/* Keeps a vector that is used several times in a register: compilers would read it from memory each time. */
#if defined(__x86_64__) && LANES >= 4
#define HOLD(x) __asm__("" : "+v"(x));
#else
#define HOLD(x)
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define ISA_NAME(name) JOIN(name, ISA)

#endif
