// Cells to grid points to exact sums, in one read of the cells.
//
// Every step is the arithmetic of rows/encode.py and rows/clip.py: each operation on its own, correctly rounded (the _rn
// intrinsics are never fused). Where a fused multiply-add stands, its result is exact or proven equal, and the reason is given.
//
// Set by the compiler's command line: CELL (type of a cell), CLIP (can a row exceed the bound?),
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
// them what they are, whatever is read instead.
enum { LOWER, UPPER, FILL, CENTRE, STEP, INVERSE, INVERSE_LOW, IS_TRUTH, FIELDS };

struct __align__(16) Column {
    double lower, upper, fill, centre, step, inverse, inverse_low, truth;
    __device__ __forceinline__ Column(const double* plan, int padded, int c)
        : lower(plan[LOWER * padded + c]), upper(plan[UPPER * padded + c]), fill(plan[FILL * padded + c]),
          centre(plan[CENTRE * padded + c]), step(plan[STEP * padded + c]), inverse(plan[INVERSE * padded + c]),
          inverse_low(plan[INVERSE_LOW * padded + c]), truth(TRUTH ? plan[IS_TRUTH * padded + c] : 0.0) {}
};

// Whole number nearest to x on the side of zero: one instruction, and not one of those that tensor cores wait for.
__device__ __forceinline__ double truncate(double x) {
    double whole;
    asm("cvt.rzi.f64.f64 %0, %1;" : "=d"(whole) : "d"(x));
    return whole;
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
