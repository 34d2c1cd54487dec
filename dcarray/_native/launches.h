/* Launches of kernels on the thread pool (lowering/runtime/launches.py): one launch, and a loop around several.
 *
 * A launch is a block of integers: the address of the phases' functions, their number, the extent of each and its work for an
 * index, and then the arguments of all.  A phase runs on as many threads as it has grains of work. */

/* Units of a phase's work, as bits, in a grain (some microseconds): what is less is not worth a thread. */
enum { GRAIN_AT = 17 };
/* Grains from which on a job is worth waking a thread, or is shared although others were not lately: a thread is late by a slice
 * of the scheduler's, some 3 ms. */
enum { WORTH_WAKING = 8, LONG_JOB = 4096 };
/* Grains are so many bits finer where the threads go through a loop together.  The most launches of an iteration for which they
 * do: loops of more (adi) are likely to access arrays by rows and by columns, where each processor has to fetch what another
 * has just written. */
enum { FINER = 3, MOST_TOGETHER = 6 };
enum { BRIEF = 16 }; /* looks whether all chunks are done, before a thread takes those of others */

static inline int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t
greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A launch, as its block says. */
typedef struct {
    const Phase *codes;
    int64_t phases;
    const int64_t (*sizes)[2]; /* of the phases: extent and work */
    void *args;
} Launch;

static Launch
launch_of(int64_t *block)
{
    return (Launch){(const Phase *)(intptr_t)block[0], block[1], (const int64_t (*)[2])(block + 2), block + 2 + 2 * block[1]};
}

static inline int64_t
grains_of(const int64_t *size, int finer)
{
    return (int64_t)(((uint64_t)size[0] * (uint64_t)size[1] << finer) >> GRAIN_AT);
}

/* How many threads is a phase worth? */
static inline int64_t
worth(const int64_t *size, int finer, int64_t threads)
{
    return least(least(grains_of(size, finer), threads), size[0]);
}

/* A phase as a job for so many threads. */
static Job
job_of(const Launch *l, int64_t phase, int64_t owners)
{
    const int64_t *size = l->sizes[phase];
    int64_t mine = grains_of(size, 0) / owners;
    int64_t each = greatest(least(mine >> 1, greatest(mine >> 8, 8)), 1), chunks = owners * each;
    int64_t even = (size[0] + chunks - 1) / chunks;
    return (Job){l->codes[phase], l->args, size[0], even >= 256 ? (even + 63) & -64 : even, each, owners, 1};
}

/* A phase on this thread alone, in slices of some ten milliseconds. */
static int
do_alone(const Launch *l, int64_t phase)
{
    const int64_t *size = l->sizes[phase];
    Job job = {l->codes[phase], l->args, size[0], .stops = 1};
    int64_t slice = ((INT64_C(256) << GRAIN_AT) / greatest(size[1], 1) + 64) & -64;
    int flags = 0;
    for (int64_t first = 0; first < size[0]; first += slice)
        flags |= do_chunk(&job, first, first + slice);
    return flags;
}

/* Run a launch on so many threads: the floating-point exceptions, and STOPPED.  With no number of threads nothing is done, and
 * -1 returned, if it is worth several. */
static int
launch(int64_t threads, int64_t *block)
{
    Launch l = launch_of(block);
    int flags = 0;
    threads = least(threads, MOST_THREADS);
    for (int64_t k = 0; threads == 0 && k < l.phases; k++)
        if (worth(l.sizes[k], 0, 2) > 1)
            return -1;
    feclearexcept(FLAGS);
    for (int64_t k = 0; k < l.phases; k++) {
        int64_t owners = worth(l.sizes[k], 0, threads), grains = grains_of(l.sizes[k], 0);
        int64_t start = owners > 1 ? claim_pool(threads, grains >= LONG_JOB) : 0;
        if (!start) {
            flags |= do_alone(&l, k);
            continue;
        }
        flags |= share_job(job_of(&l, k, owners), grains >= WORTH_WAKING, start);
        release_pool();
    }
    return flags | numpy_bits(fetestexcept(FLAGS)) | (is_to_stop() ? STOPPED : 0);
}

/* ---- loops -------------------------------------------------------------------------------------------------------------
 * A loop around launches is one job: each thread goes through all phases of all iterations by itself, runs chunks of a phase,
 * its own first, and waits until all chunks are done.  So between two phases only one counter moves between processors, where
 * separate launches would open and close a job.  Chunks are marked with the number of their phase, so that a late thread
 * takes none of a finished phase.  Threads may leave or never arrive: others take their chunks. */
typedef struct {
    const int64_t *block, *steps; /* of a launch in the first iteration, and what is added to it after each one */
    int64_t size, mask;           /* integers of the block, and the exceptions that count */
} LoopLaunch;

typedef struct {
    int64_t iterations, launches;
    const LoopLaunch *table;
    int64_t first, threads, most; /* iteration, threads, integers of the longest block */
} LaunchLoop;

/* The block of a launch in an iteration. */
static void
advance(int64_t *block, const LoopLaunch *l, int64_t iteration)
{
    for (int64_t k = 0; k < l->size; k++)
        block[k] = l->block[k] + l->steps[k] * iteration;
}

/* Add to the chunks that are done: are these all until now? */
static int
are_done(int64_t count, int64_t target)
{
    return (count ? __atomic_add_fetch(&Pool.done, count, __ATOMIC_SEQ_CST) : LOOK_AFTER(Pool.done)) >= target;
}

/* Do the chunks of an owner that are left in the phase of this number: how many. */
static int64_t
do_owned(const Job *job, int64_t owner, int64_t number, int *flags)
{
    /* Of a large phase what was used last is nearest: every other one goes back. */
    int64_t *next = &Pool.lines[owner].next, none = number << NUMBER_AT, count = 0, chunks = job->owners * job->each;
    int back = job->each >= 8 && number % 2 == 0;
    for (;;) {
        int64_t seen = LOOK_AFTER(*next), taken = greatest(seen, none), k = taken - none, first, end;
        if (k >= job->each)
            return count;
        if (!__atomic_compare_exchange_n(next, &seen, taken + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            continue;
        count++;
        k = owner * job->each + (back ? job->each - 1 - k : k);
        first = job->chunk >= 256 ? k * job->chunk : k * job->extent / chunks;
        end = job->chunk >= 256 ? first + job->chunk : (k + 1) * job->extent / chunks;
        if (first < least(end, job->extent))
            *flags |= do_chunk(job, first, end);
    }
}

/* Wait until all chunks are done, or for a moment only, unless patient: are they? */
static int
wait_for_chunks(int me, int64_t target, int patient)
{
    int64_t since = 0;
    for (int looks = 1; !are_done(0, target) && !is_to_stop(); looks++) {
        if (looks >= BRIEF && !patient)
            return 0;
        if (looks >= BRIEF && looks % 16 == 0 && (waited(&since) >= LATE || (me && in_turns())))
            sched_yield();
        else
            pause_briefly();
    }
    if (since && !me) { /* the caller leaves the loop if it had to wait long */
        int64_t now = nanoseconds();
        if (now - since >= LATE)
            judge(now - since, 0, now);
    }
    return 1;
}

/* A thread's part in a phase of this number, after which so many chunks are done in all: the flags. */
static int
take_part_in(int me, const Job *job, int64_t number, int64_t target)
{
    int flags = 0;
    int64_t count = 0;
    if (me < job->owners && are_done(do_owned(job, me, number, &flags), target))
        return flags;
    /* The caller need not wait for anybody if it is alone. */
    if ((me || LOOK_AFTER(Pool.state) & (CLOSED - 1)) && wait_for_chunks(me, target, 0))
        return flags;
    for (int64_t k = 1; k <= job->owners; k++)
        count += do_owned(job, (me + k) % job->owners, number, &flags);
    if (!are_done(count, target))
        wait_for_chunks(me, target, 1);
    return flags;
}

/* Does the caller leave a loop before this iteration, for which so many chunks are done?  Others may be some iterations ahead: once
 * nobody is inside any more, and what is done is just what there was to do until here, nothing of it is taken. */
static int
may_leave(int64_t target)
{
    int64_t was = __atomic_fetch_or(&Pool.state, CLOSED, __ATOMIC_SEQ_CST);
    return !(was & (CLOSED - 1)) && LOOK_AFTER(Pool.done) == target;
}

/* A thread's part in a loop: its flags.  The caller, which is number 0 and has `reached`, leaves before the end, and says in which
 * iteration, where another thread kept it waiting, or no phase was worth several. */
static int
do_iterations(int me, int64_t *reached)
{
    const LaunchLoop *loop = Pool.job.args;
    int64_t block[loop->most], number = 1, target = 0, t, most = 2, alone = LOOK(Pool.alone);
    int flags = 0;
    for (t = loop->first; t < loop->iterations && !is_to_stop(); t++) {
        if (me ? LOOK_AFTER(Pool.state) & CLOSED : (most < 2 || LOOK(Pool.alone) != alone) && may_leave(target))
            break;
        most = 1;
        for (int64_t k = 0; k < loop->launches; k++) {
            Launch l;
            int soft = 0;
            advance(block, &loop->table[k], t);
            l = launch_of(block);
            for (int64_t phase = 0; phase < l.phases; phase++, number++) {
                Job job;
                if (l.sizes[phase][0] <= 0)
                    continue;
                most = greatest(most, worth(l.sizes[phase], 0, loop->threads));
                /* The threads are there already, and what one has written is near where it is read: finer grains are worth them. */
                job = job_of(&l, phase, greatest(worth(l.sizes[phase], FINER, loop->threads), 1));
                target += job.owners * job.each;
                if (!are_done(0, target))
                    soft |= take_part_in(me, &job, number, target);
            }
            flags |= (soft | numpy_bits(fetestexcept(FLAGS))) & (int)loop->table[k].mask;
            clear_flags();
        }
    }
    if (!me)
        *reached = t;
    return flags;
}

/* The grains of work of an iteration's largest phase. */
static int64_t
most_grains(const LaunchLoop *loop, int64_t iteration, int64_t *block)
{
    int64_t most = 0;
    for (int64_t k = 0; k < loop->launches; k++) {
        Launch l;
        advance(block, &loop->table[k], iteration);
        l = launch_of(block);
        for (int64_t phase = 0; phase < l.phases; phase++)
            if (l.sizes[phase][0] > 1)
                most = greatest(most, grains_of(l.sizes[phase], 0));
    }
    return most;
}

/* Have all threads go through a loop together, from an iteration on, which this thread leaves in the iteration `reached`: the
 * flags. */
static int
share_loop(LaunchLoop *loop, int64_t grains, int64_t start, int64_t *reached)
{
    Job job = {.args = loop, .owners = loop->threads};
    int64_t opened, closed, since;
    int woken, flags, theirs;
    PUBLISH(Pool.done, 0);
    feclearexcept(FLAGS);
    woken = open_job(job, (loop->iterations - loop->first) * grains >= WORTH_WAKING, start);
    opened = nanoseconds();
    flags = do_iterations(0, reached);
    theirs = close_job(&since);
    closed = nanoseconds();
    if (woken && !(theirs & CAME))
        judge(opened - start, closed - start, closed);
    else
        Pool.good += closed - start;
    return flags | (theirs & ~CAME);
}

/* Run launches in each iteration of a loop: the floating-point exceptions, and STOPPED. */
static int
repeat(int64_t threads, int64_t iterations, int64_t launches, const LoopLaunch *table)
{
    LaunchLoop loop = {iterations, launches, table, .threads = least(threads, MOST_THREADS)};
    int flags = 0;
    for (int64_t k = 0; k < launches; k++)
        loop.most = greatest(loop.most, table[k].size);
    int64_t block[loop.most];
    while (loop.first < iterations && !is_to_stop()) {
        int64_t grains = threads > 1 && launches <= MOST_TOGETHER ? most_grains(&loop, loop.first, block) : 0;
        int64_t start = grains > 1 ? claim_pool(loop.threads, grains >= LONG_JOB) : 0;
        if (start) {
            flags |= share_loop(&loop, grains, start, &loop.first);
            release_pool();
            continue;
        }
        for (int64_t k = 0; k < launches; k++) {
            advance(block, &table[k], loop.first);
            flags |= launch(threads, block) & (int)table[k].mask;
        }
        loop.first++;
    }
    return flags | (is_to_stop() ? STOPPED : 0);
}

/* ---- from Python ------------------------------------------------------------------------------------------------------ */
/* launch(block, threads): run a launch; its flags. */
static PyObject *
run_launch(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    int64_t threads = count == 2 && PyBytes_Check(args[0]) ? PyLong_AsLongLong(args[1]) : -1;
    int flags;
    if (threads < 1) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a block of integers and the number of threads are wanted");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    flags = launch(threads, (int64_t *)PyBytes_AS_STRING(args[0]));
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(flags);
}

/* repeat(table, threads, iterations): run launches in each iteration of a loop; `table` has for each the addresses of its block
 * and of what is added to it after each iteration, the number of these integers, and the flags that count. */
static PyObject *
run_repeat(PyObject *module, PyObject *args)
{
    Py_buffer table;
    long long threads, iterations;
    int flags;
    if (!PyArg_ParseTuple(args, "y*LL", &table, &threads, &iterations))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    flags = repeat(threads, iterations, table.len / (Py_ssize_t)sizeof(LoopLaunch), table.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&table);
    return PyLong_FromLong(flags);
}

/* has_threads(): whether the pool has been used in this process. */
static PyObject *
has_threads(PyObject *module, PyObject *nothing)
{
    return PyBool_FromLong(Pool.threads > 0);
}
