/* The rest of the sampler between two looks (dcarray/jit/loops/sites/sampler.py).
 *
 * A thread that waits for the interpreter's lock is woken each time that another thread gives it up, and finds it taken again
 * where that is for a moment, as in each call of a random number generator: the program then pays for a wake-up in each call,
 * and the thread sees these calls only, after seconds perhaps.  So the main thread is made to let this one go first: by a
 * pending call, which CPython before 3.13 does not notice before the main thread has waited for the lock itself; and there, while
 * this one waits, by a very short switch interval.  What sets that is not documented, and does it without the lock only before
 * 3.12, which is not going to change any more; elsewhere the lock comes 5 ms later, and calls that take less are hardly ever seen. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t RestMutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t RestEnded = PTHREAD_COND_INITIALIZER;
static int Ending;    /* whether the interpreter ends: its memory is not to be touched any more */
static int WantsLock; /* whether the thread waits for the interpreter's lock */

enum { INTERVAL = 200 };        /* microseconds */
enum { MOST_WAITED = 2000000 }; /* nanoseconds that the main thread waits: some other thread may have the lock */

/* Let the thread that waits have the interpreter's lock; called by the main thread between two instructions. */
static int
let_go_first(void *nothing)
{
    (void)nothing;
    Py_BEGIN_ALLOW_THREADS
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += MOST_WAITED;
    if (end.tv_nsec >= 1000000000) {
        end.tv_nsec -= 1000000000;
        end.tv_sec++;
    }
    pthread_mutex_lock(&RestMutex);
    while (WantsLock && pthread_cond_timedwait(&RestEnded, &RestMutex, &end) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&RestMutex);
    Py_END_ALLOW_THREADS
    return 0;
}

static void
want_lock(int wants)
{
    pthread_mutex_lock(&RestMutex);
    WantsLock = wants;
    pthread_cond_broadcast(&RestEnded);
    pthread_mutex_unlock(&RestMutex);
}

/* A child of a fork has no sampler, and perhaps a copy of the lock that it held. */
static void
forget_rest(void)
{
    pthread_mutex_init(&RestMutex, NULL);
    pthread_cond_init(&RestEnded, NULL);
    WantsLock = 0;
}

/* waiting(function, *arguments): call a function that waits, while this thread does not hold collections back.  Objects that it
 * makes could start a collection here: it is a function in C that makes none. */
static PyObject *
waiting(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result, *rest = tuple_of(args + 1, count - 1); /* now, since the call may need it */
    if (rest == NULL)
        return NULL;
    if (Holds && --Holding == 0)
        set_collections(1);
    result = PyObject_Call(args[0], rest, NULL);
    if (Holds && Holding++ == 0) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        set_collections(0);
        PyErr_Restore(type, value, traceback);
    }
    Py_DECREF(rest);
    return result;
}

/* without_collections(function, *arguments): all that a thread does.  Nothing is made after the release. */
static PyObject *
without_collections(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result, *type, *value, *traceback;
    collect_nothing();
    result = PyObject_Vectorcall(args[0], args + 1, count - 1, NULL);
    PyErr_Fetch(&type, &value, &traceback);
    may_collect();
    PyErr_Restore(type, value, traceback);
    return result;
}

