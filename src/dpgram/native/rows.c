/* Cells to grid points with an exact norm bound. Compiled once for every instruction set, without contraction to fused
 * multiply-add: each operation below is rounded on its own, as it is in NumPy. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "kernel.h"
#include "lanes.h"

#if FLT_EVAL_METHOD != 0
#error "doubles are not rounded to doubles here: build without the kernel, and NumPy will do its work"
#endif

#define DAY 86400
#define ONE_AS_BITS UINT64_C(0x3ff0000000000000)
#define NAN_AS_BITS UINT64_C(0x7ff8000000000000)

/* Whole quotients, rounded down. */
static inline int64_t floored(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* Ticks since 1970 as days, cut to the second: one division and one sum, as in encoding/cells.py. */
static inline double days(int64_t ticks, int64_t per_second) {
    const int64_t seconds = floored(ticks, per_second), rest = seconds % DAY;
    return (double)floored(seconds, DAY) + (double)(rest < 0 ? rest + DAY : rest) / DAY;
}

#define TO_DOUBLE(x) (double)(x)
#define DAYS_OF_S(x) days(x, 1)
#define DAYS_OF_MS(x) days(x, 1000)
#define DAYS_OF_US(x) days(x, 1000000)
#define DAYS_OF_NS(x) days(x, 1000000000)

/* n cells of a column, `stride` apart and aligned as they may be, as doubles. */
#define READ(type, AS)                                                                          \
    {                                                                                           \
        typedef type loose __attribute__((aligned(1)));                                         \
        const char *from = (const char *)column->data + start * column->stride;                 \
        const int64_t stride = column->stride;                                                  \
        if (stride == (int64_t)sizeof(type)) {                                                  \
            const loose *cell = (const loose *)from;                                            \
            for (int64_t r = 0; r < n; r++) out[r] = AS(cell[r]);                               \
        } else {                                                                                \
            for (int64_t r = 0; r < n; r++) out[r] = AS(*(const loose *)(from + r * stride));   \
        }                                                                                       \
        break;                                                                                  \
    }

typedef uint64_t eight __attribute__((vector_size(64), aligned(8), may_alias));

static const eight PLACES = {1, 2, 4, 8, 16, 32, 64, 128};

/* Eight bits from place `first` on, and perhaps some more. No byte is read that holds none of the n bits from there on. */
static inline uint64_t bits_at(const uint8_t *bits, int64_t first, int64_t n) {
    const uint64_t next = (first & 7) + n > 8 ? bits[(first >> 3) + 1] : 0;
    return (bits[first >> 3] | next << 8) >> (first & 7);
}

/* All ones for each of eight bits that is set, else zero. */
#define SPREAD(bits) ((eight)((PLACES & (bits)) != 0))

/* One where a bit is set, else zero, for n cells and up to a multiple of 8. */
static void read_bits(const struct column *column, int64_t start, int64_t n, double *out) {
    const eight one = (eight){0} + ONE_AS_BITS;
    for (int64_t r = 0; r < n; r += 8) *(eight *)(out + r) = SPREAD(bits_at(column->data, column->stride + start + r, n - r)) & one;
}

/* NaN where a validity bit is zero; the cells up to a multiple of 8 are overwritten. */
static void mark_missing(const struct column *column, int64_t start, int64_t n, double *out) {
    const eight nan = (eight){0} + NAN_AS_BITS;
    for (int64_t r = 0; r < n; r += 8) {
        const eight there = SPREAD(bits_at(column->valid, column->first_valid + start + r, n - r));
        eight *cells = (eight *)(out + r);
        *cells = (*cells & there) | (nan & ~there);
    }
}

static void read_cells(const struct column *column, int64_t start, int64_t n, double *restrict out) {
    switch (column->cells) {
        case F64: READ(double, TO_DOUBLE)
        case F32: READ(float, TO_DOUBLE)
        case I8: READ(int8_t, TO_DOUBLE)
        case I16: READ(int16_t, TO_DOUBLE)
        case I32: READ(int32_t, TO_DOUBLE)
        case I64: READ(int64_t, TO_DOUBLE)
        case U8: READ(uint8_t, TO_DOUBLE)
        case U16: READ(uint16_t, TO_DOUBLE)
        case U32: READ(uint32_t, TO_DOUBLE)
        case U64: READ(uint64_t, TO_DOUBLE)
        case TIME_S: READ(int64_t, DAYS_OF_S)
        case TIME_MS: READ(int64_t, DAYS_OF_MS)
        case TIME_US: READ(int64_t, DAYS_OF_US)
        case TIME_NS: READ(int64_t, DAYS_OF_NS)
        case BITS: read_bits(column, start, n, out);
    }
}

/* What turns numbers in own units into grid points. */
struct scale {
    lanes fill, lower, upper, centre, factor, low, high;
};

/* Whether the last clamp has nothing to do: the bounds themselves land within [-1, 1], and rounding keeps the order. */
static int stays_within(const struct column *column) {
    return (column->upper - column->centre) / column->half <= 1.0 && (column->lower - column->centre) / column->half >= -1.0;
}

static int is_power_of_two(double x) {
    int exponent;
    return frexp(x, &exponent) == 0.5 && exponent > -1000 && exponent < 1000;
}

static struct scale scale_of(const struct column *column, int product) {
    return (struct scale){l_set(column->fill),   l_set(column->lower), l_set(column->upper),
                          l_set(column->centre), l_set(product ? 1.0 / column->half : column->half),
                          l_set(-1.0),           l_set(1.0)};
}

/* One step: SCALE divides by the half-width, or multiplies with its inverse where that is a power of two and gives the same bits;
 * LAST is the last clamp, or nothing. */
#define STEP(x, finite, s, SCALE, LAST)             \
    x = l_pick(finite, x, (s).fill);                \
    x = l_min(l_max(x, (s).lower), (s).upper);      \
    x = SCALE(l_sub(x, (s).centre), (s).factor);    \
    LAST(x, s)                                      \
    x = l_trunc(l_mul(x, l_set(GRID)));

#define CLAMP(x, s) x = l_min(l_max(x, (s).low), (s).high);
#define NO_CLAMP(x, s)

/* Numbers in own units to grid points, in place; n is a multiple of 8. */
static void numbers(const struct column *column, int64_t n, double *out, double *squares) {
    const int product = is_power_of_two(column->half);
    const struct scale s = scale_of(column, product);
#define NUMBERS(SCALE)                                                              \
    for (int64_t r = 0; r < n; r += LANES) {                                        \
        lanes x = l_load(out + r);                                                  \
        STEP(x, t_finite(x), s, SCALE, CLAMP)                                       \
        l_store(out + r, x);                                                        \
        if (squares) l_store(squares + r, l_add(l_load(squares + r), l_mul(x, x))); \
    }
    if (product) {
        NUMBERS(l_mul)
    } else {
        NUMBERS(l_div)
    }
}

/* The same for four columns at a time, each `ld` doubles from the one before it in `out`, from cells that may lie elsewhere. Those that
 * will be wanted `ahead` rows from here are asked for in passing; beyond the end of a table that does no harm. Whether a cell was not finite. */
static int four_numbers(const struct column *columns, int64_t n, int64_t ahead, const double *const *from, double *out,
                         int64_t ld, double *squares) {
    const double *f0 = from[0], *f1 = from[1], *f2 = from[2], *f3 = from[3];
    double *o0 = out, *o1 = o0 + ld, *o2 = o1 + ld, *o3 = o2 + ld;
    int product = 1, within = 1;
    for (int k = 0; k < 4; k++) {
        product &= is_power_of_two(columns[k].half);
        within &= stays_within(columns + k);
    }
    const struct scale s0 = scale_of(columns, product), s1 = scale_of(columns + 1, product), s2 = scale_of(columns + 2, product),
                       s3 = scale_of(columns + 3, product);
    chosen finite = t_all;
#define FOUR_NUMBERS(SCALE, LAST)                                                                    \
    for (int64_t r = 0; r < n; r += LANES) {                                                         \
        __builtin_prefetch(f0 + r + ahead);                                                          \
        __builtin_prefetch(f1 + r + ahead);                                                          \
        __builtin_prefetch(f2 + r + ahead);                                                          \
        __builtin_prefetch(f3 + r + ahead);                                                          \
        lanes x0 = l_load(f0 + r), x1 = l_load(f1 + r), x2 = l_load(f2 + r), x3 = l_load(f3 + r);    \
        const chosen t0 = t_finite(x0), t1 = t_finite(x1), t2 = t_finite(x2), t3 = t_finite(x3);     \
        finite = t_and(finite, t_and(t_and(t0, t1), t_and(t2, t3)));                                 \
        STEP(x0, t0, s0, SCALE, LAST)                                                                \
        STEP(x1, t1, s1, SCALE, LAST)                                                                \
        STEP(x2, t2, s2, SCALE, LAST)                                                                \
        STEP(x3, t3, s3, SCALE, LAST)                                                                \
        l_store(o0 + r, x0);                                                                         \
        l_store(o1 + r, x1);                                                                         \
        l_store(o2 + r, x2);                                                                         \
        l_store(o3 + r, x3);                                                                         \
        const lanes more = l_add(l_add(l_mul(x0, x0), l_mul(x1, x1)), l_add(l_mul(x2, x2), l_mul(x3, x3))); \
        if (squares) l_store(squares + r, l_add(l_load(squares + r), more));                         \
    }
    if (product && within) {
        FOUR_NUMBERS(l_mul, NO_CLAMP)
    } else if (product) {
        FOUR_NUMBERS(l_mul, CLAMP)
    } else if (within) {
        FOUR_NUMBERS(l_div, NO_CLAMP)
    } else {
        FOUR_NUMBERS(l_div, CLAMP)
    }
    return !t_is_all(finite);
}

static void truths(const struct column *column, int64_t n, double *out, double *restrict squares) {
    const double fill = column->fill;
    for (int64_t r = 0; r < n; r++) {
        double x = out[r];
        x = ((x == 0.0) | (x == 1.0)) ? x : fill;
        x = x * GRID;
        out[r] = x;
        if (squares) squares[r] += x * x;
    }
}

static void levels(const struct column *column, int64_t n, double *out, double *restrict squares) {
    const double wanted = column->level;
    for (int64_t r = 0; r < n; r++) {
        const double x = out[r] == wanted ? GRID : 0.0;
        out[r] = x;
        if (squares) squares[r] += x * x;
    }
}

static void absences(int64_t n, double *out, double *restrict squares) {
    for (int64_t r = 0; r < n; r++) {
        const double x = fabs(out[r]) <= DBL_MAX ? 0.0 : GRID;
        out[r] = x;
        if (squares) squares[r] += x * x;
    }
}

static void ones(int64_t n, double *restrict out, double *restrict squares) {
    for (int64_t r = 0; r < n; r++) {
        out[r] = GRID;
        if (squares) squares[r] += GRID * GRID;
    }
}

/* Whether columns c..c+3 are neighbouring numbers in a row-major table of doubles, or of floats. */
static int four_neighbours(const struct column *c) {
    const int64_t size = c->cells == F64 ? 8 : 4;
    for (int k = 0; k < 4; k++)
        if ((c->cells != F64 && c->cells != F32) || c[k].cells != c->cells || c[k].valid || c[k].stride != c->stride ||
            (const char *)c[k].data != (const char *)c->data + size * k)
            return 0;
    return 1;
}

typedef double four __attribute__((vector_size(32), aligned(1)));
typedef double loose_double __attribute__((aligned(1)));
typedef float four_floats __attribute__((vector_size(16), aligned(1)));
typedef int64_t places __attribute__((vector_size(32)));

#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (places){i, j, k, l})
#endif

#define TURNED_DOUBLE(p) (*(const four *)(p))
#define TURNED_FLOAT(p) __builtin_convertvector(*(const four_floats *)(p), four)

/* n rows of four neighbouring columns, turned; n is a multiple of 4. Rows `ahead` of them are asked for in passing. */
#define TURN(CELLS)                                                                                              \
    for (int64_t r = 0; r < n; r += 4) {                                                                         \
        for (int k = 0; k < 4; k++) __builtin_prefetch(from + (r + k + ahead) * stride);                         \
        const four a = CELLS(from + r * stride), b = CELLS(from + (r + 1) * stride);                             \
        const four c = CELLS(from + (r + 2) * stride), d = CELLS(from + (r + 3) * stride);                       \
        const four ab0 = PICK(a, b, 0, 4, 2, 6), ab1 = PICK(a, b, 1, 5, 3, 7);                                   \
        const four cd0 = PICK(c, d, 0, 4, 2, 6), cd1 = PICK(c, d, 1, 5, 3, 7);                                   \
        *(four *)(out + r) = PICK(ab0, cd0, 0, 1, 4, 5);                                                         \
        *(four *)(out + ld + r) = PICK(ab1, cd1, 0, 1, 4, 5);                                                    \
        *(four *)(out + 2 * ld + r) = PICK(ab0, cd0, 2, 3, 6, 7);                                                \
        *(four *)(out + 3 * ld + r) = PICK(ab1, cd1, 2, 3, 6, 7);                                                \
    }

static void read_four(const struct column *column, int64_t start, int64_t n, int64_t ahead, double *restrict out, int64_t ld) {
    const char *from = (const char *)column->data + start * column->stride;
    const int64_t stride = column->stride;
    if (column->cells == F64) {
        TURN(TURNED_DOUBLE)
    } else {
        TURN(TURNED_FLOAT)
    }
}

/* Whether a column's cells can be worked on where they lie. */
static int in_place(const struct column *column) {
    return column->cells == F64 && column->stride == 8 && column->rule == NUMBER && !column->valid &&
           (uintptr_t)column->data % 8 == 0;
}

/* n cells of a column as doubles, NaN where they are missing, and zeros up to a multiple of 8. */
static void read_column(const struct column *column, int64_t start, int64_t n, double *restrict out) {
    read_cells(column, start, n, out);
    if (column->valid) mark_missing(column, start, n, out);
    for (int64_t r = n; r < (n + 7) / 8 * 8; r++) out[r] = 0.0;
}

static int all_numbers(const struct column *columns) {
    return columns[0].rule == NUMBER && columns[1].rule == NUMBER && columns[2].rule == NUMBER && columns[3].rule == NUMBER;
}

/* Whether a row may have to be dropped for its cell of a column. */
static int may_drop(const struct column *column) {
    return column->drop && (column->valid || column->rule != NUMBER || column->cells == F64 || column->cells == F32);
}

#define DROP_UNLESS(there)                          \
    for (int64_t r = 0; r < n; r++) {               \
        const double x = cells[r];                  \
        factors[r] = (there) ? factors[r] : 0.0;    \
        dropped |= !(there);                        \
    }

/* Makes the factors of rows zero whose cell of a column is missing; n is a multiple of 8. Whether there is one. */
static int drop_missing(const struct column *column, int64_t n, const double *cells, double *restrict factors) {
    int64_t dropped = 0;
    if (column->rule == NUMBER) {
        DROP_UNLESS(fabs(x) <= DBL_MAX)
    } else if (column->rule == TRUTH) {
        DROP_UNLESS((x == 0.0) | (x == 1.0))
    } else {
        DROP_UNLESS(x < NO_LEVEL)
    }
    return (int)dropped;
}

/* n rows as grid points before the clip, and their sums of squares, unless `squares` is NULL. Makes the factors of rows zero that do not
 * count, and returns whether there are any. */
static int encode(const struct column *columns, int32_t d, int64_t start, int64_t n, int64_t ahead, double *out, int64_t ld,
                  double *squares, double *factors) {
    const int64_t whole = (n + 7) / 8 * 8;
    double again[MOST_SUB_ROWS];
    int dropped = 0;
    int32_t c = 0;
    while (c < d) {
        const struct column *column = columns + c;
        double *to = out + c * ld;
        if (c + 4 <= d && all_numbers(column)) {
            const double *from[4] = {to, to + ld, to + 2 * ld, to + 3 * ld};
            if (n == whole && four_neighbours(column)) {
                read_four(column, start, n, ahead, to, ld);
            } else {
                for (int k = 0; k < 4; k++) {
                    if (n == whole && in_place(column + k)) from[k] = (const double *)column[k].data + start;
                    else read_column(column + k, start, n, to + k * ld);
                }
            }
            const int missing = four_numbers(column, whole, ahead, from, to, ld, squares);
            for (int k = 0; missing && k < 4; k++) {
                if (!may_drop(column + k)) continue;
                read_column(column + k, start, n, again); /* what was read may be overwritten by now */
                dropped |= drop_missing(column + k, whole, again, factors);
            }
            c += 4;
            continue;
        }
        if (column->rule == CONSTANT_ONE) ones(whole, to, squares);
        else read_column(column, start, n, to);
        if (may_drop(column)) dropped |= drop_missing(column, whole, to, factors);
        if (column->rule == NUMBER) numbers(column, whole, to, squares);
        else if (column->rule == TRUTH) truths(column, n, to, squares);
        else if (column->rule == LEVEL) levels(column, n, to, squares);
        else if (column->rule == ABSENT) absences(n, to, squares);
        c++;
    }
    return dropped;
}

/* Shrinks the rows whose sum of squares is above `most`; n is a multiple of 8. Zero, or one if a row would not go below it. */
static int shrink(int32_t d, int64_t n, double most, double *out, int64_t ld, const double *squares) {
    double factor[MOST_SUB_ROWS], left[LANES];
    for (int64_t r = 0; r < n; r++) {
        const double f = sqrt(most / squares[r]) * JUST_BELOW_ONE;
        factor[r] = squares[r] > most ? f : 1.0;
    }
    int broken = 0;
    for (int64_t r = 0; r < n; r += LANES) {
        int over = 0;
        for (int l = 0; l < LANES; l++) over |= squares[r + l] > most;
        if (!over) continue;
        const lanes f = l_load(factor + r);
        lanes sum = l_set(0.0);
        for (int32_t c = 0; c < d; c++) {
            const lanes x = l_trunc(l_mul(l_load(out + c * ld + r), f));
            l_store(out + c * ld + r, x);
            sum = l_add(sum, l_mul(x, x));
        }
        l_store(left, sum);
        for (int l = 0; l < LANES; l++) broken |= !(left[l] <= most);
    }
    return broken;
}

/* The factors of n rows from `start` on, and ones up to a multiple of 8. Whether one of them is not one. */
static int read_factors(const double *factors, int64_t start, int64_t n, double *restrict out) {
    int64_t partly = 0;
    for (int64_t r = 0; r < (n + 7) / 8 * 8; r++) out[r] = 1.0;
    for (int64_t r = 0; factors && r < n; r++) {
        out[r] = factors[start + r];
        partly |= out[r] != 1.0;
    }
    return (int)partly;
}

/* Multiplies n rows with their factors and truncates them; n is a multiple of 8. Zero, or one if a factor is not within [0, 1]. */
static int take_parts(int32_t d, int64_t n, const double *factors, double *out, int64_t ld) {
    int64_t broken = 0;
    for (int64_t r = 0; r < n; r++) broken |= !((factors[r] >= 0.0) & (factors[r] <= 1.0));
    for (int32_t c = 0; c < d; c++, out += ld)
        for (int64_t r = 0; r < n; r += LANES) l_store(out + r, l_trunc(l_mul(l_load(out + r), l_load(factors + r))));
    return (int)broken;
}

/* Rows start..start+n as n columns of `out`, d by n with `ld` doubles from one column of the table to the next, and sums of
 * squares at most `most`; after that each is multiplied with its factor, one for every row of the table, unless there are none, and
 * with zero where it does not count. Up to seven more columns of `out` are overwritten. Zero, or one if the bound could not be kept. */
int ISA_NAME(points)(const struct column *columns, int32_t d, int64_t start, int64_t n, double most, const double *factors,
                     double *out, int64_t ld) {
    double squares[MOST_SUB_ROWS], parts[MOST_SUB_ROWS];
    int64_t sub = SUB_POINTS / d / 8 * 8;
    sub = sub < LEAST_SUB_ROWS ? LEAST_SUB_ROWS : sub > MOST_SUB_ROWS ? MOST_SUB_ROWS : sub;
    for (int64_t at = 0; at < n; at += sub) {
        const int64_t m = n - at < sub ? n - at : sub, whole = (m + 7) / 8 * 8;
        for (int64_t r = 0; r < whole; r++) squares[r] = 0.0;
        int partly = read_factors(factors, start + at, m, parts);
        partly |= encode(columns, d, start + at, m, 2 * sub, out + at, ld, squares, parts);
        int over = 0;
        for (int64_t r = 0; r < m; r++) over |= squares[r] > most;
        if (over && shrink(d, whole, most, out + at, ld, squares)) return 1;
        if (partly && take_parts(d, whole, parts, out + at, ld)) return 1;
    }
    return 0;
}

void ISA_NAME(images)(const struct map *, const double *, int64_t, int64_t, int64_t, double *, int64_t, double *,
                      const struct column *, int64_t);

/* Multiplies a row of images that is too long for an exact sum of squares by the power of two that takes its largest entry into
 * [2^20, 2^21), which is returned, and truncates it again; its square becomes exact. */
static double brought_down(int32_t d, double *row, int64_t ld, double *square) {
    double largest = 0.0;
    int exponent = MAPPED_BITS;
    for (int32_t c = 0; c < d; c++) largest = fabs(row[c * ld]) > largest ? fabs(row[c * ld]) : largest;
    if (largest < MAPPED) return 1.0;
    frexp(largest, &exponent);
    const double power = ldexp(1.0, MAPPED_BITS - exponent);
    *square = 0.0;
    for (int32_t c = 0; c < d; c++) {
        const double x = trunc(row[c * ld] * power);
        row[c * ld] = x;
        *square += x * x;
    }
    return power;
}

/* What of a row of squared length s, above one, is for the first scale and for the one that is returned, as factors of its points. */
static int64_t share(double s, double squares, const struct map *map, double *inner, double *outer) {
    const double longest = SWITCH * map->scales[map->outer - 1];
    int64_t k = 0;
    s = s < longest ? s : longest;
    while (s > SWITCH * map->scales[k]) k++;
    const double scale = map->scales[k], total = 1.0 + scale * scale, root = sqrt(total - s * s);
    const double cosine = (s + scale * root) / total, sine = (scale * s - root) / total;
    *inner = sqrt(cosine * (GRID * GRID) / squares) * JUST_BELOW_ONE;
    *outer = sqrt(sine * (GRID * GRID) / squares) * JUST_BELOW_ONE;
    return k;
}

/* Shares a row, which was multiplied with `power` before it was truncated, between the first scale, whose part stays, and its own, if it is
 * a long one, whose part is gathered, multiplied with `factor`. Zero, or one if a bound could not be kept. */
static int share_row(int32_t d, const struct map *map, double power, double square, double factor, double *row, int64_t ld,
                     struct gathered *to) {
    const double p = power > LEAST_POWER ? power : LEAST_POWER, s = square / (GRID * GRID) / (p * p);
    if (!(s > 1.0)) return 0;
    double inner, outer, one = 0.0, other = 0.0;
    const int64_t k = share(s, square, map, &inner, &outer);
    double *second = to->points + k * to->apart + to->held[k]++;
    for (int32_t c = 0; c < d; c++) {
        const double x = trunc(row[c * ld] * inner), y = trunc(row[c * ld] * outer);
        row[c * ld] = x;
        second[c * OUTER_LD] = trunc(y * factor);
        one += x * x;
        other += y * y;
    }
    one /= GRID * GRID, other /= GRID * GRID;
    return !(one * one + other * other <= MOST_TOGETHER);
}

/* The same as `points` for rows that are multiplied by a map before they are shrunk; `most` is at most 4^20. `out` has d rows rounded up to
 * MAP_PANEL, and room in each for n rounded up to MAP_STEP. `work` holds d columns of MAP_LD doubles. Where the map has scales, what of
 * long rows is not for the first is added to `to`, which has room for n of each. */
int ISA_NAME(mapped)(const struct column *columns, int32_t d, int64_t start, int64_t n, double most, const double *factors,
                     const struct map *map, double *work, double *out, int64_t ld, struct gathered *to) {
    double squares[MAP_ROWS], parts[MAP_ROWS];
    for (int64_t at = 0; at < n; at += MAP_ROWS) {
        const int64_t m = n - at < MAP_ROWS ? n - at : MAP_ROWS, whole = (m + 7) / 8 * 8;
        const int64_t steps = (m + MAP_STEP - 1) / MAP_STEP * MAP_STEP;
        int partly = read_factors(factors, start + at, m, parts);
        partly |= encode(columns, d, start + at, m, 2 * MAP_ROWS, work, MAP_LD, NULL, parts);
        for (int32_t c = 0; c < d; c++)
            for (int64_t r = m; r < steps; r++) work[c * MAP_LD + r] = 0.0;
        ISA_NAME(images)(map, work, MAP_LD, d, steps, out + at, ld, squares, columns, start + at + MAP_AHEAD);
        int over = 0;
        for (int64_t r = 0; r < m; r++) over |= squares[r] > most;
        for (int64_t r = 0; over && r < m; r++) {
            if (!(squares[r] > most)) continue;
            const double power = squares[r] >= MAPPED * MAPPED ? brought_down(d, out + at + r, ld, squares + r) : 1.0;
            if (map->outer && share_row(d, map, power, squares[r], parts[r], out + at + r, ld, to)) return 1;
        }
        if (over && !map->outer && shrink(d, whole, most, out + at, ld, squares)) return 1;
        if (partly && take_parts(d, whole, parts, out + at, ld)) return 1;
    }
    return 0;
}
