/* Preloaded into a service, this makes a kernel trap on one GPU, while it serves.
 *
 *     cc -shared -fPIC -O2 -o lose_gpu.so tests/load/lose_gpu.c -ldl -lpthread
 *     LOSE_GPU=1 LOSE_GPU_WHEN=/tmp/now LD_PRELOAD=$PWD/lose_gpu.so kindred serve --device cuda:all
 *     touch /tmp/now
 *
 * LOSE_GPU is the GPU's index, LOSE_GPU_WHEN a file: the kernel starts when it exists. A trap ends all that the process has, on every GPU
 * (docs/gpus.md); other processes go on. tests/load/lose-gpu does all of this under load.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char KERNEL[] = ".version 6.4\n"
                             ".target sm_75\n"
                             ".address_size 64\n"
                             ".visible .entry trap_now() { trap; }\n";

static void *driver;

/* Calls a function of the driver, which returns 0 if all is well. */
#define CALL(name, types, ...)                                                                                                                    \
    do {                                                                                                                                          \
        int (*call) types = (int(*) types)dlsym(driver, name);                                                                                    \
        int code = call ? call(__VA_ARGS__) : -1;                                                                                                 \
        if (code != 0) {                                                                                                                          \
            fprintf(stderr, "lose_gpu: %s returned %d\n", name, code);                                                                            \
            return NULL;                                                                                                                          \
        }                                                                                                                                         \
    } while (0)

static void *lose(void *unused)
{
    const char *gpu = getenv("LOSE_GPU"), *when = getenv("LOSE_GPU_WHEN");
    void *context, *module, *function;
    int device;

    (void)unused;
    while (access(when, F_OK) != 0)
        usleep(1000);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        fprintf(stderr, "lose_gpu: %s\n", dlerror());
        return NULL;
    }
    CALL("cuInit", (unsigned), 0);
    CALL("cuDeviceGet", (int *, int), &device, atoi(gpu));
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device);
    CALL("cuCtxSetCurrent", (void *), context);
    CALL("cuModuleLoadData", (void **, const void *), &module, KERNEL);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &function, module, "trap_now");
    CALL("cuLaunchKernel", (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    fprintf(stderr, "lose_gpu: a kernel traps on GPU %s\n", gpu);
    /* Without this, the service's next start on that GPU would find the context still in use. */
    CALL("cuDevicePrimaryCtxRelease_v2", (int), device);
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;

    if (getenv("LOSE_GPU") != NULL && getenv("LOSE_GPU_WHEN") != NULL && pthread_create(&thread, NULL, lose, NULL) == 0)
        pthread_detach(thread);
}