/* is_readable(descriptor, milliseconds): whether there is something to read, within this time. */
static PyObject *
is_readable(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct pollfd one = {(int)PyLong_AsLong(args[0]), POLLIN, 0};
    int most = (int)PyLong_AsLong(args[1]), ready;
    if (PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    ready = poll(&one, 1, most);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(ready > 0);
}

/* Call ``work()`` in the main thread.  Errors of Python's own classes are of no interest to the program, unlike those of handlers of
 * signals, which wait, and what other threads raise here.  All this is in C since a function in Python has no room where the program
 * has come to the limit of recursion. */
static int
do_work(void *work)
{
    PyThreadState *state = PyThreadState_Get();
    unsigned long held = hold_signals();
    PyObject *done;
    PyThreadState_EnterTracing(state); /* no tool is to see it */
    done = PyObject_CallNoArgs((PyObject *)work);
    PyThreadState_LeaveTracing(state);
    Py_DECREF((PyObject *)work);
    Py_XDECREF(done);
    if (done == NULL && PyErr_ExceptionMatches(PyExc_Exception) &&
        !PyType_HasFeature((PyTypeObject *)PyErr_Occurred(), Py_TPFLAGS_HEAPTYPE))
        PyErr_Clear();
    let_go(held);
    return done != NULL || !PyErr_Occurred() ? 0 : -1;
}

/* have_done(work): have the main thread call ``work()`` soon, between two instructions; nothing happens if too many wait. */
static PyObject *
have_done(PyObject *module, PyObject *work)
{
    Py_INCREF(work);
    if (Py_AddPendingCall(do_work, work) < 0)
        Py_DECREF(work);
    Py_RETURN_NONE;
}

/* chain_of(frame, sites, depth): the code objects with sites, or all, of a frame, which is let go, and its callers; with their lines
 * and instructions. */
static PyObject *
chain_of(PyFrameObject *frame, PyObject *sites, int depth)
{
    PyObject *chain = PyList_New(0);
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyFrameObject *back = --depth > 0 ? PyFrame_GetBack(frame) : NULL;
        PyObject *number = PyLong_FromVoidPtr(code), *entry = NULL;
        int at = PyFrame_GetLasti(frame), line = PyCode_Addr2Line(code, at);
        for (int before = at - 2; line <= 0 && before >= 0; before -= 2) /* such as a jump back, which has no line */
            line = PyCode_Addr2Line(code, before);
        if (chain != NULL && number != NULL && (sites == Py_None || PyDict_Contains(sites, number) > 0) &&
            ((entry = Py_BuildValue("(Oii)", code, line, at)) == NULL || PyList_Append(chain, entry) < 0))
            Py_CLEAR(chain);
        Py_XDECREF(number);
        Py_XDECREF(entry);
        Py_DECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    return chain;
}

/* chains(sites, own, depth): `chain_of` each thread of this interpreter that has such code, by its number, but for the thread with
 * the number `own`.  `sys._current_frames` has frames of other interpreters, too, which have memory and a lock of their own from
 * CPython 3.12 on: an object for one must not be made here.  No other thread runs in between: it may return from a function, whose
 * variables a reference to its frame would keep.  So no garbage is collected, either. */
static PyObject *
chains_of_threads(PyObject *module, PyObject *args)
{
    PyObject *sites, *chains = PyDict_New();
    unsigned long own;
    int depth, collects;
    if (!PyArg_ParseTuple(args, "Oki", &sites, &own, &depth) || (sites != Py_None && !PyDict_Check(sites)))
        Py_CLEAR(chains);
    collects = PyGC_Disable();
    for (PyThreadState *one = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); chains != NULL && one != NULL; one = PyThreadState_Next(one)) {
        PyObject *chain = one->thread_id == own ? PyList_New(0) : chain_of(PyThreadState_GetFrame(one), sites, depth);
        PyObject *number = PyLong_FromUnsignedLong(one->thread_id);
        if (chain == NULL || number == NULL || (PyList_GET_SIZE(chain) && PyDict_SetItem(chains, number, chain) < 0))
            Py_CLEAR(chains);
        Py_XDECREF(number);
        Py_XDECREF(chain);
    }
    if (collects)
        PyGC_Enable();
    return chains;
}

/* end_rest(): called when the interpreter ends. */
static PyObject *
end_rest(PyObject *module, PyObject *nothing)
{
    Ending = 1;
    Py_RETURN_NONE;
}

/* rest(seconds): sleep, and have the interpreter's lock again as soon as the main thread can give it. */
static PyObject *
rest(PyObject *module, PyObject *seconds)
{
    static int watches_forks, looked;
    static unsigned long (*interval)(void);
    static void (*set_interval)(unsigned long);
    unsigned long before = 0;
    double length = PyFloat_AsDouble(seconds);
    struct timespec left;
    PyThreadState *state = PyThreadState_Get();
    if (length == -1 && PyErr_Occurred())
        return NULL;
    if (!state->tracing)
        PyThreadState_EnterTracing(state); /* for good: no tool is to see this thread */
    if (!looked && PY_VERSION_HEX < 0x030C0000) {
        interval = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, "_PyEval_GetSwitchInterval");
        set_interval = (void (*)(unsigned long))dlsym(RTLD_DEFAULT, "_PyEval_SetSwitchInterval");
    }
    looked = 1;
    if (!watches_forks)
        watches_forks = pthread_atfork(NULL, NULL, forget_rest) == 0;
    left.tv_sec = (time_t)length;
    left.tv_nsec = (long)((length - (double)left.tv_sec) * 1e9);
    Py_BEGIN_ALLOW_THREADS
    nanosleep(&left, NULL);
    while (Ending) /* at last CPython forgets that it has ended, and would let this thread have what is gone */
        pause();
    if (interval != NULL && set_interval != NULL) {
        before = interval();
        set_interval(INTERVAL);
    }
    want_lock(1);
    Py_AddPendingCall(let_go_first, NULL); /* where there are too many, the lock comes later */
    Py_END_ALLOW_THREADS
    want_lock(0);
    if (before > 0 && interval() == INTERVAL) /* else the program has set another one */
        set_interval(before);
    Py_RETURN_NONE;
}
