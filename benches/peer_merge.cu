// Which is faster for the hits of two shards: each GPU copies its list to the host, which merges them; or the first GPU reads the second's
// list over peer access (NVLink), merges, and copies one list? Prints the time from two empty kernels, one on each GPU, to the merged list
// on the host, for some batches; the median of many. The searches themselves are left out.
//
//     nvcc -O3 -arch=sm_90 -o peer_merge benches/peer_merge.cu && ./peer_merge
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct Hit {
    double score;
    unsigned long long row;
};

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t code = (call);                                                  \
        if (code != cudaSuccess) {                                                  \
            std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(code));       \
            std::exit(1);                                                           \
        }                                                                           \
    } while (0)

__global__ void searched() {}

__host__ __device__ bool before(const Hit& a, const Hit& b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

__host__ __device__ void merge(const Hit* a, const Hit* b, Hit* out, int k) {
    for (int i = 0, j = 0, n = 0; n < k; ++n) out[n] = before(a[i], b[j]) ? a[i++] : b[j++];
}

// Each thread merges the lists of one query by ranks: hits [batch, k] of both, out [batch, k].
__global__ void merged_by_rank(const Hit* a, const Hit* b, Hit* out, int batch, int k) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= batch * 2 * k) return;
    int query = n / (2 * k), mine = n % (2 * k);
    const Hit *own = (mine < k ? a : b) + query * k, *other = (mine < k ? b : a) + query * k;
    int place = mine % k;
    Hit hit = own[place];
    for (int j = 0; j < k && before(other[j], hit); ++j) ++place;
    if (place < k) out[query * k + place] = hit;
}

template <typename Way>
double median_us(Way way) {
    std::vector<double> times;
    for (int i = 0; i < 500; ++i) {
        auto began = std::chrono::steady_clock::now();
        way();
        times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

int main() {
    int count = 0, peer = 0;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 2) return std::printf("skipped: two GPUs are needed, and there are %d\n", count), 0;
    CHECK(cudaDeviceCanAccessPeer(&peer, 0, 1));
    std::printf("peer access: %s\n", peer ? "yes" : "no");
    cudaStream_t stream[2];
    cudaEvent_t found;
    for (int gpu = 0; gpu < 2; ++gpu) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamCreateWithFlags(&stream[gpu], cudaStreamNonBlocking));
    }
    CHECK(cudaEventCreateWithFlags(&found, cudaEventDisableTiming));
    if (peer) {
        CHECK(cudaSetDevice(0));
        CHECK(cudaDeviceEnablePeerAccess(1, 0));
    }
    for (int k : {10, 100}) {
        for (int batch : {1, 32, 1024}) {
            size_t bytes = sizeof(Hit) * batch * k;
            Hit *hits[2], *host[2], *out, *expected = new Hit[batch * k], *joined;
            std::vector<Hit> made[2];
            for (int gpu = 0; gpu < 2; ++gpu) {
                made[gpu].resize(batch * k);
                for (auto& hit : made[gpu]) hit = {std::rand() % 1000 / 1000.0, (unsigned long long)(std::rand() % 1000 * 2 + gpu)};
                for (int q = 0; q < batch; ++q) std::sort(&made[gpu][q * k], &made[gpu][q * k] + k, before);
                CHECK(cudaSetDevice(gpu));
                CHECK(cudaMalloc(&hits[gpu], bytes));
                CHECK(cudaMallocHost(&host[gpu], bytes));
                CHECK(cudaMemcpy(hits[gpu], made[gpu].data(), bytes, cudaMemcpyHostToDevice));
            }
            CHECK(cudaSetDevice(0));
            CHECK(cudaMalloc(&out, bytes));
            CHECK(cudaMallocHost(&joined, bytes));
            auto both = [&] {
                for (int gpu = 0; gpu < 2; ++gpu) {
                    CHECK(cudaSetDevice(gpu));
                    searched<<<1, 1, 0, stream[gpu]>>>();
                }
            };
            double on_host = median_us([&] {
                both();
                for (int gpu = 0; gpu < 2; ++gpu) {
                    CHECK(cudaSetDevice(gpu));
                    CHECK(cudaMemcpyAsync(host[gpu], hits[gpu], bytes, cudaMemcpyDeviceToHost, stream[gpu]));
                }
                for (auto one : stream) CHECK(cudaStreamSynchronize(one));
                for (int q = 0; q < batch; ++q) merge(host[0] + q * k, host[1] + q * k, expected + q * k, k);
            });
            if (!peer) {
                std::printf("k %3d, batch %4d: host %7.1f us\n", k, batch, on_host);
                continue;
            }
            double on_device = median_us([&] {
                both();
                CHECK(cudaEventRecord(found, stream[1]));
                CHECK(cudaSetDevice(0));
                CHECK(cudaStreamWaitEvent(stream[0], found, 0));
                int threads = batch * 2 * k;
                merged_by_rank<<<(threads + 127) / 128, 128, 0, stream[0]>>>(hits[0], hits[1], out, batch, k);
                CHECK(cudaMemcpyAsync(joined, out, bytes, cudaMemcpyDeviceToHost, stream[0]));
                CHECK(cudaStreamSynchronize(stream[0]));
            });
            bool same = std::memcmp(joined, expected, bytes) == 0;
            std::printf("k %3d, batch %4d: host %7.1f us, device %7.1f us, %s\n", k, batch, on_host, on_device, same ? "the same" : "DIFFERENT");
        }
    }
}
