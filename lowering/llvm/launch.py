"""The launch of a kernel, alone or on the thread pool, as LLVM text: the second half of `pool`'s.

A phase runs on as many threads as it has grains of work.  Jobs so small that waking a thread costs as much
as they do take sleeping workers only where jobs come thick, and run alone for a while after a worker kept one
waiting.
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

define internal i32 @parallel(ptr %pool, ptr %fn, ptr %args, i64 %extent, i64 %work, i64 %owners, i64 %t) {
entry:
  %total = mul i64 %extent, %work
  %grains = lshr i64 %total, $grain
  %mine = udiv i64 %grains, %owners
  %half = lshr i64 %mine, 1
  %few = call i64 @llvm.smin.i64(i64 %half, i64 8)
  %each = call i64 @llvm.smax.i64(i64 %few, i64 1)
  %n = mul i64 %owners, %each
  %nm = sub i64 %n, 1
  %em = add i64 %extent, %nm
  %even = udiv i64 %em, %n
  %e63 = add i64 %even, 63
  %round = and i64 %e63, -64
  %big = icmp sge i64 %even, 256
  %chunk = select i1 %big, i64 %round, i64 %even
  %job = getelementptr i8, ptr %pool, i64 $JOB
  store ptr %fn, ptr %job
  %p1 = getelementptr i64, ptr %job, i64 1
  store ptr %args, ptr %p1
  %p2 = getelementptr i64, ptr %job, i64 2
  store i64 %extent, ptr %p2
  %p3 = getelementptr i64, ptr %job, i64 3
  store i64 %chunk, ptr %p3
  %p4 = getelementptr i64, ptr %job, i64 4
  store i64 %each, ptr %p4
  %p5 = getelementptr i64, ptr %job, i64 5
  store i64 %owners, ptr %p5
  %flags = getelementptr i8, ptr %pool, i64 $FLAGS
  store atomic i32 0, ptr %flags seq_cst, align 4
  %next = getelementptr i8, ptr %pool, i64 $NEXT
  br label %reset
reset:
  %i = phi i64 [ 0, %entry ], [ %i1, %reset ]
  %line = mul i64 %i, 64
  %slot = getelementptr i8, ptr %next, i64 %line
  store i64 0, ptr %slot
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %owners
  br i1 %more, label %reset, label %open
open:
  %s = load atomic i64, ptr %pool seq_cst, align 8
  %number = lshr i64 %s, 20
  %number1 = add i64 %number, 1
  %fresh = shl i64 %number1, 20
  store atomic i64 %fresh, ptr %pool seq_cst, align 8
  %lastp = getelementptr i8, ptr %pool, i64 $LAST
  %last = load i64, ptr %lastp
  store i64 %t, ptr %lastp
  %cpu = call i32 @cpu()
  %cpup = getelementptr i8, ptr %pool, i64 $CPU
  store atomic i32 %cpu, ptr %cpup monotonic, align 4
  %ago = sub i64 %t, %last
  %thick = icmp slt i64 %ago, $thick
  %sleepers = getelementptr i8, ptr %pool, i64 $SLEEPERS
  %z = load atomic i64, ptr %sleepers seq_cst, align 8
  %any = icmp sgt i64 %z, 0
  %large = icmp uge i64 %grains, $worth_waking
  %worthy = or i1 %large, %thick
  %wanted = and i1 %any, %worthy
  br i1 %wanted, label %rouse, label %go
rouse:
  call void @wake(ptr %pool)
  br label %go
go:
  %soft = call i32 @share(ptr %pool, i64 0)
  atomicrmw or ptr %pool, i64 524288 seq_cst
  br label %wait
wait:
  %spins = phi i64 [ 0, %go ], [ %spins1, %again ]
  %now = load atomic i64, ptr %pool seq_cst, align 8
  %inside = and i64 %now, 524287
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %patience
patience:
  %spins1 = add i64 %spins, 1
  %long = icmp sgt i64 %spins1, 1000
  br i1 %long, label %yield, label %relax
relax:
  call void @pause()
  br label %again
yield:
  call i32 @sched_yield()
  %late = call i64 @now()
  %until = add i64 %late, $cool
  %coolp = getelementptr i8, ptr %pool, i64 $COOL
  store atomic i64 %until, ptr %coolp monotonic, align 8
  br label %again
again:
  br label %wait
done:
  %theirs = load atomic i32, ptr %flags seq_cst, align 4
  %both = or i32 %soft, %theirs
  ret i32 %both
}

; %packed: the phases' addresses, how many they are, extent and work of each, then the arguments.
; %pool: null to run alone; or 1 if there is none yet: the result is -1 then if a pool is worth its while
define i32 @dc_launch(ptr %pool, ptr %packed) {
entry:
  %table = load ptr, ptr %packed
  %numberp = getelementptr i64, ptr %packed, i64 1
  %phases = load i64, ptr %numberp
  %pairs = getelementptr i64, ptr %packed, i64 2
  %args = getelementptr { i64, i64 }, ptr %pairs, i64 %phases
  %alone = icmp eq ptr %pool, null
  br i1 %alone, label %begin, label %which
which:
  %ask = icmp eq ptr %pool, inttoptr (i64 1 to ptr)
  br i1 %ask, label %survey, label %given
given:
  %size = getelementptr i8, ptr %pool, i64 $THREADS
  %running = load i64, ptr %size
  br label %begin
survey:
  %q = phi i64 [ 0, %which ], [ %q1, %surveyed ]
  %qend = icmp eq i64 %q, %phases
  br i1 %qend, label %begin, label %surveyed
surveyed:
  %qp = getelementptr { i64, i64 }, ptr %pairs, i64 %q
  %qe = load i64, ptr %qp
  %qwp = getelementptr i64, ptr %qp, i64 1
  %qw = load i64, ptr %qwp
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
  %wp = getelementptr i64, ptr %kp, i64 1
  %work = load i64, ptr %wp
  %fp = getelementptr ptr, ptr %table, i64 %k
  %fn = load ptr, ptr %fp
  %some = icmp sgt i64 %extent, 0
  br i1 %some, label %weigh, label %step
weigh:
  %n = call i64 @worth(i64 %extent, i64 %work, i64 %threads)
  %big = icmp sgt i64 %n, 1
  br i1 %big, label %consider, label %serial
consider:
  %all = mul i64 %extent, %work
  %large = icmp uge i64 %all, $large
  %coolp = getelementptr i8, ptr %pool, i64 $COOL
  %until = load atomic i64, ptr %coolp monotonic, align 8
  %t = call i64 @now()
  %warm = icmp sge i64 %t, %until
  %worthy = or i1 %large, %warm
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
  %sf = call i32 %fn(ptr %args, i64 0, i64 %extent)
  br label %step
step:
  %rf = phi i32 [ 0, %look ], [ %pf, %together ], [ %sf, %serial ]
  %soft2 = or i32 %soft0, %rf
  %k1 = add i64 %k, 1
  br label %phase
finish:
  %hard = call i32 @raised()
  %flags = or i32 %soft0, %hard
  ret i32 %flags
}

; %table: for each of the launches its packed arguments, what is added to them after each turn, how many
; numbers that is, and the flags that it may raise
define i32 @dc_repeat(ptr %pool, i64 %turns, i64 %launches, ptr %table) {
entry:
  br label %turn
turn:
  %t = phi i64 [ 0, %entry ], [ %t1, %turned ]
  %flags0 = phi i32 [ 0, %entry ], [ %flags1, %turned ]
  %over = icmp sge i64 %t, %turns
  br i1 %over, label %finish, label %launch
launch:
  %k = phi i64 [ 0, %turn ], [ %k1, %launched ]
  %flags1 = phi i32 [ %flags0, %turn ], [ %flags2, %launched ]
  %all = icmp sge i64 %k, %launches
  br i1 %all, label %turned, label %run
run:
  %row = getelementptr [4 x i64], ptr %table, i64 %k
  %packed = load ptr, ptr %row
  %stepp = getelementptr i64, ptr %row, i64 1
  %step = load ptr, ptr %stepp
  %sizep = getelementptr i64, ptr %row, i64 2
  %size = load i64, ptr %sizep
  %maskp = getelementptr i64, ptr %row, i64 3
  %mask64 = load i64, ptr %maskp
  %mask = trunc i64 %mask64 to i32
  %raised = call i32 @dc_launch(ptr %pool, ptr %packed)
  %own = and i32 %raised, %mask
  %flags2 = or i32 %flags1, %own
  br label %add
add:
  %w = phi i64 [ 0, %run ], [ %w1, %more ]
  %some = icmp slt i64 %w, %size
  br i1 %some, label %more, label %launched
more:
  %at = getelementptr i64, ptr %packed, i64 %w
  %by = getelementptr i64, ptr %step, i64 %w
  %old = load i64, ptr %at
  %ahead = load i64, ptr %by
  %new = add i64 %old, %ahead
  store i64 %new, ptr %at
  %w1 = add i64 %w, 1
  br label %add
launched:
  %k1 = add i64 %k, 1
  br label %launch
turned:
  %t1 = add i64 %t, 1
  br label %turn
finish:
  ret i32 %flags0
}
"""
