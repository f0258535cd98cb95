// Cells to grid points to exact sums, in one read of the cells.
//
// Every step is the arithmetic of rows/encode.py and rows/clip.py: each operation on its own, correctly rounded (the _rn
// intrinsics are never fused). Where a fused multiply-add stands, its result is exact or proven equal, and the reason is given.
//
// Set by the compiler's command line: CELL (type of a cell), FUSED (which of the two kernels), CLIP (can a row exceed the bound?),
// TRUTH (is any column Boolean?), FAST_DIVIDE, THREADS, BLOCKS, and for the fused kernel BANDS (of 8 columns) and STEPS (groups of 4
// rows in flight). dim is the number of encoded columns, padded the next multiple of 8.

typedef long long i64;
typedef unsigned long long u64;

constexpr double JUST_BELOW_ONE = 1.0 - 1.0 / (1ll << 50);
constexpr int LIMB_BITS = 40;
constexpr i64 LIMB_MASK = (1ll << LIMB_BITS) - 1;
constexpr unsigned ALL = 0xffffffffu;

struct half_bits { unsigned short bits; };
struct bfloat_bits { unsigned short bits; };
typedef CELL cell;  // one word, whatever CELL is

__device__ __forceinline__ double widen(double x) { return x; }
__device__ __forceinline__ double widen(float x) { return x; }
__device__ __forceinline__ double widen(half_bits x) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}
__device__ __forceinline__ double widen(bfloat_bits x) { return __uint_as_float(((unsigned)x.bits) << 16); }
__device__ __forceinline__ double widen(i64 x) { return __ll2double_rn(x); }
__device__ __forceinline__ double widen(u64 x) { return __ull2double_rn(x); }
__device__ __forceinline__ double widen(int x) { return x; }
__device__ __forceinline__ double widen(unsigned x) { return x; }
__device__ __forceinline__ double widen(short x) { return (int)x; }
__device__ __forceinline__ double widen(unsigned short x) { return (int)x; }
__device__ __forceinline__ double widen(signed char x) { return (int)x; }
__device__ __forceinline__ double widen(unsigned char x) { return (int)x; }

// What is declared about the encoded columns: which column of the cells each is (padded whole numbers), then these fields, each of
// padded doubles. An intercept and the columns of padding have no cells, and the place -1: bounds that meet, in 1 and in 0, make
// them what they are.
enum { LOWER, UPPER, FILL, CENTRE, STEP, INVERSE, INVERSE_LOW, IS_TRUTH, FIELDS };

struct Column {
    double lower, upper, fill, centre, step, inverse, inverse_low, truth;
    __device__ __forceinline__ Column(const double* plan, int padded, int c)
        : lower(plan[LOWER * padded + c]), upper(plan[UPPER * padded + c]), fill(plan[FILL * padded + c]),
          centre(plan[CENTRE * padded + c]), step(plan[STEP * padded + c]), inverse(plan[INVERSE * padded + c]),
          inverse_low(plan[INVERSE_LOW * padded + c]), truth(TRUTH ? plan[IS_TRUTH * padded + c] : 0.0) {}
};

// Whole number nearest to x on the side of zero, for |x| < 2^51: adding 2^52 of x's sign leaves no bits for a fraction.
__device__ __forceinline__ double truncate(double x) {
    double shift = __hiloint2double((__double2hiint(x) & 0x80000000) | 0x43300000, 0);
    return __dsub_rn(__dadd_rz(x, shift), shift);
}

// a / step, correctly rounded. inverse + inverse_low is 1 / step to 106 bits, so the first quotient is faithful; its remainder is
// exact; and by Markstein's theorem one correction with inverse, the correctly rounded reciprocal, rounds correctly. Away from
// overflow and underflow, which the host has checked; a quotient below one half may be wrong in its last bits and truncates to 0.
__device__ __forceinline__ double divide(double a, const Column& column) {
#if FAST_DIVIDE
    double quotient = __fma_rn(a, column.inverse, __dmul_rn(a, column.inverse_low));
    double rest = __fma_rn(-column.step, quotient, a);
    return __fma_rn(rest, column.inverse, quotient);
#else
    return __dmul_rn(__ddiv_rn(a, column.step), 1048576.0);  // 2^20 grid points per unit
#endif
}

// The cell as a grid point. The step is half / 2^20 (half alone without FAST_DIVIDE): scaling by a power of two commutes with
// rounding. The clamp to [-1, 1] that ends the encoding needs no code: the host has checked that the bounds reach less than one
// grid point beyond, which the truncation takes off.
__device__ __forceinline__ double grid_point(double x, const Column& column) {
    if ((__double2hiint(x) & 0x7ff00000) == 0x7ff00000) x = column.fill;  // NaN and infinity
#if TRUTH
    if (column.truth != 0.0 && x != 0.0 && x != 1.0) x = column.fill;
#endif
    x = x < column.lower ? column.lower : x;
    x = x > column.upper ? column.upper : x;
    return truncate(divide(__dsub_rn(x, column.centre), column));
}

