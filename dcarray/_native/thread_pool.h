/* The threads that run kernels and NumPy's loops together with the thread that calls; where there are none, that one does all.
 *
 * A job is a range of indices, cut into chunks.  Each thread owns some of them, and takes those of others when its own are
 * done.  The state of the pool is one word: the job's number, a bit that says that the job is closed, and how many other
 * threads are inside.  A thread enters by compare-and-swap while the job is open; the one that calls closes it when no chunk is
 * left, and waits until nobody is inside: so it never waits for a thread that has not begun.  A caller that finds the pool
 * busy with another one's job does its work alone.
 *
 * The threads look for work for a moment after each job, and sleep then.  The caller measures what sharing gains: the time of
 * a job compared with the time it would take alone, at the speed of its own chunks.  While that is a loss, because other
 * programs use the processors, jobs run alone.
 *
 * These threads never call Python.  They take no signals, which are the program's. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

static int SharingThreads = 1; /* by default: of NumPy's loops */

/* `NUMBER_AT` is the place of the job's number in the state. */
enum { MOST_THREADS = 256, LOOKS = 64, CLOSED = 1 << 19, NUMBER_AT = 20 };

/* In nanoseconds, on a virtual machine on an EPYC: waking a thread takes the caller 15,000, and 40,000 pass until it is there.
 * A thread that has found nothing to do for so long sleeps; one that had to be woken for jobs that come thick looks longer.
 * A spinning thread takes a processor from those of BLAS. */
static const int64_t SPIN = 50000, SPIN_LONGER = 200000, THICK = 500000;
/* What is lost by sharing until work is done alone, and for how many times as long that is: at least and at most, twice as
 * long as last time unless sharing has gone well for a while (`CALM`). */
static const int64_t LATE = 80000, REPAID = 16, LEAST_ALONE = 1000000, MOST_ALONE = 500000000, CALM = 50000000;

typedef int (*Phase)(void *args, int64_t first, int64_t end); /* returns floating-point exceptions, in NumPy's numbering */

typedef struct {
    Phase code; /* NULL: the iterations of a loop (launches.h), which `args` describes */
    void *args;
    int64_t extent, chunk, each, owners; /* indices, those of a chunk, and chunks of one owner */
    int stops;                           /* may a signal stop it? */
} Job;

typedef struct {
    _Alignas(64) int64_t next;
} Line; /* of a cache: each thread writes its own */

