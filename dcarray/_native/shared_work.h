/* Threads that share a piece of work with the one that calls; where there are none, that one does all.
 *
 * They look for work for a while after the last piece, since the next one mostly comes soon, and sleep then: to wake one
 * takes as long as NumPy takes for some ten thousand elements.  Nobody waits for a thread that has not begun.  One that
 * has, and loses its processor to another program, is waited for: where that has cost more than sharing gains, work is not
 * shared for a while. */

static int SharingThreads = 1; /* by default: of NumPy's loops */

#ifdef _WIN32
static void
share_work(void *(*work)(void *), void *what, int threads)
{
    work(what);
}

static inline Py_ssize_t
next_piece(Py_ssize_t *next, Py_ssize_t many)
{
    Py_ssize_t first = *next;
    *next += many;
    return first;
}

static inline void
note_flags(int *all, int flags)
{
    *all |= flags;
}
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { MOST_THREADS = 64, LOOKS = 64 };
static const long WATCH = 100000; /* nanoseconds in which a thread looks for more work */

/* What is lost by sharing until work is done alone, for how many times as long that is, at least and at most, and how long
 * sharing has to go well until earlier losses do not count; all in nanoseconds.  They are those of the threads of kernels
 * (`lowering/cpu/llvm/thread_pool/pool.py`). */
static const long MOST_LOST = 80000, REPAID = 16, LEAST_ALONE = 1000000, MOST_ALONE = 500000000, CALM = 50000000;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    void *(*work)(void *);
    void *what;        /* NULL: nothing to do */
    unsigned long number; /* of the piece of work; read without the lock */
    int wanted, busy, threads, asleep, taken; /* the last: does a thread share its work now? */
    int caller, joined;    /* the processor of that thread, and how many have begun */
    long lost, good, rest, until; /* by sharing lately; time of sharing; the last time of work alone, and when it ends */
    struct {
        int id, processor, moved; /* of a thread: its number, where it ran last, and is it kept from a processor? */
    } members[MOST_THREADS];
} Team = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* A thread of the team that waits on the processor of the one that calls would begin when that one is done: Linux leaves
 * it there, for as long as it likes, though others are idle. */
#ifdef __linux__
static void
keep_off(int place, int processor)
{
    cpu_set_t may;
    int id = Team.members[place].id;
    if (id == 0 || Team.members[place].processor != processor || sched_getaffinity(id, sizeof(may), &may) != 0)
        return;
    CPU_CLR(processor, &may);
    if (CPU_COUNT(&may) > 0 && sched_setaffinity(id, sizeof(may), &may) == 0)
        Team.members[place].moved = processor + 1;
}

/* The same thread, at work on another one, may go anywhere again. */
static void
note_processor(int place)
{
    cpu_set_t may;
    if (Team.members[place].moved && sched_getaffinity(0, sizeof(may), &may) == 0) {
        CPU_SET(Team.members[place].moved - 1, &may);
        sched_setaffinity(0, sizeof(may), &may);
        Team.members[place].moved = 0;
    }
    Team.members[place].processor = sched_getcpu();
}

static int
thread_number(void)
{
    return (int)syscall(SYS_gettid);
}

/* Does this thread take turns with the one that shares its work? */
static int
in_turns(void)
{
    return sched_getcpu() == Team.caller;
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
    return 0;
}

static int
in_turns(void)
{
    return 0;
}
#endif

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

