"""The native part of the thread pool, as LLVM text.

The state of a pool is one 64-bit word: the job's number, a bit that says that the job is closed, and the
number of workers inside.  A worker enters by compare-and-swap while the job is open; the launching
thread closes the job when no chunk is left and waits until nobody is inside.
"""

from __future__ import annotations

import platform
import string
from typing import Any

from dcarray.lowering.cpu.llvm.text.addresses import expand_addresses
from dcarray.lowering.runtime.stopping import STOP, STOPPED

from .launch import LAUNCH
from .layout import OFFSETS
from .loop_launches import LOOP_LAUNCHES
from .parallel_loop_phase import PHASES

# A chunk below this many units of ``Binding.work`` (some microseconds) is not worth a thread.
GRAIN_BITS = 17
_FINER_BITS = 3  # by which grains are finer where the threads go through a loop together
# A worker that has found nothing to do for so long sleeps; where it had to be woken for jobs that come thick,
# it is so much longer until it does so again: to wake it takes the launching thread some 15 us of its time,
# and 40 us pass until the other is there (a virtual machine on an EPYC).
_SPIN_NS = 50_000
_LONGER_NS = 200_000
# To wake a sleeping thread takes as long as a job of fewer grains than this one; for those it is done only
# where the last job is no longer ago than that many nanoseconds, since then others are likely to follow.
_WORTH_WAKING = 8
_THICK_NS = 500_000
# Where launches have lost so much by sharing, and an eighth of the time that the last one took, other
# programs have the processors: jobs run alone for so many times as long as what was lost, twice as long as
# last time if sharing was good for less than a time since then, and in any case between two bounds.  A
# worker that had to be woken may be late by 40 us, which is no sign of other programs.
_LATE_NS = 80_000
_REPAID = 16
_COOL_NS = 1_000_000
_LONGEST_NS = 500_000_000
_CALM_NS = 50_000_000
# Jobs of so many grains are shared all the same: a worker is late by a slice of the scheduler's, some 3 ms.
_LONG = 4096

# So many times a thread that has done its own chunks looks whether all are done, before it takes those of
# others.
_BRIEF = 16

# The most launches of an iteration for which all iterations are one job.  Loops of more (adi) are likely to
# access their arrays by rows and by columns, where each core has to fetch what the other has just written.
_FEW = 6

_SOURCE = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_trylock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare i32 @feclearexcept(i32)
declare i32 @fetestexcept(i32)
$declare_pause
$declare_cpu

define internal void @pause() alwaysinline {
  $pause
  ret void
}

; the processor that the calling thread is on
define internal i32 @cpu() alwaysinline {
  %c = $cpu
  ret i32 %c
}

; is the run to be stopped?
$stop
define internal i1 @stopped() {
  %w = load ptr, ptr @dc_stop
  %s = load volatile i32, ptr %w
  %r = icmp ne i32 %s, 0
  ret i1 %r
}

define internal i64 @now() {
  %t = alloca [2 x i64]
  call i32 @clock_gettime(i32 $monotonic, ptr %t)
  %s = load i64, ptr %t
  %n = load i64, ptr %t[i64 1]
  %b = mul i64 %s, 1000000000
  %r = add i64 %b, %n
  ret i64 %r
}

; the flags that the hardware holds, in NumPy's numbering
define internal i32 @raised() {
  %e = call i32 @fetestexcept(i32 $all)
  %d = and i32 %e, $divide
  %d1 = icmp ne i32 %d, 0
  %d2 = select i1 %d1, i32 1, i32 0
  %o = and i32 %e, $overflow
  %o1 = icmp ne i32 %o, 0
  %o2 = select i1 %o1, i32 2, i32 0
  %u = and i32 %e, $underflow
  %u1 = icmp ne i32 %u, 0
  %u2 = select i1 %u1, i32 4, i32 0
  %i = and i32 %e, $invalid
  %i1 = icmp ne i32 %i, 0
  %i2 = select i1 %i1, i32 8, i32 0
  %x = or i32 %d2, %o2
  %y = or i32 %u2, %i2
  %z = or i32 %x, %y
  ret i32 %z
}

