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