static inline void
rest_a_moment(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static long
nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* What a thread of the team does: the argument is how many there were before it. */
static void *
help_out(void *argument)
{
    unsigned long seen = 0;
    int place = (int)(intptr_t)argument, id = thread_number();
    for (;;) {
        long until = nanoseconds() + WATCH;
        while (__atomic_load_n(&Team.number, __ATOMIC_ACQUIRE) == seen && !in_turns() && nanoseconds() < until)
            for (int look = 0; look < LOOKS; look++)
                rest_a_moment();
        pthread_mutex_lock(&Team.lock);
        Team.members[place].id = id;
        note_processor(place);
        while (Team.number == seen) {
            Team.asleep++;
            pthread_cond_wait(&Team.more, &Team.lock);
            Team.asleep--;
        }
        seen = Team.number;
        note_processor(place);
        if (Team.what != NULL && place < Team.wanted && !in_turns()) {
            void *(*work)(void *) = Team.work;
            void *what = Team.what;
            Team.busy++;
            Team.joined++;
            pthread_mutex_unlock(&Team.lock);
            work(what);
            pthread_mutex_lock(&Team.lock);
            __atomic_store_n(&Team.busy, Team.busy - 1, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&Team.lock);
    }
    return NULL;
}

/* After a fork there are no threads but one. */
static void
forget_team(void)
{
    pthread_mutex_init(&Team.lock, NULL);
    pthread_cond_init(&Team.more, NULL);
    Team.threads = Team.busy = Team.asleep = Team.taken = 0;
    Team.lost = Team.good = Team.rest = Team.until = 0;
    Team.what = NULL;
    SharingThreads = 1; /* a child mostly has sisters; until the options say otherwise */
    memset(Team.members, 0, sizeof(Team.members));
}

/* Start a thread of the team, which takes no signals: they are the program's. */
static int
start_member(int place)
{
    pthread_t made;
    sigset_t all, before;
    int failed;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&made, NULL, help_out, (void *)(intptr_t)place);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        pthread_detach(made);
    return !failed;
}

/* Note what sharing a piece of work has cost, or gained: is it too much, work is done alone for a while, for longer each
 * time unless sharing went well in between. */
static void
judge_sharing(long lost, long took, long now)
{
    Team.lost = Team.lost + lost > 0 ? Team.lost + lost : 0;
    Team.good += took;
    if (Team.lost > MOST_LOST && Team.lost > took / 8) {
        long rest = Team.good > CALM ? LEAST_ALONE : 2 * Team.rest;
        rest = rest < REPAID * Team.lost ? REPAID * Team.lost : rest;
        rest = rest < LEAST_ALONE ? LEAST_ALONE : rest > MOST_ALONE ? MOST_ALONE : rest;
        Team.rest = rest;
        Team.until = now + rest;
        Team.lost = Team.good = 0;
    }
}

/* Take the lock unless a thread keeps it for long: it may have no processor. */
static int
take_team(void)
{
    for (int look = 0; look < LOOKS; look++) {
        if (pthread_mutex_trylock(&Team.lock) == 0)
            return 1;
        rest_a_moment();
    }
    return 0;
}

/* Call `work(what)` on so many threads, of which this is one: each does what nobody has begun. */
static void
share_work(void *(*work)(void *), void *what, int threads)
{
    static int forks;
    int mine = 0;
    long start = nanoseconds(), begun = start, ended;
    threads = threads > MOST_THREADS ? MOST_THREADS : threads;
    if (threads > 1 && take_team()) {
        if (!forks)
            forks = pthread_atfork(NULL, NULL, forget_team) == 0 ? 1 : -1;
        mine = forks > 0 && !Team.taken && start >= Team.until;
        while (mine && Team.threads < threads - 1 && start_member(Team.threads)) {
            Team.threads++;
            start = nanoseconds(); /* what that takes is no cost of sharing */
        }
        if (mine) {
            Team.taken = 1;
            Team.work = work;
            Team.what = what;
            Team.wanted = threads - 1;
            Team.joined = 0;
            Team.caller = sched_getcpu();
            for (int place = 0; place < threads - 1 && place < Team.threads; place++)
                keep_off(place, Team.caller);
            __atomic_store_n(&Team.number, Team.number + 1, __ATOMIC_RELEASE);
            if (Team.asleep)
                pthread_cond_broadcast(&Team.more);
        }
        pthread_mutex_unlock(&Team.lock);
        begun = nanoseconds();
    }
    work(what);
    if (mine) {
        ended = nanoseconds();
        pthread_mutex_lock(&Team.lock);
        Team.what = NULL; /* nobody begins any more */
        while (Team.busy) {
            pthread_mutex_unlock(&Team.lock);
            for (int look = 0; look < LOOKS && __atomic_load_n(&Team.busy, __ATOMIC_ACQUIRE); look++)
                rest_a_moment();
            sched_yield();
            pthread_mutex_lock(&Team.lock);
        }
        Team.taken = 0;
        long now = nanoseconds(), took = now - start;
        judge_sharing(begun - start + now - ended - (Team.joined ? took / 4 : 0), took, now);
        pthread_mutex_unlock(&Team.lock);
    }
}
#endif
