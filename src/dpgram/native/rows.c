/* Cells to grid points with an exact norm bound. Compiled once for every instruction set, without contraction to fused
 * multiply-add: each operation below is rounded on its own, as it is in NumPy. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "kernel.h"
#include "lanes.h"

/* n cells of a column, `stride` apart, as doubles. */
#define READ(type)                                                                               \
    {                                                                                            \
        const char *from = (const char *)column->data + start * column->stride;                  \
        const int64_t stride = column->stride;                                                   \
        if (stride == (int64_t)sizeof(type)) {                                                   \
            const type *cell = (const type *)from;                                               \
            for (int64_t r = 0; r < n; r++) out[r] = (double)cell[r];                            \
        } else {                                                                                 \
            for (int64_t r = 0; r < n; r++) out[r] = (double)*(const type *)(from + r * stride); \
        }                                                                                        \
        break;                                                                                   \
    }

static void read_cells(const struct column *column, int64_t start, int64_t n, double *restrict out) {
    switch (column->cells) {
        case F64: READ(double)
        case F32: READ(float)
        case I8: READ(int8_t)
        case I16: READ(int16_t)
        case I32: READ(int32_t)
        case I64: READ(int64_t)
        case U8: READ(uint8_t)
        case U16: READ(uint16_t)
        case U32: READ(uint32_t)
        case U64: READ(uint64_t)
    }
}

static void mark_missing(const struct column *column, int64_t start, int64_t n, double *restrict out) {
    for (int64_t r = 0; r < n; r++) {
        const int64_t bit = column->first_valid + start + r;
        if (!((column->valid[bit >> 3] >> (bit & 7)) & 1)) out[r] = NAN;
    }
}

/* Numbers in own units to grid points; `from` may be `out`, n is a multiple of 8. */
#define NUMBERS(SCALE)                                                   \
    for (int64_t r = 0; r < n; r += LANES) {                             \
        lanes x = l_finite_or(l_load(from + r), fill);                   \
        x = l_min(l_max(x, lower), upper);                               \
        x = SCALE(l_sub(x, centre), scale);                              \
        x = l_min(l_max(x, low), high);                                  \
        x = l_trunc(l_mul(x, grid));                                     \
        l_store(out + r, x);                                             \
        l_store(squares + r, l_add(l_load(squares + r), l_mul(x, x)));   \
    }

static void numbers(const struct column *column, int64_t n, const double *from, double *out, double *squares) {
    const lanes lower = l_set(column->lower), upper = l_set(column->upper), centre = l_set(column->centre);
    const lanes fill = l_set(column->fill), low = l_set(-1.0), high = l_set(1.0), grid = l_set(GRID);
    int exponent;
    if (frexp(column->half, &exponent) == 0.5 && exponent > -1000 && exponent < 1000) {
        const lanes scale = l_set(1.0 / column->half); /* a power of two: the product is the quotient to the bit, and faster */
        NUMBERS(l_mul)
    } else {
        const lanes scale = l_set(column->half);
        NUMBERS(l_div)
    }
}

static void truths(const struct column *column, int64_t n, double *out, double *restrict squares) {
    const double fill = column->fill;
    for (int64_t r = 0; r < n; r++) {
        double x = out[r];
        x = ((x == 0.0) | (x == 1.0)) ? x : fill;
        x = x * GRID;
        out[r] = x;
        squares[r] += x * x;
    }
}

static void levels(const struct column *column, int64_t n, double *out, double *restrict squares) {
    const double wanted = column->level;
    for (int64_t r = 0; r < n; r++) {
        const double x = out[r] == wanted ? GRID : 0.0;
        out[r] = x;
        squares[r] += x * x;
    }
}

static void ones(int64_t n, double *restrict out, double *restrict squares) {
    for (int64_t r = 0; r < n; r++) {
        out[r] = GRID;
        squares[r] += GRID * GRID;
    }
}

/* Whether columns c..c+3 are neighbours in a row-major table of doubles. */
static int four_neighbours(const struct column *c) {
    for (int k = 0; k < 4; k++)
        if (c[k].cells != F64 || c[k].rule == CONSTANT_ONE || c[k].stride != c->stride || c[k].stride == 8 ||
            (const char *)c[k].data != (const char *)c->data + 8 * k)
            return 0;
    return 1;
}

typedef double four __attribute__((vector_size(32), aligned(8)));
typedef int64_t places __attribute__((vector_size(32)));

#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (places){i, j, k, l})
#endif

