// Mapped rows within their bound, or shared between scales: the arithmetic of rows/clip.py on one row, whoever holds it.

constexpr double UNITS = 1099511627776.0;  // 2^40 squared grid points are one
constexpr double SWITCH = 0.8;             // of a scale: a longer row goes to the next one
constexpr double MOST_TOGETHER = 1.0 - 1.0 / (1ll << 51);
constexpr int EXPONENT_OF_ONE = 1023, MOST_POWER = 20;
constexpr int LARGE = (EXPONENT_OF_ONE + 21) << 20;  // the upper word of 2^21

__device__ __forceinline__ double power_of_two(int exponent) { return __hiloint2double((EXPONENT_OF_ONE + exponent) << 20, 0); }

// Upper word without its sign: in the order of absolute values.
__device__ __forceinline__ int size_of(double x) { return __double2hiint(x) & 0x7fffffff; }

// By how many powers of two a row is divided before it is put on the grid, from the upper word of its largest entry.
__device__ __forceinline__ int excess_of(int largest) { return max((largest >> 20) - (EXPONENT_OF_ONE + 20), 0); }

__device__ __forceinline__ double squared_length(double squares, int excess) {
    return __dmul_rn(squares, power_of_two(2 * min(excess, MOST_POWER) - 40));
}

// What becomes of a row at SCALES scales: the factors of its two parts, and the scale of the second, 0 where there is none.
struct Shares {
    double first, second;
    int place;

    __device__ __forceinline__ Shares(double squares, int excess) : first(1.0), second(0.0), place(0) {
        double length = squared_length(squares, excess), scale = 4.0;
        if (!(length > 1.0)) return;
        place = 1;
#pragma unroll
        for (int k = 1; k < SCALES - 1; k++) {
            if (length > __dmul_rn(SWITCH, scale)) {
                place = k + 1;
                scale *= 4.0;
            }
        }
        length = fmin(length, __dmul_rn(SWITCH, scale));  // beyond the last scale only
        double all = __dadd_rn(1.0, __dmul_rn(scale, scale)), root = __dsqrt_rn(__dsub_rn(all, __dmul_rn(length, length)));
        double inner = __ddiv_rn(__dadd_rn(length, __dmul_rn(scale, root)), all);
        double outer = __ddiv_rn(__dsub_rn(__dmul_rn(scale, length), root), all);
        first = shrinking(__dmul_rn(inner, UNITS), squares);
        second = shrinking(__dmul_rn(outer, UNITS), squares);
    }
};

// Whether both parts together keep the bound, from their sums of squares.
__device__ __forceinline__ bool together(double first, double second) {
    double one = __dmul_rn(first, 1.0 / UNITS), other = __dmul_rn(second, 1.0 / UNITS);
    return __dadd_rn(__dmul_rn(one, one), __dmul_rn(other, other)) <= MOST_TOGETHER;
}
