"""What compiled code that creates arrays asks of Numba's run time, in LLVM's language.

Memory with an owner that counts. The layout of an owner is Numba's (its ``MemInfo``), and counting
is compiled into the code. Addresses take eight bytes, as everywhere in ``compiled``.
"""

#: An owner: count, destructor and what it is told (unused), data, bytes, allocator (unused).
RUNTIME = """
%owner = type { i64, ptr, ptr, ptr, i64, ptr }

declare ptr @malloc(i64)
declare void @free(ptr)

define void @NRT_MemInfo_call_dtor(ptr %owner) {
  call void @free(ptr %owner)
  ret void
}

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment) {
  %step = zext i32 %alignment to i64
  %room = add i64 %size, %step
  %all = add i64 %room, 48
  %owner = call ptr @malloc(i64 %all)
  %none = icmp eq ptr %owner, null
  br i1 %none, label %end, label %fill

fill:
  %after = getelementptr %owner, ptr %owner, i64 1
  %least = ptrtoint ptr %after to i64
  %above = add i64 %least, %step
  %most = sub i64 %above, 1
  %steps = udiv i64 %most, %step
  %place = mul i64 %steps, %step
  %data = inttoptr i64 %place to ptr
  store i64 1, ptr %owner
  %destructor = getelementptr %owner, ptr %owner, i64 0, i32 1
  store ptr null, ptr %destructor
  %told = getelementptr %owner, ptr %owner, i64 0, i32 2
  store ptr null, ptr %told
  %data_field = getelementptr %owner, ptr %owner, i64 0, i32 3
  store ptr %data, ptr %data_field
  %size_field = getelementptr %owner, ptr %owner, i64 0, i32 4
  store i64 %size, ptr %size_field
  %allocator = getelementptr %owner, ptr %owner, i64 0, i32 5
  store ptr null, ptr %allocator
  br label %end

end:
  ret ptr %owner
}

define ptr @NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %alignment) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment)
  ret ptr %owner
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %owner
}

define ptr @NRT_MemInfo_alloc_safe(i64 %size) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %owner
}
"""