__device__ __forceinline__ double shrinking(double most, double squares) {
    return __dmul_rn(__dsqrt_rn(__ddiv_rn(most, squares)), JUST_BELOW_ONE);
}

#if FUSED

// A warp takes 4 rows by PADDED columns at a time, laid out as the operand of a tensor-core product: lane 4 i + k holds row k and
// column i of each band of 8. The same registers serve as both operands of P' P. STEPS such groups are in flight.

constexpr int PADDED = 8 * BANDS;
constexpr int GROUP = 4 * STEPS;                  // rows of one iteration of a warp
constexpr int TILES = BANDS * (BANDS + 1) / 2;    // 8 by 8 tiles on and above the diagonal
constexpr int ITERATIONS = 4096 / GROUP;          // sums of 4096 products of at most 2^40 are exact in double precision

__device__ __forceinline__ void multiply_add(double (&c)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c[0]), "+d"(c[1]) : "d"(a), "d"(b));
}

// Sums over the 8 lanes of a row, for STEPS rows at once: halves are exchanged, so that each lane ends with one row's sum, the
// row of step lane / (32 / STEPS).
__device__ __forceinline__ double row_sums(double (&part)[STEPS], int lane) {
    int mask = 16;
#pragma unroll
    for (int left = STEPS; left > 1; left /= 2, mask /= 2) {
        bool second = lane & mask;
#pragma unroll
        for (int s = 0; s < left / 2; s++) {
            double give = second ? part[s] : part[s + left / 2];
            double keep = second ? part[s + left / 2] : part[s];
            part[s] = keep + __shfl_xor_sync(ALL, give, mask);
        }
    }
#pragma unroll
    for (; mask >= 4; mask /= 2) part[0] += __shfl_xor_sync(ALL, part[0], mask);
    return part[0];
}

__device__ __forceinline__ double squares_of(double (&points)[BANDS][STEPS], int lane) {
    double part[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        part[s] = 0.0;
#pragma unroll
        for (int j = 0; j < BANDS; j++) part[s] = __fma_rn(points[j][s], points[j][s], part[s]);  // whole numbers: exact
    }
    return row_sums(part, lane);
}

struct Cells {
    const cell* first;
    i64 row_stride;
    i64 offset[BANDS];
    bool here[BANDS];

    template <bool TAIL>
    __device__ __forceinline__ void load(cell (&raw)[BANDS][STEPS], i64 row, i64 rows) const {
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            bool inside = !TAIL || row + 4 * s < rows;
            const cell* at = first + (row + 4 * s) * row_stride;
#pragma unroll
            for (int j = 0; j < BANDS; j++) raw[j][s] = inside && here[j] ? at[offset[j]] : cell{};
        }
    }
};

template <bool TAIL>
__device__ __forceinline__ void add_rows(double (&sums)[TILES][2], const cell (&raw)[BANDS][STEPS], const double* plan, double most,
                                         i64 row, i64 rows, int lane, i64* broken) {
    double points[BANDS][STEPS];
#pragma unroll
    for (int j = 0; j < BANDS; j++) {
        Column column(plan, PADDED, 8 * j + (lane >> 2));
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            double p = grid_point(widen(raw[j][s]), column);
            points[j][s] = !TAIL || row + 4 * s < rows ? p : 0.0;
        }
    }
#if CLIP
    double squares = squares_of(points, lane);
    if (__any_sync(ALL, squares > most)) {
        double factor = squares > most ? shrinking(most, squares) : 1.0;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            double mine = __shfl_sync(ALL, factor, s * (32 / STEPS) + (lane & 3));
#pragma unroll
            for (int j = 0; j < BANDS; j++) points[j][s] = truncate(__dmul_rn(points[j][s], mine));
        }
        if (squares_of(points, lane) > most) *broken = 1;
    }
#endif
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int tile = 0;
#pragma unroll
        for (int j = 0; j < BANDS; j++) {
#pragma unroll
            for (int i = j; i < BANDS; i++) multiply_add(sums[tile++], points[j][s], points[i][s]);
        }
    }
}

__device__ __forceinline__ void spill(double (&sums)[TILES][2], u64* total, int lane) {
    int tile = 0;
#pragma unroll
    for (int j = 0; j < BANDS; j++) {
#pragma unroll
        for (int i = j; i < BANDS; i++, tile++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int place = (8 * j + (lane >> 2)) * PADDED + 8 * i + 2 * (lane & 3) + e;
                atomicAdd(total + place, (u64)__double2ll_rn(sums[tile][e]));  // two's complement: any order, same bits
                sums[tile][e] = 0.0;
            }
        }
    }
}