static struct {
    _Alignas(64) int64_t state;
    _Alignas(64) int64_t sleepers;
    _Alignas(64) int flags;      /* that other threads have raised */
    _Alignas(64) int busy, wanted, threads, caller; /* has it a job; for how many, of how many that exist; its processor */
    int64_t last, rest, lost, good, patience; /* when the last job came; the last time of work alone; see `judge` */
    int64_t alone;               /* until when jobs run alone */
    Job job;
    fenv_t modes; /* the caller's: rounding, numbers below the normal ones */
    _Alignas(64) int64_t done;   /* chunks of all phases of a loop */
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t more;
    struct {
        int id, processor, moved; /* of a thread: its number, where it ran last, and is it kept from a processor? */
    } members[MOST_THREADS];
    Line lines[MOST_THREADS];
} Pool = {.state = CLOSED, .patience = 50000, .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

#define LOOK(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define LOOK_AFTER(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)
#define PUT(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELAXED)
#define PUBLISH(place, value) __atomic_store_n(&(place), value, __ATOMIC_SEQ_CST)

/* A thread that waits on the caller's processor would begin when the caller is done: Linux leaves it there, for as long as it
 * likes, though others are idle. */
#ifdef __linux__
static void
keep_off(int place, int processor)
{
    cpu_set_t may;
    int id = LOOK(Pool.members[place].id);
    if (id == 0 || LOOK(Pool.members[place].processor) != processor || sched_getaffinity(id, sizeof(may), &may) != 0)
        return;
    CPU_CLR(processor, &may);
    if (CPU_COUNT(&may) > 0 && sched_setaffinity(id, sizeof(may), &may) == 0)
        PUT(Pool.members[place].moved, processor + 1);
}

/* The same thread, at work on another one, may go anywhere again. */
static void
note_processor(int place)
{
    cpu_set_t may;
    int moved = LOOK(Pool.members[place].moved);
    if (moved && sched_getaffinity(0, sizeof(may), &may) == 0) {
        CPU_SET(moved - 1, &may);
        sched_setaffinity(0, sizeof(may), &may);
        PUT(Pool.members[place].moved, 0);
    }
    PUT(Pool.members[place].processor, sched_getcpu());
}

static int
thread_number(void)
{
    return (int)syscall(SYS_gettid);
}

/* Does this thread take turns with the one that has the job? */
static int
in_turns(void)
{
    return sched_getcpu() == LOOK(Pool.caller);
}
#else
static void
keep_off(int place, int processor)
{
}

static void
note_processor(int place)
{
}

static int
sched_getcpu(void)
{
    return 0;
}

static int
thread_number(void)
{
    return 1;
}

static int
in_turns(void)
{
    return 0;
}
#endif

static inline void
pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t
nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------------- */
static inline int
is_to_stop(void)
{
    return Stop != NULL && *(volatile int *)*Stop != 0;
}

/* Do a chunk, unless the run is to be stopped. */
static inline int
do_chunk(const Job *job, int64_t first, int64_t end)
{
    return job->stops && is_to_stop() ? 0 : job->code(job->args, first, end < job->extent ? end : job->extent);
}

/* Do the chunks of the job that nobody has begun, one's own first: the flags; their number is added to `count`. */
static int
do_chunks(int me, int64_t *count)
{
    const Job job = Pool.job;
    int flags = 0;
    for (int64_t k = 0; k < job.owners; k++) {
        int64_t owner = (me + k) % job.owners, next;
        while ((next = __atomic_fetch_add(&Pool.lines[owner].next, 1, __ATOMIC_RELAXED)) < job.each) {
            int64_t first = (owner * job.each + next) * job.chunk;
            if (first >= job.extent)
                break;
            flags |= do_chunk(&job, first, first + job.chunk);
            *count += 1;
        }
    }
    return flags;
}

static int do_iterations(int me, int64_t *reached);
enum { CAME = 1 << 30 }; /* among the flags of others: one was there */

/* ---- the other threads ------------------------------------------------------------------------------------------------ */
static inline int
is_open_for(int64_t state, int64_t seen)
{
    return !(state & CLOSED) && state >> NUMBER_AT != seen;
}

/* Sleep until there is a job, or another one has been done meanwhile. */
static void
sleep_until_called(int64_t seen)
{
    PUT(Pool.patience, SPIN);
    pthread_mutex_lock(&Pool.lock);
    __atomic_fetch_add(&Pool.sleepers, 1, __ATOMIC_SEQ_CST);
    if (!is_open_for(LOOK_AFTER(Pool.state), seen))
        pthread_cond_wait(&Pool.more, &Pool.lock);
    __atomic_fetch_sub(&Pool.sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&Pool.lock);
}

/* Do a part in the job, in which this thread is inside. */
static void
take_part(int me)
{
    int64_t count = 0;
    int flags;
    note_processor(me);
    fesetenv(&Pool.modes);
    feclearexcept(FLAGS);
    flags = Pool.job.code == NULL ? do_iterations(me, NULL) | CAME : do_chunks(me, &count);
    __atomic_fetch_or(&Pool.flags, flags | numpy_bits(fetestexcept(FLAGS)), __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&Pool.state, 1, __ATOMIC_SEQ_CST);
}

/* What a thread of the pool does; the argument is its number, where the caller is number 0. */
static void *
help_out(void *argument)
{
    int me = (int)(intptr_t)argument;
    int64_t seen = 0, since = nanoseconds();
    PUT(Pool.members[me].id, thread_number());
    note_processor(me);
    for (int64_t looks = 1;; looks++) {
        int64_t state = LOOK_AFTER(Pool.state);
        if (is_open_for(state, seen)) {
            /* Where this one is not wanted, or would only take turns with the caller, it leaves the job to others. */
            int useful = me < LOOK(Pool.wanted) && !in_turns();
            if (!useful || __atomic_compare_exchange_n(&Pool.state, &state, state + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
                seen = state >> NUMBER_AT;
                if (useful) {
                    take_part(me);
                    since = nanoseconds();
                }
                else
                    sched_yield();
            }
            continue;
        }
        pause_briefly();
        if (looks % 16)
            continue;
        if (nanoseconds() - since >= LOOK(Pool.patience)) {
            note_processor(me);
            sleep_until_called(seen);
            since = nanoseconds();
        }
        else if (in_turns())
            sched_yield();
    }
    return NULL;
}

/* Start a thread; is there one more? */
static int
start_member(int place)
{
    pthread_t thread;
    sigset_t all, before;
    int failed;
    sigfillset(&all);
    for (int k = 0; k < 4; k++) /* what comes of an instruction ends the process: not without handlers that say where */
        sigdelset(&all, (int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL}[k]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, NULL, help_out, (void *)(intptr_t)place);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        pthread_detach(thread);
    return !failed;
}

/* After a fork there are no threads but one. */
static void
forget_pool(void)
{
    memset(&Pool, 0, sizeof(Pool));
    Pool.state = CLOSED;
    Pool.patience = SPIN;
    pthread_mutex_init(&Pool.lock, NULL);
    pthread_cond_init(&Pool.more, NULL);
    SharingThreads = 1; /* a child mostly has sisters; until the options say otherwise */
}

/* ---- the caller ------------------------------------------------------------------------------------------------------- */
/* Get the pool for a job of so many threads, MOST_THREADS at most, `long_job` also where jobs run alone for the time being: when that was, or 0. */
static int64_t
claim_pool(int64_t threads, int long_job)
{
    static int forks;
    int64_t now = nanoseconds();
    int free = 0;
    if ((now < LOOK(Pool.alone) && !long_job) ||
        !__atomic_compare_exchange_n(&Pool.busy, &free, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return 0;
    if (Pool.threads < threads - 1) {
        if (!forks)
            forks = pthread_atfork(NULL, NULL, forget_pool) == 0 ? 1 : -1;
        while (forks > 0 && Pool.threads < threads - 1 && start_member(Pool.threads + 1))
            Pool.threads++;
        now = nanoseconds(); /* what that takes is no cost of sharing */
    }
    PUT(Pool.wanted, (int)threads);
    return now;
}

static void
release_pool(void)
{
    PUBLISH(Pool.busy, 0);
}

/* Wake threads that sleep, unless one that is about to sleep has no processor just then: it has the lock for some instructions. */
static void
wake_members(void)
{
    for (int look = 0; look < LOOKS; look++) {
        if (pthread_mutex_trylock(&Pool.lock) == 0) {
            pthread_cond_broadcast(&Pool.more);
            pthread_mutex_unlock(&Pool.lock);
            return;
        }
        pause_briefly();
    }
}

/* Open the job for all threads; those that sleep are woken if it is large, or jobs come thick: were they? */
static int
open_job(Job job, int large, int64_t now)
{
    int64_t ago = now - Pool.last;
    int thick = ago < THICK, woken, processor = sched_getcpu();
    Pool.job = job;
    fegetenv(&Pool.modes);
    PUT(Pool.flags, 0);
    for (int64_t k = 0; k < job.owners; k++)
        PUT(Pool.lines[k].next, 0);
    PUT(Pool.caller, processor);
    PUBLISH(Pool.state, ((LOOK(Pool.state) >> NUMBER_AT) + 1) << NUMBER_AT);
    Pool.last = now;
    Pool.good += thick ? ago : THICK;
    for (int place = 1; place < Pool.wanted && place <= Pool.threads; place++)
        keep_off(place, processor);
    woken = LOOK_AFTER(Pool.sleepers) > 0 && (large || thick);
    if (woken) {
        PUT(Pool.patience, thick ? SPIN_LONGER : SPIN);
        wake_members();
    }
    return woken;
}

/* For how long has this thread waited for others?  `since` is when it asked first, or 0. */
static int64_t
waited(int64_t *since)
{
    int64_t now = nanoseconds();
    *since = *since == 0 ? now : *since;
    return now - *since;
}

/* Let nobody enter the job any more, and wait for those that are inside: their flags.  See `waited`. */
static int
close_job(int64_t *since)
{
    *since = 0;
    __atomic_fetch_or(&Pool.state, CLOSED, __ATOMIC_SEQ_CST);
    for (int looks = 1; LOOK_AFTER(Pool.state) & (CLOSED - 1); looks++) {
        if (looks % 16 == 0 && waited(since) >= LATE)
            sched_yield();
        pause_briefly();
    }
    return LOOK_AFTER(Pool.flags);
}

/* Note what sharing a job of `took` nanoseconds has cost the caller, or gained.  Is it too much, jobs run alone for a while. */
static void
judge(int64_t lost, int64_t took, int64_t now)
{
    int64_t least = took / 8 > LATE ? took / 8 : LATE;
    Pool.lost = Pool.lost + lost > 0 ? Pool.lost + lost : 0;
    if (Pool.lost > least) {
        int64_t rest = Pool.good > CALM ? LEAST_ALONE : 2 * Pool.rest;
        rest = rest < REPAID * Pool.lost ? REPAID * Pool.lost : rest;
        Pool.rest = rest < LEAST_ALONE ? LEAST_ALONE : rest > MOST_ALONE ? MOST_ALONE : rest;
        PUT(Pool.alone, now + Pool.rest);
        Pool.lost = Pool.good = 0;
    }
}

/* Share a job, for which `claim_pool` was called at the time `start`: the flags. */
static int
share_job(Job job, int large, int64_t start)
{
    int woken = open_job(job, large, start), flags;
    int64_t count = 0, since, begun = woken ? nanoseconds() : start;
    flags = do_chunks(0, &count);
    flags |= close_job(&since);
    if (woken || since) {
        int64_t now = nanoseconds(), took = now - start, ended = since ? since : now;
        int64_t chunks = (job.extent + job.chunk - 1) / job.chunk;
        /* One that has done no chunk had no processor, and has waited for the thread that took all. */
        judge(count ? took - (ended - begun) / count * chunks : now - ended, took, now);
    }
    else /* it has cost nothing: an eighth of the losses before is made up for */
        Pool.lost -= Pool.lost / 8;
    return flags;
}

/* ---- work that shares itself ------------------------------------------------------------------------------------------ */
typedef struct {
    void *(*work)(void *);
    void *what;
} Work;

static int
do_own_work(void *args, int64_t first, int64_t end)
{
    const Work *w = args;
    w->work(w->what);
    return 0;
}

/* Call `work(what)` on so many threads, of which this is one: each does what nobody has begun. */
static void
share_work(void *(*work)(void *), void *what, int threads)
{
    Work w = {work, what};
    int64_t start;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    start = threads > 1 ? claim_pool(threads, 0) : 0;
    if (start) {
        share_job((Job){do_own_work, &w, .extent = threads, .chunk = 1, .each = 1, .owners = threads}, 1, start);
        release_pool();
    }
    else
        work(what);
}

/* Take so many of the pieces that nobody has begun: the first of them. */
static inline Py_ssize_t
next_piece(Py_ssize_t *next, Py_ssize_t many)
{
    return __atomic_fetch_add(next, many, __ATOMIC_RELAXED);
}

/* Add floating-point exceptions to those of all threads. */
static inline void
note_flags(int *all, int flags)
{
    if (flags)
        __atomic_fetch_or(all, flags, __ATOMIC_RELAXED);
}

/* judge_sharing(account[, lost, took, now]): set the account of the pool to what `judge` keeps there, if it is given, and note a
 * job; the account: (lost, good, last time of work alone, until when). */
static PyObject *
judge_sharing(PyObject *module, PyObject *args)
{
    PyObject *account;
    long long kept[4], lost = 0, took = 0, now = 0;
    if (!PyArg_ParseTuple(args, "O|LLL", &account, &lost, &took, &now))
        return NULL;
    if (account != Py_None) {
        if (!PyArg_ParseTuple(account, "LLLL", &kept[0], &kept[1], &kept[2], &kept[3]))
            return NULL;
        Pool.lost = kept[0];
        Pool.good = kept[1];
        Pool.rest = kept[2];
        PUT(Pool.alone, kept[3]);
    }
    if (now)
        judge(lost, took, now);
    return Py_BuildValue("LLLL", (long long)Pool.lost, (long long)Pool.good, (long long)Pool.rest, (long long)LOOK(Pool.alone));
}
