/* What compiled code that creates arrays asks of Numba's run time: memory with an owner that counts.
   The layout of an owner is Numba's; counting itself is compiled into the code. */
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    size_t count;
    void (*destroy)(void *data, size_t size, void *about);
    void *about;
    void *data;
    size_t size;
    void *allocator;
} Owner;

void NRT_MemInfo_call_dtor(Owner *owner) {
    if (owner->destroy) owner->destroy(owner->data, owner->size, owner->about);
    free(owner);
}

void *NRT_MemInfo_alloc_aligned(size_t size, unsigned alignment) {
    Owner *owner = malloc(sizeof(Owner) + size + alignment);
    uintptr_t at;
    if (!owner) return NULL;
    at = ((uintptr_t)(owner + 1) + alignment - 1) / alignment * alignment;
    owner->count = 1;
    owner->destroy = NULL;
    owner->about = NULL;
    owner->data = (void *)at;
    owner->size = size;
    owner->allocator = NULL;
    return owner;
}

void *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned alignment) {
    return NRT_MemInfo_alloc_aligned(size, alignment);
}

void *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

void *NRT_MemInfo_alloc_safe(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }
