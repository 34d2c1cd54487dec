"""LLVM text, a part of `pool`'s: one phase, shared by several threads, of a loop around launches of kernels.

A thread runs chunks of the phase, its own first, and waits until all chunks are done.  So between two phases
only one counter moves between cores, where separate launches would open and close a job.  Chunks are marked
with the number of their phase, so that a late thread takes none of a finished phase.  Workers may leave or
never arrive: others take their chunks.
"""

from __future__ import annotations

PHASES = """
; one phase: the function, its arguments, the extent, the owners, how many chunks each of them has, and how
; long these are
%phase = type { ptr, ptr, i64, i64, i64, i64 }

; take the chunks of an owner that are left in phase %number, and do them: how many, and the flags
define internal { i64, i32 } @take(ptr %pool, ptr %phase, i64 %owner, i64 %number) {
entry:
  %fn = load ptr, ptr %phase
  %args = load ptr, ptr %phase[i64 1]
  %extent = load i64, ptr %phase[i64 2]
  %each = load i64, ptr %phase[i64 4]
  %chunk = load i64, ptr %phase[i64 5]
  %last = sub i64 %each, 1
  %owners = load i64, ptr %phase[i64 3]
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
  %f = call i32 @run(ptr %fn, ptr %args, i64 %lo, i64 %hi)
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
  %since = alloca i64
  store i64 0, ptr %since
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ %spins1, %relax ], [ %spins1, %yield ]
  %now = load atomic i64, ptr %donep seq_cst, align 8
  %every = icmp sge i64 %now, %target
  %stop = call i1 @stopped()
  %all = or i1 %every, %stop
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
  %waited = call i64 @waiting(ptr %since)
  %long = icmp sge i64 %waited, $late
  %here = call i32 @cpu()
  %there = load atomic i32, ptr %pool[i8 $CPU] monotonic, align 4
  %same = icmp $shares i32 %here, %there
  %together = and i1 %workerp, %same
  %crowded = or i1 %together, %long
  br i1 %crowded, label %yield, label %relax
yield:
  call i32 @sched_yield()
  br label %look
relax:
  call void @pause()
  br label %look
yes:
  ; the launching thread leaves the loop if it had to wait long
  %begun = load i64, ptr %since
  %some_time = icmp ne i64 %begun, 0
  %launching = xor i1 %workerp, true
  %asks = and i1 %some_time, %launching
  br i1 %asks, label %ask, label %end
ask:
  %time = call i64 @now()
  %lost = sub i64 %time, %begun
  %late = icmp sge i64 %lost, $late
  br i1 %late, label %tell, label %end
tell:
  call void @judge(ptr %pool, i64 %lost, i64 0, i64 %time)
  br label %end
end:
  ret i1 true
no:
  ret i1 false
}

; a thread's part in a phase, after which %target chunks are done in all: its flags
define internal i32 @part(ptr %pool, i64 %me, ptr %phase, i64 %number, i64 %target) {
entry:
  %owners = load i64, ptr %phase[i64 3]
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
"""
