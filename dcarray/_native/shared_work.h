/* Threads that share a piece of work with the one that calls; where there are none, that one does all.
 *
 * They look for work for a while after the last piece, since the next one mostly comes soon, and sleep then: to wake one
 * takes as long as NumPy takes for some ten thousand elements.  Nobody waits for a thread that has not begun. */

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
#include <time.h>

enum { MOST_THREADS = 64, LOOKS = 64 };
static const long WATCH = 100000; /* nanoseconds in which a thread looks for more work */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    void *(*work)(void *);
    void *what;        /* NULL: nothing to do */
    unsigned long number; /* of the piece of work; read without the lock */
    int wanted, busy, threads, asleep, taken; /* the last: does a thread share its work now? */
} Team = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0, 0, 0, 0, 0, 0};

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
    int place = (int)(intptr_t)argument;
    for (;;) {
        long until = nanoseconds() + WATCH;
        while (__atomic_load_n(&Team.number, __ATOMIC_ACQUIRE) == seen && nanoseconds() < until)
            for (int look = 0; look < LOOKS; look++)
                rest_a_moment();
        pthread_mutex_lock(&Team.lock);
        while (Team.number == seen) {
            Team.asleep++;
            pthread_cond_wait(&Team.more, &Team.lock);
            Team.asleep--;
        }
        seen = Team.number;
        if (Team.what != NULL && place < Team.wanted) {
            void *(*work)(void *) = Team.work;
            void *what = Team.what;
            Team.busy++;
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
    Team.what = NULL;
}

/* Call `work(what)` on so many threads, of which this is one: each does what nobody has begun. */
static void
share_work(void *(*work)(void *), void *what, int threads)
{
    static int forks;
    int mine = 0;
    threads = threads > MOST_THREADS ? MOST_THREADS : threads;
    if (threads > 1) {
        pthread_mutex_lock(&Team.lock);
        if (!forks)
            forks = pthread_atfork(NULL, NULL, forget_team) == 0 ? 1 : -1;
        mine = forks > 0 && !Team.taken;
        while (mine && Team.threads < threads - 1) {
            pthread_t made;
            if (pthread_create(&made, NULL, help_out, (void *)(intptr_t)Team.threads) != 0)
                break;
            pthread_detach(made);
            Team.threads++;
        }
        if (mine) {
            Team.taken = 1;
            Team.work = work;
            Team.what = what;
            Team.wanted = threads - 1;
            __atomic_store_n(&Team.number, Team.number + 1, __ATOMIC_RELEASE);
            if (Team.asleep)
                pthread_cond_broadcast(&Team.more);
        }
        pthread_mutex_unlock(&Team.lock);
    }
    work(what);
    if (mine) {
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
        pthread_mutex_unlock(&Team.lock);
    }
}
#endif