// state: dim * dim high limbs, as many low limbs, and the flag of a broken bound; entries on and above the diagonal are added to.
// A block sees at most 2^22 rows, so its 64-bit sums stay below 2^62.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gram(const cell* __restrict__ first, i64 rows, i64 row_stride, i64 column_stride, const i64* __restrict__ declared, i64 dim,
     double most, i64* state) {
    __shared__ double plan[FIELDS * PADDED];
    __shared__ u64 total[PADDED * PADDED];
    for (int c = threadIdx.x; c < FIELDS * PADDED; c += THREADS) plan[c] = __longlong_as_double(declared[PADDED + c]);
    for (int c = threadIdx.x; c < PADDED * PADDED; c += THREADS) total[c] = 0;
    __syncthreads();

    const int lane = threadIdx.x & 31;
    Cells cells{first, row_stride};
#pragma unroll
    for (int j = 0; j < BANDS; j++) {
        i64 place = declared[8 * j + (lane >> 2)];
        cells.here[j] = place >= 0;
        cells.offset[j] = place * column_stride;
    }
    double sums[TILES][2] = {};
    const i64 groups = rows / GROUP, stride = (i64)gridDim.x * (THREADS / 32);
    i64 group = (i64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    i64* broken = state + 2 * dim * dim;
    int iterations = 0;
    cell raw[BANDS][STEPS], next[BANDS][STEPS];
    if (group < groups) cells.load<false>(raw, group * GROUP + (lane & 3), rows);
    for (; group < groups; group += stride) {
        if (group + stride < groups) cells.load<false>(next, (group + stride) * GROUP + (lane & 3), rows);
        add_rows<false>(sums, raw, plan, most, 0, 0, lane, broken);
        if (++iterations == ITERATIONS - 1) {  // one is left for the tail
            spill(sums, total, lane);
            iterations = 0;
        }
#pragma unroll
        for (int j = 0; j < BANDS; j++)
#pragma unroll
            for (int s = 0; s < STEPS; s++) raw[j][s] = next[j][s];
    }
    if (group == groups && rows % GROUP) {
        cells.load<true>(raw, group * GROUP + (lane & 3), rows);
        add_rows<true>(sums, raw, plan, most, group * GROUP + (lane & 3), rows, lane, broken);
    }
    spill(sums, total, lane);
    __syncthreads();
    const int columns = (int)dim;
    for (int c = threadIdx.x; c < columns * columns; c += THREADS) {
        int i = c / columns, j = c % columns;
        i64 value = (i64)total[i * PADDED + j];
        if (i <= j && value != 0) {
            atomicAdd((u64*)state + c, (u64)(value >> LIMB_BITS));
            atomicAdd((u64*)state + columns * columns + c, (u64)(value & LIMB_MASK));
        }
    }
}

#else

// Cells to bounded grid points, row-major and padded with zeros, for a matrix product by the library. A warp takes 4 rows.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_points(const cell* __restrict__ first, i64 rows, i64 row_stride, i64 column_stride, const i64* __restrict__ declared, i64 dim,
            double most, double* points, i64* state) {
    const int padded = (int)(dim + 7) / 8 * 8;
    const double* plan = (const double*)(declared + padded);
    const int lane = threadIdx.x & 31;
    const i64 warps = (i64)gridDim.x * (THREADS / 32);
    for (i64 row = 4 * ((i64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32); row < rows; row += 4 * warps) {
        double squares[4] = {};
#pragma unroll 2
        for (int c = lane; c < padded; c += 32) {
            i64 place = declared[c];
            const cell* at = first + row * row_stride + place * column_stride;
            cell raw[4];
#pragma unroll
            for (int s = 0; s < 4; s++) raw[s] = place >= 0 && row + s < rows ? at[s * row_stride] : cell{};
            Column column(plan, padded, c);
#pragma unroll
            for (int s = 0; s < 4; s++) {
                double p = grid_point(widen(raw[s]), column);
                if (row + s < rows) points[(row + s) * padded + c] = p;
                squares[s] = __fma_rn(p, p, squares[s]);
            }
        }
#if CLIP
#pragma unroll
        for (int s = 0; s < 4; s++) {
#pragma unroll
            for (int mask = 16; mask > 0; mask /= 2) squares[s] += __shfl_xor_sync(ALL, squares[s], mask);
            if (squares[s] > most && row + s < rows) {  // the same in every lane; each reads back what it wrote
                double factor = shrinking(most, squares[s]), again = 0.0;
                for (int c = lane; c < padded; c += 32) {
                    double* at = points + (row + s) * padded + c;
                    double p = truncate(__dmul_rn(*at, factor));
                    *at = p;
                    again = __fma_rn(p, p, again);
                }
#pragma unroll
                for (int mask = 16; mask > 0; mask /= 2) again += __shfl_xor_sync(ALL, again, mask);
                if (again > most) state[2 * dim * dim] = 1;
            }
        }
#endif
    }
}

#endif
