"""LLVM text, the last part of `pool`'s: a loop around launches of kernels as one job of the thread pool.

Each thread goes through all phases of all iterations by itself: it computes the arguments of an iteration and
runs chunks of its phases (see `parallel_loop_phase`).
"""

from __future__ import annotations

LOOP_LAUNCHES = """
; the job: iterations, launches, their table (see `dc_repeat`), the first iteration, threads, numbers of the
; longest launch
%loop = type { i64, i64, ptr, i64, i64, i64 }

; the packed arguments of a launch in an iteration: those of the first iteration and so many steps
define internal void @advance(ptr %to, ptr %row, i64 %iteration) {
entry:
  %from = load ptr, ptr %row
  %step = load ptr, ptr %row[i64 1]
  %size = load i64, ptr %row[i64 2]
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %f = load i64, ptr %from[i64 %k]
  %s = load i64, ptr %step[i64 %k]
  %far = mul i64 %s, %iteration
  %now = add i64 %f, %far
  store i64 %now, ptr %to[i64 %k]
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %size
  br i1 %more, label %next, label %end
end:
  ret void
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
; before the end, and says in which iteration, where a worker kept it waiting or no phase was worth several
; threads.
define internal i32 @iterations(ptr %pool, i64 %me, ptr %reached) {
entry:
  %job = getelementptr i8, ptr %pool, i64 $JOB
  %loop = load ptr, ptr %job[i64 1]
  %iterations = load i64, ptr %loop
  %launches = load i64, ptr %loop[i64 1]
  %table = load ptr, ptr %loop[i64 2]
  %first = load i64, ptr %loop[i64 3]
  %threads = load i64, ptr %loop[i64 4]
  %most = load i64, ptr %loop[i64 5]
  %packed = alloca i64, i64 %most
  %phase = alloca %phase
  %launching = icmp ne ptr %reached, null
  %coolp = getelementptr i8, ptr %pool, i64 $COOL
  %cool = load atomic i64, ptr %coolp monotonic, align 8
  br label %iteration
iteration:
  %t = phi i64 [ %first, %entry ], [ %t1, %iterated ]
  %number0 = phi i64 [ 1, %entry ], [ %number1, %iterated ]
  %target0 = phi i64 [ 0, %entry ], [ %target1, %iterated ]
  %flags0 = phi i32 [ 0, %entry ], [ %flags1, %iterated ]
  %worthy0 = phi i64 [ 2, %entry ], [ %worthy1, %iterated ]
  %ended = icmp sge i64 %t, %iterations
  %stop = call i1 @stopped()
  %over = or i1 %ended, %stop
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
  ; Workers may be some iterations ahead: once nobody is inside any more, and what is done is just what there
  ; was to do until here, nothing of this iteration is taken.
  %was = atomicrmw or ptr %pool, i64 524288 seq_cst
  %inside = and i64 %was, 524287
  %alone = icmp eq i64 %inside, 0
  %total = load atomic i64, ptr %pool[i8 $DONE] seq_cst, align 8
  %here = icmp eq i64 %total, %target0
  %may = and i1 %alone, %here
  br i1 %may, label %finish, label %launch
launch:
  %k = phi i64 [ 0, %follow ], [ 0, %weigh ], [ 0, %dismiss ], [ %k1, %done ]
  %number1 = phi i64 [ %number0, %follow ], [ %number0, %weigh ], [ %number0, %dismiss ], [ %number2, %done ]
  %target1 = phi i64 [ %target0, %follow ], [ %target0, %weigh ], [ %target0, %dismiss ], [ %target2, %done ]
  %flags1 = phi i32 [ %flags0, %follow ], [ %flags0, %weigh ], [ %flags0, %dismiss ], [ %flags3, %done ]
  %worthy1 = phi i64 [ 1, %follow ], [ 1, %weigh ], [ 1, %dismiss ], [ %worthy2, %done ]
  %every = icmp sge i64 %k, %launches
  br i1 %every, label %iterated, label %prepare
prepare:
  %row = getelementptr [4 x i64], ptr %table, i64 %k
  call void @advance(ptr %packed, ptr %row, i64 %t)
  %mask64 = load i64, ptr %row[i64 3]
  %mask = trunc i64 %mask64 to i32
  %functions = load ptr, ptr %packed
  %phases = load i64, ptr %packed[i64 1]
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
  %work = load i64, ptr %pairp[i64 1]
  %some = icmp sgt i64 %extent, 0
  br i1 %some, label %divide, label %step
divide:
  %worth = call i64 @worth(i64 %extent, i64 %work, i64 %threads)
  %worthy3 = call i64 @llvm.smax.i64(i64 %worthy2, i64 %worth)
  ; threads are there already, for a larger phase, and what one has written is near where it is read: a
  ; phase of finer grains is worth them, too
  %finer = shl i64 %work, $finer
  %within = call i64 @worth(i64 %extent, i64 %finer, i64 %threads)
  %owners = call i64 @llvm.smax.i64(i64 %within, i64 1)
  %cut = call { i64, i64 } @cut(i64 %extent, i64 %work, i64 %owners)
  %each = extractvalue { i64, i64 } %cut, 0
  %chunk = extractvalue { i64, i64 } %cut, 1
  %chunks = mul i64 %owners, %each
  %target3 = add i64 %target2, %chunks
  %past = call i1 @add_done(ptr %pool, i64 0, i64 %target3)
  br i1 %past, label %step, label %do
do:
  %fn = load ptr, ptr %functions[ptr %q]
  store ptr %fn, ptr %phase
  store ptr %args, ptr %phase[i64 1]
  store i64 %extent, ptr %phase[i64 2]
  store i64 %owners, ptr %phase[i64 3]
  store i64 %each, ptr %phase[i64 4]
  store i64 %chunk, ptr %phase[i64 5]
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
iterated:
  %t1 = add i64 %t, 1
  br label %iteration
finish:
  br i1 %launching, label %tell, label %end
tell:
  store i64 %t, ptr %reached
  br label %end
end:
  ret i32 %flags0
}

; how many grains of work a iteration's largest phase has
define internal i64 @largest(ptr %table, i64 %launches, i64 %iteration, ptr %packed) {
entry:
  br label %launch
launch:
  %k = phi i64 [ 0, %entry ], [ %k1, %launched ]
  %most0 = phi i64 [ 0, %entry ], [ %most1, %launched ]
  %all = icmp sge i64 %k, %launches
  br i1 %all, label %end, label %prepare
prepare:
  call void @advance(ptr %packed, ptr %table[[4 x i64] %k], i64 %iteration)
  %phases = load i64, ptr %packed[i64 1]
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
  %work = load i64, ptr %pairp[i64 1]
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

; %table: for each of the launches its packed arguments in the first iteration, what is added to them after
; each iteration, how many numbers that is, and the flags that it may raise
define i32 @dc_repeat(ptr %pool, i64 %iterations, i64 %launches, ptr %table) {
entry:
  br label %measure
measure:
  %m = phi i64 [ 0, %entry ], [ %m1, %measure ]
  %most0 = phi i64 [ 0, %entry ], [ %most, %measure ]
  %mrow = getelementptr [4 x i64], ptr %table, i64 %m
  %msize = load i64, ptr %mrow[i64 2]
  %most = call i64 @llvm.smax.i64(i64 %most0, i64 %msize)
  %m1 = add i64 %m, 1
  %mmore = icmp slt i64 %m1, %launches
  br i1 %mmore, label %measure, label %measured
measured:
  %packed = alloca i64, i64 %most
  %loop = alloca %loop
  %reached = alloca i64
  %since = alloca i64
  store i64 %iterations, ptr %loop
  store i64 %launches, ptr %loop[i64 1]
  store ptr %table, ptr %loop[i64 2]
  store i64 %most, ptr %loop[i64 5]
  br label %iteration
iteration:
  %t = phi i64 [ 0, %measured ], [ %t1, %iterated ], [ %there, %back ]
  %flags0 = phi i32 [ 0, %measured ], [ %flags1, %iterated ], [ %flags2, %back ]
  %ended = icmp sge i64 %t, %iterations
  %stop = call i1 @stopped()
  %over = or i1 %ended, %stop
  br i1 %over, label %finish, label %weigh
weigh:
  %nobody = icmp eq ptr %pool, null
  br i1 %nobody, label %launch, label %consider
consider:
  %grains = call i64 @largest(ptr %table, i64 %launches, i64 %t, ptr %packed)
  %big = icmp sgt i64 %grains, 1
  %few = icmp sle i64 %launches, $few
  %common = and i1 %big, %few
  br i1 %common, label %clock, label %launch
clock:
  %long = icmp sge i64 %grains, $long_grains
  %until = load atomic i64, ptr %pool[i8 $COOL] monotonic, align 8
  %time = call i64 @now()
  %warm = icmp sge i64 %time, %until
  %worthy = or i1 %long, %warm
  br i1 %worthy, label %claim, label %launch
claim:
  %busy = getelementptr i8, ptr %pool, i64 $BUSY
  %pair = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %together, label %launch
together:
  %threads = load i64, ptr %pool[i8 $THREADS]
  store i64 %t, ptr %loop[i64 3]
  store i64 %threads, ptr %loop[i64 4]
  %job = getelementptr i8, ptr %pool, i64 $JOB
  store ptr null, ptr %job
  store ptr %loop, ptr %job[i64 1]
  store atomic i64 0, ptr %pool[i8 $DONE] seq_cst, align 8
  %left = sub i64 %iterations, %t
  %ahead = mul i64 %left, %grains
  %rouse = icmp sge i64 %ahead, $worth_waking
  call i32 @feclearexcept(i32 $all)
  %woken = call i1 @open(ptr %pool, i64 %threads, i1 %rouse, i64 %time)
  %opened = call i64 @now()
  %mine = call i32 @iterations(ptr %pool, i64 0, ptr %reached)
  %theirs0 = call i32 @close(ptr %pool, ptr %since)
  %came = and i32 %theirs0, $came
  %nobody_came = icmp eq i32 %came, 0
  %vain = and i1 %woken, %nobody_came
  %closed = call i64 @now()
  %took = sub i64 %closed, %time
  br i1 %vain, label %regret, label %well
well:
  call void @went_well(ptr %pool, i64 %took)
  br label %shared
regret:
  %cost = sub i64 %opened, %time
  call void @judge(ptr %pool, i64 %cost, i64 %took, i64 %closed)
  br label %shared
shared:
  store atomic i64 0, ptr %busy seq_cst, align 8
  %theirs = xor i32 %theirs0, %came
  %both = or i32 %mine, %theirs
  %flags2 = or i32 %flags0, %both
  %there = load i64, ptr %reached
  br label %back
back:
  br label %iteration
launch:
  %k = phi i64 [ 0, %weigh ], [ 0, %consider ], [ 0, %clock ], [ 0, %claim ], [ %k1, %run ]
  %flags1 = phi i32 [ %flags0, %weigh ], [ %flags0, %consider ], [ %flags0, %clock ], [ %flags0, %claim ],
    [ %flags3, %run ]
  %all = icmp sge i64 %k, %launches
  br i1 %all, label %iterated, label %run
run:
  %row = getelementptr [4 x i64], ptr %table, i64 %k
  call void @advance(ptr %packed, ptr %row, i64 %t)
  %mask64 = load i64, ptr %row[i64 3]
  %mask = trunc i64 %mask64 to i32
  %raised = call i32 @dc_launch(ptr %pool, ptr %packed)
  %own = and i32 %raised, %mask
  %flags3 = or i32 %flags1, %own
  %k1 = add i64 %k, 1
  br label %launch
iterated:
  %t1 = add i64 %t, 1
  br label %iteration
finish:
  %mark = select i1 %stop, i32 $stopped, i32 0
  %said = or i32 %flags0, %mark
  ret i32 %said
}
"""
