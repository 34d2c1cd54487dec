"""LLVM text, the second part of `pool`'s: the launch of a kernel on one thread or on the thread pool.

A phase runs on as many threads as it has grains of work.  Jobs that cost no more than waking a thread
wake sleeping workers only where jobs are frequent.  The launching thread measures what sharing
gains: the time of a job compared with the time it would take alone, at the speed of this thread's own chunks.
While that is a loss, because other programs use the processors, it runs jobs alone.
"""

from __future__ import annotations

LAUNCH = """
; how many threads a phase is worth: its grains of work, but not above the threads and the extent
define internal i64 @worth(i64 %extent, i64 %work, i64 %threads) {
  %total = mul i64 %extent, %work
  %grains = lshr i64 %total, $grain
  %a = call i64 @llvm.smin.i64(i64 %grains, i64 %threads)
  %b = call i64 @llvm.smin.i64(i64 %a, i64 %extent)
  ret i64 %b
}
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

; a phase for so many owners: how many chunks each of them has, and how long those are
define internal { i64, i64 } @cut(i64 %extent, i64 %work, i64 %owners) {
  %total = mul i64 %extent, %work
  %grains = lshr i64 %total, $grain
  %mine = udiv i64 %grains, %owners
  %half = lshr i64 %mine, 1
  %long = lshr i64 %mine, 8
  %most = call i64 @llvm.smax.i64(i64 %long, i64 8)
  %few = call i64 @llvm.smin.i64(i64 %half, i64 %most)
  %each = call i64 @llvm.smax.i64(i64 %few, i64 1)
  %n = mul i64 %owners, %each
  %nm = sub i64 %n, 1
  %em = add i64 %extent, %nm
  %even = udiv i64 %em, %n
  %e63 = add i64 %even, 63
  %round = and i64 %e63, -64
  %big = icmp sge i64 %even, 256
  %chunk = select i1 %big, i64 %round, i64 %even
  %r0 = insertvalue { i64, i64 } poison, i64 %each, 0
  %r1 = insertvalue { i64, i64 } %r0, i64 %chunk, 1
  ret { i64, i64 } %r1
}

; a chunk of a phase, unless the run is to be stopped
define internal i32 @run(ptr %fn, ptr %args, i64 %lo, i64 %hi) {
  %stop = call i1 @stopped()
  br i1 %stop, label %leave, label %go
go:
  %flags = call i32 %fn(ptr %args, i64 %lo, i64 %hi)
  ret i32 %flags
leave:
  ret i32 0
}

; a phase on this thread alone, in slices of some ten milliseconds
define internal i32 @alone(ptr %fn, ptr %args, i64 %extent, i64 %work) {
entry:
  %least = call i64 @llvm.smax.i64(i64 %work, i64 1)
  %some = udiv i64 $slice, %least
  %more = add i64 %some, 64
  %slice = and i64 %more, -64
  br label %next
next:
  %lo = phi i64 [ 0, %entry ], [ %hi, %next ]
  %flags0 = phi i32 [ 0, %entry ], [ %flags1, %next ]
  %end = add i64 %lo, %slice
  %hi = call i64 @llvm.smin.i64(i64 %end, i64 %extent)
  %own = call i32 @run(ptr %fn, ptr %args, i64 %lo, i64 %hi)
  %flags1 = or i32 %flags0, %own
  %left = icmp slt i64 %hi, %extent
  br i1 %left, label %next, label %done
done:
  ret i32 %flags1
}

; a new job, which is written at its place, for all workers: those that sleep are woken if it is large, or
; jobs come thick, which is the result; it is %t o'clock
define internal i1 @open(ptr %pool, i64 %owners, i1 %large, i64 %t) {
entry:
  store atomic i32 0, ptr %pool[i8 $FLAGS] seq_cst, align 4
  %next = getelementptr i8, ptr %pool, i64 $NEXT
  br label %reset
reset:
  %i = phi i64 [ 0, %entry ], [ %i1, %reset ]
  %line = mul i64 %i, 64
  store i64 0, ptr %next[i8 %line]
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %owners
  br i1 %more, label %reset, label %begin
begin:
  %s = load atomic i64, ptr %pool seq_cst, align 8
  %number = lshr i64 %s, 20
  %number1 = add i64 %number, 1
  %fresh = shl i64 %number1, 20
  store atomic i64 %fresh, ptr %pool seq_cst, align 8
  %lastp = getelementptr i8, ptr %pool, i64 $LAST
  %last = load i64, ptr %lastp
  store i64 %t, ptr %lastp
  %cpu = call i32 @cpu()
  store atomic i32 %cpu, ptr %pool[i8 $CPU] monotonic, align 4
  %ago = sub i64 %t, %last
  %thick = icmp slt i64 %ago, $thick
  %lately = call i64 @llvm.smin.i64(i64 %ago, i64 $thick)
  call void @went_well(ptr %pool, i64 %lately)
  %z = load atomic i64, ptr %pool[i8 $SLEEPERS] seq_cst, align 8
  %any = icmp sgt i64 %z, 0
  %worthy = or i1 %large, %thick
  %wanted = and i1 %any, %worthy
  br i1 %wanted, label %rouse, label %opened
rouse:
  %patience = select i1 %thick, i64 $longer, i64 $spin
  store atomic i64 %patience, ptr %pool[i8 $PATIENCE] monotonic, align 8
  call void @wake(ptr %pool)
  br label %opened
opened:
  ret i1 %wanted
}

; no worker may enter the job any more; wait for those that are inside, and give their flags.  %since: see
; `waiting`.
define internal i32 @close(ptr %pool, ptr %since) {
entry:
  store i64 0, ptr %since
  atomicrmw or ptr %pool, i64 524288 seq_cst
  br label %wait
wait:
  %spins = phi i64 [ 0, %entry ], [ %spins1, %again ]
  %now = load atomic i64, ptr %pool seq_cst, align 8
  %inside = and i64 %now, 524287
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %patience
patience:
  %spins1 = add i64 %spins, 1
  %some = and i64 %spins1, 15
  %due = icmp eq i64 %some, 0
  br i1 %due, label %clock, label %again
clock:
  %waited = call i64 @waiting(ptr %since)
  %long = icmp sge i64 %waited, $late
  br i1 %long, label %yield, label %again
yield:
  call i32 @sched_yield()
  br label %again
again:
  call void @pause()
  br label %wait
done:
  %theirs = load atomic i32, ptr %pool[i8 $FLAGS] seq_cst, align 4
  ret i32 %theirs
}

; for how long has a thread waited for others?  %since holds when it asked first, or 0
define internal i64 @waiting(ptr %since) {
  %t = call i64 @now()
  %s = load i64, ptr %since
  %first = icmp eq i64 %s, 0
  %begun = select i1 %first, i64 %t, i64 %s
  store i64 %begun, ptr %since
  %waited = sub i64 %t, %begun
  ret i64 %waited
}

; time in which jobs were shared
define internal void @went_well(ptr %pool, i64 %time) {
  %goodp = getelementptr i8, ptr %pool, i64 $GOOD
  %good = load i64, ptr %goodp
  %more = add i64 %good, %time
  store i64 %more, ptr %goodp
  ret void
}

; Sharing a job of %took nanoseconds has cost the launching thread so many, or gained some.  If it has lost
; too much, jobs run alone for a while, which is longer each time unless sharing was good for some time.
define internal void @judge(ptr %pool, i64 %lost, i64 %took, i64 %now) {
entry:
  %debtp = getelementptr i8, ptr %pool, i64 $DEBT
  %before = load i64, ptr %debtp
  %sum = add i64 %before, %lost
  %debt = call i64 @llvm.smax.i64(i64 %sum, i64 0)
  store i64 %debt, ptr %debtp
  %part = sdiv i64 %took, 8
  %most = call i64 @llvm.smax.i64(i64 %part, i64 $late)
  %much = icmp sgt i64 %debt, %most
  br i1 %much, label %stop, label %end
stop:
  store i64 0, ptr %debtp
  %goodp = getelementptr i8, ptr %pool, i64 $GOOD
  %shared = load i64, ptr %goodp
  store i64 0, ptr %goodp
  %calm = icmp sgt i64 %shared, $calm
  %restp = getelementptr i8, ptr %pool, i64 $REST
  %last = load i64, ptr %restp
  %twice = shl i64 %last, 1
  %longer = select i1 %calm, i64 $cool, i64 %twice
  %worth = mul i64 %debt, $repaid
  %both = call i64 @llvm.smax.i64(i64 %longer, i64 %worth)
  %least = call i64 @llvm.smax.i64(i64 %both, i64 $cool)
  %rest = call i64 @llvm.smin.i64(i64 %least, i64 $longest)
  store i64 %rest, ptr %restp
  %until = add i64 %now, %rest
  store atomic i64 %until, ptr %pool[i8 $COOL] monotonic, align 8
  br label %end
end:
  ret void
}

; what a job has cost since %t, of whose %chunks the launching thread has done %count from %begun until it had
; to wait for others, which was at %since, or until now, where that is 0
define internal void @account(ptr %pool, i64 %t, i64 %begun, i64 %since, i64 %count, i64 %chunks) {
entry:
  %now = call i64 @now()
  %took = sub i64 %now, %t
  %none = icmp eq i64 %since, 0
  %ended = select i1 %none, i64 %now, i64 %since
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %rate, label %idle
rate:
  %own = sub i64 %ended, %begun
  %part = udiv i64 %own, %count
  %alone = mul i64 %part, %chunks
  %cost = sub i64 %took, %alone
  br label %say
idle:  ; it had no processor meanwhile, and has waited for the one that took all
  %waited = sub i64 %now, %ended
  br label %say
say:
  %lost = phi i64 [ %cost, %rate ], [ %waited, %idle ]
  call void @judge(ptr %pool, i64 %lost, i64 %took, i64 %now)
  ret void
}

define internal i32 @parallel(ptr %pool, ptr %fn, ptr %args, i64 %extent, i64 %work, i64 %owners, i64 %t) {
entry:
  %count = alloca i64
  %since = alloca i64
  %cut = call { i64, i64 } @cut(i64 %extent, i64 %work, i64 %owners)
  %each = extractvalue { i64, i64 } %cut, 0
  %chunk = extractvalue { i64, i64 } %cut, 1
  %job = getelementptr i8, ptr %pool, i64 $JOB
  store ptr %fn, ptr %job
  store ptr %args, ptr %job[i64 1]
  store i64 %extent, ptr %job[i64 2]
  store i64 %chunk, ptr %job[i64 3]
  store i64 %each, ptr %job[i64 4]
  store i64 %owners, ptr %job[i64 5]
  %total = mul i64 %extent, %work
  %large = icmp uge i64 %total, $large
  %woken = call i1 @open(ptr %pool, i64 %owners, i1 %large, i64 %t)
  br i1 %woken, label %clock, label %begin
clock:
  %t1 = call i64 @now()
  br label %begin
begin:
  %begun = phi i64 [ %t, %entry ], [ %t1, %clock ]
  store i64 0, ptr %count
  %soft = call i32 @share(ptr %pool, i64 0, ptr %count)
  %theirs = call i32 @close(ptr %pool, ptr %since)
  %both = or i32 %soft, %theirs
  %asked = load i64, ptr %since
  %late = icmp ne i64 %asked, 0
  %dear = or i1 %woken, %late
  br i1 %dear, label %costs, label %free
costs:
  %done = load i64, ptr %count
  %filled = add i64 %extent, %chunk
  %filled1 = sub i64 %filled, 1
  %chunks = udiv i64 %filled1, %chunk
  call void @account(ptr %pool, i64 %t, i64 %begun, i64 %asked, i64 %done, i64 %chunks)
  ret i32 %both
free:  ; it has cost nothing: an eighth of the losses before is made up for
  %debtp = getelementptr i8, ptr %pool, i64 $DEBT
  %debt = load i64, ptr %debtp
  %eighth = ashr i64 %debt, 3
  %left = sub i64 %debt, %eighth
  store i64 %left, ptr %debtp
  ret i32 %both
}

; %packed: the phases' addresses, how many they are, extent and work of each, then the arguments.
; %pool: null to run alone; or 1 if there is none yet: the result is -1 then if a pool is worth its while
define i32 @dc_launch(ptr %pool, ptr %packed) {
entry:
  %table = load ptr, ptr %packed
  %phases = load i64, ptr %packed[i64 1]
  %pairs = getelementptr i64, ptr %packed, i64 2
  %args = getelementptr { i64, i64 }, ptr %pairs, i64 %phases
  %alone = icmp eq ptr %pool, null
  br i1 %alone, label %begin, label %which
which:
  %ask = icmp eq ptr %pool, inttoptr (i64 1 to ptr)
  br i1 %ask, label %survey, label %given
given:
  %running = load i64, ptr %pool[i8 $THREADS]
  br label %begin
survey:
  %q = phi i64 [ 0, %which ], [ %q1, %surveyed ]
  %qend = icmp eq i64 %q, %phases
  br i1 %qend, label %begin, label %surveyed
surveyed:
  %qp = getelementptr { i64, i64 }, ptr %pairs, i64 %q
  %qe = load i64, ptr %qp
  %qw = load i64, ptr %qp[i64 1]
  %qn = call i64 @worth(i64 %qe, i64 %qw, i64 2)
  %q1 = add i64 %q, 1
  %qbig = icmp sgt i64 %qn, 1
  br i1 %qbig, label %want, label %survey
want:
  ret i32 -1
begin:
  %threads = phi i64 [ 1, %entry ], [ %running, %given ], [ 1, %survey ]
  call i32 @feclearexcept(i32 $all)
  br label %phase
phase:
  %k = phi i64 [ 0, %begin ], [ %k1, %step ]
  %soft0 = phi i32 [ 0, %begin ], [ %soft2, %step ]
  %end = icmp eq i64 %k, %phases
  br i1 %end, label %finish, label %look
look:
  %kp = getelementptr { i64, i64 }, ptr %pairs, i64 %k
  %extent = load i64, ptr %kp
  %work = load i64, ptr %kp[i64 1]
  %fn = load ptr, ptr %table[ptr %k]
  %some = icmp sgt i64 %extent, 0
  br i1 %some, label %weigh, label %step
weigh:
  %n = call i64 @worth(i64 %extent, i64 %work, i64 %threads)
  %big = icmp sgt i64 %n, 1
  br i1 %big, label %consider, label %serial
consider:
  %all = mul i64 %extent, %work
  %long = icmp uge i64 %all, $long
  %until = load atomic i64, ptr %pool[i8 $COOL] monotonic, align 8
  %t = call i64 @now()
  %warm = icmp sge i64 %t, %until
  %worthy = or i1 %long, %warm
  br i1 %worthy, label %claim, label %serial
claim:
  %busy = getelementptr i8, ptr %pool, i64 $BUSY
  %pair = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %together, label %serial
together:
  %pf = call i32 @parallel(ptr %pool, ptr %fn, ptr %args, i64 %extent, i64 %work, i64 %n, i64 %t)
  store atomic i64 0, ptr %busy seq_cst, align 8
  br label %step
serial:
  %sf = call i32 @alone(ptr %fn, ptr %args, i64 %extent, i64 %work)
  br label %step
step:
  %rf = phi i32 [ 0, %look ], [ %pf, %together ], [ %sf, %serial ]
  %soft2 = or i32 %soft0, %rf
  %k1 = add i64 %k, 1
  br label %phase
finish:
  %hard = call i32 @raised()
  %flags = or i32 %soft0, %hard
  %stop = call i1 @stopped()
  %mark = select i1 %stop, i32 $stopped, i32 0
  %said = or i32 %flags, %mark
  ret i32 %said
}
"""
