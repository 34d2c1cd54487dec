"""All turns of a loop of launches as one job of the thread pool, as LLVM text: the third part of `pool`'s.

Each thread goes through all phases of all turns by itself.  It computes the arguments of a turn, takes chunks
of the phase, its own first, and waits until those of all threads are done; so between two phases one counter
passes from one core to another, where a launch would open and close a job.  A phase has a number, and who
takes a chunk says of which phase: a thread that comes late, or was kept from running, takes nothing of what
is done, and goes on.  Workers may leave, and none need come: others take their chunks.
"""

from __future__ import annotations

TURNS = """
; one phase: the function, its arguments, the extent, the owners, how many chunks each of them has, and how
; long these are
%phase = type { ptr, ptr, i64, i64, i64, i64 }
; the job: turns, launches, their table (see `dc_repeat`), the first turn, threads, numbers of the longest
; launch
%loop = type { i64, i64, ptr, i64, i64, i64 }

; the packed arguments of a launch in a turn: those of the first turn and so many steps
define internal void @advance(ptr %to, ptr %row, i64 %turn) {
entry:
  %from = load ptr, ptr %row
  %stepp = getelementptr i64, ptr %row, i64 1
  %step = load ptr, ptr %stepp
  %sizep = getelementptr i64, ptr %row, i64 2
  %size = load i64, ptr %sizep
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %fp = getelementptr i64, ptr %from, i64 %k
  %f = load i64, ptr %fp
  %sp = getelementptr i64, ptr %step, i64 %k
  %s = load i64, ptr %sp
  %far = mul i64 %s, %turn
  %now = add i64 %f, %far
  %tp = getelementptr i64, ptr %to, i64 %k
  store i64 %now, ptr %tp
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %size
  br i1 %more, label %next, label %end
end:
  ret void
}

; take the chunks of an owner that are left in phase %number, and do them: how many, and the flags
define internal { i64, i32 } @take(ptr %pool, ptr %phase, i64 %owner, i64 %number) {
entry:
  %fn = load ptr, ptr %phase
  %argp = getelementptr %phase, ptr %phase, i64 0, i32 1
  %args = load ptr, ptr %argp
  %extp = getelementptr %phase, ptr %phase, i64 0, i32 2
  %extent = load i64, ptr %extp
  %eachp = getelementptr %phase, ptr %phase, i64 0, i32 4
  %each = load i64, ptr %eachp
  %chunkp = getelementptr %phase, ptr %phase, i64 0, i32 5
  %chunk = load i64, ptr %chunkp
  %last = sub i64 %each, 1
  %ownersp = getelementptr %phase, ptr %phase, i64 0, i32 3
  %owners = load i64, ptr %ownersp
  %chunks = mul i64 %owners, %each
  ; Of a large phase what was used last is nearest: every other one goes back.
  %parity = and i64 %number, 1
  %even_number = icmp eq i64 %parity, 0
  %many = icmp sge i64 %each, 8
  %back = and i1 %many, %even_number
  %line = mul i64 %owner, 64
  %at = add i64 %line, $NEXT
  %next = getelementptr i8, ptr %pool, i64 %at
  %base = mul i64 %owner, %each
  %none = shl i64 %number, 20
  br label %look
look:
  %count = phi i64 [ 0, %entry ], [ %count, %claim ], [ %count1, %done ]
  %soft = phi i32 [ 0, %entry ], [ %soft, %claim ], [ %soft1, %done ]
  %seen = load atomic i64, ptr %next seq_cst, align 8
  ; where nobody has taken any chunk of this phase, that is of an earlier one
  %taken = call i64 @llvm.smax.i64(i64 %seen, i64 %none)
  %k = sub i64 %taken, %none
  %left = icmp slt i64 %k, %each
  br i1 %left, label %claim, label %end
claim:
  %more = add i64 %taken, 1
  %pair = cmpxchg ptr %next, i64 %seen, i64 %more seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %clip, label %look
clip:
  %count1 = add i64 %count, 1
  %rk = sub i64 %last, %k
  %kk = select i1 %back, i64 %rk, i64 %k
  %c = add i64 %base, %kk
  %c1 = add i64 %c, 1
  %long = icmp sge i64 %chunk, 256
  br i1 %long, label %round, label %even
round:
  %lor = mul i64 %c, %chunk
  %hir = add i64 %lor, %chunk
  br label %cut
even:
  %loe0 = mul i64 %c, %extent
  %loe = udiv i64 %loe0, %chunks
  %hie0 = mul i64 %c1, %extent
  %hie = udiv i64 %hie0, %chunks
  br label %cut
cut:
  %lo = phi i64 [ %lor, %round ], [ %loe, %even ]
  %hi0 = phi i64 [ %hir, %round ], [ %hie, %even ]
  %hi = call i64 @llvm.smin.i64(i64 %extent, i64 %hi0)
  %in = icmp slt i64 %lo, %hi
  br i1 %in, label %run, label %done
run:
  %f = call i32 %fn(ptr %args, i64 %lo, i64 %hi)
  br label %done
done:
  %own = phi i32 [ 0, %cut ], [ %f, %run ]
  %soft1 = or i32 %soft, %own
  br label %look
end:
  %r0 = insertvalue { i64, i32 } poison, i64 %count, 0
  %r1 = insertvalue { i64, i32 } %r0, i32 %soft, 1
  ret { i64, i32 } %r1
}

; add to the chunks that are done: are these all until now?
define internal i1 @add_done(ptr %pool, i64 %count, i64 %target) {
entry:
  %donep = getelementptr i8, ptr %pool, i64 $DONE
  %any = icmp ne i64 %count, 0
  br i1 %any, label %add, label %ask
add:
  %old = atomicrmw add ptr %donep, i64 %count seq_cst
  %new = add i64 %old, %count
  br label %say
ask:
  %now = load atomic i64, ptr %donep seq_cst, align 8
  br label %say
say:
  %total = phi i64 [ %new, %add ], [ %now, %ask ]
  %all = icmp sge i64 %total, %target
  ret i1 %all
}

; wait until all chunks are done, or, if not %patient, for a moment only
define internal i1 @all_done(ptr %pool, i64 %me, i64 %target, i1 %patient) {
entry:
  %donep = getelementptr i8, ptr %pool, i64 $DONE
  %workerp = icmp ne i64 %me, 0
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ %spins1, %relax ], [ %spins1, %yield ], [ %spins1, %late ]
  %now = load atomic i64, ptr %donep seq_cst, align 8
  %all = icmp sge i64 %now, %target
  br i1 %all, label %yes, label %patience
patience:
  %spins1 = add i64 %spins, 1
  %brief = icmp slt i64 %spins1, $brief
  br i1 %brief, label %relax, label %longer
longer:
  br i1 %patient, label %often, label %no
often:
  %some = and i64 %spins1, 15
  %due = icmp eq i64 %some, 0
  br i1 %due, label %who, label %relax
who:
  %long = icmp sgt i64 %spins1, 1000
  br i1 %workerp, label %worker, label %launching
worker:
  %here = call i32 @cpu()
  %therep = getelementptr i8, ptr %pool, i64 $CPU
  %there = load atomic i32, ptr %therep monotonic, align 4
  %same = icmp $shares i32 %here, %there
  %crowded = or i1 %same, %long
  br i1 %crowded, label %yield, label %relax
yield:
  call i32 @sched_yield()
  br label %look
launching:
  br i1 %long, label %late, label %relax
late:
  call void @kept_waiting(ptr %pool)
  br label %look
relax:
  call void @pause()
  br label %look
yes:
  ret i1 true
no:
  ret i1 false
}

; a thread's part in a phase, after which %target chunks are done in all: its flags
define internal i32 @part(ptr %pool, i64 %me, ptr %phase, i64 %number, i64 %target) {
entry:
  %ownersp = getelementptr %phase, ptr %phase, i64 0, i32 3
  %owners = load i64, ptr %ownersp
  %owner = icmp slt i64 %me, %owners
  br i1 %owner, label %own, label %others
own:
  %mine = call { i64, i32 } @take(ptr %pool, ptr %phase, i64 %me, i64 %number)
  %count0 = extractvalue { i64, i32 } %mine, 0
  %soft0 = extractvalue { i64, i32 } %mine, 1
  %all0 = call i1 @add_done(ptr %pool, i64 %count0, i64 %target)
  br i1 %all0, label %end, label %others
others:
  %soft1 = phi i32 [ 0, %entry ], [ %soft0, %own ]
  ; the launching thread need not wait for anybody if it is alone
  %state = load atomic i64, ptr %pool seq_cst, align 8
  %inside = and i64 %state, 524287
  %everybody = add i64 %inside, %me
  %alone = icmp eq i64 %everybody, 0
  br i1 %alone, label %help, label %moment
moment:
  %soon = call i1 @all_done(ptr %pool, i64 %me, i64 %target, i1 false)
  br i1 %soon, label %end, label %help
help:
  %i = phi i64 [ 0, %others ], [ 0, %moment ], [ %i1, %help ]
  %count = phi i64 [ 0, %others ], [ 0, %moment ], [ %count1, %help ]
  %soft2 = phi i32 [ %soft1, %others ], [ %soft1, %moment ], [ %soft3, %help ]
  %i1 = add i64 %i, 1
  %sum = add i64 %me, %i1
  %victim = urem i64 %sum, %owners
  %theirs = call { i64, i32 } @take(ptr %pool, ptr %phase, i64 %victim, i64 %number)
  %c = extractvalue { i64, i32 } %theirs, 0
  %count1 = add i64 %count, %c
  %s = extractvalue { i64, i32 } %theirs, 1
  %soft3 = or i32 %soft2, %s
  %more = icmp slt i64 %i1, %owners
  br i1 %more, label %help, label %rest
rest:
  %all = call i1 @add_done(ptr %pool, i64 %count1, i64 %target)
  br i1 %all, label %end, label %wait
wait:
  call i1 @all_done(ptr %pool, i64 %me, i64 %target, i1 true)
  br label %end
end:
  %soft = phi i32 [ %soft0, %own ], [ %soft1, %moment ], [ %soft3, %rest ], [ %soft3, %wait ]
  ret i32 %soft
}

; what the hardware has raised since this was asked for last
define internal i32 @fresh_flags() {
entry:
  %hard = call i32 @raised()
  %any = icmp ne i32 %hard, 0
  br i1 %any, label %clear, label %end
clear:
  call i32 @feclearexcept(i32 $all)
  br label %end
end:
  ret i32 %hard
}

; a thread's part in a loop: its flags.  The launching thread, which is number 0 and has %reached, leaves
; before the end, and says in which turn, where a worker kept it waiting or no phase was worth several
; threads.
define internal i32 @turns(ptr %pool, i64 %me, ptr %reached) {
entry:
  %job = getelementptr i8, ptr %pool, i64 $JOB
  %loopp = getelementptr i64, ptr %job, i64 1
  %loop = load ptr, ptr %loopp
  %turns = load i64, ptr %loop
  %launchesp = getelementptr %loop, ptr %loop, i64 0, i32 1
  %launches = load i64, ptr %launchesp
  %tablep = getelementptr %loop, ptr %loop, i64 0, i32 2
  %table = load ptr, ptr %tablep
  %firstp = getelementptr %loop, ptr %loop, i64 0, i32 3
  %first = load i64, ptr %firstp
  %threadsp = getelementptr %loop, ptr %loop, i64 0, i32 4
  %threads = load i64, ptr %threadsp
  %mostp = getelementptr %loop, ptr %loop, i64 0, i32 5
  %most = load i64, ptr %mostp
  %packed = alloca i64, i64 %most
  %phase = alloca %phase
  %launching = icmp ne ptr %reached, null
  %coolp = getelementptr i8, ptr %pool, i64 $COOL
  %cool = load atomic i64, ptr %coolp monotonic, align 8
  br label %turn
turn:
  %t = phi i64 [ %first, %entry ], [ %t1, %turned ]
  %number0 = phi i64 [ 1, %entry ], [ %number1, %turned ]
  %target0 = phi i64 [ 0, %entry ], [ %target1, %turned ]
  %flags0 = phi i32 [ 0, %entry ], [ %flags1, %turned ]
  %worthy0 = phi i64 [ 2, %entry ], [ %worthy1, %turned ]
  %over = icmp sge i64 %t, %turns
  br i1 %over, label %finish, label %stay
stay:
  br i1 %launching, label %weigh, label %follow
follow:
  %state = load atomic i64, ptr %pool seq_cst, align 8
  %closed = and i64 %state, 524288
  %leave = icmp ne i64 %closed, 0
  br i1 %leave, label %finish, label %launch
weigh:
  %vain = icmp slt i64 %worthy0, 2
  %until = load atomic i64, ptr %coolp monotonic, align 8
  %kept = icmp ne i64 %until, %cool
  %quit = or i1 %vain, %kept
  br i1 %quit, label %dismiss, label %launch
dismiss:
  ; once nobody is inside between two turns, all turns before are done and nothing else is taken
  %was = atomicrmw or ptr %pool, i64 524288 seq_cst
  %inside = and i64 %was, 524287
  %alone = icmp eq i64 %inside, 0
  br i1 %alone, label %finish, label %launch
launch:
  %k = phi i64 [ 0, %follow ], [ 0, %weigh ], [ 0, %dismiss ], [ %k1, %done ]
  %number1 = phi i64 [ %number0, %follow ], [ %number0, %weigh ], [ %number0, %dismiss ], [ %number2, %done ]
  %target1 = phi i64 [ %target0, %follow ], [ %target0, %weigh ], [ %target0, %dismiss ], [ %target2, %done ]
  %flags1 = phi i32 [ %flags0, %follow ], [ %flags0, %weigh ], [ %flags0, %dismiss ], [ %flags3, %done ]
  %worthy1 = phi i64 [ 1, %follow ], [ 1, %weigh ], [ 1, %dismiss ], [ %worthy2, %done ]
  %every = icmp sge i64 %k, %launches
  br i1 %every, label %turned, label %prepare
prepare:
  %row = getelementptr [4 x i64], ptr %table, i64 %k
  call void @advance(ptr %packed, ptr %row, i64 %t)
  %maskp = getelementptr i64, ptr %row, i64 3
  %mask64 = load i64, ptr %maskp
  %mask = trunc i64 %mask64 to i32
  %functions = load ptr, ptr %packed
  %phasesp = getelementptr i64, ptr %packed, i64 1
  %phases = load i64, ptr %phasesp
  %pairs = getelementptr i64, ptr %packed, i64 2
  %args = getelementptr { i64, i64 }, ptr %pairs, i64 %phases
  br label %phase1
phase1:
  %q = phi i64 [ 0, %prepare ], [ %q1, %step ]
  %number2 = phi i64 [ %number1, %prepare ], [ %number3, %step ]
  %target2 = phi i64 [ %target1, %prepare ], [ %target4, %step ]
  %soft0 = phi i32 [ 0, %prepare ], [ %soft2, %step ]
  %worthy2 = phi i64 [ %worthy1, %prepare ], [ %worthy4, %step ]
  %last = icmp sge i64 %q, %phases
  br i1 %last, label %done, label %look
look:
  %pairp = getelementptr { i64, i64 }, ptr %pairs, i64 %q
  %extent = load i64, ptr %pairp
  %workp = getelementptr i64, ptr %pairp, i64 1
  %work = load i64, ptr %workp
  %some = icmp sgt i64 %extent, 0
  br i1 %some, label %divide, label %step
divide:
  %worth = call i64 @worth(i64 %extent, i64 %work, i64 %threads)
  %worthy3 = call i64 @llvm.smax.i64(i64 %worthy2, i64 %worth)
  %owners = call i64 @llvm.smax.i64(i64 %worth, i64 1)
  %cut = call { i64, i64 } @cut(i64 %extent, i64 %work, i64 %owners)
  %each = extractvalue { i64, i64 } %cut, 0
  %chunk = extractvalue { i64, i64 } %cut, 1
  %chunks = mul i64 %owners, %each
  %target3 = add i64 %target2, %chunks
  %past = call i1 @add_done(ptr %pool, i64 0, i64 %target3)
  br i1 %past, label %step, label %do
do:
  %fnp = getelementptr ptr, ptr %functions, i64 %q
  %fn = load ptr, ptr %fnp
  store ptr %fn, ptr %phase
  %f1 = getelementptr %phase, ptr %phase, i64 0, i32 1
  store ptr %args, ptr %f1
  %f2 = getelementptr %phase, ptr %phase, i64 0, i32 2
  store i64 %extent, ptr %f2
  %f3 = getelementptr %phase, ptr %phase, i64 0, i32 3
  store i64 %owners, ptr %f3
  %f4 = getelementptr %phase, ptr %phase, i64 0, i32 4
  store i64 %each, ptr %f4
  %f5 = getelementptr %phase, ptr %phase, i64 0, i32 5
  store i64 %chunk, ptr %f5
  %soft1 = call i32 @part(ptr %pool, i64 %me, ptr %phase, i64 %number2, i64 %target3)
  br label %step
step:
  %target4 = phi i64 [ %target2, %look ], [ %target3, %divide ], [ %target3, %do ]
  %worthy4 = phi i64 [ %worthy2, %look ], [ %worthy3, %divide ], [ %worthy3, %do ]
  %own = phi i32 [ 0, %look ], [ 0, %divide ], [ %soft1, %do ]
  %soft2 = or i32 %soft0, %own
  %number3 = add i64 %number2, 1
  %q1 = add i64 %q, 1
  br label %phase1
done:
  %hard = call i32 @fresh_flags()
  %raised = or i32 %soft0, %hard
  %meant = and i32 %raised, %mask
  %flags3 = or i32 %flags1, %meant
  %k1 = add i64 %k, 1
  br label %launch
turned:
  %t1 = add i64 %t, 1
  br label %turn
finish:
  br i1 %launching, label %tell, label %end
tell:
  store i64 %t, ptr %reached
  br label %end
end:
  ret i32 %flags0
}

; how many grains of work a turn's largest phase has
define internal i64 @largest(ptr %table, i64 %launches, i64 %turn, ptr %packed) {
entry:
  br label %launch
launch:
  %k = phi i64 [ 0, %entry ], [ %k1, %launched ]
  %most0 = phi i64 [ 0, %entry ], [ %most1, %launched ]
  %all = icmp sge i64 %k, %launches
  br i1 %all, label %end, label %prepare
prepare:
  %row = getelementptr [4 x i64], ptr %table, i64 %k
  call void @advance(ptr %packed, ptr %row, i64 %turn)
  %phasesp = getelementptr i64, ptr %packed, i64 1
  %phases = load i64, ptr %phasesp
  %pairs = getelementptr i64, ptr %packed, i64 2
  br label %phase
phase:
  %q = phi i64 [ 0, %prepare ], [ %q1, %look ]
  %most1 = phi i64 [ %most0, %prepare ], [ %most2, %look ]
  %last = icmp sge i64 %q, %phases
  br i1 %last, label %launched, label %look
look:
  %pairp = getelementptr { i64, i64 }, ptr %pairs, i64 %q
  %extent = load i64, ptr %pairp
  %workp = getelementptr i64, ptr %pairp, i64 1
  %work = load i64, ptr %workp
  %total = mul i64 %extent, %work
  %grains = lshr i64 %total, $grain
  %possible = call i64 @llvm.smax.i64(i64 %extent, i64 0)
  %one = icmp slt i64 %possible, 2
  %shared = select i1 %one, i64 0, i64 %grains
  %most2 = call i64 @llvm.smax.i64(i64 %most1, i64 %shared)
  %q1 = add i64 %q, 1
  br label %phase
launched:
  %k1 = add i64 %k, 1
  br label %launch
end:
  ret i64 %most0
}

; %table: for each of the launches its packed arguments in the first turn, what is added to them after each
; turn, how many numbers that is, and the flags that it may raise
define i32 @dc_repeat(ptr %pool, i64 %turns, i64 %launches, ptr %table) {
entry:
  br label %measure
measure:
  %m = phi i64 [ 0, %entry ], [ %m1, %measure ]
  %most0 = phi i64 [ 0, %entry ], [ %most, %measure ]
  %mrow = getelementptr [4 x i64], ptr %table, i64 %m
  %msizep = getelementptr i64, ptr %mrow, i64 2
  %msize = load i64, ptr %msizep
  %most = call i64 @llvm.smax.i64(i64 %most0, i64 %msize)
  %m1 = add i64 %m, 1
  %mmore = icmp slt i64 %m1, %launches
  br i1 %mmore, label %measure, label %measured
measured:
  %packed = alloca i64, i64 %most
  %loop = alloca %loop
  %reached = alloca i64
  store i64 %turns, ptr %loop
  %l1 = getelementptr %loop, ptr %loop, i64 0, i32 1
  store i64 %launches, ptr %l1
  %l2 = getelementptr %loop, ptr %loop, i64 0, i32 2
  store ptr %table, ptr %l2
  %l5 = getelementptr %loop, ptr %loop, i64 0, i32 5
  store i64 %most, ptr %l5
  br label %turn
turn:
  %t = phi i64 [ 0, %measured ], [ %t1, %turned ], [ %there, %back ]
  %flags0 = phi i32 [ 0, %measured ], [ %flags1, %turned ], [ %flags2, %back ]
  %over = icmp sge i64 %t, %turns
  br i1 %over, label %finish, label %weigh
weigh:
  %nobody = icmp eq ptr %pool, null
  br i1 %nobody, label %launch, label %consider
consider:
  %grains = call i64 @largest(ptr %table, i64 %launches, i64 %t, ptr %packed)
  %big = icmp sgt i64 %grains, 1
  br i1 %big, label %clock, label %launch
clock:
  %large = icmp sge i64 %grains, $worth_waking
  %coolp = getelementptr i8, ptr %pool, i64 $COOL
  %until = load atomic i64, ptr %coolp monotonic, align 8
  %time = call i64 @now()
  %warm = icmp sge i64 %time, %until
  %worthy = or i1 %large, %warm
  br i1 %worthy, label %claim, label %launch
claim:
  %busy = getelementptr i8, ptr %pool, i64 $BUSY
  %pair = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %together, label %launch
together:
  %threadsp = getelementptr i8, ptr %pool, i64 $THREADS
  %threads = load i64, ptr %threadsp
  %l3 = getelementptr %loop, ptr %loop, i64 0, i32 3
  store i64 %t, ptr %l3
  %l4 = getelementptr %loop, ptr %loop, i64 0, i32 4
  store i64 %threads, ptr %l4
  %job = getelementptr i8, ptr %pool, i64 $JOB
  store ptr null, ptr %job
  %p1 = getelementptr i64, ptr %job, i64 1
  store ptr %loop, ptr %p1
  %donep = getelementptr i8, ptr %pool, i64 $DONE
  store atomic i64 0, ptr %donep seq_cst, align 8
  %left = sub i64 %turns, %t
  %ahead = mul i64 %left, %grains
  %rouse = icmp sge i64 %ahead, $worth_waking
  call i32 @feclearexcept(i32 $all)
  call void @open(ptr %pool, i64 %threads, i1 %rouse, i64 %time)
  %mine = call i32 @turns(ptr %pool, i64 0, ptr %reached)
  %theirs = call i32 @close(ptr %pool)
  store atomic i64 0, ptr %busy seq_cst, align 8
  %both = or i32 %mine, %theirs
  %flags2 = or i32 %flags0, %both
  %there = load i64, ptr %reached
  br label %back
back:
  br label %turn
launch:
  %k = phi i64 [ 0, %weigh ], [ 0, %consider ], [ 0, %clock ], [ 0, %claim ], [ %k1, %run ]
  %flags1 = phi i32 [ %flags0, %weigh ], [ %flags0, %consider ], [ %flags0, %clock ], [ %flags0, %claim ],
    [ %flags3, %run ]
  %all = icmp sge i64 %k, %launches
  br i1 %all, label %turned, label %run
run:
  %row = getelementptr [4 x i64], ptr %table, i64 %k
  call void @advance(ptr %packed, ptr %row, i64 %t)
  %maskp = getelementptr i64, ptr %row, i64 3
  %mask64 = load i64, ptr %maskp
  %mask = trunc i64 %mask64 to i32
  %raised = call i32 @dc_launch(ptr %pool, ptr %packed)
  %own = and i32 %raised, %mask
  %flags3 = or i32 %flags1, %own
  %k1 = add i64 %k, 1
  br label %launch
turned:
  %t1 = add i64 %t, 1
  br label %turn
finish:
  ret i32 %flags0
}
"""
