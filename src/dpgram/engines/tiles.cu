// What the fused kernels share. Points of a warp lie as the operand of a tensor-core product: lane 4 i + k holds column i of each band of
// 8 columns, and of each part (4 rows) the row k. The same registers serve as both operands of P' P, and rows may come in any order.

constexpr int PADDED = 8 * BANDS;
constexpr int TILES = BANDS * (BANDS + 1) / 2;  // 8 by 8 tiles, one for each pair of bands: tile o BANDS + j is that of bands j + o and j

// The declared fields in shared memory, column by column: a lane reads those of its column two at a time.
__device__ __forceinline__ void read_plan(Column* plan, const i64* declared) {
    for (int c = threadIdx.x; c < FIELDS * PADDED; c += THREADS)
        ((double*)plan)[c % PADDED * FIELDS + c / PADDED] = __longlong_as_double(declared[PADDED + c]);
}

// Sums over the 8 lanes of a row, for PARTS rows at once: halves are exchanged, so that each lane ends with one row's sum, the
// row of step lane / (32 / PARTS).
template <int PARTS>
__device__ __forceinline__ double row_sums(double (&part)[PARTS], int lane) {
    int mask = 16;
#pragma unroll
    for (int left = PARTS; left > 1; left /= 2, mask /= 2) {
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

template <int PARTS>
__device__ __forceinline__ double squares_of(double (&points)[BANDS][PARTS], int lane) {
    double part[PARTS];
#pragma unroll
    for (int s = 0; s < PARTS; s++) {
        part[s] = 0.0;
#pragma unroll
        for (int j = 0; j < BANDS; j++) part[s] = __fma_rn(points[j][s], points[j][s], part[s]);  // whole numbers: exact
    }
    return row_sums(part, lane);
}

template <int PARTS>
__device__ __forceinline__ void add_products(double (&sums)[TILES][2], double (&points)[BANDS][PARTS]) {
#pragma unroll
    for (int s = 0; s < PARTS; s++) {
#pragma unroll
        for (int j = 0; j < BANDS; j++) {
#pragma unroll
            for (int o = 0; o * BANDS + j < TILES; o += 2) {
                double a = points[(j + o) % BANDS][s], b = points[j][s];
                int tile = o * BANDS + j;
                if (tile + BANDS < TILES) multiply_add(sums[tile], sums[tile + BANDS], a, points[(j + o + 1) % BANDS][s], b);
                else multiply_add(sums[tile], a, b);
            }
        }
    }
}

// Sums of a warp to those of its block: two's complement, any order, same bits.
__device__ __forceinline__ void spill(double (&sums)[TILES][2], u64* total, int lane) {
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            u64* at = total + (2 * tile + e) * 32 + lane;  // in shared or in device memory
            atomicAdd(at, (u64)__double2ll_rn(sums[tile][e]));
            sums[tile][e] = 0.0;
        }
    }
}

// The block's sums, one after the other for each scale, to the state: dim * dim high limbs for each, as many low limbs, and the flag of a
// broken bound.
__device__ __forceinline__ void add_to_state(const u64* total, int scales, int dim, i64* state) {
    for (int c = threadIdx.x; c < scales * TILES * 64; c += THREADS) {
        int lane = c % 32, e = c / 32 % 2, tile = c / 64 % TILES, scale = c / 64 / TILES, j = tile % BANDS, o = tile / BANDS;
        int row = 8 * ((j + o) % BANDS) + lane / 4, column = 8 * j + 2 * (lane % 4) + e;
        i64 value = (i64)*(const volatile u64*)(total + c);  // as it is in memory, where other threads have added
        if (max(row, column) < dim && value != 0) {
            for (int mirror = 0; mirror < (o > 0 ? 2 : 1); mirror++) {  // a tile on the diagonal holds both halves
                int at = (scale * dim + (mirror ? column : row)) * dim + (mirror ? row : column);
                atomicAdd((u64*)state + at, (u64)(value >> LIMB_BITS));
                atomicAdd((u64*)state + scales * dim * dim + at, (u64)(value & LIMB_MASK));
            }
        }
    }
}