; is the job number of %state open, and another one than %seen?
define internal i1 @fresh(i64 %state, i64 %seen) alwaysinline {
  %number = lshr i64 %state, 20
  %other = icmp ne i64 %number, %seen
  %c = and i64 %state, 524288
  %open = icmp eq i64 %c, 0
  %r = and i1 %other, %open
  ret i1 %r
}

; job: function, arguments, extent, chunk, chunks of one owner, owners; the function is null where it is the
; iterations of a loop (see `iterations`).  The chunks that this thread does are added to %count.
define internal i32 @share(ptr %pool, i64 %me, ptr %count) {
entry:
  %job = getelementptr i8, ptr %pool, i64 $JOB
  %fn = load ptr, ptr %job
  %args = load ptr, ptr %job[i64 1]
  %extent = load i64, ptr %job[i64 2]
  %chunk = load i64, ptr %job[i64 3]
  %each = load i64, ptr %job[i64 4]
  %owners = load i64, ptr %job[i64 5]
  br label %victim
victim:
  %i = phi i64 [ 0, %entry ], [ %inext, %emptied ]
  %soft0 = phi i32 [ 0, %entry ], [ %soft1, %emptied ]
  %sum = add i64 %me, %i
  %owner = urem i64 %sum, %owners
  %line = mul i64 %owner, 64
  %at = add i64 %line, $NEXT
  %next = getelementptr i8, ptr %pool, i64 %at
  %base = mul i64 %owner, %each
  br label %take
take:
  %soft1 = phi i32 [ %soft0, %victim ], [ %soft2, %run ]
  %k = atomicrmw add ptr %next, i64 1 monotonic
  %some = icmp slt i64 %k, %each
  br i1 %some, label %clip, label %emptied
clip:
  %c = add i64 %base, %k
  %lo = mul i64 %c, %chunk
  %in = icmp slt i64 %lo, %extent
  br i1 %in, label %run, label %emptied
run:
  %end = add i64 %lo, %chunk
  %over = icmp slt i64 %extent, %end
  %hi = select i1 %over, i64 %extent, i64 %end
  %f = call i32 @run(ptr %fn, ptr %args, i64 %lo, i64 %hi)
  %soft2 = or i32 %soft1, %f
  %count0 = load i64, ptr %count
  %count1 = add i64 %count0, 1
  store i64 %count1, ptr %count
  br label %take
emptied:
  %inext = add i64 %i, 1
  %more = icmp slt i64 %inext, %owners
  br i1 %more, label %victim, label %done
done:
  ret i32 %soft1
}

define void @dc_pool_init(ptr %pool, i64 %threads) {
  store atomic i64 524288, ptr %pool seq_cst, align 8
  store i64 %threads, ptr %pool[i8 $THREADS]
  store i64 $spin, ptr %pool[i8 $PATIENCE]
  call i32 @pthread_mutex_init(ptr %pool[i8 $MUTEX], ptr null)
  call i32 @pthread_cond_init(ptr %pool[i8 $COND], ptr null)
  ret void
}

; wake workers that sleep, unless one that is about to sleep, or to do something, has no processor just then:
; it holds the lock for some instructions only
define internal void @wake(ptr %pool) {
entry:
  %m = getelementptr i8, ptr %pool, i64 $MUTEX
  br label %try
try:
  %i = phi i64 [ 0, %entry ], [ %i1, %again ]
  %failed = call i32 @pthread_mutex_trylock(ptr %m)
  %held = icmp ne i32 %failed, 0
  br i1 %held, label %again, label %free
again:
  call void @pause()
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, $tries
  br i1 %more, label %try, label %end
free:
  call i32 @pthread_cond_broadcast(ptr %pool[i8 $COND])
  call i32 @pthread_mutex_unlock(ptr %m)
  br label %end
end:
  ret void
}