/* n rows of four neighbouring columns, turned. */
static void read_four(const struct column *column, int64_t start, int64_t n, double *restrict out, int64_t ld) {
    const char *from = (const char *)column->data + start * column->stride;
    const int64_t stride = column->stride;
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) {
        const four a = *(const four *)(from + r * stride), b = *(const four *)(from + (r + 1) * stride),
                   c = *(const four *)(from + (r + 2) * stride), d = *(const four *)(from + (r + 3) * stride);
        const four ab0 = PICK(a, b, 0, 4, 2, 6), ab1 = PICK(a, b, 1, 5, 3, 7), cd0 = PICK(c, d, 0, 4, 2, 6),
                   cd1 = PICK(c, d, 1, 5, 3, 7);
        *(four *)(out + r) = PICK(ab0, cd0, 0, 1, 4, 5);
        *(four *)(out + ld + r) = PICK(ab1, cd1, 0, 1, 4, 5);
        *(four *)(out + 2 * ld + r) = PICK(ab0, cd0, 2, 3, 6, 7);
        *(four *)(out + 3 * ld + r) = PICK(ab1, cd1, 2, 3, 6, 7);
    }
    for (; r < n; r++)
        for (int k = 0; k < 4; k++) out[k * ld + r] = ((const double *)(from + r * stride))[k];
}

/* n rows as grid points before the clip, and their sums of squares. */
static void encode(const struct column *columns, int32_t d, int64_t start, int64_t n, double *restrict out, int64_t ld,
                   double *restrict squares) {
    const int64_t whole = (n + 7) / 8 * 8;
    int32_t turned = 0; /* columns below this one are in `out` already */
    for (int32_t c = 0; c < d; c++) {
        const struct column *column = columns + c;
        double *to = out + c * ld;
        if (column->rule == CONSTANT_ONE) {
            ones(whole, to, squares);
            continue;
        }
        if (c >= turned && c + 4 <= d && four_neighbours(column)) {
            read_four(column, start, n, to, ld);
            turned = c + 4;
        }
        const double *from = to;
        if (c >= turned) {
            if (column->cells == F64 && column->stride == 8 && column->rule == NUMBER && !column->valid && n == whole)
                from = (const double *)column->data + start;
            else
                read_cells(column, start, n, to);
        }
        if (column->valid) mark_missing(column, start, n, to);
        for (int64_t r = n; r < whole; r++) to[r] = 0.0;
        if (column->rule == NUMBER) numbers(column, whole, from, to, squares);
        else if (column->rule == TRUTH) truths(column, n, to, squares);
        else levels(column, n, to, squares);
    }
}

/* Shrinks the rows whose sum of squares is above `most`; n is a multiple of 8. Zero, or one if a row would not go below it. */
static int shrink(int32_t d, int64_t n, double most, double *out, int64_t ld, double *squares) {
    double factor[MOST_SUB_ROWS];
    for (int64_t r = 0; r < n; r++) {
        const double f = sqrt(most / squares[r]) * JUST_BELOW_ONE;
        factor[r] = squares[r] > most ? f : 1.0;
        squares[r] = 0.0;
    }
    for (int32_t c = 0; c < d; c++) {
        double *to = out + c * ld;
        for (int64_t r = 0; r < n; r += LANES) {
            const lanes x = l_trunc(l_mul(l_load(to + r), l_load(factor + r)));
            l_store(to + r, x);
            l_store(squares + r, l_add(l_load(squares + r), l_mul(x, x)));
        }
    }
    int broken = 0;
    for (int64_t r = 0; r < n; r++) broken |= !(squares[r] <= most);
    return broken;
}

/* Rows start..start+n as n columns of `out`, d by n with `ld` doubles from one column of the table to the next, and sums of
 * squares at most `most`. Up to seven more columns of `out` are overwritten. Zero, or one if the bound could not be kept. */
int ISA_NAME(points)(const struct column *columns, int32_t d, int64_t start, int64_t n, double most, double *out, int64_t ld) {
    double squares[MOST_SUB_ROWS];
    int64_t sub = SUB_POINTS / d / 8 * 8;
    sub = sub < LEAST_SUB_ROWS ? LEAST_SUB_ROWS : sub > MOST_SUB_ROWS ? MOST_SUB_ROWS : sub;
    for (int64_t at = 0; at < n; at += sub) {
        const int64_t m = n - at < sub ? n - at : sub, whole = (m + 7) / 8 * 8;
        for (int64_t r = 0; r < whole; r++) squares[r] = 0.0;
        encode(columns, d, start + at, m, out + at, ld, squares);
        int over = 0;
        for (int64_t r = 0; r < m; r++) over |= squares[r] > most;
        if (over && shrink(d, whole, most, out + at, ld, squares)) return 1;
    }
    return 0;
}
