// Products of 8 by 4 and 4 by 8 numbers on tensor cores, in double precision: in the first operand lane 4 i + k holds row i and column k, in
// the second row k and column i, in the sum row i and columns 2 k and 2 k + 1.

__device__ __forceinline__ void multiply_add(double (&c)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c[0]), "+d"(c[1]) : "d"(a), "d"(b));
}

// Two products with one b. Compute capability 9.0 does them in the time of one.
__device__ __forceinline__ void multiply_add(double (&c)[2], double (&d)[2], double a, double also, double b) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(also), "d"(b));
#else
    multiply_add(c, a, b);
    multiply_add(d, also, b);
#endif
}

// The same for 8 columns of the first operand and 8 rows of the second: more of it in one instruction.
__device__ __forceinline__ void multiply_add(double (&c)[2], double (&d)[2], double a, double also, double a4, double also4, double b, double b4) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(also), "d"(a4), "d"(also4), "d"(b), "d"(b4));
#else
    multiply_add(c, d, a, also, b);
    multiply_add(c, d, a4, also4, b4);
#endif
}