define void @dc_pool_stop(ptr %pool) {
  store atomic i64 1, ptr %pool[i8 $STOP] seq_cst, align 8
  %m = getelementptr i8, ptr %pool, i64 $MUTEX
  call i32 @pthread_mutex_lock(ptr %m)
  call i32 @pthread_cond_broadcast(ptr %pool[i8 $COND])
  call i32 @pthread_mutex_unlock(ptr %m)
  ret void
}

define void @dc_pool_work(ptr %pool, i64 %me) {
entry:
  %m = getelementptr i8, ptr %pool, i64 $MUTEX
  %c = getelementptr i8, ptr %pool, i64 $COND
  %stop = getelementptr i8, ptr %pool, i64 $STOP
  %sleepers = getelementptr i8, ptr %pool, i64 $SLEEPERS
  %patience = getelementptr i8, ptr %pool, i64 $PATIENCE
  %flags = getelementptr i8, ptr %pool, i64 $FLAGS
  %mine = alloca i64
  br label %idle
idle:
  %seen0 = phi i64 [ 0, %entry ], [ %number, %worked ], [ %seen, %late ]
  %t0 = call i64 @now()
  br label %spin
spin:
  %n = phi i64 [ 0, %idle ], [ %n1, %relax ], [ 0, %crowded ], [ 0, %yield ], [ 0, %enter ], [ 0, %decline ]
  %seen = phi i64 [ %seen0, %idle ], [ %seen, %relax ], [ %seen, %crowded ], [ %seen, %yield ],
    [ %seen, %enter ], [ %declined, %decline ]
  %s = load atomic i64, ptr %pool seq_cst, align 8
  %f = call i1 @fresh(i64 %s, i64 %seen)
  br i1 %f, label %meet, label %relax
relax:
  call void @pause()
  %n1 = add i64 %n, 1
  %often = icmp slt i64 %n1, 16
  br i1 %often, label %spin, label %clock
clock:
  %t1 = call i64 @now()
  %dt = sub i64 %t1, %t0
  %most = load atomic i64, ptr %patience monotonic, align 8
  %young = icmp slt i64 %dt, %most
  br i1 %young, label %crowded, label %sleep
crowded:
  %here = call i32 @cpu()
  %there = load atomic i32, ptr %pool[i8 $CPU] monotonic, align 4
  %same = icmp $shares i32 %here, %there
  br i1 %same, label %yield, label %spin
yield:
  call i32 @sched_yield()
  br label %spin
sleep:
  store atomic i64 $spin, ptr %patience monotonic, align 8
  call i32 @pthread_mutex_lock(ptr %m)
  atomicrmw add ptr %sleepers, i64 1 seq_cst
  br label %check
check:
  %s2 = load atomic i64, ptr %pool seq_cst, align 8
  %f2 = call i1 @fresh(i64 %s2, i64 %seen)
  %e = load atomic i64, ptr %stop seq_cst, align 8
  %ended = icmp ne i64 %e, 0
  %up = or i1 %f2, %ended
  br i1 %up, label %awake, label %wait
wait:
  call i32 @pthread_cond_wait(ptr %c, ptr %m)
  %s4 = load atomic i64, ptr %pool seq_cst, align 8
  %f4 = call i1 @fresh(i64 %s4, i64 %seen)
  %e4 = load atomic i64, ptr %stop seq_cst, align 8
  %ended4 = icmp ne i64 %e4, 0
  %up4 = or i1 %f4, %ended4
  br i1 %up4, label %check, label %late
; the job was done by the time that this worker was awake: it is there for the next one, if that comes soon
late:
  atomicrmw sub ptr %sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %m)
  br label %idle
awake:
  atomicrmw sub ptr %sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %m)
  br i1 %ended, label %leave, label %meet
