/* The CUDA driver's functions, found when the first of them is called, so that a program built with
 * the feature `cuda` starts on machines that have no driver; there every call answers
 * CUDA_ERROR_NO_DEVICE.
 *
 * The build script makes functions.inc from functions.txt: FUNCTION(index, name) for each function that
 * cust_raw declares and we add, ERROR_TEXT(index, name) for those that write a text. All of them take
 * at most 12 arguments, each an integer or a pointer, and return an int: on x86-64 and 64-bit Arm such a
 * function can be called through a pointer to one that takes 12 words; the callee does not look at those
 * too many. The driver's few functions with floating-point arguments are left out. */
#include <dlfcn.h>
#include <stdint.h>

enum { CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_NOT_FOUND = 500 };
typedef uintptr_t word;
typedef int function(word, word, word, word, word, word, word, word, word, word, word, word);

#define FUNCTION(index, name) #name,
#define ERROR_TEXT FUNCTION
static const char *const names[] = {
#include "functions.inc"
};
#undef FUNCTION
#undef ERROR_TEXT

/* 0: not looked for yet. Threads that look at once find the same. */
static function *found[sizeof names / sizeof *names];

static int no_device(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l) {
    return CUDA_ERROR_NO_DEVICE;
}
static int not_found(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l) {
    return CUDA_ERROR_NOT_FOUND;
}

static function *find(int index) {
    function *f = __atomic_load_n(&found[index], __ATOMIC_ACQUIRE);
    if (f == 0) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        if (driver == 0) f = no_device;
        else {
            f = (function *)dlsym(driver, names[index]);
            if (f == 0) f = not_found;
        }
        __atomic_store_n(&found[index], f, __ATOMIC_RELEASE);
    }
    return f;
}

/* These write a text, which callers read whatever the answer is. */
static const char *const no_driver_text = "no CUDA driver on this machine (libcuda.so.1)";

#define FUNCTION(index, name)                                                                            \
    int name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k,     \
             word l) {                                                                                   \
        return find(index)(a, b, c, d, e, f, g, h, i, j, k, l);                                          \
    }
#define ERROR_TEXT(index, name)                                                                          \
    int name(word error, const char **text) {                                                            \
        function *f = find(index);                                                                       \
        if (f == no_device) {                                                                            \
            *text = no_driver_text;                                                                      \
            return 0;                                                                                    \
        }                                                                                                \
        return f(error, (word)text, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);                                       \
    }
#include "functions.inc"