; on the processor of the launching thread a worker would only take turns with it
meet:
  %s3 = phi i64 [ %s, %spin ], [ %s2, %awake ]
  %here1 = call i32 @cpu()
  %there1 = load atomic i32, ptr %pool[i8 $CPU] monotonic, align 4
  %same1 = icmp $shares i32 %here1, %there1
  br i1 %same1, label %decline, label %enter
decline:
  %declined = lshr i64 %s3, 20
  call i32 @sched_yield()
  br label %spin
enter:
  %in = add i64 %s3, 1
  %pair = cmpxchg ptr %pool, i64 %s3, i64 %in seq_cst seq_cst
  %ok = extractvalue { i64, i1 } %pair, 1
  br i1 %ok, label %work, label %spin
work:
  %number = lshr i64 %s3, 20
  call i32 @feclearexcept(i32 $all)
  %fn = load ptr, ptr %pool[i8 $JOB]
  %many = icmp eq ptr %fn, null
  br i1 %many, label %iterations, label %once
iterations:
  %flags0 = call i32 @iterations(ptr %pool, i64 %me, ptr null)
  %softs = or i32 %flags0, $came
  br label %worked
once:
  %soft1 = call i32 @share(ptr %pool, i64 %me, ptr %mine)
  br label %worked
worked:
  %soft = phi i32 [ %softs, %iterations ], [ %soft1, %once ]
  %hard = call i32 @raised()
  %both = or i32 %soft, %hard
  atomicrmw or ptr %flags, i32 %both seq_cst
  atomicrmw sub ptr %pool, i64 1 seq_cst
  br label %idle
leave:
  ret void
}
"""


def exceptions() -> tuple[int, int, int, int]:
    """Return the values of C's FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW and FE_UNDERFLOW on this processor."""
    if platform.machine() in ("arm64", "aarch64"):
        return 1, 2, 4, 8
    if platform.machine() in ("x86_64", "AMD64"):
        return 1, 4, 8, 16
    raise RuntimeError(f"floating-point flags of {platform.machine()} processors are not known")


def source() -> str:
    """Return the LLVM text of the pool for this processor and operating system."""
    invalid, divide, overflow, underflow = exceptions()
    if platform.machine() in ("arm64", "aarch64"):
        pause = ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)")
    else:
        pause = ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()")
    linux = platform.system() == "Linux"
    words: dict[str, Any] = {
        **OFFSETS,
        # elsewhere the processor that a thread runs on is unknown, and all numbers are 0
        "stop": STOP, "slice": 256 << GRAIN_BITS, "stopped": STOPPED,
        "declare_cpu": "declare i32 @sched_getcpu()" if linux else "",
        "cpu": "call i32 @sched_getcpu()" if linux else "add i32 0, 0",
        "shares": "eq" if linux else "ne",
        "declare_pause": pause[0], "pause": pause[1],
        "thick": _THICK_NS, "late": _LATE_NS, "cool": _COOL_NS, "large": _WORTH_WAKING << GRAIN_BITS,
        "monotonic": 6 if platform.system() == "Darwin" else 1, "grain": GRAIN_BITS, "finer": _FINER_BITS,
        "repaid": _REPAID, "longest": _LONGEST_NS, "calm": _CALM_NS, "long": _LONG << GRAIN_BITS,
        "long_grains": _LONG, "came": 1 << 30, "tries": 100,
        "spin": _SPIN_NS, "longer": _LONGER_NS,
        "worth_waking": _WORTH_WAKING, "brief": _BRIEF, "few": _FEW,
        "invalid": invalid, "divide": divide, "overflow": overflow, "underflow": underflow,
        "all": invalid | divide | overflow | underflow,
    }  # fmt: skip
    text = string.Template(_SOURCE + LAUNCH + PHASES + LOOP_LAUNCHES).substitute(words)
    return expand_addresses(text)
